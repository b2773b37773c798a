"""What differs between a good run and this one, what decides the rate of the job first."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from linkwise.diagnose.facts import Facts
from linkwise.diagnose.finding import Finding
from linkwise.diagnose.progress import plateau_bytes_per_s
from linkwise.diagnose.transport import InUse, Transport, nics_of
from linkwise.readers.job_log.values import Evidence, Sighting

__all__ = ["Comparison", "Difference", "compare_runs"]

_CHANGED_FRACTION = 0.05
"""Rates and times that differ by less are taken for alike: runs of one job differ by some per cent."""
_NAMED = 4

_IN_USE: tuple[tuple[str, str], ...] = (
    ("inter_node", "between nodes"),
    ("intra_node", "inside a node"),
    ("gpudirect_rdma", "GPUDirect RDMA"),
    ("nics_per_node", "NICs per node"),
    ("nic_link", "link layer"),
    ("nic_gbit_per_s", "Gbit/s per NIC"),
    ("nvls", "NVLS"),
    ("algorithms", "algorithm"),
)
_BEHIND: tuple[tuple[str, str], ...] = (
    ("nccl_version", "NCCL"),
    ("cuda_version", "built for CUDA"),
    ("bootstrap_interface", "bootstrap over"),
    ("ranks", "ranks"),
    ("nodes", "nodes"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One thing that is not as in the good run.

    Parameters
    ----------
    what
        What it is.
    good, now
        As in the good run, and as in this one.
    evidence
        A line of this run, or else of the good one, that shows it; ``None`` where no single line does.
    """

    what: str
    good: str
    now: str
    evidence: Evidence | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A run beside a good one.

    Parameters
    ----------
    differences
        What differs, what matters most first. Of what one of the logs does not show nothing is said.
    also_found
        Causes that are found in the good run too, so that they do not tell the two apart.
    """

    differences: tuple[Difference, ...]
    also_found: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    facts: Facts
    transport: Transport


def compare_runs(
    good: tuple[Facts, Transport, Iterable[Finding]], now: tuple[Facts, Transport, Iterable[Finding]]
) -> Comparison:
    """Return what differs between two runs.

    Parameters
    ----------
    good, now
        What is known of each, what it uses, and what was found.
    """
    runs = tuple(_Run(facts=facts, transport=transport) for facts, transport, _ in (good, now))
    before = {each.cause for each in good[2]}
    return Comparison(
        differences=tuple(_differences(*runs)),
        also_found=tuple(each.cause for each in now[2] if each.cause in before),
    )


def _differences(good: _Run, now: _Run) -> Iterator[Difference]:
    yield from _measured(good.facts, now.facts)
    yield from _used(good.transport, now.transport, _IN_USE)
    yield from _nic_lists(good.facts, now.facts)
    yield from _channels(good.facts, now.facts)
    yield from _variables(good.facts, now.facts)
    yield from _used(good.transport, now.transport, _BEHIND)
    yield from _hosts(good.facts, now.facts)


def _measured(good: Facts, now: Facts) -> Iterator[Difference]:
    yield from _rate("busbw, large sizes", "GB/s", plateau_bytes_per_s(good), plateau_bytes_per_s(now), 1e9)
    yield from _rate("time per step", "s", _step_s(good), _step_s(now), 1.0)


def _rate(what: str, unit: str, good: float | None, now: float | None, scale: float) -> Iterator[Difference]:
    if good is None or now is None or abs(now - good) <= _CHANGED_FRACTION * good:
        return
    yield Difference(what=what, good=f"{good / scale:.3g} {unit}", now=f"{now / scale:.3g} {unit}")


def _step_s(facts: Facts) -> float | None:
    times = [float(each.fields["time_ms"]) / 1000 for each in facts.seen("step_time")]
    return statistics.median(times) if times else None


def _used(good: Transport, now: Transport, names: Iterable[tuple[str, str]]) -> Iterator[Difference]:
    for name, label in names:
        before: InUse = getattr(good, name)
        after: InUse = getattr(now, name)
        if None not in {before.value, after.value} and before.value != after.value:
            yield Difference(
                what=label, good=_shown(before.value), now=_shown(after.value), evidence=after.evidence
            )


def _shown(value: object) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def _nic_lists(good: Facts, now: Facts) -> Iterator[Difference]:
    """Yield the lists of NICs that no host of the good run has, each with its hosts."""
    before, after = _lists(good), _lists(now)
    if not before or not after:
        return
    usual = max(before, key=lambda each: len(before[each]))
    for names, lines in after.items():
        if names not in before:
            hosts = list(dict.fromkeys(each.host for each in lines if each.host))
            yield Difference(
                what="NICs" + (f" of {_few(hosts)}" if hosts and len(after) > 1 else ""),
                good=" ".join(usual),
                now=" ".join(names),
                evidence=lines[0].evidence,
            )


def _lists(facts: Facts) -> dict[tuple[str, ...], list[Sighting]]:
    found: dict[tuple[str, ...], list[Sighting]] = {}
    for each in facts.seen("ib_devices") or facts.seen("socket_devices"):
        # The address of an interface is another on every host.
        names = tuple(name.split(":", 1)[0] for name in nics_of(each))
        if names:
            found.setdefault(names, []).append(each)
    return found


def _channels(good: Facts, now: Facts) -> Iterator[Difference]:
    before, after = (
        {int(each.fields["coll"]) for each in facts.seen("channel_counts")} for facts in (good, now)
    )
    if before and after and max(before) != max(after):
        line = next(each for each in now.seen("channel_counts") if int(each.fields["coll"]) == max(after))
        yield Difference(what="channels", good=str(max(before)), now=str(max(after)), evidence=line.evidence)


def _variables(good: Facts, now: Facts) -> Iterator[Difference]:
    before, after = _settings(good), _settings(now)
    for name in sorted({*before, *after}):
        values, earlier = after.get(name, {}), before.get(name, {})
        if set(values) == set(earlier):
            continue
        lines = [line for value, line in values.items() if value not in earlier] or list(values.values())
        lines = lines or list(earlier.values())
        yield Difference(what=name, good=_values(earlier), now=_values(values), evidence=lines[0].evidence)


def _settings(facts: Facts) -> dict[str, dict[str, Sighting]]:
    found: dict[str, dict[str, Sighting]] = {}
    for each in facts.settings():
        name = each.fields["name"]
        if not name.startswith(("NCCL_DEBUG", "NCCL_COMM_ID")):
            found.setdefault(name, {}).setdefault(each.fields.get("value", ""), each)
    return found


def _values(values: dict[str, Sighting]) -> str:
    return " and ".join(sorted(each or "empty" for each in values)[:_NAMED]) if values else "not set"


def _hosts(good: Facts, now: Facts) -> Iterator[Difference]:
    gone = [each for each in good.hosts if each not in now.hosts]
    came = [each for each in now.hosts if each not in good.hosts]
    if good.hosts and now.hosts and (gone or came):
        yield Difference(what="hosts", good=_few(gone) or "all of these", now=_few(came) or "no others")


def _few(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
