"""Rendered files read by the programs they are for, where these are installed; in processes of their own."""

import json
import os
import subprocess
import sys

import pytest
from ruamel.yaml import YAML

from linkwise.launch.render import render
from linkwise.layout import Layout, Recompute, Schedule
from tests.launch.render.starts import DENSE, GOLDEN, LONG, MIXTURE, SHARDED, start_of

MANIFESTS = ("jobset.yaml", "trainjob.yaml", "pytorchjob.yaml")
KUBERNETES = [name for name, (target, _) in GOLDEN.items() if target == "kubernetes"]


def answer(program, *arguments, **variables):
    """Return what a Python program prints as its last line, as JSON."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program, *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "CUDA_DEVICE_MAX_CONNECTIONS": "1", **variables},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.strip().splitlines()[-1])


def documents(name):
    files = render("kubernetes", GOLDEN[name][1]()).files
    for file in MANIFESTS:
        for each in YAML(typ="safe", pure=True).load_all(files[file]):
            yield each["kind"], each


def pods(value):
    """Return every pod template."""
    if isinstance(value, list):
        return [pod for each in value for pod in pods(each)]
    if not isinstance(value, dict):
        return []
    if "containers" in value:
        return [value]
    return [pod for each in value.values() for pod in pods(each)]


@pytest.mark.parametrize("name", KUBERNETES)
@pytest.mark.requires("kubernetes-validate")
@pytest.mark.filterwarnings("ignore")
def test_manifests_fit_the_schemas_of_kubernetes(name):
    import kubernetes_validate

    seen = set()
    for kind, document in documents(name):
        if kind == "ConfigMap":
            kubernetes_validate.validate(document, "1.37", strict=True)
        templates = [
            {"apiVersion": "v1", "kind": "Pod", "metadata": document["metadata"], "spec": pod}
            for pod in pods(document)
        ]
        jobs = [
            {"apiVersion": "batch/v1", "kind": "Job", "metadata": document["metadata"], "spec": job}
            for job in jobs_in(document)
        ]
        for each in [*templates, *jobs]:
            kubernetes_validate.validate(each, "1.37", strict=True)
            seen.add((kind, each["kind"]))
    assert {("JobSet", "Pod"), ("JobSet", "Job"), ("TrainingRuntime", "Job"), ("PyTorchJob", "Pod")} <= seen


def jobs_in(value):
    if isinstance(value, list):
        return [job for each in value for job in jobs_in(each)]
    if not isinstance(value, dict):
        return []
    return [value] if "backoffLimit" in value and "template" in value else jobs_in(list(value.values()))


@pytest.mark.requires("kubernetes-validate")
@pytest.mark.filterwarnings("ignore")
def test_schemas_of_kubernetes_refuse_an_unknown_key():
    import kubernetes_validate

    kind, document = next(iter(documents("kubernetes")))
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate({**document, "datta": {}}, "1.37", strict=True)
    assert kind == "ConfigMap"


MODELS = {
    "JobSet": "JobsetV1alpha2JobSet",
    "TrainJob": "TrainerV1alpha1TrainJob",
    "TrainingRuntime": "TrainerV1alpha1TrainingRuntime",
}


@pytest.mark.parametrize("name", KUBERNETES)
@pytest.mark.requires("kubeflow-trainer-api")
def test_models_of_jobset_and_trainer_keep_every_key(name):
    from kubeflow_trainer_api import models

    seen = set()
    for kind, document in documents(name):
        if kind in MODELS:
            # Unknown keys are dropped in silence: what comes back would not be what went in.
            assert getattr(models, MODELS[kind]).from_dict(document).to_dict() == document
            seen.add(kind)
    assert seen == set(MODELS)


@pytest.mark.parametrize("name", KUBERNETES)
@pytest.mark.requires("kubeflow-training")
def test_models_of_the_training_operator_keep_every_key(name):
    program = """
import json, sys
import kubernetes.client.models as core
from kubernetes.client import ApiClient
from kubeflow.training import models
vars(core).update({name: kind for name, kind in vars(models).items() if name.startswith("KubeflowOrg")})
client = ApiClient()
job = client._ApiClient__deserialize(json.loads(sys.argv[1]), models.KubeflowOrgV1PyTorchJob)
print(json.dumps(client.sanitize_for_serialization(job)))
"""
    (document,) = [each for kind, each in documents(name) if kind == "PyTorchJob"]
    assert answer(program, json.dumps(document)) == document


TITAN = """
import json, sys
from torchtitan.config import ConfigManager
from torchtitan.distributed import ParallelDims
c = ConfigManager().parse_args(["--job.config_file=" + sys.argv[1]])
p, t = c.parallelism, c.training
ParallelDims(dp_replicate=p.data_parallel_replicate_degree, dp_shard=p.data_parallel_shard_degree,
    cp=p.context_parallel_degree, tp=p.tensor_parallel_degree, pp=p.pipeline_parallel_degree,
    ep=p.expert_parallel_degree, etp=p.expert_tensor_parallel_degree, world_size=int(sys.argv[2]))
