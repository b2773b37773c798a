"""What is rendered says the plan or that it does not; the golden folders show every change.

``LINKWISE_REFRESH=1 pytest tests/launch/render/test_rendering.py`` writes what is rendered now into them.
"""

import dataclasses
import os
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linkwise.cluster import load_cluster
from linkwise.errors import InputError, UnknownName
from linkwise.job.framework import FRAMEWORKS
from linkwise.launch.render import TARGETS, layout_values, read_back, render
from linkwise.layout import ContextExchange, Layout, RankOrder, Recompute, Schedule
from linkwise.nccl.variables import NEWEST
from linkwise.readers.settings_file import read_settings
from linkwise.settings.checking import check
from linkwise.settings.finding import Severity, Subject
from tests.launch.render.starts import DENSE, GOLDEN, MIXTURE, SHARDED, ZERO_BUBBLE, start_of

FOLDER = Path(__file__).parents[2] / "golden"
COPIES = ("train_ddp.py",)
"""Files that are copied as they stand in the package."""


@pytest.mark.parametrize("name", GOLDEN)
def test_files_are_those_of_the_golden_folder(name):
    target, start = GOLDEN[name]
    files = {each: text for each, text in render(target, start()).files.items() if each not in COPIES}
    folder = FOLDER / name
    if os.environ.get("LINKWISE_REFRESH") == "1":
        folder.mkdir(exist_ok=True, parents=True)
        for old in folder.iterdir():
            old.unlink()
        for each, text in files.items():
            (folder / each).write_text(text, encoding="utf-8")
    golden = {each.name: each.read_text(encoding="utf-8") for each in folder.iterdir()}
    assert golden == files, f"stale: run LINKWISE_REFRESH=1 pytest {Path(__file__).relative_to(Path.cwd())}"


@st.composite
def layouts(draw):
    pipeline = draw(st.sampled_from([1, 2, 4]))
    tensor = draw(st.sampled_from([1, 2, 8]))
    context = draw(st.sampled_from([1, 2]))
    zero_stage = draw(st.sampled_from([0, 1, 2, 3]))
    return Layout(
        tensor=tensor,
        context=context,
        pipeline=pipeline,
        virtual_pipeline=draw(st.sampled_from([1, 2, 3])) if pipeline > 1 else 1,
        expert=draw(st.sampled_from([1, 4])),
        micro_batch=draw(st.sampled_from([1, 3])),
        zero_stage=zero_stage,
        hybrid_shard=draw(st.booleans()) if zero_stage == 3 else False,
        recompute=draw(st.sampled_from(Recompute)),
        sequence_parallel=draw(st.booleans()) if tensor > 1 else False,
        schedule=draw(st.sampled_from(Schedule)) if pipeline > 1 else Schedule.ONE_F_1F1B,
        rank_order=draw(st.sampled_from(RankOrder)),
        context_exchange=draw(st.sampled_from(ContextExchange)) if context > 1 else ContextExchange.RING,
    )


@pytest.mark.parametrize("target", TARGETS)
@settings(max_examples=15)
@given(layout=layouts(), framework=st.sampled_from(sorted(FRAMEWORKS)), accumulate=st.integers(1, 9))
def test_files_read_back_say_the_layout_or_that_they_do_not(target, layout, framework, accumulate):
    model = "mixtral-8x7b" if layout.expert > 1 else "llama-3.1-8b"
    start = start_of(layout, model=model, framework=framework, accumulate=accumulate)
    rendered = render(target, start)
    said = read_back(target, rendered.files, framework=framework)
    planned = {**layout_values(start), "global_batch": start.job.global_batch}
    missing = {each.name for each in rendered.not_expressed}
    assert {name for name in planned if said[name] != planned[name]} <= missing
    assert not {"data", "micro_batch", "global_batch"} & missing
    assert all(each.reason and each.name in rendered.files["README.md"] for each in rendered.not_expressed)


@pytest.mark.parametrize("target", TARGETS)
def test_a_changed_degree_is_read_back(target):
    start = start_of(SHARDED, framework="torchtitan", model="llama-3.1-8b")
    files = dict(render(target, start).files)
    name = {"megatron": "megatron.args", "deepspeed": "ds_config.json", "ddp": "ddp.args"}.get(
        target, "torchtitan.toml"
    )
    marks = {"megatron.args": "micro-batch-size=", "ds_config.json": 'per_gpu": ', "ddp.args": "micro-batch="}
    mark = marks.get(name, "local_batch_size = ")
    touched = [each for each in files if mark in files[each] and not each.endswith((".md", ".py"))]
    for each in touched:
        files[each] = files[each].replace(f"{mark}2", f"{mark}4")
    assert read_back(target, files, framework="torchtitan")["micro_batch"] == 4


