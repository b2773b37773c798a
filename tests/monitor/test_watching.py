"""A watched job: each kind of trouble in a log, what is told of it, and near misses."""

import numpy as np
import pytest

from linkwise.errors import InputError
from linkwise.monitor.alert import METRICS, AlertKind, Comparison, Objective, Severity
from linkwise.monitor.endpoints import Endpoint
from linkwise.monitor.host_counters import PortsWatch
from linkwise.monitor.inputs import Inputs
from linkwise.monitor.job_steps import JobSteps
from linkwise.monitor.recording import recordings
from linkwise.monitor.stall import StallRule
from linkwise.monitor.watching import Watch, WatchClocks, values_of
from linkwise.readers.step_lines import MarkKind
from linkwise.report.watch_result import WatchVerdict, watch_result
from tests.monitor.expositions import vllm


class Clock:
    def __init__(self):
        self.now_s = 1_800_000_000.0

    def __call__(self):
        return self.now_s


@pytest.fixture
def clock():
    return Clock()


def _live(clock, *paths, **given):
    inputs = Inputs(paths=[str(each) for each in paths])
    return Watch(
        find=lambda: tuple(inputs.new()),
        clocks=WatchClocks(monotonic=clock, day=clock),
        **given,
    )


def _replayed(clock, *paths, **given):
    tails = list(recordings([str(each) for each in paths]))

    def once():
        found, tails[:] = tuple(tails), []
        return found

    watch = Watch(find=once, clocks=WatchClocks(monotonic=clock, day=clock, is_live=False), **given)
    while not watch.follower.is_over:
        watch.turn()
    watch.finish()
    return watch


def _times(count, *, seed=1, level_s=0.5):
    return level_s * (1 + 0.01 * np.random.default_rng(seed).standard_normal(count))


def _log(times, *, first=1, loss=2.0, rank=""):
    return "".join(
        f"{rank}step {first + at} loss {loss:.4f} time {time_s:.5f} s tokens/s {1000 / time_s:.0f}\n"
        for at, time_s in enumerate(times)
    )


def _told(watch):
    return [(each.kind, each.is_over) for each in watch.book.told]


def _turned(watch, clock, *, after_s=1.0):
    clock.now_s += after_s
    return [(each.kind, each.is_over) for each in watch.turn()]


def test_a_healthy_log_gets_no_alert(tmp_path, clock):
    path = tmp_path / "job.log"
    path.write_text(_log(_times(1000)))
    watch = _replayed(clock, path)
    assert watch.book.told == []
    result = watch_result(watch, run="job", is_replay=True)
    assert result.verdict is WatchVerdict.HEALTHY
    assert result.steps.count == 1000
    assert result.step_time.median_s == pytest.approx(0.5, rel=0.01)


def test_a_step_time_that_rose_is_told_with_its_place(tmp_path, clock):
    times = _times(1000)
    times[600:] *= 1.05
    path = tmp_path / "job.log"
    path.write_text(_log(times))
    watch = _replayed(clock, path)
    assert _told(watch) == [(AlertKind.STEP_TIME_ROSE, False)]
    (drift,) = watch.drifts
    assert 600 <= drift.step <= 640
    assert watch_result(watch, run="job", is_replay=True).verdict is WatchVerdict.AGAINST


def test_checkpoints_however_slow_are_no_drift(tmp_path, clock):
    pieces = []
    for at in range(0, 2000, 20):
        times = _times(20, seed=at)
        times[0] *= 8
        pieces += [f"saved checkpoint at step {at}\n", _log(times, first=at + 1)]
    path = tmp_path / "job.log"
    path.write_text("".join(pieces))
    watch = _replayed(clock, path)
    assert watch.book.told == []
    # One falls into the first steps, and those are left out as they are.
    assert watch.steps.tagged["checkpoint"] == 100


def test_no_number_is_told_once_and_is_critical(tmp_path, clock):
    path = tmp_path / "job.log"
    path.write_text(_log(_times(300)) + _log(_times(5), first=301, loss=float("nan")))
    watch = _replayed(clock, path)
    (alert,) = watch.book.told
    assert (alert.kind, alert.severity, alert.step) == (AlertKind.NOT_A_NUMBER, Severity.CRITICAL, 301)


def test_a_restart_is_told_with_the_steps_it_cost(tmp_path, clock):
    path = tmp_path / "job.log"
    path.write_text(_log(_times(300)) + _log(_times(300), first=251))
    watch = _replayed(clock, path)
    (alert,) = watch.book.told
    assert alert.kind is AlertKind.RESTARTED
    assert "50 steps" in alert.summary


def test_a_job_that_stops_is_told_within_its_limit_and_again_when_it_goes_on(tmp_path, clock):
    path = tmp_path / "job.log"
    path.write_text(_log(_times(30)))
    watch = _live(clock, path)
    assert _turned(watch, clock) == []
    assert watch.stall_limit_s == 30
    assert _turned(watch, clock, after_s=29) == []
    assert _turned(watch, clock, after_s=2) == [(AlertKind.STALLED, False)]
    assert watch.is_stalled
    with path.open("a") as file:
        file.write(_log(_times(1), first=31))
    assert _turned(watch, clock) == [(AlertKind.STALLED, True)]


