"""Manifests for Kubernetes, of which one is applied: JobSet, TrainJob with TrainingRuntime, PyTorchJob.

References
----------
Kubernetes API reference 1.37, PodSpec and Job. kubernetes-sigs, JobSet v1alpha2. Kubeflow, Trainer v1alpha1
(kubeflow-trainer-api 2.3) and Training Operator v1 (kubeflow-training 1.9), documentation, 2026.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from linkwise.launch.render.pods import GPU_RESOURCES, config_map, pod_gaps, pod_spec
from linkwise.launch.render.start import Rendered
from linkwise.launch.render.torchrun import PORT, node_gaps
from linkwise.launch.render.words import printable, yaml_text

if TYPE_CHECKING:
    from linkwise.launch.render.start import Program, Start

__all__ = ["FILES", "kubernetes_files", "read_manifest"]

FILES = ("jobset.yaml", "trainjob.yaml", "pytorchjob.yaml")
_NODE = "node"
_KUBEFLOW_PORT = 23456
"""The port that the Training Operator opens for a PyTorchJob."""
_STEP = "trainer.kubeflow.org/trainjob-ancestor-step"

Document = dict[str, Any]


def kubernetes_files(start: Start, program: Program) -> Rendered:
    """Return the manifests; the files of the program stand in a ConfigMap in each.

    Parameters
    ----------
    start
        What is to be started.
    program
        What every process runs.
    """
    documents = (_job_set(start, program), *_train_job(start, program), _pytorch_job(start, program))
    texts = {
        FILES[0]: _text(start, program, documents[:1]),
        FILES[1]: _text(start, program, documents[1:3]),
        FILES[2]: _text(start, program, documents[3:]),
    }
    return Rendered(
        files={**texts, **program.files},
        purposes={
            FILES[0]: "JobSet (jobset.x-k8s.io/v1alpha2)",
            FILES[1]: "TrainJob and its TrainingRuntime (Kubeflow Trainer)",
            FILES[2]: "PyTorchJob (Kubeflow Training Operator v1)",
            **{name: f"{what}; stands in the manifests too" for name, what in program.purposes.items()},
        },
        not_expressed=(*program.not_expressed, *pod_gaps(start), *node_gaps(start)),
        assumed=(*program.assumed, *_assumed(start)),
        how_to_start=(
            "Apply one of the three, that of the controller your cluster has; each is a job of its own:\n\n"
            f"    kubectl apply -f {FILES[0]}\n"
            f"    kubectl apply -f {FILES[1]}\n"
            f"    kubectl apply -f {FILES[2]}\n"
        ),
        logs="`/var/log/linkwise/` of each pod",
    )


def _assumed(start: Start) -> Iterator[str]:
    if start.image is None:
        yield (
            "the image: no document names one, and the one that is written has PyTorch and NCCL but not your "
            "program; name yours with --image"
        )


def _text(start: Start, program: Program, documents: tuple[Document, ...]) -> str:
    what = f"{printable(start.job.model.name)} on {printable(start.cluster.name)}"
    heading = f"Starts {what}. Written by Linkwise; README.md says how to use it."
    configuration = [config_map(start, program)] if program.files else []
    return yaml_text([*configuration, *documents], heading=heading)


def _metadata(start: Start) -> Document:
    return {"name": start.name, "labels": {"app.kubernetes.io/name": start.name}}


def _job_set(start: Start, program: Program) -> Document:
    """Return a JobSet of one indexed job: the index of a pod is the number of its node."""
    head = f"{start.name}-{_NODE}-0-0.{start.name}"
    rendezvous = _rendezvous(start, rank="$JOB_COMPLETION_INDEX", head=head, port=PORT)
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": _metadata(start),
        "spec": {
            "network": {"enableDNSHostnames": True, "publishNotReadyAddresses": True},
            "failurePolicy": {"maxRestarts": 0},
            "replicatedJobs": [
                {
                    "name": _NODE,
                    "replicas": 1,
                    "template": {
                        "spec": _job_spec(start, pod_spec(start, program, rendezvous, container=_NODE))
                    },
                }
            ],
        },
    }


def _job_spec(start: Start, pod: Document) -> Document:
    return {
        "parallelism": start.nodes,
        "completions": start.nodes,
        "completionMode": "Indexed",
        "backoffLimit": 0,
        "activeDeadlineSeconds": start.time_limit_s,
        "template": {"spec": pod},
    }


def _rendezvous(start: Start, *, rank: str, head: str, port: int | str) -> str:
    if start.nodes == 1:
        return "--standalone"
    return f'--node-rank="{rank}" --master-addr="{head}" --master-port={port}'


def _train_job(start: Start, program: Program) -> tuple[Document, Document]:
    """Return the runtime and the job; the controller puts rank, head and port into PET_ variables."""
    rendezvous = _rendezvous(start, rank="$PET_NODE_RANK", head="$PET_MASTER_ADDR", port='"$PET_MASTER_PORT"')
    pod = pod_spec(start, program, rendezvous, container=_NODE)
    template = {
        "metadata": {"labels": {_STEP: "trainer"}},
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": start.time_limit_s,
            "template": {"spec": pod},
        },
    }
    runtime = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainingRuntime",
        "metadata": _metadata(start),
        "spec": {
            "mlPolicy": {"numNodes": start.nodes, "torch": {}},
            "template": {"spec": {"replicatedJobs": [{"name": _NODE, "template": template}]}},
        },
    }
    job = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": _metadata(start),
        "spec": {
            "runtimeRef": {
                "apiGroup": "trainer.kubeflow.org",
                "kind": "TrainingRuntime",
                "name": start.name,
            },
            "trainer": {
                "numNodes": start.nodes,
                "numProcPerNode": start.gpus_per_node,
                "resourcesPerNode": pod["containers"][0]["resources"],
            },
        },
    }
    return runtime, job


def _pytorch_job(start: Start, program: Program) -> Document:
    """Return a PyTorchJob: the master is node 0, and RANK counts pods."""
    rendezvous = _rendezvous(start, rank="$RANK", head=f"{start.name}-master-0", port=_KUBEFLOW_PORT)
    pod = pod_spec(start, program, rendezvous, container="pytorch")
    roles = {"Master": 1, "Worker": start.nodes - 1}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": _metadata(start),
        "spec": {
            "nprocPerNode": str(start.gpus_per_node),
            "runPolicy": {
                "activeDeadlineSeconds": start.time_limit_s,
                "backoffLimit": 0,
                "cleanPodPolicy": "None",
            },
            "pytorchReplicaSpecs": {
                role: {"replicas": count, "restartPolicy": "Never", "template": {"spec": pod}}
                for role, count in roles.items()
                if count
            },
        },
    }


def read_manifest(text: str) -> tuple[int, Mapping[str, str]]:
    """Return the processes that a manifest starts, and the files of the program that it carries.

    Parameters
    ----------
    text
        The manifest.
    """
    from ruamel.yaml import YAML

    ranks, files = 0, {}
    for document in YAML(typ="safe", pure=True).load_all(text):
        if document["kind"] == "ConfigMap":
            files = dict(document["data"])
        elif document["kind"] != "TrainingRuntime":
            ranks += _RANKS[document["kind"]](document["spec"])
    return ranks, files


def _ranks_of_job_set(spec: Document) -> int:
    ranks = 0
    for each in spec["replicatedJobs"]:
        job = each["template"]["spec"]
        limits = job["template"]["spec"]["containers"][0]["resources"]["limits"]
        gpus = next(int(count) for name, count in limits.items() if name in GPU_RESOURCES)
        ranks += each["replicas"] * job["parallelism"] * gpus
    return ranks


def _ranks_of_train_job(spec: Document) -> int:
    return int(spec["trainer"]["numNodes"] * spec["trainer"]["numProcPerNode"])


def _ranks_of_pytorch_job(spec: Document) -> int:
    pods = sum(each["replicas"] for each in spec["pytorchReplicaSpecs"].values())
    return int(pods * int(spec["nprocPerNode"]))


_RANKS: Mapping[str, Callable[[Document], int]] = {
    "JobSet": _ranks_of_job_set,
    "TrainJob": _ranks_of_train_job,
    "PyTorchJob": _ranks_of_pytorch_job,
}