def test_manifests_that_disagree_are_refused():
    files = dict(render("kubernetes", start_of(DENSE)).files)
    files["trainjob.yaml"] = files["trainjob.yaml"].replace("numNodes: 8", "numNodes: 4")
    with pytest.raises(InputError, match="do not say the same layout"):
        read_back("kubernetes", files, framework="megatron")


@pytest.mark.parametrize(
    "cluster", ["dgx-h100:8", "aws-p5:8", "gh200-4:8", "gcp-a3-mega:8", "gb200-nvl72:16"]
)
@pytest.mark.parametrize("target", TARGETS)
def test_files_pass_the_check_of_settings(target, cluster):
    there = load_cluster(cluster)
    files = render(target, start_of(Layout(tensor=4), cluster=there)).files
    scripts = [name for name in files if name.endswith((".sh", ".sbatch", "job.yaml", "jobset.yaml"))]
    assert scripts
    read = tuple(read_settings(files[name], path=name) for name in scripts)
    findings = check(Subject(files=read, release=NEWEST, cluster=there))
    assert [each for each in findings if each.severity is not Severity.CHECK] == []


@pytest.mark.parametrize("target", TARGETS)
def test_no_rendezvous_is_localhost_on_several_nodes(target):
    start = start_of(DENSE)
    for name, text in render(target, start).files.items():
        if name.endswith((".sh", ".sbatch", "job.yaml", "jobset.yaml")):
            assert re.search(r"--master-addr=\S+", text) or "trainer" in text
            assert not re.search(r"--(?:master-addr|rdzv-endpoint)=\"?(?:localhost|127\.|0\.0)", text)
            assert "--standalone" not in text


def test_one_node_needs_no_head():
    files = render("torchrun", start_of(Layout(), cluster="dgx-h100:1")).files
    assert "--standalone" in files["start.sh"]
    assert "HEAD" not in files["start.sh"]


def test_gpus_that_are_no_whole_nodes_are_refused():
    there = dataclasses.replace(load_cluster("dgx-h100:2"), gpus=12)
    with pytest.raises(InputError, match=r"12 GPUs are not whole nodes of 8.* to 8 or 16"):
        start_of(Layout(), cluster=there)


def test_unknown_target_names_the_nearest():
    with pytest.raises(UnknownName, match="torchrun"):
        render("torchrn", start_of(DENSE))


def test_uneven_layers_are_dealt_as_the_estimate_deals_them():
    start = start_of(Layout(pipeline=4), model="llama-3.1-405b")
    assert start.job.model.layers == 126
    assert start.layers_of_parts(4) == (31, 32, 32, 31)
    assert start.layers_of_parts(8) == (15, 16, 16, 16, 16, 16, 16, 15)
    assert start.layers_of_parts(5) == (26, 25, 25, 25, 25)
    assert start.layers_of_parts(7) == (18,) * 7


@given(model=st.sampled_from(["llama-3.1-405b", "llama-3.1-8b", "deepseek-v3"]), parts=st.integers(1, 30))
def test_dealt_layers_are_all_layers(model, parts):
    start = start_of(Layout(), model=model)
    counts = start.layers_of_parts(parts)
    assert (len(counts), sum(counts)) == (parts, start.job.model.layers)
    assert max(counts) - min(counts) <= 1


def test_what_is_not_expressed_names_the_value():
    for target, start, names in (
        ("torchtitan", start_of(MIXTURE, model="mixtral-8x7b"), {"model", "zero_stage", "torchtitan 0.3"}),
        ("deepspeed", start_of(DENSE), {"pipeline", "virtual_pipeline", "rank_order", "recompute"}),
        ("megatron", start_of(ZERO_BUBBLE), {"zero_stage", "schedule"}),
        ("ddp", start_of(DENSE), {"tensor", "pipeline", "zero_stage"}),
        ("slurm", start_of(DENSE), {"NICs", "partition"}),
        ("kubernetes", start_of(DENSE, cluster="gcp-a3-mega:8"), {"NICs", "placement"}),
        ("torchrun", start_of(Layout(), cluster="gb200-nvl72:2"), {"NVLink domains", "nodes", "NICs"}),
    ):
        assert names <= {each.name for each in render(target, start).not_expressed}, target
