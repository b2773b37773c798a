"""Cuts: all degrees that multiply to the GPUs, and which of them a model, a batch and a sequence allow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from linkwise.errors import UnknownName
from linkwise.estimate.columns import Floats
from linkwise.job.legality import batch_rule, degree_rules, expert_rule, pipeline_rules

if TYPE_CHECKING:
    from linkwise.cluster import Cluster
    from linkwise.job import Job
    from linkwise.job.offers import Offer

__all__ = ["CUT_COLUMNS", "Cuts", "divisors", "legal_cuts"]

CUT_COLUMNS = ("tensor", "context", "pipeline", "data", "micro_batch", "virtual_pipeline", "expert")

LARGEST_MICRO_BATCH = 256
"""Sequences; no published run of a language model has more per pass and GPU group."""

SHORTEST_SLICE = 128
"""Tokens of one of a rank's two slices of a sequence; a tile of fused attention (FlashAttention-2, 2023)."""

_Whole = NDArray[np.int64]
_Columns = dict[str, _Whole]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cuts:
    """Legal cuts.

    Parameters
    ----------
    columns
        By name of `CUT_COLUMNS`, (cuts,) each.
    rejected
        Candidates that are not legal, by reason, one for each combination of degrees.
    """

    columns: Mapping[str, Floats]
    rejected: Mapping[str, int]

    def __len__(self) -> int:
        """Return the number of cuts."""
        return len(self.columns["tensor"])


def divisors(number: int) -> list[int]:
    """Return the divisors of a number, ascending.

    Parameters
    ----------
    number
        At least 1.
    """
    small = [size for size in range(1, int(number**0.5) + 1) if number % size == 0]
    return small + [number // size for size in reversed(small) if size * size != number]


def legal_cuts(job: Job, cluster: Cluster, offer: Offer, *, only: Mapping[str, Sequence[int]]) -> Cuts:
    """Return every cut of a job over a cluster.

    Parameters
    ----------
    job, cluster
        What is run on what.
    offer
        What may be chosen.
    only
        Values to keep, by name of a degree.

    Raises
    ------
    UnknownName
        When `only` names no degree.

    Notes
    -----
    The rules are those of `linkwise.job.legality`, which a fixed layout is held to as well.
    """
    for name in only:
        if name not in CUT_COLUMNS:
            raise UnknownName.among(CUT_COLUMNS, kind="degree", given=name)
    count = _Counter()
    columns = _degrees(job, cluster, offer, only, count)
    columns = _with_micro_batch(columns, job, only, count)
    columns = _with_virtual_pipeline(columns, job, offer, only, count)
    columns = _with_expert(columns, job, offer, only, count)
    kept = {name: columns[name].astype(np.float64) for name in CUT_COLUMNS}
    return Cuts(columns=kept, rejected=count.rejected)


class _Counter:
    """Keeps the rows that pass one test after another, and counts the others by reason."""

    def __init__(self) -> None:
        self.rejected: dict[str, int] = {}

    def keep(self, columns: _Columns, passes: NDArray[np.bool_], reason: str) -> _Columns:
        lost = int(passes.size - np.count_nonzero(passes))
        if not lost:
            return columns
        self.rejected[reason] = self.rejected.get(reason, 0) + lost
        return {name: values[passes] for name, values in columns.items()}


def _kept(values: Sequence[int], name: str, only: Mapping[str, Sequence[int]]) -> _Whole:
    allowed = only.get(name)
    return np.array([value for value in values if allowed is None or value in allowed], dtype=np.int64)


def _crossed(columns: _Columns, name: str, values: _Whole) -> _Columns:
    """Return every row with every value of one more column."""
    rows = len(next(iter(columns.values())))
    crossed = {other: np.repeat(column, len(values)) for other, column in columns.items()}
    crossed[name] = np.tile(values, rows)
    return crossed


def _degrees(
    job: Job, cluster: Cluster, offer: Offer, only: Mapping[str, Sequence[int]], count: _Counter
) -> _Columns:
    model, gpus = job.model, cluster.gpus
    sizes = divisors(gpus)
    powers = [size for size in sizes if size & (size - 1) == 0]
    columns: _Columns = {"tensor": _kept([n for n in sizes if n <= model.heads], "tensor", only)}
    context = [n for n in powers if n == 1 or job.sequence_length // (2 * n) >= SHORTEST_SLICE]
    columns = _crossed(columns, "context", _kept(context, "context", only))
    columns = _crossed(columns, "pipeline", _kept([n for n in sizes if n <= model.layers], "pipeline", only))
    product = columns["tensor"] * columns["context"] * columns["pipeline"]
    whole = gpus % product == 0
    columns = {name: values[whole] for name, values in columns.items()}
    columns["data"] = gpus // product[whole]
    if "data" in only:
        wanted = np.isin(columns["data"], only["data"])
        columns = {name: values[wanted] for name, values in columns.items()}
    for name in ("tensor", "context", "pipeline"):
        if not getattr(offer, name):
            columns = count.keep(columns, columns[name] == 1, f"{job.framework} has no {name} parallelism")
    for rule in degree_rules(job):
        columns = count.keep(columns, rule.holds(columns), rule.reason)
    return columns


def _with_micro_batch(
    columns: _Columns, job: Job, only: Mapping[str, Sequence[int]], count: _Counter
) -> _Columns:
    sizes = [size for size in divisors(job.global_batch) if size <= LARGEST_MICRO_BATCH]
    columns = _crossed(columns, "micro_batch", _kept(sizes, "micro_batch", only))
    rule = batch_rule(job)
    return count.keep(columns, rule.holds(columns), rule.reason)


def _with_virtual_pipeline(
    columns: _Columns, job: Job, offer: Offer, only: Mapping[str, Sequence[int]], count: _Counter
) -> _Columns:
    layers = job.model.layers
    depths = sorted({*divisors(layers), *divisors(layers + 2)})
    most = offer.interleaves if offer.pipeline else 1
    columns = _crossed(
        columns, "virtual_pipeline", _kept([n for n in depths if n <= most], "virtual_pipeline", only)
    )
    depth, stages = columns["virtual_pipeline"], columns["pipeline"]
    worth = (depth == 1) | ((stages > 1) & (depth * stages <= layers + 2))
    columns = {name: values[worth] for name, values in columns.items()}
    for rule in pipeline_rules(job):
        columns = count.keep(columns, rule.holds(columns), rule.reason)
    return columns


def _with_expert(
    columns: _Columns, job: Job, offer: Offer, only: Mapping[str, Sequence[int]], count: _Counter
) -> _Columns:
    experts = job.model.experts
    sizes = divisors(experts) if experts and offer.expert else [1]
    columns = _crossed(columns, "expert", _kept(sizes, "expert", only))
    rule = expert_rule(job)
    return count.keep(columns, rule.holds(columns), rule.reason)
