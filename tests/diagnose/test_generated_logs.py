"""The doctor on every generated log: its cause first, no near miss fires, facts exact, in any form."""

import gzip
from collections import defaultdict
from functools import cache

import pytest

from linkwise.diagnose.doctor import diagnose
from linkwise.diagnose.finding import Confidence
from linkwise.diagnose.vocabulary import FAMILIES, family_of
from linkwise.readers.job_log.reading import parse_job_log
from tests.job_logs import cases
from tests.job_logs.transforms import CANNOT_TELL, NO_FINDING, TRANSFORMS, variations

_SURE = tuple(Confidence)
_STRIDE = 6
"""In the quick tests each case meets one form in six, another for each case; `full` tests meet all."""

_OF_GLOO = {"elastic_store", "link_down", "node_lost", "rank_frozen", "rank_killed", "slow_link", "slow_node"}
"""What NCCL prints nothing of: jobs that had these are recorded, see test_gloo_logs."""


@cache
def _all():
    return tuple(cases())


def _read(files):
    return diagnose(
        parse_job_log(
            (name, gzip.decompress(data) if name.endswith(".gz") else data) for name, data in files.items()
        )
    )


@cache
def _diagnosed():
    return tuple((case, _read({name: text.encode() for name, text in case.files.items()})) for case in _all())


def _wrong(diagnosis):
    return [each.cause for each in diagnosis.findings if each.severity != "harmless"]


def test_every_cause_has_three_logs_of_two_release_series_and_near_misses():
    logs, series, near = defaultdict(int), defaultdict(set), defaultdict(int)
    for case in _all():
        if case.is_near_miss:
            near[case.near_miss_of] += 1
        elif case.cause:
            logs[case.cause] += 1
            series[case.cause].add(tuple(case.release.split(".")[:2]))
    for causes in FAMILIES.values():
        for cause in causes.keys() - _OF_GLOO:
            assert logs[cause] >= 3, cause
            assert len(series[cause]) >= 2, cause
            assert near[cause] >= 1 or cause == "harmless", cause


def test_right_cause_is_first_in_95_percent_of_the_logs_of_each_cause():
    right, count = defaultdict(int), defaultdict(int)
    for case, diagnosis in _diagnosed():
        if case.cause in {None, "harmless"}:
            continue
        count[case.cause] += 1
        right[case.cause] += _wrong(diagnosis)[:1] != [] and _wrong(diagnosis)[0] in case.right
    assert {cause: right[cause] / count[cause] for cause in count if right[cause] < 0.95 * count[cause]} == {}


def test_no_near_miss_fires_and_nothing_is_found_where_nothing_is_wrong():
    fired = [
        (case.id, _wrong(diagnosis))
        for case, diagnosis in _diagnosed()
        if (case.cause in {None, "harmless"} and _wrong(diagnosis))
        or (
            case.is_near_miss
            and case.near_miss_of in _wrong(diagnosis)
            and case.near_miss_of not in case.right
        )
    ]
    assert fired == []


def test_verdicts_are_right():
    wrong = [
        (case.id, diagnosis.verdict.value)
        for case, diagnosis in _diagnosed()
        if diagnosis.verdict.value != {"harmless": "healthy"}.get(case.verdict, case.verdict)
    ]
    assert wrong == []


def test_facts_are_exact_where_the_log_shows_them():
    wrong = []
    for case, diagnosis in _diagnosed():
        facts, used = case.facts, diagnosis.transport
        if facts is None:
            continue
        pairs = {
            "inside": (facts.inside, used.intra_node.value),
            "between": (facts.between, used.inter_node.value),
            "NICs": (facts.nics_per_node, used.nics_per_node.value),
            "GPUDirect": (facts.gdr, used.gpudirect_rdma.value),
            "ranks": (facts.ranks, used.ranks.value),
            "nodes": (facts.nodes, used.nodes.value),
        }
        wrong += [(case.id, name, *pair) for name, pair in pairs.items() if pair[0] not in {None, pair[1]}]
        if facts.versions and used.nccl_version.value not in facts.versions:
            wrong.append((case.id, "version", facts.versions, used.nccl_version.value))
    assert wrong == []


def _check_forms(chosen):
    """Check forms of cases: the same cause, one of its family, or that it cannot be told; never another cause."""
    other, healthy, count = [], 0, 0
    for number, case, names in chosen:
        for each in variations(case, number, names):
            count += 1
            diagnosis = _read(each.files)
            found = _wrong(diagnosis)[:1]
            families = {family_of(cause) for cause in each.allowed - {CANNOT_TELL, NO_FINDING}}
            if found and found[0] not in each.allowed and family_of(found[0]) not in families:
                other.append((each.id, found[0]))
            if not found and not each.allowed & {CANNOT_TELL, NO_FINDING}:
                other.append((each.id, "nothing"))
            healthy += not found and NO_FINDING not in each.allowed and diagnosis.verdict == "healthy"
    assert other == []
    # A log that is cut between a setting and the fault it leads to looks healthy.
    assert healthy <= 0.005 * count


def test_forms_of_a_log_never_name_another_cause():
    names = tuple(TRANSFORMS)
    _check_forms(
        (number, case, [name for at, name in enumerate(names) if (at + number) % _STRIDE == 0])
        for number, case in enumerate(_all())
    )


@pytest.mark.full
def test_all_forms_of_all_logs_never_name_another_cause():
    _check_forms((number, case, tuple(TRANSFORMS)) for number, case in enumerate(_all()))


def _without(files, lines):
    dropped = defaultdict(set)
    for each in lines:
        dropped[each.file].add(each.line)
    return {
        name: "\n".join(
            text for number, text in enumerate(whole.split("\n"), start=1) if number not in dropped[name]
        )
        for name, whole in files.items()
    }


def _found(files):
    return {
        each.cause: each for each in _read({name: text.encode() for name, text in files.items()}).findings
    }


def _check_evidence(chosen):
    """Check that a finding goes with all its evidence, and is no surer with some of it."""
    wrong = []
    for case in chosen:
        for cause, each in _found(case.files).items():
            if cause in _found(_without(case.files, each.evidence)):
                wrong.append((case.id, cause, "stays"))
            for line in {each.evidence[0], each.evidence[-1]} if len(each.evidence) > 1 else ():
                left = _found(_without(case.files, [line])).get(cause)
                if left is not None and _SURE.index(left.confidence) < _SURE.index(each.confidence):
                    wrong.append((case.id, cause, "surer"))
    assert wrong == []


def test_a_finding_goes_with_its_evidence():
    _check_evidence(_all()[::_STRIDE])


@pytest.mark.full
def test_every_finding_goes_with_its_evidence():
    _check_evidence(_all())
