"""Laws of reading logs and of the doctor, on made-up input."""

import io
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from linkwise.calibrate.doctor_score import read_cases
from linkwise.diagnose.doctor import diagnose
from linkwise.diagnose.vocabulary import family_of
from linkwise.readers.job_log.reading import parse_job_log
from linkwise.readers.job_log.scan import Scan
from linkwise.report.doctor import doctor_result
from linkwise.report.doctor_table import print_doctor
from linkwise.report.tables import console_for

_FOLDER = Path(__file__).parents[1] / "data" / "nccl_cases"
_LOGS = {path.stem: path.read_bytes() for path in sorted(_FOLDER.glob("*.log"))}
_RIGHT = {case.id: {case.cause, *case.also} for case in read_cases(_FOLDER.parent / "nccl_cases.jsonl")}
_PIECES = st.sampled_from(
    [
        b"NCCL INFO ", b"NCCL WARN ", b"NCCL version ", b"h:1:2 [0] ", b"\n", b" via ", b"Channel 00/0 : 0[0] -> 1[1]",
        b"$ ulimit -n\n", b"Got completion", b"NET/IB : Using [0]", b"Xid (PCI:", b"Last error:\n", b"GPU0\tGPU1\n",
        b"# nThread 1 nGpus 1\n", b'<system version="1">', b'{"busbw": ', b"\x1b[31m", b"\xff\xfe", b"\x00", b"-> 6",
        b"WorkNCCL(SeqNum=", b"last enqueued", b"fe80::1%x<1>", b"with family 0 is neither AF_INET", b"nranks 8",
    ]
)  # fmt: skip
_NOISE = st.lists(st.one_of(_PIECES, st.binary(max_size=40)), max_size=60).map(b"".join)
_FEW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@given(_NOISE)
@_FEW
def test_any_bytes_get_an_answer(data):
    found = diagnose(parse_job_log([("x", data)]))
    assert found.verdict in {"healthy", "slow", "broken", "cannot_tell"}
    for each in found.findings:
        assert each.evidence
        assert not any(ord(char) < 32 for line in each.evidence for char in line.text)


@given(st.sampled_from(sorted(_LOGS)), st.lists(st.integers(1, 5000), min_size=1, max_size=30))
@_FEW
def test_chunks_may_end_anywhere(name, sizes):
    data = _LOGS[name]
    whole, parts = Scan(), Scan()
    whole.feed(name, [data])
    cuts, at = [], 0
    while at < len(data):
        size = sizes[len(cuts) % len(sizes)]
        cuts.append(data[at : at + size])
        at += size
    parts.feed(name, cuts)
    assert parts.sightings == whole.sightings
    assert list(parts.channels()) == list(whole.channels())


@given(st.sampled_from(sorted(_LOGS)), st.data())
@_FEW
def test_a_log_cut_at_any_line_never_names_another_family(name, data):
    lines = _LOGS[name].split(b"\n")
    whole = _first(_LOGS[name])
    cut = _first(b"\n".join(lines[: data.draw(st.integers(0, len(lines)))]))
    if cut is not None:
        assert whole is not None
        assert cut in _RIGHT[name] or family_of(cut) == family_of(whole) or cut == "remote_exit"


@given(
    st.sampled_from(sorted(_LOGS)),
    st.sampled_from([b"[1,3]<stdout>:", b"12: ", b"2025-03-18T09:10:02.118Z ", b"pod-a: "]),
)
@_FEW
def test_prefixes_of_launchers_change_nothing(name, prefix):
    lines = _LOGS[name].split(b"\n")
    if any(line.startswith(b"$ ") for line in lines):
        return
    assert _first(b"\n".join(prefix + line for line in lines)) == _first(_LOGS[name])


@given(st.sampled_from(sorted(_LOGS)), st.randoms(use_true_random=False))
@_FEW
def test_names_of_hosts_decide_nothing(name, random):
    from linkwise.diagnose.facts import Facts

    log = parse_job_log([(name, _LOGS[name])])
    data = _LOGS[name]
    for host in sorted(Facts(log=log).hosts, key=len, reverse=True):
        data = data.replace(host.encode() + b":", b"q%d-z:" % random.randrange(10**6))
    assert _first(data) == _first(_LOGS[name])


_EDITS = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 60), st.binary(max_size=12)), max_size=60)


@given(st.sampled_from(sorted(_LOGS)), _EDITS)
@_FEW
def test_a_damaged_log_gets_an_answer_that_no_terminal_acts_on(name, edits):
    data = bytearray(_LOGS[name])
    for place, dropped, added in edits:
        at = int(place * len(data))
        data[at : at + dropped] = added
    out = io.StringIO()
    print_doctor(doctor_result(diagnose(parse_job_log([("x", bytes(data))]))), console_for(out, width=80))
    assert not [char for char in out.getvalue() if ord(char) < 32 and char != "\n"]


def _first(data):
    found = diagnose(parse_job_log([("x", data)])).findings
    return next((each.cause for each in found if each.severity != "harmless"), None)
