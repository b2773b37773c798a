"""The published result `linkwise.bench/1`: what was measured, with every sample, and how the run ended."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from linkwise.report.checks import CheckResult
from linkwise.report.results import PublishedResult

__all__ = [
    "BenchResult",
    "CollectivesResult",
    "IsolationResult",
    "NodeResult",
    "PairResult",
    "PairsResult",
    "PredictedResult",
    "RunResult",
    "SampledResult",
    "SizeResult",
    "TrainingCutResult",
    "TrainingResult",
    "bench_csv_rows",
]


class SampledResult(PublishedResult):
    """A time, and every sample it rests on."""

    samples_s: list[float] = Field(description="In the order they were taken.")
    median_s: float | None = Field(default=None, description="None with fewer than five samples.")
    low_s: float | None = Field(default=None, description="Lower end of its interval, an order statistic.")
    high_s: float | None = None
    coverage_fraction: float | None = Field(
        default=None, description="In how many cases such an interval holds the median."
    )


class PredictedResult(PublishedResult):
    """What a size should take on the cluster named."""

    algorithm: str
    protocol: str
    time_s: float
    time_low_s: float = Field(description="Lower end of the 90 % interval.")
    time_high_s: float
    ratio: float | None = Field(description="Measured over predicted busbw; None where not comparable.")
    standing: Literal["slower", "faster", "inside"] | None = Field(
        description="The whole interval measured against that predicted; None where not comparable."
    )


class SizeResult(PublishedResult):
    """One collective at one size."""

    collective: str
    size_bytes: int = Field(description="Bytes of the full buffer, as nccl-tests counts them.")
    calls: int = Field(description="Calls that one sample timed.")
    time: SampledResult = Field(description="Of one call, on the slowest rank.")
    first_samples_s: list[float] = Field(description="The same on the fastest rank; empty where not known.")
    algbw_bytes_per_s: float | None = Field(description="At the median.")
    busbw_bytes_per_s: float | None
    wrong: int | None = Field(description="Wrong elements over all ranks; None where they were not checked.")
    predicted: PredictedResult | None = None


class RunResult(PublishedResult):
    """One run, and how it ended."""

    id: str
    outcome: str = Field(description="done, failed, silent, not started, cut or interrupted.")
    reason: str
    exit_code: int | None
    started: str = Field(description="In UTC.")
    ended: str | None
    hosts: list[str]
    argv: list[str]
    settings: dict[str, str] = Field(description="Variables that move communication.")
    versions: dict[str, str]
    valid: bool | None = Field(
        default=None, description="Whether its ranks were seen to be those planned; None where not seen."
    )
    checks: list[CheckResult] = Field(default_factory=list, description="What was planned, and what seen.")


class IsolationResult(PublishedResult):
    """A path that was to be taken alone."""

    path: str
    is_shown: bool | None = Field(description="Whether NCCL's log shows it; None where it cannot tell.")
    transports: dict[str, int] = Field(description="Channels by transport, as logged.")
    text: str
    limits: list[str]


class BenchResult(PublishedResult):
    """What every bench says."""

    published: Literal["linkwise.bench/1"] = Field(default="linkwise.bench/1", alias="schema")
    place: str
    device: str = Field(description="cuda or cpu.")
    backend: str = Field(description="nccl, gloo or nccl-tests.")
    ranks: int
    runs: list[RunResult]
    notes: list[str]


class CollectivesResult(BenchResult):
    """Collectives over sizes."""

    kind: Literal["collectives"] = "collectives"
    cluster: str | None = Field(default=None, description="The cluster predictions are for.")
    isolation: IsolationResult | None = None
    rows: list[SizeResult]


class PairResult(PublishedResult):
    """One pair in one round."""

    run: int = Field(description="Position in runs, from 0.")
    round: int
    pair: tuple[int, int]
    time: SampledResult = Field(description="Of one exchange, the longer of the two.")


class NodeResult(PublishedResult):
    """One node, scored by its pairs."""

    node: int
    host: str | None = Field(default=None, description="Its name; None where ranks stand for nodes.")
    score_bytes_per_s: float = Field(description="Bandwidth to its partners, one direction, by its pairs.")
    is_low: bool
    confirmed: bool | None = Field(description="Low again in a second run; None where there was none.")


class PairsResult(BenchResult):
    """Pairs of nodes, and the nodes that are slow."""

    kind: Literal["pairs"] = "pairs"
    size_bytes: int = Field(description="What each rank sends the one in its place on the other node.")
    ranks_per_node: int = Field(default=1, description="All of them send at once.")
    verdict: Literal["alike", "slow nodes", "cannot tell"]
    reason: str
    middle_bytes_per_s: float | None
    floor_bytes_per_s: float | None
    nodes: list[NodeResult]
    pairs: list[PairResult]


class TrainingCutResult(PublishedResult):
    """One way to cut the model."""

    cut: str
    step_time: SampledResult
    phases: dict[str, SampledResult]
    losses: list[float]
    tokens_per_s: float | None = Field(description="At the median step time.")


class TrainingResult(BenchResult):
    """A small transformer, trained a few steps under each cut."""

    kind: Literal["training"] = "training"
    model: dict[str, int]
    tokens_per_step: int
    losses_agree: bool | None = Field(description="None with one cut.")
    cuts: list[TrainingCutResult]


def bench_csv_rows(result: BenchResult) -> Iterator[tuple[object, ...]]:
    """Yield the heading and one row for everything measured; samples are one cell, with blanks between.

    Parameters
    ----------
    result
        The result.
    """
    head = ("samples_s", "median_s", "low_s", "high_s")
    if isinstance(result, CollectivesResult):
        yield ("collective", "size_bytes", "calls", "wrong", "busbw_bytes_per_s", "predicted_s", *head)
        for row in result.rows:
            predicted_s = row.predicted and row.predicted.time_s
            named = (row.collective, row.size_bytes, row.calls, row.wrong, row.busbw_bytes_per_s, predicted_s)
            yield (*named, *_cells(row.time))
    elif isinstance(result, PairsResult):
        yield ("run", "round", "node", "partner", *head)
        for pair in result.pairs:
            yield (pair.run, pair.round, *pair.pair, *_cells(pair.time))
    elif isinstance(result, TrainingResult):
        yield ("cut", "phase", *head)
        for cut in result.cuts:
            yield (cut.cut, "step", *_cells(cut.step_time))
            for name, phase in cut.phases.items():
                yield (cut.cut, name, *_cells(phase))


def _cells(time: SampledResult) -> tuple[object, ...]:
    return " ".join(map(repr, time.samples_s)), time.median_s, time.low_s, time.high_s
