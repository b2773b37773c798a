"""Every case is a log that could be: its lines parse, its ranks add up, its texts are those of its release."""

import re
from collections import defaultdict
from pathlib import Path

from tests.job_logs import cases, hosts
from tests.job_logs.cases import CAUSES
from tests.job_logs.formats import find
from tests.job_logs.releases import version_of
from tests.job_logs.writing import write_lines

ALL = list(cases())
BY_ID = {case.id: case for case in ALL}

# A grammar of its own, so that the generator is not held to itself.
RECORD = re.compile(
    r"^(?:\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\] )?(?P<host>[A-Za-z0-9-]+):(?P<pid>\d+):(?P<tid>\d+) \[(?P<dev>\d+)\] "
    r"(?:(?P<file>[\w./]+):\d+ (?:\((?P<function>\w+)\) )?NCCL WARN|NCCL INFO) (?P<text>.*)$"
)
COMPLETE = re.compile(r"rank (\d+) nranks (\d+) .*Init COMPLETE$")
SIZE = re.compile(r"nRanks (\d+) nNodes (\d+) localRanks (\d+) localRank (\d+)")


def plain(case, **fields):
    return write_lines(case.script, case.lines, "plain", **fields)


def test_every_record_parses_and_comes_from_a_host_of_the_job():
    for case in ALL:
        hosts = set(case.script.job.hosts)
        for row in plain(case).splitlines():
            if " NCCL INFO " in row or " NCCL WARN " in row:
                match = RECORD.match(row)
                assert match, row
                assert match["host"] in hosts
                assert len(row.encode()) < 1024


def test_every_text_is_one_that_its_release_prints():
    for case, line in ((known, record) for known in ALL for record in known.lines):
        if line.name in {"", "plugin", "unwind", "version"}:
            continue
        message = find(line.name, case.script.release_of(line.rank))
        assert message is not None, line
        assert line.level == message.level
        first = message.text.partition("{")[0]
        assert line.text.startswith(first) or line.name in {"system", "bootstrap"}, line.text


def test_vocabulary_has_forty_causes_each_with_cases_of_two_series_and_near_misses():
    assert len(CAUSES) == 40
    for cause, write in CAUSES.items():
        made = list(write())
        real = [case for case in made if not case.is_near_miss]
        assert len(real) >= 3, cause
        assert len({version_of(case.release)[:2] for case in real}) >= 2, cause
        assert {case.cause for case in real} == {cause}
        assert len([case for case in made if case.near_miss_of == cause]) >= 2, cause


def test_ids_are_unique_and_there_are_enough():
    assert len(BY_ID) == len(ALL)
    assert len(ALL) >= 250


def test_a_near_miss_does_not_have_the_cause_that_it_looks_like():
    for case in ALL:
        if case.is_near_miss and case.near_miss_of != "harmless":
            assert case.cause != case.near_miss_of, case.id
            assert case.near_miss_of not in CAUSES or case.cause is None or case.cause in CAUSES


def test_causes_and_second_causes_are_of_the_vocabulary():
    for case in ALL:
        assert case.right <= set(CAUSES), case.id
        assert case.verdict in {"healthy", "harmless", "slow", "broken"}
        assert (case.cause is None) == (case.verdict == "healthy"), case.id
        assert (case.cause == "harmless") == (case.verdict == "harmless"), case.id
        assert case.basis in {"source", "assumed"}


def test_something_shows_the_cause_of_every_fault():
    for case in ALL:
        if case.verdict in {"slow", "broken"}:
            assert any(line.decisive for line in case.lines) or case.side, case.id


def test_ranks_and_nodes_add_up_when_a_job_runs():
    for case in ALL:
        if case.verdict != "healthy" or case.facts is None or case.id == "healthy-several-communicators":
            continue
        text = plain(case)
        found = {(int(rank), int(ranks)) for rank, ranks in COMPLETE.findall("\n".join(text.splitlines()))}
        found |= {(int(m[1]), int(m[2])) for m in map(COMPLETE.search, text.splitlines()) if m}
        size = case.script.job.size
        assert found == {(rank, size) for rank in range(size)}, case.id
        for ranks, nodes, local_ranks, local in SIZE.findall(text):
            assert (int(ranks), int(nodes)) == (case.facts.ranks, case.facts.nodes)
            assert int(local) < int(local_ranks)


def test_facts_are_visible_when_they_are_claimed():
    for case in ALL:
        text, facts = plain(case), case.facts
        if facts is None:
            continue
        for version in facts.versions:
            assert version in text, case.id
        if facts.between is not None and facts.between != "P2P/MNNVL":
            assert f"via {facts.between}/" in text, case.id
        if facts.gdr is not None and facts.between != "P2P/MNNVL":
            assert ("/GDRDMA" in text) == facts.gdr, case.id
        if facts.inside == "SHM":
            assert "via SHM" in text or "via direct shared memory" in text, case.id
        elif facts.inside is not None:
            assert f"via {facts.inside}" in text, case.id


def test_every_process_prints_in_order_of_its_times():
    for case in ALL:
        last = defaultdict(float)
        for line in case.lines:
            assert line.at_s >= last[line.rank.rank]
            last[line.rank.rank] = line.at_s


def test_warn_carries_time_and_function_from_the_release_that_has_them():
    for case in ALL:
        release = case.script.job.release
        if case.script.job.releases_of_hosts:
            continue
        for row in plain(case).splitlines():
            match = RECORD.match(row)
            if match and match["file"]:
                assert row.startswith("[2") == release.is_from("2.26.2")
                if not release.is_from("2.30.7"):
                    assert match["function"] is None


def test_blank_line_stands_before_every_warn():
    rows = plain(BY_ID["shm-4"]).splitlines()
    for index, row in enumerate(rows):
        if " NCCL WARN " in row:
            assert rows[index - 1] == ""


def test_cases_are_the_same_every_time():
    again = {case.id: case.files for case in cases()}
    assert again == {case.id: case.files for case in ALL}


def test_version_line_is_bare_until_2_22_and_of_every_process_after():
    old, new = plain(BY_ID["healthy-infiniband-2.10"]), plain(BY_ID["healthy-infiniband-2.32"])
    assert old.count("\nNCCL version 2.10.3+cuda11.3\n") == 1
    assert new.count("NCCL INFO NCCL version 2.32.3+cuda13.1") == 4


def test_generator_shares_no_code_with_the_product():
    for path in Path(__file__).parent.rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        assert not re.search(r"^\s*(from|import) " + "linkwise", source, re.MULTILINE), path


def test_effects_stand_after_their_cause_in_the_log_of_every_fault():
    effects = {"closed_by_peer", "proxy_operation", "proxy_poll", "proxy_call", "unwind"}
    for case in ALL:
        decisive = [line.at_s for line in case.lines if line.decisive and line.level == "WARN"]
        for line in case.lines:
            if decisive and line.name in effects and not line.decisive:
                assert line.at_s >= min(decisive), (case.id, line)


def test_gid_of_an_address_when_nccl_prints_its_second_half():
    # NCCL prints ::ffff:10.20.0.11 as GID 3 (0/B00140AFFFF0000): the bytes 00 00 ff ff 0a 14 00 0b from the low end.
    assert hosts.gid_of("10.20.0.11") == "0000:0000:0000:0000:0000:ffff:0a14:000b"
    assert f"{hosts.interface_id('10.20.0.11'):X}" == "B00140AFFFF0000"
