"""A job followed by its logs, with a clock and files of the test."""

from pathlib import Path

import pytest

from linkwise.diagnose.doctor import diagnose
from linkwise.monitor.follower import Follower
from linkwise.monitor.inputs import Inputs
from tests.job_logs.flight import as_pickle, call, dump

_LOG = (Path(__file__).parents[1] / "data" / "nccl_cases" / "GDR-02.log").read_bytes()
_FAULT = b"n01:12:15 [0] misc/socket.cc:1 NCCL WARN Net : Socket creation failed : Too many open files\n"


class Clock:
    def __init__(self):
        self.now_s = 0.0

    def __call__(self):
        return self.now_s

    def wait(self, time_s):
        self.now_s += max(time_s, 0.01)
        return False


@pytest.fixture
def clock():
    return Clock()


def _follower(clock, *paths):
    return Follower(find=Inputs(paths=[str(each) for each in paths]).new, judge=diagnose, clock=clock)


def _causes(follower, clock):
    clock.now_s += 1
    return [(each.kind.value, each.finding.cause) for each in follower.turn() if each.finding]


def test_a_fault_is_told_in_the_turn_that_reads_it(tmp_path, clock):
    path = tmp_path / "job.log"
    follower = _follower(clock, path)
    assert _causes(follower, clock) == []
    path.write_bytes(_FAULT[:40])
    assert _causes(follower, clock) == []
    with path.open("ab") as file:
        file.write(_FAULT[40:])
    assert _causes(follower, clock) == [("new", "fd_limit")]
    assert _causes(follower, clock) == []
    assert follower.finish().verdict == "broken"


def test_a_fault_of_before_the_rotation_stays_and_one_after_it_is_told(tmp_path, clock):
    path = tmp_path / "job.log"
    path.write_bytes(_FAULT)
    follower = _follower(clock, path)
    assert _causes(follower, clock) == [("new", "fd_limit")]
    path.rename(tmp_path / "job.log.1")
    path.write_bytes(b"[1.2] NVRM: Xid (PCI:0000:1b:00): 79, GPU has fallen off the bus.\n")
    assert ("new", "gpu_hw") in _causes(follower, clock)
    assert follower.finish().findings[0].evidence[0].line == 1


def test_new_files_of_a_folder_are_read_and_rotated_ones_are_not_read_again(tmp_path, clock):
    first = tmp_path / "rank0.log"
    first.write_bytes(_LOG)
    follower = _follower(clock, tmp_path)
    assert _causes(follower, clock) == [("new", "gdr_off")]
    first.rename(tmp_path / "rank0.log.1")
    (tmp_path / "rank1.log").write_bytes(_FAULT)
    assert ("new", "fd_limit") in _causes(follower, clock)
    inputs = [each.name for each in follower.log.log().inputs]
    assert inputs == [str(first), str(tmp_path / "rank1.log")]
    follower.finish()


def test_files_that_grow_side_by_side_keep_their_lines_apart(tmp_path, clock):
    paths = [tmp_path / "a.log", tmp_path / "b.log"]
    follower = _follower(clock, *paths)
    half = len(_FAULT) // 2
    for piece in (_FAULT[:half], _FAULT[half:]):
        for path in paths:
            with path.open("ab") as file:
                file.write(piece)
        clock.now_s += 1
        follower.turn()
    (finding,) = follower.finish().findings
    assert sorted((each.file, each.line) for each in finding.evidence) == [(str(each), 1) for each in paths]


def test_dumps_that_ranks_write_at_a_timeout_are_read(tmp_path, clock):
    follower = _follower(clock, tmp_path)
    _causes(follower, clock)
    waits = [call(1), call(2, state="started", retired=True)]
    for rank, calls in enumerate((waits, [call(1)], waits)):
        data = as_pickle(dump(calls, ranks=(0, 1, 2)))
        path = tmp_path / f"trace_{rank}"
        path.write_bytes(data[:500])
        _causes(follower, clock)
        path.write_bytes(data[:500] + data[500:])
    found = follower.finish()
    assert [(each.cause, each.where) for each in found.findings] == [("desync", ("rank 1",))]


def test_what_is_no_log_is_left_out(tmp_path, clock):
    (tmp_path / "a.png").write_bytes(b"\x89PNG" + bytes(90))
    (tmp_path / "b.gz").write_bytes(b"\x1f\x8b" + bytes(90))
    follower = _follower(clock, tmp_path)
    _causes(follower, clock)
    unread = follower.finish().unread
    assert len(unread) == 2
    assert "PNG" in unread[0]
    assert "gzip, which does not grow" in unread[1]


def test_following_ends_when_it_is_quiet(tmp_path, clock):
    path = tmp_path / "job.log"
    path.write_bytes(_FAULT)
    follower = _follower(clock, path)
    told = [
        each.finding.cause for changes in follower.follow(clock.wait, until_quiet_s=5) for each in changes
    ]
    assert told == ["fd_limit"]
    assert 5 <= clock.now_s < 6
    follower.finish()


def test_a_large_log_is_read_in_turns_without_waiting(tmp_path, clock):
    path = tmp_path / "job.log"
    path.write_bytes((b"x" * 99 + b"\n") * 300_000 + _FAULT)
    follower = _follower(clock, path)
    waits = []

    def wait(time_s):
        waits.append(time_s)
        return len(waits) > 20 or time_s > 0

    assert [each.finding.cause for changes in follower.follow(wait) for each in changes] == ["fd_limit"]
    assert waits.count(0) >= 7
    follower.finish()


def test_memory_of_a_line_without_an_end_is_bounded(tmp_path, clock):
    path = tmp_path / "job.log"
    follower = _follower(clock, path)
    path.write_bytes(b"y" * (9 << 20))
    for _ in range(4):
        _causes(follower, clock)
    (stream,) = follower.log._streams.values()
    assert len(stream.rest) <= 2 << 20
    follower.finish()
