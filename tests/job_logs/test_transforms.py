"""A log in another form holds the same lines, and says which answers stay right."""

import gzip
from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.job_logs import cases
from tests.job_logs.transforms import (
    CANNOT_TELL,
    LAUNCHERS,
    NO_FINDING,
    TRANSFORMS,
    answers,
    compress,
    cut_tail,
    glue,
    interleave,
    one_rank,
    prefix,
    rename_hosts,
    split_files,
    stamp,
    variations,
)  # fmt: skip
from tests.job_logs.writing import PREFIXES, write_lines

BY_ID = {case.id: case for case in cases()}
SHM, HEALTHY, FLAP, NAMES = (
    BY_ID[name] for name in ("shm-4", "healthy-infiniband-8", "link_flap-4", "host_identity-near-1")
)


def by_process(text):
    rows = defaultdict(list)
    for row in text.splitlines():
        if " NCCL INFO " in row or " NCCL WARN " in row:
            rows[row.split(" ")[0].rsplit(":", 1)[0]].append(row)
    return rows


def plain(case):
    return prefix(case, "plain")


def log_of(variation):
    return variation.files["job.log"].decode()


def test_interleave_keeps_the_order_of_each_process():
    before = by_process(write_lines(HEALTHY.script, HEALTHY.lines, "plain"))
    mixed = interleave(HEALTHY, 5)
    after = by_process(log_of(mixed))
    if HEALTHY.script.job.launcher == "plain":
        assert after == before
    assert sorted(log_of(mixed)) == sorted(HEALTHY.files["job.log"])
    assert log_of(mixed) != HEALTHY.files["job.log"]
    assert mixed.allowed == {NO_FINDING}


@pytest.mark.parametrize("launcher", [name for name in LAUNCHERS if name not in {"syslog", "plain"}])
def test_prefix_can_be_taken_off_again(launcher):
    rows = iter(log_of(prefix(SHM, launcher)).splitlines())
    bare = iter(log_of(plain(SHM)).splitlines())
    for line in SHM.lines:
        for _ in range(write_lines(SHM.script, [line], "plain").count("\n")):
            row, expected = next(rows), next(bare)
            assert row.removesuffix("\x1b[0m").startswith(PREFIXES[launcher](line))
            assert (
                row.removeprefix(PREFIXES[launcher](line)).removesuffix(
                    "\x1b[0m" if launcher == "ansi" else ""
                )
                == expected
            )
    assert next(rows, None) is None


def test_syslog_escapes_the_newline_before_a_warn():
    log = log_of(prefix(SHM, "syslog"))
    assert "#012" in log
    assert all(row.startswith("Nov") for row in log.splitlines())


def test_times_on_every_record_or_on_none():
    shown, hidden = log_of(stamp(FLAP, shown=True)), log_of(stamp(FLAP, shown=False))
    assert "[2025-11-04 08:15:30]" in shown
    assert "[2025-11-04" not in hidden
    assert len(shown.splitlines()) == len(hidden.splitlines())


def test_rename_leaves_no_old_name_and_keeps_hosts_apart():
    renamed = rename_hosts(NAMES, 3)
    log = log_of(renamed)
    hosts = {
        row.split(":")[0]
        for row in plain(NAMES).files["job.log"].decode().splitlines()
        if " NCCL INFO " in row
    }
    assert hosts == {"gpu-1", "gpu-10"}
    assert not any(f"{name}:" in log for name in hosts)
    assert "-0000-n3:" in log
    assert "-0001-n10:" in log


def test_one_rank_is_one_process_and_may_not_tell():
    alone = one_rank(FLAP, 1)
    assert len(by_process(log_of(prefix(FLAP, "plain")))) == 4
    rank = FLAP.script.ranks[1]
    assert f":{rank.pid}:" in log_of(alone)
    assert not any(f":{other.pid}:" in log_of(alone) for other in FLAP.script.ranks if other is not rank)
    assert CANNOT_TELL in alone.allowed
    assert not alone.keeps_facts


def test_cut_before_the_fault_need_not_name_it():
    assert cut_tail(SHM, 3).allowed == answers(SHM) | {CANNOT_TELL, NO_FINDING}
    whole = cut_tail(SHM, 10_000)
    assert log_of(whole) == SHM.files["job.log"]
    assert NO_FINDING not in whole.allowed


@given(keep=st.integers(0, 400))
def test_cut_is_the_beginning_of_the_log_at_any_line(keep):
    cut = cut_tail(SHM, keep)
    assert SHM.files["job.log"].startswith(log_of(cut))
    assert answers(SHM) <= cut.allowed


def test_gzip_holds_the_same_log():
    assert gzip.decompress(compress(SHM).files["job.log.gz"]).decode() == SHM.files["job.log"]


def test_answers_are_no_finding_when_nothing_is_wrong():
    assert answers(HEALTHY) == {NO_FINDING}
    assert answers(BY_ID["harmless-1"]) == {"harmless", NO_FINDING}
    assert answers(SHM) == {"shm", "container"}


def test_every_transformation_serves_every_kind_of_case():
    for case in list(BY_ID.values())[::17]:
        made = variations(case, 11)
        assert len(made) == len(TRANSFORMS)
        assert all(variation.allowed for variation in made)
        assert [v.files for v in variations(case, 11)] == [v.files for v in made]


def test_split_gives_each_process_its_file():
    files = split_files(FLAP).files
    own = [name for name in files if name.startswith("nccl.")]
    assert len(own) == 4
    for rank in FLAP.script.ranks:
        text = files[f"nccl.{rank.host}.{rank.pid}.log"].decode()
        assert set(by_process(text)) == {f"{rank.host}:{rank.pid}"} or text.startswith("[")
    assert b"NCCL INFO" not in files["job.log"]


def test_glue_only_takes_newlines_away():
    glued = log_of(glue(HEALTHY, 4))
    whole = HEALTHY.files["job.log"]
    assert glued.replace("\n", "") == whole.replace("\n", "")
    assert glued.count("\n") < whole.count("\n")
