"""What is told of a diagnosis that is made again and again."""

from linkwise.diagnose.following import ChangeKind, Told


def _kinds(changes):
    return [(each.kind.value, each.finding.cause if each.finding else "") for each in changes]


def _faulty(job, *, hosts=2):
    log = job(hosts=hosts).healthy()
    return log.fault(0, "Net : Socket creation failed : Too many open files")


def test_a_finding_is_told_once(job, doctor):
    log = _faulty(job)
    changes, told = Told().tell(doctor(log))
    assert _kinds(changes) == [("new", "fd_limit")]
    log.fault(1, "Net : Socket creation failed : Too many open files")
    changes, told = told.tell(doctor(log))
    assert changes == ()


def test_a_finding_on_many_more_hosts_is_told_again(job, doctor):
    log = _faulty(job, hosts=8)
    _, told = Told().tell(doctor(log))
    for rank in range(2, 10):
        log.fault(rank, "Net : Socket creation failed : Too many open files")
    changes, told = told.tell(doctor(log))
    assert _kinds(changes) == [("changed", "fd_limit")]
    assert told.tell(doctor(log))[0] == ()


def test_a_healthy_log_tells_nothing(job, doctor):
    assert Told().tell(doctor(job().healthy()))[0] == ()


def test_what_an_earlier_cause_explains_is_withdrawn(job, doctor):
    log = job().healthy()
    log.fault(1, "Net : Connection closed by remote peer n00<4711>")
    log.raw(
        "[1]: exitcode  : 1 (pid: 7) local_rank: 1",
        "torch.distributed.DistBackendError: NCCL error in: x.cpp:1, remote process exited or there was a network error, NCCL version 2.21.5",
    )
    changes, told = Told().tell(doctor(log))
    first = _kinds(changes)
    log.fault(0, "Net : Socket creation failed : Too many open files")
    changes, _ = told.tell(doctor(log))
    withdrawn = [each for each in changes if each.kind is ChangeKind.WITHDRAWN]
    assert ("new", "fd_limit") in _kinds(changes)
    assert {each.finding.cause for each in withdrawn} == {cause for _, cause in first if cause}
    assert all("fd_limit" in each.reason for each in withdrawn)


def test_an_error_without_a_cause_is_told_once(job, doctor):
    log = job().healthy()
    log.fault(0, "something that nobody has seen")
    log.raw(
        "torch.distributed.DistBackendError: NCCL error in: x.cpp:1, unhandled system error, NCCL version 2.21.5"
    )
    changes, told = Told().tell(doctor(log))
    assert [(each.finding, each.kind) for each in changes] == [(None, ChangeKind.NEW)]
    assert "no known cause explains it" in changes[0].reason
    assert told.tell(doctor(log))[0] == ()
