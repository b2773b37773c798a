"""Several layouts of a job in one lab, one after the other: the order predicted beside the order measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from linkwise.errors import InputError
from linkwise.evidence.ranks import LEAST_PAIRS, rank_correlation
from linkwise.lab.design import LabDesign
from linkwise.lab.job import run_job
from linkwise.lab.lab_job import LabJob, lab_job
from linkwise.lab.training import RunResult, run_request, run_result
from linkwise.layout import Layout, RankOrder

if TYPE_CHECKING:
    from linkwise.cluster import Cluster
    from linkwise.job import Job

__all__ = ["Sweep", "SweepRow", "every_layout", "layout_words", "run_in_lab", "sweep_jobs", "swept"]

_SHARDED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepRow:
    """One layout.

    Parameters
    ----------
    run
        The job under it.
    result
        What it showed; ``None`` where it failed.
    reason
        Why it failed; empty where it did not.
    """

    run: LabJob
    result: RunResult | None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """What a sweep showed.

    Parameters
    ----------
    rows
        Of each layout, in the order they were run.
    correlation
        Spearman's, of predicted and measured steps; ``None`` with fewer than three, or all of them equal [1].
    lost_fraction
        How much longer the layout takes that was predicted to be the best than the one measured best; 0 where
        it is that one, ``None`` where nothing was measured [1].
    """

    rows: tuple[SweepRow, ...]
    correlation: float | None
    lost_fraction: float | None


def sweep_jobs(
    job: Job, layouts: Sequence[Layout], cluster: Cluster, design: LabDesign
) -> tuple[LabJob, ...]:
    """Return the jobs of a sweep, so that all of them are known to run before the first does.

    Parameters
    ----------
    job
        Without a layout.
    layouts
        What is tried; none for all that the lab runs with micro-batches of one sequence.
    cluster
        What the lab emulates.
    design
        The lab.

    Raises
    ------
    InputError
        If one of them is not run by a lab, or none is.
    """
    if not layouts:
        found = tuple(_runnable(job, cluster, design))
        if not found:
            raise InputError("the lab runs no layout of this job; name some with --layouts to see why")
        return found
    runs = []
    for number, layout in enumerate(layouts, start=1):
        try:
            runs.append(lab_job(replace(job, layout=layout), cluster, design))
        except InputError as error:
            raise InputError(f"layout {number} ({layout_words(layout)}): {error}") from None
    return tuple(runs)


def every_layout(ranks: int) -> Iterator[Layout]:
    """Yield the ways to cut a job over so many ranks, with both placements of stages.

    Parameters
    ----------
    ranks
        Of the lab [1].
    """
    for tensor in _divisors(ranks):
        for pipeline in _divisors(ranks // tensor):
            data = ranks // tensor // pipeline
            orders = list(RankOrder) if pipeline > 1 and data > 1 else [RankOrder(0)]
            for order in orders:
                for zero_stage in (0, _SHARDED) if data > 1 else (0,):
                    yield Layout(
                        tensor=tensor,
                        pipeline=pipeline,
                        data=data,
                        zero_stage=zero_stage,
                        rank_order=order,
                        sequence_parallel=False if tensor > 1 else None,
                    )


def run_in_lab(run: LabJob, *, lab: str, design: LabDesign, steps: int, python: str) -> SweepRow:
    """Return what a job showed. The caller holds the lock of the lab.

    Parameters
    ----------
    run
        The job.
    lab
        Name of the lab.
    design
        What it is.
    steps
        Measured ones [1].
    python
        The Python that has torch.
    """
    end = run_job(run_request(run, design, steps=steps, python=python), lab=lab, design=design)
    result = run_result(lab, run, design, end) if end.is_done else None
    return SweepRow(run=run, result=result, reason=end.reason)


def swept(runs: Sequence[LabJob], one: Callable[[LabJob], SweepRow], *, say: Callable[[str], None]) -> Sweep:
    """Return what a sweep showed.

    Parameters
    ----------
    runs
        As `sweep_jobs` gives them.
    one
        Runs one.
    say
        Told before each what is run.
    """
    rows = []
    for number, run in enumerate(runs, start=1):
        micro_batch = run.layout.micro_batch
        say(f"{number} of {len(runs)}: {layout_words(run.layout)}, micro-batch {micro_batch}")
        rows.append(one(run))
    done = [row.result for row in rows if row.result is not None]
    predicted, measured = [each.predicted.time_s for each in done], [each.measured_s for each in done]
    few = len(done) < LEAST_PAIRS
    return Sweep(
        rows=tuple(rows),
        correlation=None if few else rank_correlation(predicted, measured),
        lost_fraction=measured[predicted.index(min(predicted))] / min(measured) - 1.0 if done else None,
    )


def layout_words(layout: Layout) -> str:
    """Return a layout in a few words: its degrees, whether parameters are sharded, and where stages sit.

    Parameters
    ----------
    layout
        Any that a lab runs.
    """
    degrees = [
        f"{name} {count}"
        for name, count in (
            ("tensor", layout.tensor),
            ("pipeline", layout.pipeline),
            ("data", layout.data or 1),
        )
        if count > 1
    ]
    words = " x ".join(degrees) or "one rank"
    if layout.zero_stage == _SHARDED:
        words += " sharded"
    if layout.pipeline > 1 and (layout.data or 1) > 1:
        words += ", stages adjacent" if layout.rank_order else ", replicas adjacent"
    return words


def _runnable(job: Job, cluster: Cluster, design: LabDesign) -> Iterator[LabJob]:
    for layout in every_layout(design.ranks):
        try:
            yield lab_job(replace(job, layout=layout), cluster, design)
        except InputError:
            continue


def _divisors(number: int) -> list[int]:
    return [each for each in range(1, number + 1) if number % each == 0]
