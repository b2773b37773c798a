"""Ranks do not issue the same collective: one is missing, or order, size or type differ."""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.diagnose.facts import Facts
from linkwise.diagnose.finding import Confidence, Finding, Severity, finding
from linkwise.diagnose.flights import disagreement_of
from linkwise.readers.job_log.values import Evidence, Sighting

__all__ = ["desync"]

_SHAPE = ("operation", "elements_in", "elements_out")


def desync(facts: Facts) -> Finding | None:
    """Return the finding when the watchdogs of the ranks tell of different collectives, or NCCL does.

    Parameters
    ----------
    facts
        What is known of the job.

    Notes
    -----
    All ranks waiting in the same collective is no sign of it: then the network or a GPU stands still.
    """
    if (dumped := _dumped(facts)) is not None:
        return dumped
    told = [*facts.warned("mismatch"), *(each for each in facts.seen("mismatch") if not each.level)]
    told += facts.seen("barrier_missed")
    timeouts = facts.seen("watchdog_timeout")
    if told:
        return _found(
            Confidence.HIGH,
            list(told),
            "NCCL sees ranks of one communicator call collectives of different size or kind.",
        )
    if not timeouts:
        return _counted_apart(facts)
    behind = _behind(facts, timeouts)
    if behind:
        ranks = ", ".join(str(each.rank) for each in behind[:8])
        return _found(
            Confidence.HIGH,
            [*timeouts, *behind],
            f"Rank {ranks} never issued the collective that the others wait for.",
            where=[f"rank {each.rank}" for each in behind],
        )
    if _differ(timeouts):
        return _found(
            Confidence.HIGH,
            list(timeouts),
            "At one place in the sequence ranks wait in different collectives.",
        )
    absent = _absent(timeouts)
    if not absent:
        return None
    return _found(
        Confidence.MEDIUM,
        list(timeouts),
        f"All ranks wait in a collective but rank {', '.join(map(str, absent[:8]))}, of which no such line"
        " is here.",
        where=[f"rank {rank}" for rank in absent],
    )


def _dumped(facts: Facts) -> Finding | None:
    """Return the finding that dumps of the Flight Recorder give."""
    parting = disagreement_of(facts.log.recordings)
    if parting is None:
        return None
    is_sure = parting.is_sure or bool(facts.seen("watchdog_timeout"))
    return _found(
        Confidence.HIGH if is_sure else Confidence.MEDIUM,
        [*parting.evidence, *facts.seen("watchdog_timeout")],
        parting.text[0].upper() + parting.text[1:],
        where=[f"rank {rank}" for rank in parting.ranks],
    )


def _counted_apart(facts: Facts) -> Finding | None:
    """Find operation counts that differ in a table of NCCL's status service; one table may catch them so."""
    lines = facts.seen("ras_counts_differ")
    if not lines:
        return None
    return _found(
        Confidence.LOW,
        list(lines),
        "Some ranks have issued more collectives than others. In one snapshot that is chance; where a second"
        " one, later, has the same numbers, those behind are stuck.",
    )


def _behind(facts: Facts, timeouts: Sequence[Sighting]) -> list[Sighting]:
    """Return the lines of ranks whose last collective is before the one the others wait in."""
    waiting: dict[str, int] = {}
    for each in timeouts:
        group, sequence = each.fields.get("group", ""), int(each.fields["sequence"])
        waiting[group] = min(sequence, waiting.get(group, sequence))
    waiters = {(each.fields.get("group", ""), each.rank) for each in timeouts}
    # Lines of one job name their group all or none, but older ones of a timeout may not.
    only = next(iter(waiting.values())) if set(waiting) == {""} else None
    found: dict[tuple[str, int | None], Sighting] = {}
    for each in facts.seen("watchdog_progress"):
        group = each.fields.get("group", "")
        last = only if only is not None else waiting.get(group)
        is_waiter = (group, each.rank) in waiters or ("", each.rank) in waiters
        if each.rank is None or is_waiter or last is None or not 0 <= int(each.fields["enqueued"]) < last:
            continue
        found.setdefault((group, each.rank), each)
    return list(found.values())


def _absent(timeouts: Sequence[Sighting]) -> list[int]:
    """Return the few ranks between the others, or before them, that do not wait where they wait."""
    seen = {each.rank for each in timeouts if each.rank is not None and not each.fields.get("group")}
    between = [rank for rank in range(max(seen, default=0)) if rank not in seen]
    return between if 2 * len(between) < len(seen) else []


def _differ(timeouts: Sequence[Sighting]) -> bool:
    shapes: dict[tuple[str, str], set[tuple[str | None, ...]]] = {}
    for each in timeouts:
        place = (each.fields.get("group", ""), each.fields["sequence"])
        shapes.setdefault(place, set()).add(tuple(each.fields.get(name) for name in _SHAPE))
    return any(len(each) > 1 for each in shapes.values())


def _found(
    confidence: Confidence, proof: Sequence[Sighting | Evidence], first: str, where: list[str] | None = None
) -> Finding:
    return finding(
        "desync",
        Severity.BROKEN,
        confidence,
        proof=proof,
        where=where,
        explanation=(
            f"{first} A branch that only some ranks take, a long task on one rank (a checkpoint), or data of"
            " different length does that."
        ),
        fix=(
            "let every rank issue the same collectives in the same order; move long work off the one rank",
            "raise the timeout of init_process_group where the wait is meant",
        ),
        next_check="TORCH_FR_BUFFER_SIZE=2000 TORCH_NCCL_DUMP_ON_TIMEOUT=1: compare the dumps of the ranks",
    )
