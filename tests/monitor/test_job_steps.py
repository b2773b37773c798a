"""Steps of a job from its logs: each once, through restarts, ranks and silences."""

import math

import pytest

from linkwise.monitor.job_steps import JobSteps


def _line(number, *, loss=2.0, time_s=0.5, clock="", rank=""):
    return f"{rank}{clock}step {number} loss {loss} time {time_s:.4f} s tokens/s 100\n"


def _lines(numbers, **given):
    return "".join(_line(each, **given) for each in numbers).encode()


def _clock(seconds):
    return f"2026-12-01 {5 + seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02} "


def _fed(*pieces, **given):
    taken = []
    steps = JobSteps(sink=lambda number, time_s: taken.append((number, time_s)), **given)
    for at, (name, data) in enumerate(pieces):
        steps.feed(name, data, now_s=float(at))
    steps.finish(now_s=float(len(pieces)))
    return steps, taken


def test_warm_up_and_tagged_steps_are_counted_but_are_no_step_times():
    text = _lines(range(1, 21)) + b"saved checkpoint at step 20\n" + _lines([21, 22])
    steps, taken = _fed(("a", text))
    assert steps.count == 22
    assert [number for number, _ in taken] == [*range(11, 21), 22]
    assert steps.tagged == {"warm-up": 10, "checkpoint": 1}


def test_a_line_cut_anywhere_is_one_line():
    text = _lines(range(1, 31))
    whole, _ = _fed(("a", text))
    for at in (1, 17, len(text) - 1):
        cut, _ = _fed(("a", text[:at]), ("a", text[at:]))
        assert cut.count == whole.count == 30


def test_a_last_line_without_an_end_counts():
    steps, _ = _fed(("a", _lines(range(1, 4))[:-1]))
    assert steps.last_step == 3


def test_a_step_told_by_several_ranks_and_files_counts_once():
    both = b"".join(
        _line(number, rank=f"[rank{rank}]:").encode() for number in range(1, 31) for rank in (0, 1)
    )
    steps, taken = _fed(("output.log", both), ("logs/0/stdout.log", _lines(range(1, 31))))
    assert steps.count == 30
    assert len(taken) == 20
    assert steps.restarts == 0
    assert len(steps.ranks) == 3


def test_a_count_that_goes_back_is_one_restart_whoever_shows_it():
    text = _lines(range(1, 31)) + b"loading checkpoint\n" + _lines(range(21, 41))
    steps, _ = _fed(("output.log", text), ("logs/0/stdout.log", text))
    assert (steps.restarts, steps.lost_steps, steps.last_step) == (1, 10, 40)
    assert steps.count == 50
    # Ten steps warm up again.
    assert steps.tagged["warm-up"] == 20


def test_a_second_attempt_of_torchrun_in_files_of_its_own_is_a_restart():
    steps, _ = _fed(
        ("logs/x/attempt_0/0/stdout.log", _lines(range(1, 31))),
        ("logs/x/attempt_1/0/stdout.log", _lines(range(21, 41))),
    )
    assert (steps.restarts, steps.lost_steps) == (1, 10)


def test_goodput_is_the_time_in_steps_that_count():
    first = b"2026-12-01 05:00:00 starting\n"
    run = "".join(_line(each, time_s=1.0, clock=_clock(60 + each)) for each in range(1, 101)).encode()
    again = "".join(_line(each, time_s=1.0, clock=_clock(180 + each)) for each in range(51, 121)).encode()
    steps, _ = _fed(("a", first + run + again))
    # 120 steps of 1 s count, of 300 s in all; 50 were done twice.
    assert steps.lost_steps == 50
    assert steps.goodput_fraction == pytest.approx(120 / 300)
    assert steps.time_to_start_s == pytest.approx(61)


def test_without_a_clock_there_is_no_goodput():
    steps, _ = _fed(("a", _lines(range(1, 31))))
    assert steps.goodput_fraction is None


def test_a_silence_between_steps_is_found_by_the_clock_of_the_log():
    text = "".join(_line(each, clock=_clock(each)) for each in range(1, 31))
    text += "".join(_line(each, clock=_clock(each + 200)) for each in range(31, 61))
    steps, _ = _fed(("a", text.encode()))
    (gap,) = steps.gaps
    assert (gap.end_s - gap.start_s, gap.step) == (201, 31)


def test_a_rate_becomes_a_time_by_the_clock_of_the_log():
    text = "".join(
        f"[rank0]:{_clock(2 * each)}- root - INFO - step: {each:>2}  loss:  3.2  memory: 60GiB  tps: 4,096  mfu: 40.70%\n"
        for each in range(1, 31)
    )
    steps, taken = _fed(("a", text.encode()))
    # 4,096 tokens/s for 2 s a step.
    assert steps.tokens_per_step_per_gpu == pytest.approx(8192)
    assert steps.times.median == pytest.approx(2.0)
    assert len(taken) == 20


def test_stated_tokens_make_times_at_once():
    text = b"[rank0]:step:  1  loss:  3.2  tps: 4,096  mfu: 40.70%\n"
    steps, _ = _fed(("a", text), tokens_per_step_per_gpu=8192.0, tokens_per_step=32768.0)
    assert steps.count == 1
    assert steps.tokens_rates.median == pytest.approx(16384)


def test_a_step_without_a_number_is_remembered_where_it_began():
    text = _lines(range(1, 15)) + _lines([15, 16], loss=math.nan)
    steps, _ = _fed(("a", text))
    assert (steps.nan_steps, steps.nan_at) == (2, 15)
    assert steps.losses.median == 2.0


def test_communication_is_the_sum_of_its_timers_over_the_step():
    step = (
        " iteration {}/ 100 | elapsed time per iteration (ms): 1000.0 | lm loss: 2.5E+00 | grad norm: 0.2 |\n"
        "(min, max) time across ranks (ms):\n"
        "    forward-backward ......: (700.00, 800.00)\n"
        "    all-grads-sync ........: (100.00, 150.00)\n"
        "    params-all-gather .....: (40.00, 50.00)\n"
    )
    steps, _ = _fed(("a", "".join(step.format(each) for each in range(1, 21)).encode()))
    assert steps.communication.median == pytest.approx(0.2)


def test_xids_are_counted_by_gpu():
    steps, _ = _fed(("dmesg", b"[8123.4] NVRM: Xid (PCI:0000:1b:00): 79, pid=4711, GPU has fallen off\n" * 2))
    assert steps.xids == {("0000:1b:00", 79): 2}


def test_a_file_that_was_rotated_begins_anew_without_half_a_line():
    steps = JobSteps()
    steps.feed("a", b"step 1 loss 2.0 ti", now_s=0.0)
    steps.restart("a")
    steps.feed("a", _lines([2]), now_s=1.0)
    assert (steps.count, steps.last_step) == (1, 2)
