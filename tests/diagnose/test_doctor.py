"""The verdict, and what stands of several findings."""

import gzip
import json
from pathlib import Path

import pytest

from linkwise.diagnose.causes import RULES
from linkwise.diagnose.doctor import diagnose
from linkwise.diagnose.precedence import LIKELIHOOD, OVER
from linkwise.diagnose.vocabulary import FAMILIES, family_of
from linkwise.readers.job_log.reading import read_job_logs

_CAUSES = {cause for causes in FAMILIES.values() for cause in causes}
_CASES = Path(__file__).parents[1] / "data" / "nccl_cases"


def test_a_healthy_job_is_healthy(job, doctor):
    assert doctor(job().healthy()).verdict == "healthy"


def test_a_log_that_ends_before_the_start_is_done_cannot_tell(job, doctor):
    found = doctor(job().start().choose().init())
    assert (found.verdict, "ranks 0, 1, 2, 3" in found.reason) == ("cannot_tell", True)


def test_a_log_without_nccl_cannot_tell_and_says_what_to_set(doctor):
    found = doctor("step=1 loss=11.9\nstep=2 loss=11.8\n")
    assert (found.verdict, "NCCL_DEBUG=INFO" in found.reason) == ("cannot_tell", True)


def test_an_error_without_a_known_cause_is_broken_and_shows_its_line(job, doctor):
    found = doctor(job().healthy().raw("RuntimeError: CUDA error: device-side assert triggered"))
    assert (found.verdict, found.findings, "job.log:" in found.reason) == ("broken", (), True)


def test_every_cause_of_a_rule_is_a_word_of_the_vocabulary():
    assert set(RULES) <= _CAUSES
    assert set(LIKELIHOOD) == _CAUSES
    assert set(OVER) | {loser for losers in OVER.values() for loser in losers} <= _CAUSES


def test_no_two_causes_explain_each_other():
    assert [(a, b) for a, losers in OVER.items() for b in losers if a in OVER.get(b, ())] == []


def test_families_hold_every_cause_once():
    assert len([cause for causes in FAMILIES.values() for cause in causes]) == len(_CAUSES) == 47
    assert family_of("gdr_off") == "RDMA"


def test_platform_evidence_wins_over_errors_on_other_hosts(job, doctor):
    log = job().healthy().raw("[8.1] NVRM: Xid (PCI:0000:66:00): 79, GPU has fallen off the bus.")
    log.fault(0, "Net : Connection closed by remote peer 10.0.0.2<47861>")
    assert [each.cause for each in doctor(log).findings] == ["gpu_hw"]


@pytest.mark.parametrize("name", ["GDR-02", "IBMISS-01", "OK-02-ib-2node-gdr", "OOM-01"])
def test_a_packed_log_and_a_folder_give_the_same_answer(tmp_path, name):
    data = (_CASES / f"{name}.log").read_bytes()
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "job.log.gz").write_bytes(gzip.compress(data, mtime=0))
    plain = diagnose(read_job_logs([str(_CASES / f"{name}.log")]))
    packed = diagnose(read_job_logs([str(tmp_path)]))
    assert [each.cause for each in packed.findings] == [each.cause for each in plain.findings]
    assert packed.verdict == plain.verdict


def test_taking_all_evidence_out_takes_the_finding_out():
    entries = [json.loads(line) for line in (_CASES.parent / "nccl_cases.jsonl").read_text().splitlines()]
    for entry in entries:
        path = _CASES / f"{entry['id']}.log"
        if not path.exists():
            continue
        files = [path, *(each for each in sorted(_CASES.glob(f"{entry['id']}.*")) if each != path)]
        for found in diagnose(read_job_logs([str(each) for each in files])).findings:
            left = _without(files, {(line.file, line.line) for line in found.evidence})
            assert found.cause not in {each.cause for each in left.findings}, (entry["id"], found.cause)


def _without(files, dropped):
    from linkwise.readers.job_log.reading import parse_job_log

    texts = []
    for path in files:
        lines = path.read_bytes().split(b"\n")
        kept = [line for number, line in enumerate(lines, 1) if (str(path), number) not in dropped]
        texts.append((str(path), b"\n".join(kept)))
    return diagnose(parse_job_log(texts))


def test_a_warning_that_is_not_known_is_said_to_be_there(job, doctor):
    log = job().start().fault(0, "Flux capacitor 7 overflows", source="misc/flux.cc")
    log.fault(1, "Flux capacitor 8 overflows", source="misc/flux.cc")
    found = doctor(log)
    assert ([each.text.partition("WARN ")[2] for each in found.unknown], found.verdict) == (
        ["Flux capacitor 7 overflows"],
        "cannot_tell",
    )
    assert "a warning is there that is not known" in found.reason