def test_a_job_of_long_steps_has_time_for_ten_of_them(tmp_path, clock):
    path = tmp_path / "job.log"
    path.write_text(_log(_times(30, level_s=20.0)))
    watch = _live(clock, path)
    watch.turn()
    assert watch.stall_limit_s == pytest.approx(200, rel=0.02)


def test_a_checkpoint_under_way_is_no_stall(tmp_path, clock):
    path = tmp_path / "job.log"
    path.write_text(_log(_times(30)) + "Saving the checkpoint (or staging if async is enabled).\n")
    watch = _live(clock, path)
    watch.turn()
    assert _turned(watch, clock, after_s=500) == []
    assert _turned(watch, clock, after_s=200) == [(AlertKind.STALLED, False)]


def test_the_first_step_may_take_half_an_hour(tmp_path, clock):
    watch = _live(clock, tmp_path / "job.log")
    watch.turn()
    assert _turned(watch, clock, after_s=1700) == []
    assert _turned(watch, clock, after_s=200) == [(AlertKind.STALLED, False)]


def test_a_stated_limit_is_the_limit():
    assert StallRule(fixed_s=5.0).limit_s(20.0) == 5.0
    assert StallRule(fixed_s=5.0).limit_s(20.0, beside=MarkKind.CHECKPOINT) == 600


def test_a_silence_in_a_recording_is_a_stall_by_its_own_clock(tmp_path, clock):
    def lines(numbers, offset):
        return "".join(
            f"2026-12-01 05:{(at + offset) // 60:02}:{(at + offset) % 60:02} step {at} loss 2.0 time 1.0000 s tokens/s 9\n"
            for at in numbers
        )

    path = tmp_path / "job.log"
    path.write_text(lines(range(1, 301), 0) + lines(range(301, 401), 500))
    watch = _replayed(clock, path)
    assert _told(watch) == [(AlertKind.STALLED, False), (AlertKind.STALLED, True)]
    assert "no step for 501 s" in watch.book.told[0].summary


def test_a_rank_that_fell_silent_is_named(tmp_path, clock):
    path = tmp_path / "job.log"
    both = [_log([0.5], first=at, rank=f"[rank{rank}]:") for at in range(1, 31) for rank in range(4)]
    path.write_text("".join(both))
    watch = _live(clock, path)
    assert _turned(watch, clock) == []
    with path.open("a") as file:
        file.write(
            "".join(
                _log([0.5], first=at, rank=f"[rank{rank}]:") for at in range(31, 40) for rank in (0, 1, 3)
            )
        )
    assert _turned(watch, clock) == []
    assert _turned(watch, clock, after_s=15) == [(AlertKind.STRAGGLER, False)]
    assert next(iter(watch.book.active.values())).subject == "2"


def test_what_the_doctor_finds_is_an_alert(tmp_path, clock):
    path = tmp_path / "job.log"
    fault = "n01:12:15 [0] misc/socket.cc:1 NCCL WARN Net : Socket creation failed : Too many open files\n"
    path.write_text(_log(_times(300)) + fault)
    watch = _replayed(clock, path)
    assert (AlertKind.INTERCONNECT, False) in _told(watch)
    assert watch_result(watch, run="job", is_replay=True).interconnect.findings == ["fd_limit"]


@pytest.mark.parametrize(("xid", "severity"), [(79, Severity.CRITICAL), (31, Severity.WARNING)])
def test_an_xid_is_told_and_one_that_programs_cause_is_no_more_than_a_warning(tmp_path, clock, xid, severity):
    path = tmp_path / "dmesg.log"
    path.write_text(f"[8123.4] NVRM: Xid (PCI:0000:1b:00): {xid}, pid=4711, name=python\n")
    told = [each for each in _replayed(clock, path).book.told if each.kind is AlertKind.XID]
    assert [(each.severity, each.subject) for each in told] == [(severity, f"0000:1b:00 {xid}")]


def test_errors_of_a_port_and_a_port_that_went_down_are_told(tmp_path, clock):
    port = tmp_path / "mlx5_0" / "ports" / "1"
    (port / "counters").mkdir(parents=True)
    (port / "state").write_text("4: ACTIVE\n")
    (port / "counters" / "symbol_error").write_text("0\n")
    watch = _live(clock, ports=PortsWatch(root=tmp_path), expects_steps=False)
    assert _turned(watch, clock) == []
    (port / "counters" / "symbol_error").write_text("4\n")
    assert _turned(watch, clock, after_s=6) == [(AlertKind.LINK_ERRORS, False)]
    (port / "state").write_text("1: DOWN\n")
    assert _turned(watch, clock, after_s=6) == [(AlertKind.LINK_ERRORS, False)]
    (port / "state").write_text("4: ACTIVE\n")
    assert _turned(watch, clock, after_s=6) == [(AlertKind.LINK_ERRORS, True)]


