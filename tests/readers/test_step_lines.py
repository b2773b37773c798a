"""Lines of steps, by the logs of the frameworks in tests/data/training_logs and by lines of their sources."""

import itertools
import math
import random
from pathlib import Path

import pytest

from linkwise.readers.step_lines import (
    Mark,
    MarkKind,
    PhaseTimes,
    StepLine,
    XidLine,
    clock_of,
    events_in,
    plain_lines,
)
from linkwise.readers.training_log import parse_training_log

_LOGS = Path(__file__).parents[1] / "data" / "training_logs"


def _steps(data):
    return [each for each in events_in(plain_lines(data)) if isinstance(each, StepLine)]


def _marks(text):
    return [each.kind for each in events_in(text.encode()) if isinstance(each, Mark)]


@pytest.mark.parametrize("name", sorted(path.name for path in _LOGS.glob("*.log")))
def test_steps_are_those_that_the_reader_of_whole_logs_finds(name):
    data = (_LOGS / name).read_bytes()
    whole = parse_training_log(data.decode()).steps
    found = {each.number: each for each in reversed(_steps(data))}
    assert sorted(found) == [each.number for each in whole]
    assert len(whole) == 12
    for each in whole:
        one = found[each.number]
        assert one.time_s == each.time_s
        assert one.rate_per_s == (each.tokens_per_s_per_gpu or each.samples_per_s)
        assert (one.loss, one.global_batch) == (each.loss, each.global_batch)


@pytest.mark.parametrize("name", sorted(path.name for path in _LOGS.glob("*.log")))
def test_figures_of_lines_that_ranks_broke_into_are_whole_ones(name):
    data, cuts = (_LOGS / name).read_bytes(), random.Random(name)
    steps = _steps(data)
    times, rates = {each.time_s for each in steps}, {each.rate_per_s for each in steps}
    losses, norms = ({getattr(each, name) for each in steps} | {None} for name in ("loss", "grad_norm"))
    lines = data.replace(b"\r", b"\n").split(b"\n")
    found = []
    for _ in range(20):
        for one, other in itertools.pairwise(lines):
            at, upto = cuts.randrange(len(one) + 1), cuts.randrange(len(other) + 1)
            found += _steps(one[:at] + other[:upto] + b"\n" + one[at:] + other[upto:] + b"\n")
    assert len(found) > 20 * 12 / 2
    assert {each.rate_per_s for each in found} <= rates
    if name != "nemo-2.log":  # its time ends the line, where a figure that is cut short is still a figure
        assert {each.time_s for each in found} <= times
    assert {each.loss for each in found} <= losses
    assert {each.grad_norm for each in found} <= norms


@pytest.mark.parametrize(
    ("name", "loss", "norm", "rank"),
    [
        ("megatron-2021.log", 2.50422, 0.231, ""),
        ("megatron-2025.log", 11.00841, 7.123, "15"),
        ("torchtitan-2026.log", 3.24405, 0.8319, "0"),
        ("torchtitan-2024.log", 10.8912, None, "0"),
        ("nemo-2.log", 11.03, None, ""),
        ("deepspeed-2025.log", None, None, ""),
    ],
)
def test_loss_gradient_norm_and_rank_are_read_where_they_stand(name, loss, norm, rank):
    first = _steps((_LOGS / name).read_bytes())[0]
    assert (first.loss, first.grad_norm, first.rank) == (loss, norm, rank)


def test_a_rendered_program_prints_all_of_a_step():
    (step,) = _steps(b"step 12 loss 4.6250 time 0.4012 s tokens/s 5104 grad_norm 1.250\n")
    assert step[1:] == (12, 0.4012, 5104.0, 4.625, 1.25, 0, "", "ddp", None)


def test_what_is_no_number_is_read_as_such():
    own, megatron = _steps(
        b"step 7 loss nan time 0.4 s tokens/s 5104\n"
        b" iteration 8/ 100 | consumed samples: 8 | elapsed time per iteration (ms): 400.1 | lm loss: NAN | "
        b"loss scale: 1.0 | grad norm: inf | number of skipped iterations: 0 | number of nan iterations: 1 |\n"
    )
    assert math.isnan(own.loss)
    assert math.isnan(megatron.loss)
    assert megatron.grad_norm == math.inf
    assert megatron.nan_steps == 1