def test_a_known_warning_is_not_among_the_unknown(job, doctor):
    log = (
        job()
        .healthy()
        .fault(0, "User asked for a maximum of 0 channels, setting it to 1", source="connect.cc")
    )
    assert (doctor(log).unknown, doctor(log).verdict) == ((), "healthy")


def test_a_fault_without_a_cause_is_broken(job, doctor):
    log = job().start().fault(0, "Cuda failure 1 'invalid argument'", source="transport.cc")
    found = doctor(log)
    assert (found.verdict, found.findings, "no known cause" in found.reason) == ("broken", (), True)


_LATE = (
    "[rank{0}]:[E1204 11:02:03.4 ProcessGroupNCCL.cpp:632] [Rank {0}] Watchdog caught collective operation"
    " timeout: WorkNCCL(SeqNum={1}, OpType=ALLREDUCE, NumelIn=64, NumelOut=64, Timeout(ms)=600000) ran"
)


def test_a_first_collective_that_never_ends_points_to_the_way_between_the_gpus(doctor):
    found = doctor(_LATE.format(0, 1) + "\n")
    assert (found.verdict, found.findings) == ("broken", ())
    assert found.reason.index("acs_iommu") < found.reason.index("desync")


def test_a_late_collective_points_to_a_rank_before_the_network(doctor):
    found = doctor(_LATE.format(0, 4711) + "\n")
    assert (found.verdict, found.findings) == ("broken", ())
    assert found.reason.index("desync") < found.reason.index("link_flap")


def test_a_collective_in_which_all_ranks_wait_misses_none(job, doctor):
    log = job(hosts=1).healthy().raw(*(_LATE.format(rank, 1) for rank in range(2)))
    found = doctor(log)
    assert ("all 2 ranks wait" in found.reason, "desync" in found.reason) == (True, False)


def test_the_watchdog_line_that_names_only_the_work_is_a_timeout(doctor):
    text = (
        "[rank3]:[E1 ProcessGroupNCCL.cpp:1709] [PG 0 Rank 3] Timeout at NCCL work: 2070, last enqueued NCCL"
    )
    found = doctor(f"{text} work: 2082, last completed NCCL work: 2069.\n")
    assert (found.verdict, "a collective timed out" in found.reason) == ("broken", True)


def test_a_timeout_whose_line_is_broken_off_is_broken(doctor):
    found = doctor(_LATE.format(0, 4711).partition("eqNum")[0] + "\neqNum=4711, OpType=ALLREDUCE\n")
    assert (found.verdict, "a collective timed out" in found.reason) == ("broken", True)


def test_a_rank_beyond_the_world_names_the_launcher(job, doctor):
    found = doctor(job().start().fault(0, "Invalid rank requested : 2/2", source="init.cc"))
    assert (found.verdict, "WORLD_SIZE" in found.reason, found.unknown) == ("broken", True, ())


def test_a_call_that_nccl_refuses_is_broken_and_no_unknown_warning(job, doctor):
    text = "AllReduce : comm argument is NULL"
    found = doctor(job().healthy().fault(0, text, source="misc/argcheck.cc"))
    assert (found.verdict, text in found.reason, found.unknown) == ("broken", True, ())


def test_channels_without_the_end_of_the_start_cannot_tell(job, doctor):
    log = job().say(1, "Channel 00/0 : 1[1] -> 2[0] [send] via NET/IB/0/GDRDMA")
    found = doctor(log)
    assert (found.verdict, "how ranks connect" in found.reason) == ("cannot_tell", True)
    assert doctor(log.say(1, "Connected all rings")).verdict == "healthy"


def test_a_call_that_returns_an_error_is_broken_although_nothing_warns(job, doctor):
    assert doctor(job().start().say(0, "group.cc:72 -> 2 [Async thread]")).verdict == "broken"


def test_a_call_that_is_still_in_progress_is_no_error(job, doctor):
    assert doctor(job().healthy().say(0, "group.cc:72 -> 7")).verdict == "healthy"


def test_an_echo_with_aborts_is_broken(job, doctor):
    log = job().start().fault(0, "Proxy Call to rank 1 failed (Connect)", source="proxy.cc")
    found = doctor(log.say(0, "comm 0x1 rank 0 nranks 4 cudaDev 0 busId 7000 - Abort COMPLETE"))
    assert (found.verdict, "echo" in found.reason or bool(found.findings)) == ("broken", True)


def test_an_error_of_cuda_is_no_echo(doctor):
    found = doctor("RuntimeError: CUDA error: unknown error\n")
    assert (found.verdict, "echo" in found.reason, "no known cause" in found.reason) == (
        "broken",
        False,
        True,
    )


def test_data_over_tcp_that_no_line_calls_wrong_is_said_beside_healthy(job, doctor):
    assert "over TCP" in doctor(job(network="Socket").healthy()).reason
    assert "over TCP" not in doctor(job().healthy()).reason
    assert "over TCP" not in doctor(job(hosts=1, network="Socket").healthy()).reason
