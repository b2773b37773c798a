"""A site's files to factors: what is put into times comes out of them."""

import datetime as dt
import gzip
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from linkwise.calibrate.observation import collective_observation, step_observation
from linkwise.calibrate.site import SiteMeasurement, calibrate_site
from linkwise.calibrate.site_files import SiteFileKind, read_site_file
from linkwise.calibrate.site_fit import fit_site, held_out, next_measurements, told_factors
from linkwise.calibrate.site_run import layout_words, read_site_run, run_cluster, run_columns
from linkwise.cluster import load_cluster
from linkwise.errors import InputError
from linkwise.job import job_from_options
from linkwise.network.cluster_setting import setting_of
from linkwise.network.setting import Launch

DATA = Path(__file__).parent.parent / "data"
TODAY = dt.date(2026, 12, 1)
SIZES = 2.0 ** np.arange(10, 34)


def job(**layout):
    keys = {"micro_batch": 1, **layout}
    options = {"model": "llama-3.1-8b", "sequence_length": 8192, "global_batch": 128, "framework": "megatron"}
    return job_from_options({**options, "precision": None, "tokens": None, "layout": keys})


def collective(cluster, *, gpus=None, factors=None, label="log"):
    setting = setting_of(load_cluster(cluster), gpus=gpus)
    blank = collective_observation(label, "all_reduce", setting, SIZES)
    return replace(blank, measured_s=blank.predict(factors or {}))


def step(factors, *, label, cluster="dgx-h100:4", **layout):
    used, placed = run_cluster(job(**layout), load_cluster(cluster))
    blank = step_observation(label, run_columns(job(**layout), used, placed), precision="bf16")
    return replace(blank, measured_s=blank.predict(factors))


@pytest.mark.parametrize(
    "put",
    [
        {"nvlink_latency": 1.3, "nvlink_bandwidth": 0.9},
        {"network_latency": 1.6, "network_bandwidth": 0.8},
        {"network_bandwidth": 0.13},
    ],
)
def test_factors_put_into_collectives_are_found(put):
    found = fit_site([collective("dgx-h100:2", gpus=8, factors=put), collective("dgx-h100:4", factors=put)])
    for each in found.factors:
        assert each.value == pytest.approx(put.get(each.name, 1.0), rel=0.15), each.name
        assert each.low <= each.value <= each.high
    assert all(each.after_abs_fraction <= max(each.before_abs_fraction, 0.03) for each in found.residuals)
    assert found.suspects == tuple(name for name, value in put.items() if value < 0.2)


def test_slow_gpus_are_found_from_steps_and_help_with_other_layouts():
    put = {"gpu_speed_16_bit": 0.8}
    runs = [
        step(put, label="a", tensor=2, zero_stage=1),
        step(put, label="b", tensor=4, pipeline=2, zero_stage=1),
        step(put, label="c", zero_stage=1, micro_batch=2),
    ]
    assert fit_site(runs).values["gpu_speed_16_bit"] == pytest.approx(0.8, rel=0.04)
    gain = held_out(runs)
    assert gain.units == 3
    assert gain.before_abs_fraction > 0.15
    assert gain.after_abs_fraction < 0.05  # two logs do not make sure of a site so far from all others


def test_steps_that_disagree_are_followed_less_and_widen_the_interval():
    def fitted(first, second):
        runs = [
            step({"gpu_speed_16_bit": first}, label="a", tensor=2, zero_stage=1),
            step({"gpu_speed_16_bit": second}, label="b", zero_stage=1, micro_batch=2),
        ]
        (found,) = (each for each in fit_site(runs).factors if each.name == "gpu_speed_16_bit")
        return found

    agreed, split = fitted(0.9, 0.9), fitted(0.8, 0.9 * 0.9 / 0.8)
    assert agreed.value < split.value < 1.0
    assert split.high / split.low > agreed.high / agreed.low


def test_one_unit_has_nothing_to_hold_out():
    assert held_out([collective("dgx-h100:2")]) is None


def test_network_is_not_told_by_one_domain():
    assert told_factors([collective("dgx-h100:1")]) == ("nvlink_latency", "nvlink_bandwidth")


def test_advice_prefers_what_tells_of_the_target():
    two = [
        collective("dgx-h100:4", label="the network"),
        collective("dgx-h100:4", gpus=8, label="one domain"),
    ]
    candidates = [replace(each, measured_s=np.empty(0)) for each in two]
    target = replace(collective("dgx-h100:4"), measured_s=np.empty(0))
    seen = collective("dgx-h100:4", gpus=8)
    first, second = next_measurements([seen], candidates=candidates, targets=[target])
    assert first.label == "the network"
    assert first.after_fraction < second.after_fraction <= first.before_fraction


def test_calibration_of_a_log_names_its_files_and_its_cluster():
    file = read_site_file(str(DATA / "nccl_tests" / "all-reduce-2n.txt"))
    found = calibrate_site(load_cluster("dgx-h100:2"), [SiteMeasurement(file=file)], today=TODAY)
    assert found.calibration.made == TODAY
    assert found.calibration.hardware.gpu == "h100-sxm"
    assert [(each.name, each.kind) for each in found.calibration.files] == [
        ("all-reduce-2n.txt", "nccl-tests")
    ]
    assert found.held_out is None
    assert found.advice
    # its times are those of the model, each off by at most 3 %
    assert all(each.low <= 1.0 <= each.high for each in found.calibration.factors)