@pytest.mark.parametrize(
    "line",
    [
        "saving checkpoint at iteration     500 to /checkpoints in torch_dist format",
        "  successfully saved checkpoint from iteration     500 to /checkpoints",
        "[rank0]:2026-05-18 - root - INFO - Saving the checkpoint (or staging if async is enabled).",
        "[rank0]:2026-05-18 - root - INFO - Finished saving the checkpoint (or staging) in 3.21 seconds.",
        "[2025-07-17] [INFO] [torch_checkpoint_engine.py:21:save] [Torch] Saving /c/mp_rank_00_model_states.pt...",
        "Checkpoint at step 100 saved to /checkpoints",
    ],
)
def test_a_checkpoint_that_is_written_is_a_mark(line):
    assert _marks(line + "\n") == [MarkKind.CHECKPOINT]


@pytest.mark.parametrize(
    "line",
    [
        " validation loss at iteration 1000 | lm loss value: 2.1E+00 | lm loss PPL: 8.2E+00 |",
        "Evaluating iter 3/10",
        "[rank0]: validate step: 10  loss:  3.1  memory: 60.4GiB(76.9%)  tps: 7,402",
        "***** Running Evaluation *****",
    ],
)
def test_an_evaluation_is_a_mark_and_no_step(line):
    events = events_in(f"{line}\n".encode())
    assert [type(each) for each in events] == [Mark]
    assert events[0].kind is MarkKind.EVALUATION


@pytest.mark.parametrize(
    "line",
    [
        "  checkpoint_activations .......................... True",
        "Applied full activation checkpointing to the model",
        "loading checkpoint from /checkpoints at iteration 500",
        "evaluate_every ................................... 100",
        "cuda_graph_scope ................................. full",
        "step: 12 of warm-up",
    ],
)
def test_what_only_names_such_things_is_no_mark(line):
    assert events_in(f"{line}\n".encode()) == []


def test_events_come_in_the_order_of_the_log():
    text = (
        b"step 1 loss 2.0 time 0.1 s tokens/s 10\nsaved checkpoint at step 1\n"
        b"NVRM: Xid (PCI:0000:1b:00): 79, pid=1\nstep 2 loss 2.0 time 0.3 s tokens/s 3\n"
    )
    assert [type(each) for each in events_in(text)] == [StepLine, Mark, XidLine, StepLine]


def test_timers_are_read_in_seconds():
    found = events_in(b"time (ms) | forward-compute: 1370.98 | backward-params-all-reduce: 176.90\n")
    assert found == [
        PhaseTimes(
            0,
            {"forward-compute": pytest.approx(1.37098), "backward-params-all-reduce": pytest.approx(0.1769)},
        )
    ]
    lines = b"(min, max) time across ranks (ms):\n    all-grads-sync ......: (259.60, 389.40)\n"
    assert [each.times_s for each in events_in(lines)] == [{"all-grads-sync": pytest.approx(0.3894)}]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"2026-12-01 05:43:57.099217 step", 1796103837.099217),
        (b"[2026-12-01 05:43:57,5] step", 1796103837.5),
        (b"[rank0]:2026-12-01T05:43:57Z - step", 1796103837.0),
        (b"2026-12-01T07:43:57+02:00 step", 1796103837.0),
        (b"12: 2026-12-01T00:43:57-0500 step", 1796103837.0),
        (b"2026-13-01 05:43:57 step", None),
        (b"step 12", None),
    ],
)
def test_the_clock_of_a_line_is_read(line, expected):
    data = b"earlier\n" + line + b"\nlater 2020-01-01 00:00:00\n"
    assert clock_of(data, data.index(b"step")) == (expected if expected is None else pytest.approx(expected))


def test_the_rank_is_not_taken_from_a_time_of_day():
    assert _steps(b"15:43:57 step 1 loss 2.0 time 0.1 s tokens/s 10\n")[0].rank == ""
    assert _steps(b"15: step 1 loss 2.0 time 0.1 s tokens/s 10\n")[0].rank == "15"
    assert _steps(b"[default3]:step 1 loss 2.0 time 0.1 s tokens/s 10\n")[0].rank == "3"
