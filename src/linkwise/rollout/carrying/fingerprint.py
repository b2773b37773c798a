"""What was seen of a cluster, against what a rollout was written for and against what was seen before."""

from __future__ import annotations

import itertools
import operator
import re
from collections.abc import Callable, Mapping, Sequence

from linkwise.catalog.lookup import gpu_alias
from linkwise.errors import UnknownName
from linkwise.rollout.digests import digest_of
from linkwise.rollout.runs import StepRun

__all__ = ["changed", "fingerprint_digest", "mismatches", "seen_by"]

_BOUND = re.compile(r"(>=|<=|==|!=|>|<)?\s*v?(\d+(?:\.\d+)*)")
_COMPARE: Mapping[str, Callable[[tuple[int, ...], tuple[int, ...]], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}
_OF_CHANGE: Mapping[str, frozenset[str]] = {
    "nccl": frozenset({"nccl", "plugin"}),
    "torch": frozenset({"torch", "cuda", "nccl"}),
    "image": frozenset({"torch", "cuda", "nccl", "plugin"}),
}
"""What may differ between candidate and control, by the kind of the change; else what is named like it."""


def mismatches(wanted: Mapping[str, str], seen: Mapping[str, str]) -> tuple[str, ...]:
    """Return in words where a cluster is not the one that a rollout is for; what was not seen is left out.

    Parameters
    ----------
    wanted
        Of the file: versions as bounds, all else as text.
    seen
        As runs saw it.
    """
    return tuple(
        f"{name} is {seen[name]}, and the file is for {bound}"
        for name, bound in wanted.items()
        if name in seen and not (_is_gpu(bound, seen[name]) if name == "gpu" else _fits(bound, seen[name]))
    )


def changed(before: Mapping[str, str], now: Mapping[str, str], *, kind: str = "") -> tuple[str, ...]:
    """Return in words what is another than it was, of what was seen both times.

    Parameters
    ----------
    before, now
        As runs saw it.
    kind
        Of a change that may show: what it is expected to change is left out; empty for nothing.
    """
    expected = _OF_CHANGE.get(kind, frozenset({kind}))
    return tuple(
        f"{name} was {before[name]} and is {now[name]}"
        for name in sorted(before.keys() & now.keys() - expected)
        if before[name] != now[name]
    )


def seen_by(runs: Sequence[StepRun]) -> dict[str, str]:
    """Return what runs saw of the cluster, the last word of each counting.

    Parameters
    ----------
    runs
        In order.
    """
    return {name: value for run in runs for name, value in run.seen.items()}


def fingerprint_digest(seen: Mapping[str, str]) -> str:
    """Return the digest of what was seen.

    Parameters
    ----------
    seen
        By name.
    """
    return digest_of(dict(seen))


def _is_gpu(wanted: str, seen: str) -> bool:
    """Return whether two spellings mean one GPU: the file has the catalogue's, a run the driver's."""
    try:
        return gpu_alias(wanted).name == gpu_alias(seen).name
    except UnknownName:
        return wanted.strip().casefold() == seen.strip().casefold()


def _fits(bound: str, seen: str) -> bool:
    bounds = [_BOUND.fullmatch(part.strip()) for part in bound.split(",")]
    found = re.search(r"\d+(?:\.\d+)*", seen)
    if found is None or not any(each is not None and each[1] for each in bounds):
        return bound.strip().casefold() == seen.strip().casefold()
    version = _numbers(found[0])
    return all(
        _COMPARE[each[1] or "=="](*_same_length(version, _numbers(each[2]))) for each in bounds if each
    )


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def _same_length(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return two versions with as many parts: 2.30 is 2.30.0."""
    parts = list(itertools.zip_longest(one, other, fillvalue=0))
    return tuple(each[0] for each in parts), tuple(each[1] for each in parts)
