"""What several dumps of the Flight Recorder say together."""

from linkwise.diagnose.doctor import diagnose
from linkwise.readers.job_log.reading import parse_job_log
from tests.job_logs.flight import as_json, as_pickle, call, dump


def _found(*calls_of_ranks, form=as_pickle, ranks=None, **groups):
    members = tuple(range(len(calls_of_ranks))) if ranks is None else ranks
    texts = [
        (f"trace_rank_{rank}", form(dump(calls, ranks=members, **groups)))
        for rank, calls in enumerate(calls_of_ranks)
        if calls is not None
    ]
    return diagnose(parse_job_log(texts))


def _waits(sequence=2, operation="all_reduce", **fields):
    return [
        *(call(number) for number in range(1, sequence)),
        call(sequence, operation, state="started", retired=True, **fields),
    ]


def test_the_rank_that_never_issued_the_call_is_named():
    for form in (as_pickle, as_json):
        found = _found(_waits(), _waits(), [call(1)], _waits(), form=form)
        (finding,) = found.findings
        assert (found.verdict, finding.cause, finding.confidence) == ("broken", "desync", "high")
        assert finding.where == ("rank 2",)
        assert (
            "Rank 2 never issued nccl:all_reduce of 3x4, number 2 of process group 0" in finding.explanation
        )
        assert {each.file for each in finding.evidence} == {f"trace_rank_{rank}" for rank in range(4)}


def test_a_rank_in_another_operation_is_named():
    (finding,) = _found(_waits(), _waits(operation="broadcast"), _waits()).findings
    assert (finding.cause, finding.where, finding.confidence) == ("desync", ("rank 1",), "high")


def test_a_rank_with_another_size_is_named_but_not_in_an_all_to_all():
    odd = _waits(sizes=((5, 4),))
    (finding,) = _found(_waits(), _waits(), odd).findings
    assert finding.where == ("rank 2",)
    parts = [_waits(operation="alltoall_base", sizes=((rows, 4),)) for rows in (3, 7, 1)]
    assert not _found(*parts).findings


def test_all_ranks_in_one_call_are_no_disagreement():
    assert not _found(_waits(), _waits(), _waits()).findings


def test_ranks_that_completed_all_are_no_disagreement():
    assert not _found([call(1), call(2)], [call(1)]).findings


def test_dumps_of_a_job_that_did_not_time_out_are_less_sure():
    ahead = [call(1), call(2, state="started")]
    (finding,) = _found(ahead, [call(1)]).findings
    assert finding.confidence == "medium"


def test_the_one_rank_without_a_dump_is_named_with_less_confidence():
    (finding,) = _found(_waits(), None, _waits(), _waits(), ranks=(0, 1, 2, 3)).findings
    assert (finding.where, finding.confidence) == (("rank 1",), "medium")
    assert not _found(_waits(), None, None, _waits(), ranks=(0, 1, 2, 3)).findings


def test_a_rank_whose_gpu_never_began_the_call_is_named():
    idle = [call(1), call(2, state="scheduled", retired=True)]
    (finding,) = _found(_waits(), _waits(), idle).findings
    assert (finding.where, finding.confidence) == (("rank 2",), "medium")


def test_the_group_whose_missing_rank_waits_nowhere_is_named_first():
    # Ranks 1 and 3 are late in the group of all, rank 1 because it waits for rank 3 in their own.
    def both(world, own):
        whole = dump([*world, *own], ranks=(0, 1, 2, 3))
        whole["pg_config"]["tp"] = {"name": "tp", "desc": "tp", "ranks": "[1, 3]"}
        return as_pickle(whole)

    inner = call(1, "all_gather", group="tp", description="tp", state="started", retired=True)
    late = [call(1)]
    texts = [
        ("r0", as_pickle(dump(_waits()))),
        ("r1", both(late, [inner])),
        ("r2", as_pickle(dump(_waits()))),
        ("r3", both(late, [])),
    ]
    (finding,) = diagnose(parse_job_log(texts)).findings
    assert finding.where == ("rank 3",)
    assert "process group tp" in finding.explanation