def test_a_server_that_gives_no_answer_is_told(clock):
    def fetch(url):
        raise InputError(f"{url}: gives no answer (refused)")

    watch = _live(clock, endpoints=(Endpoint(url="http://server", fetch=fetch),), expects_steps=False)
    assert _turned(watch, clock) == [(AlertKind.ENDPOINT_SILENT, False)]
    assert watch_result(watch, run="x", is_replay=False).verdict is WatchVerdict.AGAINST


def test_an_objective_that_is_missed_is_an_alert_until_it_is_met(clock):
    slow = vllm(release="0.12", ttft=(0, 0, 0, 0, 0, 9, 0), tpot=(0, 9, 0, 0, 0, 0))
    quick = vllm(release="0.12", ttft=(999, 0, 0, 0, 0, 9, 0), tpot=(0, 9, 0, 0, 0, 0))
    shown = [slow]
    watch = _live(
        clock,
        endpoints=(Endpoint(url="http://server", fetch=lambda _url: shown[-1]),),
        objectives=(
            Objective(name="ttft", metric="serving.ttft_p50", comparison=Comparison.AT_MOST, bar=0.5),
        ),
        expects_steps=False,
    )
    assert _turned(watch, clock) == [(AlertKind.OBJECTIVE, False)]
    assert _turned(watch, clock) == []
    shown.append(quick)
    assert _turned(watch, clock, after_s=6) == [(AlertKind.OBJECTIVE, True)]


def test_objectives_of_training_wait_for_steps_enough(tmp_path, clock):
    path = tmp_path / "job.log"
    path.write_text(_log(_times(25)))
    bar = Objective(name="speed", metric="train.step_time", comparison=Comparison.AT_MOST, bar=0.1)
    watch = _live(clock, path, objectives=(bar,))
    assert _turned(watch, clock) == []
    with path.open("a") as file:
        file.write(_log(_times(10), first=26))
    assert _turned(watch, clock) == [(AlertKind.OBJECTIVE, False)]


def test_an_objective_that_nothing_measured_is_no_pass(tmp_path, clock):
    path = tmp_path / "job.log"
    path.write_text(_log(_times(400)))
    bar = Objective(name="ttft", metric="serving.ttft_p50", comparison=Comparison.AT_MOST, bar=0.1)
    result = watch_result(_replayed(clock, path, objectives=(bar,)), run="job", is_replay=True)
    assert result.verdict is WatchVerdict.CANNOT_TELL
    assert result.objectives[0].is_met is None


def test_an_objective_on_what_nothing_measures_is_refused_with_the_nearest_name():
    with pytest.raises(InputError, match=r"train\.step_time"):
        Objective(name="x", metric="train.steptime", comparison=Comparison.AT_MOST, bar=1.0)


def test_every_metric_of_objectives_is_measured_somewhere(tmp_path, clock):
    path = tmp_path / "job.log"
    step = (
        "2026-12-01 05:{:02}:{:02} iteration {}/ 900 | elapsed time per iteration (ms): 1000.0 | lm loss: 2.5 | "
        "grad norm: 0.2 |\ntime (ms) | backward-params-all-reduce: 100.0\n"
    )
    path.write_text("".join(step.format(at // 60, at % 60, at) for at in range(1, 400)))
    shown = vllm(release="0.12", ttft=(9,) * 7, tpot=(9,) * 6, stopped=9)
    watch = _live(
        clock,
        path,
        steps=JobSteps(tokens_per_step=1000.0),
        endpoints=(Endpoint(url="http://server", fetch=lambda _url: shown),),
    )
    watch.turn()
    assert set(values_of(watch)) == set(METRICS)


def test_too_few_steps_cannot_tell(tmp_path, clock):
    path = tmp_path / "job.log"
    path.write_text(_log(_times(100)))
    result = watch_result(_replayed(clock, path), run="job", is_replay=True)
    assert result.verdict is WatchVerdict.CANNOT_TELL
    assert "too few" in result.reason


def test_a_log_without_a_step_measures_nothing(tmp_path, clock):
    path = tmp_path / "job.log"
    path.write_text("hello\n" * 100)
    assert watch_result(_replayed(clock, path), run="job", is_replay=True).verdict is WatchVerdict.NOTHING


def test_a_log_that_is_followed_tells_the_same_as_its_recording(tmp_path, clock):
    times = _times(900)
    times[500:] *= 1.05
    text = _log(times) + _log(_times(300), first=851)
    whole = tmp_path / "whole.log"
    whole.write_text(text)
    replayed = _replayed(clock, whole)
    growing = tmp_path / "growing.log"
    growing.write_text("")
    watch = _live(clock, growing)
    for at in range(0, len(text), 4001):
        with growing.open("a") as file:
            file.write(text[at : at + 4001])
        clock.now_s += 0.1
        watch.turn()
    watch.finish()
    assert [each.step for each in watch.drifts] == [each.step for each in replayed.drifts]
    assert (
        _told(watch)
        == _told(replayed)
        == [
            (AlertKind.STEP_TIME_ROSE, False),
            (AlertKind.STEP_TIME_ROSE, True),
            (AlertKind.RESTARTED, False),
        ]
    )
    assert (watch.steps.lost_steps, watch.steps.count) == (replayed.steps.lost_steps, replayed.steps.count)
