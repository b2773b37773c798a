"""The pod of a training job: GPUs and NICs, shared and locked memory, settings, files and the command.

References
----------
Kubernetes API reference 1.37, PodSpec, Container and Volume. NVIDIA, documentation of the GPU and Network
Operators. AWS, aws-efa-k8s-device-plugin. PyTorch, documentation of torchrun.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from linkwise.launch.render.run_settings import LOGS
from linkwise.launch.render.start import NotExpressed
from linkwise.launch.render.torchrun import log_options
from linkwise.launch.render.words import program_lines

if TYPE_CHECKING:
    from linkwise.launch.render.start import Program, Start
    from linkwise.settings.recommended import Setting

__all__ = ["CONFIG_FOLDER", "GPU_RESOURCES", "config_map", "pod_gaps", "pod_spec"]

CONFIG_FOLDER = "/etc/linkwise"
_LOG_FOLDER = "/var/log/linkwise"
_SHARED_MEMORY = "/dev/shm"  # noqa: S108 (where NCCL looks for shared memory)
_IMAGE = "nvcr.io/nvidia/pytorch:25.06-py3"
GPU_RESOURCES = ("nvidia.com/gpu", "amd.com/gpu")
"""Names by which pods ask for GPUs, as the plugins of their vendors give them."""
_NIC_RESOURCES: Mapping[str, str] = {
    "infiniband": "rdma/rdma_shared_device_a",
    "roce": "rdma/rdma_shared_device_a",
    "efa": "vpc.amazonaws.com/efa",
}
"""Name by which pods ask for a NIC, by its protocol, as the documentation of the plugins has it."""


def pod_spec(start: Start, program: Program, rendezvous: str, *, container: str) -> dict[str, Any]:
    """Return the specification of the pod of one node.

    Parameters
    ----------
    start
        What is to be started.
    program
        What every process runs.
    rendezvous
        Options of torchrun that say which node this is and where the first one is.
    container
        Name of the container, as the controller asks for it.
    """
    mounts = [
        {"name": "shared-memory", "mountPath": _SHARED_MEMORY},
        {"name": "logs", "mountPath": _LOG_FOLDER},
    ]
    volumes: list[dict[str, Any]] = [
        {"name": "shared-memory", "emptyDir": {"medium": "Memory"}},
        {"name": "logs", "emptyDir": {}},
    ]
    if program.files:
        mounts.append({"name": "configuration", "mountPath": CONFIG_FOLDER})
        volumes.append({"name": "configuration", "configMap": {"name": start.name}})
    return {
        "restartPolicy": "Never",
        "containers": [
            {
                "name": container,
                "image": start.image or _IMAGE,
                "command": ["bash", "-c", _script(start, program, rendezvous), "start"],
                "env": [
                    {"name": each.name, "value": each.value} for each in map(_with_folder, start.settings)
                ],
                "resources": _resources(start),
                "securityContext": {"capabilities": {"add": ["IPC_LOCK"]}},
                "volumeMounts": mounts,
            }
        ],
        "volumes": volumes,
    }


def _with_folder(setting: Setting) -> Setting:
    return replace(setting, value=f"{_LOG_FOLDER}/{setting.value}") if setting.name in LOGS else setting


def _script(start: Start, program: Program, rendezvous: str) -> str:
    launcher = (
        f"exec torchrun --nnodes={start.nodes} --nproc-per-node={start.gpus_per_node}",
        rendezvous,
        log_options(start, _LOG_FOLDER, node="$HOSTNAME"),
    )
    lines = program_lines(program, launcher=launcher, folder=CONFIG_FOLDER)
    return "\n".join(["set -euo pipefail", *lines]) + "\n"


def _resources(start: Start) -> dict[str, dict[str, str]]:
    asked = {_gpu_resource(start): str(start.gpus_per_node)}
    nic = _nic_resource(start)
    if nic is not None:
        asked[nic] = str(start.cluster.nics_per_node)
    return {"requests": asked, "limits": dict(asked)}


def _gpu_resource(start: Start) -> str:
    return GPU_RESOURCES[start.cluster.gpu.architecture.upper().startswith("CDNA")]


def _protocol(start: Start) -> str:
    link = start.cluster.fabric.link
    return "" if link is None or start.nodes == 1 else link.protocol


def _nic_resource(start: Start) -> str | None:
    if start.nodes == 1 or not start.cluster.nics_per_node:
        return None
    return start.nic_resource or _NIC_RESOURCES.get(_protocol(start))


def config_map(start: Start, program: Program) -> dict[str, Any]:
    """Return the files of a program as a ConfigMap.

    Parameters
    ----------
    start
        What is to be started.
    program
        What every process runs.
    """
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": start.name, "labels": {"app.kubernetes.io/name": start.name}},
        "data": dict(program.files),
    }


def pod_gaps(start: Start) -> Iterator[NotExpressed]:
    """Yield what a pod does not say of the plan.

    Parameters
    ----------
    start
        What is to be started.
    """
    yield from _nic_gaps(start)
    yield NotExpressed(
        name="logs",
        value=_LOG_FOLDER,
        reason="the volume goes with the pod: mount one that stays, or copy the logs before the pod is "
        "deleted",
    )
    if start.nodes > 1:
        yield NotExpressed(
            name="placement",
            value=f"{start.nodes} nodes",
            reason="pods are not told which leaf their node is at: with Kueue and a Topology, annotate "
            "the pod "
            "template with kueue.x-k8s.io/podset-required-topology or podset-preferred-topology",
        )


def _nic_gaps(start: Start) -> Iterator[NotExpressed]:
    if start.nodes == 1:
        return
    resource, nics = _nic_resource(start), f"{start.cluster.nics_per_node} per node"
    if resource is None:
        yield NotExpressed(
            name="NICs",
            value=nics,
            reason=f"pods have no common request for NICs that speak "
            f"{_protocol(start) or 'an unknown protocol'}: "
            "attach them as the network of the cluster is set up (annotations, host network), or name "
            "the resource "
            "with --nic-resource",
        )
    elif start.nic_resource is None and _protocol(start) != "efa":
        yield NotExpressed(
            name="NICs",
            value=nics,
            reason=f"the resource is called {resource} here, as in the documentation of its plugin; "
            "your cluster may "
            "call it otherwise ('kubectl describe node'): name it with --nic-resource. RoCE mostly needs "
            "a secondary network too, an annotation of the pod",
        )