@pytest.mark.parametrize("name", ["megatron-2025", "nemo-1", "torchtitan-2026", "deepspeed-2021"])
def test_log_of_each_framework_gives_the_steady_step(name):
    used, placed = run_cluster(job(tensor=2, zero_stage=1), load_cluster("dgx-h100:4"))
    file = read_site_file(str(DATA / "training_logs" / f"{name}.log"))
    run = read_site_run(file, job(tensor=2, zero_stage=1), placed)
    assert file.kind is SiteFileKind.TRAINING_LOG
    assert run.step_time_s == pytest.approx(4.4, rel=0.02)
    assert (run.left_out, len(run.step_times_s)) == (3, 9)
    assert used.gpus == 32
    assert run.spread_fraction < 0.02


def test_trace_may_be_compressed(tmp_path):
    text = (DATA / "kineto" / "eight_gpus.json").read_bytes()
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress(text, mtime=0))
    file = read_site_file(str(path))
    assert file.kind is SiteFileKind.KINETO
    assert file.text.encode() == text
    path.write_bytes(gzip.compress(text, mtime=0)[:-100])
    with pytest.raises(InputError, match="gzip stream does not end"):
        read_site_file(str(path))


def test_run_on_fewer_gpus_takes_the_first_of_the_cluster():
    used, placed = run_cluster(job(tensor=2, data=4), load_cluster("dgx-h100:32"))
    assert (used.gpus, used.nodes, placed.data) == (8, 1, 4)
    assert layout_words(placed) == "TP2 DP4, micro-batch 1, ZeRO 0"
    with pytest.raises(InputError, match="256 GPUs are more than the 8"):
        run_cluster(job(tensor=2, data=128), load_cluster("dgx-h100:1"))


def test_what_cannot_be_used_is_said_with_its_file():
    there = load_cluster("dgx-h100:4")
    log = read_site_file(str(DATA / "training_logs" / "megatron-2025.log"))
    with pytest.raises(InputError, match=r"megatron-2025.log: holds a training log: say which job it is of"):
        calibrate_site(there, [SiteMeasurement(file=log)], today=TODAY)
    other = replace(job(tensor=2), global_batch=64)
    with pytest.raises(InputError, match="global batch of 128, the job one of 64"):
        calibrate_site(there, [SiteMeasurement(file=log, job=other)], today=TODAY)
    with pytest.raises(InputError, match="layout: search, but a measured run has one layout"):
        run_cluster(replace(job(tensor=2), layout=None), there)
    cpu = read_site_file(str(DATA / "kineto" / "one_cpu.json"))
    with pytest.raises(InputError, match="has no kernel of a GPU"):
        calibrate_site(there, [SiteMeasurement(file=cpu, job=job(tensor=2))], today=TODAY)
    short = replace(log, text="\n".join(log.text.splitlines()[:15]))
    with pytest.raises(InputError, match="holds 3 steps; at least 5"):
        calibrate_site(there, [SiteMeasurement(file=short, job=job(tensor=2))], today=TODAY)


def test_trace_tells_computing_and_communication_apart():
    fsdp = replace(job(zero_stage=3), framework="torchtitan", global_batch=8)
    file = read_site_file(str(DATA / "kineto" / "eight_gpus.json"))
    found = calibrate_site(load_cluster("dgx-h100:1"), [SiteMeasurement(file=file, job=fsdp)], today=TODAY)
    labels = [each.label.rpartition(": ")[2] for each in found.fit.residuals]
    assert labels[1:] == ["computing", "exposed communication"]
    assert found.fit.values["gpu_speed_16_bit"] > 1.3  # its kernels take 0.4 s, the model says 0.9 s


def bench_file(tmp_path, **changes):
    setting = setting_of(load_cluster("dgx-h100:1"))
    blank = collective_observation("bench", "all_reduce", replace(setting, launch=Launch.FRAMEWORK), SIZES)
    rows = [
        {
            "collective": "all_reduce",
            "size_bytes": int(size),
            "time": {"samples_s": [1.5 * time] * 5},
            "wrong": 0,
        }
        for size, time in zip(SIZES, blank.predict({}), strict=True)
    ]
    whole = {
        "schema": "linkwise.bench/1",
        "kind": "collectives",
        "backend": "nccl",
        "ranks": 8,
        "runs": [{"outcome": "done"}],
        "rows": rows,
    }
    path = tmp_path / "bench.json"
    path.write_text(json.dumps({**whole, **changes}))
    return SiteMeasurement(file=read_site_file(str(path)))


def test_bench_is_one_more_source(tmp_path):
    found = calibrate_site(load_cluster("dgx-h100:1"), [bench_file(tmp_path)], today=TODAY)
    assert [each.label for each in found.fit.residuals] == ["bench.json: all_reduce on 8 GPUs"]
    assert found.fit.values["nvlink_bandwidth"] == pytest.approx(1 / 1.5, rel=0.05)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"runs": [{"outcome": "cut"}]}, "ended as cut; a run that did not end well is not used"),
        ({"runs": []}, "names no run"),
        ({"backend": "gloo"}, "is of gloo, which says nothing of GPUs"),
        (
            {"rows": [{"collective": "all_reduce", "size_bytes": 8, "time": {"samples_s": [1.0]}}]},
            "fewer than 5 samples",
        ),
        (
            {"rows": [{"collective": "all_sum", "size_bytes": 8, "time": {"samples_s": [1.0] * 5}}]},
            "unknown collective 'all_sum'",
        ),
        (
            {
                "rows": [
                    {"collective": "reduce", "size_bytes": 8, "time": {"samples_s": [1.0] * 5}, "wrong": 3}
                ]
            },
            "has wrong results",
        ),
    ],
)
def test_bench_that_proves_nothing_is_not_used(tmp_path, changes, words):
    with pytest.raises(InputError, match=words):
        calibrate_site(load_cluster("dgx-h100:1"), [bench_file(tmp_path, **changes)], today=TODAY)