from torch.distributed.pipelining.schedules import get_schedule_class
get_schedule_class(p.pipeline_parallel_schedule)
print(json.dumps([t.local_batch_size, t.global_batch_size, c.activation_checkpoint.mode]))
"""


@pytest.mark.parametrize(
    ("layout", "changes"),
    [
        (LONG, {"model": "llama-3.1-8b"}),
        (SHARDED, {"model": "qwen3-8b", "precision": "fp8"}),
        (Layout(pipeline=2, virtual_pipeline=2, zero_stage=2, schedule=Schedule.ZERO_BUBBLE), {}),
        (Layout(tensor=4, expert=4, zero_stage=3, sequence_parallel=True), {"model": "qwen3-30b-a3b"}),
    ],
)
@pytest.mark.requires("torchtitan 0.2")
def test_torchtitan_reads_its_configuration(layout, changes, tmp_path):
    from linkwise.job import Precision

    if "precision" in changes:
        changes = {**changes, "precision": Precision(changes["precision"])}
    start = start_of(layout, framework="torchtitan", **changes)
    path = tmp_path / "torchtitan.toml"
    path.write_text(render("torchtitan", start).files["torchtitan.toml"])
    local, total, mode = answer(TITAN, str(path), str(start.cluster.gpus))
    assert total == start.job.global_batch
    assert local * start.layout.data * (1 if layout.pipeline > 1 else start.accumulation) == total
    assert mode == layout.recompute.word


DEEPSPEED = """
import json, sys
from deepspeed.runtime.config import DeepSpeedConfig
class Ranks:
    def get_data_parallel_world_size(self):
        return int(sys.argv[2])
import deepspeed.comm as dist
dist.get_rank = lambda: 0
c = DeepSpeedConfig(sys.argv[1], mpu=Ranks())
z = c.zero_config
print(json.dumps([c.train_batch_size, c.train_micro_batch_size_per_gpu, c.gradient_accumulation_steps, int(z.stage),
    z.zero_hpz_partition_size]))
"""


@pytest.mark.parametrize("layout", [DENSE, SHARDED, Layout(tensor=2, zero_stage=2, recompute=Recompute.FULL)])
@pytest.mark.requires("deepspeed")
def test_deepspeed_reads_its_configuration(layout, tmp_path):
    start = start_of(layout, framework="deepspeed")
    path = tmp_path / "ds_config.json"
    path.write_text(render("deepspeed", start).files["ds_config.json"])
    said = answer(DEEPSPEED, str(path), str(start.layout.data))
    hybrid = 8 if layout.hybrid_shard else 1
    assert said == [start.job.global_batch, layout.micro_batch, start.accumulation, layout.zero_stage, hybrid]


MEGATRON_LM = """
import json, sys, types, typing
if not hasattr(typing, "override"):
    import typing_extensions
    typing.override = typing_extensions.override
import torch
torch.cuda.get_device_properties = lambda *a: types.SimpleNamespace(major=9, minor=0)
torch.cuda.get_device_capability = lambda *a: (9, 0)
sys.argv = ["pretrain_gpt.py", *open(sys.argv[1]).read().splitlines()]
from megatron.training.arguments import parse_args, validate_args
a = parse_args()
validate_args(a)
print(json.dumps([a.data_parallel_size, a.virtual_pipeline_model_parallel_size, a.expert_tensor_parallel_size]))
"""
CASES = [
    (DENSE, {}),
    (MIXTURE, {"model": "deepseek-v3"}),
    (Layout(tensor=4, pipeline=4, micro_batch=2), {"model": "llama-3.1-405b"}),
    (Layout(tensor=2, expert=4, zero_stage=1, sequence_parallel=True), {"model": "mixtral-8x7b"}),
    (Layout(recompute=Recompute.FULL), {"model": "gpt-2-124m"}),
]


@pytest.mark.parametrize(("layout", "changes"), CASES)
@pytest.mark.requires("megatron-lm")
def test_megatron_lm_reads_its_arguments(layout, changes, tmp_path):
    start = start_of(layout, **changes)
    path = tmp_path / "megatron.args"
    path.write_text(render("megatron", start).files["megatron.args"])
    data, virtual, _ = answer(MEGATRON_LM, str(path), RANK="0", WORLD_SIZE=str(start.cluster.gpus))
    assert data == start.layout.data
    assert (virtual or 1) == layout.virtual_pipeline


MEGATRON_CORE = """
import ast, dataclasses, json, sys
from megatron.core.transformer import MLATransformerConfig, TransformerConfig
given = dict(line[2:].partition("=")[::2] for line in open(sys.argv[1]).read().splitlines())
other = {"num-experts": "num_moe_experts", "num-virtual-stages-per-pipeline-rank": "virtual_pipeline_model_parallel_size"}
kind = MLATransformerConfig if "multi-latent-attention" in given else TransformerConfig
fields = {each.name for each in dataclasses.fields(kind)}
def value(text):
    try:
        return ast.literal_eval(text) if text else True
    except (ValueError, SyntaxError):
        return text
values = {other.get(name, name.replace("-", "_")): value(text) for name, text in given.items()}
if "moe_layer_freq" in values:
    values["moe_layer_freq"] = eval(given["moe-layer-freq"])
import torch
c = kind(**{name: each for name, each in values.items() if name in fields}, pipeline_dtype=torch.bfloat16,
    add_bias_linear="disable-bias-linear" not in given, gated_linear_unit="swiglu" in given)
print(json.dumps([c.tensor_model_parallel_size, c.pipeline_model_parallel_size, len(fields & set(values))]))
"""


@pytest.mark.parametrize(("layout", "changes"), CASES)
@pytest.mark.requires("megatron-core")
def test_megatron_core_takes_the_arguments_it_has_fields_for(layout, changes, tmp_path):
    start = start_of(layout, **changes)
    path = tmp_path / "megatron.args"
    path.write_text(render("megatron", start).files["megatron.args"])
    tensor, pipeline, taken = answer(MEGATRON_CORE, str(path))
    assert (tensor, pipeline) == (layout.tensor, layout.pipeline)
    assert taken > 10
