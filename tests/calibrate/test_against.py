"""A measured run beside its estimate: the phase that is off."""

from dataclasses import replace

import pytest

from linkwise.calibrate.against import against
from linkwise.calibrate.site_run import SiteRun
from linkwise.cluster import load_cluster
from linkwise.estimate import estimate_layout
from linkwise.job import job_from_options
from linkwise.layout import Layout
from linkwise.readers.kineto import KinetoTrace


@pytest.fixture(scope="module")
def estimate():
    options = {"model": "llama-3.1-8b", "sequence_length": 8192, "global_batch": 128, "framework": "megatron"}
    job = job_from_options({**options, "precision": None, "tokens": None, "layout": None})
    return estimate_layout(job, load_cluster("dgx-h100:4"), Layout(tensor=2, zero_stage=1))


def trace(estimate, **longer):
    parts = estimate.parts
    shown = sum(parts[name] for name in ("tensor", "context", "expert", "pipeline", "data"))
    times = {
        "compute_s": parts["compute"] + parts["optimizer"],
        "exposed_s": shown,
        "idle_s": parts["bubble"] + parts["overhead"],
    }
    times = {name: time + longer.get(name, 0.0) for name, time in times.items()}
    step = sum(times.values())
    told = KinetoTrace(
        steps=3,
        step_times_s=(step,) * 3,
        communication_s=times["exposed_s"],
        collectives=(),
        on_gpu=True,
        **times,
    )
    return SiteRun(source="Kineto trace", step_times_s=told.step_times_s, left_out=0, trace=told)


def test_run_as_predicted_names_no_phase(estimate):
    found = against(estimate, trace(estimate))
    assert found.is_expected
    assert (found.off, found.reason) == (None, "")
    assert sum(each.predicted_s for each in found.phases) == pytest.approx(estimate.step_time_s)


@pytest.mark.parametrize(
    ("time", "phase", "words"),
    [
        ("compute_s", "computing", "clock or power"),
        ("exposed_s", "exposed communication", "linkwise collective --compare"),
        ("idle_s", "idle", "host does not keep up"),
    ],
)
def test_phase_that_is_longer_is_named_with_what_would_explain_it(estimate, time, phase, words):
    found = against(estimate, trace(estimate, **{time: 2.0}))
    assert found.is_slower
    assert found.off == phase
    assert words in found.reason


def test_faster_phase_does_not_hide_the_slower_one(estimate):
    found = against(estimate, trace(estimate, compute_s=-1.0, exposed_s=2.0))
    assert found.off == "exposed communication"


def test_timers_of_deepspeed_and_megatron_are_phases(estimate):
    step = estimate.step_time_s
    timers = (("fwd", 0.3 * step), ("bwd", 0.6 * step), ("step", 0.4 * step))
    run = SiteRun(source="deepspeed", step_times_s=(1.3 * step,) * 5, left_out=1, phases_s=timers)
    found = against(estimate, run)
    assert [each.name for each in found.phases] == ["forward and backward", "optimizer"]
    assert found.off == "optimizer"
    timers = (("forward-backward", step), ("all-grads-sync", 0.5 * step), ("optimizer", 0.01))
    found = against(estimate, replace(run, source="megatron", phases_s=timers))
    assert [each.name for each in found.phases] == ["forward and backward", "gradients", "optimizer"]
    assert found.off == "gradients"


def test_log_without_timers_asks_for_a_trace(estimate):
    run = SiteRun(source="nemo", step_times_s=(2 * estimate.step_time_s,) * 5, left_out=1)
    found = against(estimate, run)
    assert found.is_slower
    assert found.off is None
    assert "a trace of PyTorch's profiler" in found.reason
