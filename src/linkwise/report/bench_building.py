"""From what a bench measured to the published result: rows, notes and judgement."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from linkwise.evidence.comparison import Standing
from linkwise.evidence.median import LEAST_SAMPLES, median_interval
from linkwise.report.bench_result import (
    CollectivesResult,
    IsolationResult,
    NodeResult,
    PairResult,
    PairsResult,
    PredictedResult,
    RunResult,
    SampledResult,
    SizeResult,
    TrainingCutResult,
    TrainingResult,
)
from linkwise.report.checks import check_results
from linkwise.report.wording import counted, percent, three_digits

if TYPE_CHECKING:
    from linkwise.bench.collectives import MeasuredSize
    from linkwise.bench.isolation import Isolation, Proof
    from linkwise.bench.pairs import MeasuredPair
    from linkwise.bench.prediction import Prediction
    from linkwise.bench.training import MeasuredCut, TrainingPlan
    from linkwise.evidence.median import MedianInterval
    from linkwise.evidence.outliers import Fleet
    from linkwise.launch.run.record import RunRecord

__all__ = ["collectives_result", "pairs_result", "training_result"]

_BACKENDS = {"cuda": "nccl", "cpu": "gloo"}


def collectives_result(
    measured: Sequence[MeasuredSize],
    records: Sequence[RunRecord],
    *,
    device: str,
    backend: str | None = None,
    ranks: int,
    cluster: str | None = None,
    predictions: Sequence[Prediction] | None = None,
    assumptions: Sequence[str] = (),
    isolated: tuple[Isolation, Proof] | None = None,
) -> CollectivesResult:
    """Return collectives as they are published.

    Parameters
    ----------
    measured
        What was measured.
    records
        Of the runs, one at least.
    device, backend
        What it ran on, and what moved the data; by default what torch takes on that device.
    ranks
        How many took part [1].
    cluster, predictions, assumptions
        The cluster named, what each size should take there, and what that rests on.
    isolated
        A path that was to be taken alone, and what the log shows of it.
    """
    moved = backend or _BACKENDS[device]
    limits = isolated[0].limits if isolated else ()
    notes = [*_collective_notes(measured, moved, is_predicted=predictions is not None), *limits, *assumptions]
    return CollectivesResult(
        place=records[0].place,
        device=device,
        backend=moved,
        ranks=ranks,
        runs=[run_result(record) for record in records],
        notes=notes,
        cluster=cluster,
        isolation=None if isolated is None else isolation_result(*isolated),
        rows=size_results(measured, predictions, ranks=ranks, is_comparable=moved != "gloo" and ranks > 1),
    )


def _collective_notes(measured: Sequence[MeasuredSize], backend: str, *, is_predicted: bool) -> Iterator[str]:
    if backend == "nccl-tests":
        yield "a sample is one run of nccl-tests, out of place: the mean over calls and ranks that it prints"
    else:
        yield "a sample is the mean of its calls in a row from a common start, on the slowest rank; float32"
    yield from _interval_notes(one.time_s for one in measured)
    yield "one run gives no verdict; the samples are in --format json"
    if is_predicted and backend == "gloo":
        yield "the model is of NCCL on the GPUs of the cluster, of which gloo on CPUs says nothing: no ratio"


def _interval_notes(intervals: Iterator[MedianInterval | None]) -> Iterator[str]:
    counts = sorted({(one.count, one.coverage_fraction) for one in intervals if one is not None})
    for count, coverage in counts:
        yield (
            f"time is the median of {count} samples, the interval two of them in order, which hold the true "
            f"median in {percent(coverage)} % of cases, whatever the distribution"
        )


def pairs_result(
    runs: Sequence[Sequence[MeasuredPair]],
    records: Sequence[RunRecord],
    *,
    device: str,
    ranks: int,
    size_bytes: int,
    nodes: int,
    hosts: Mapping[int, str] | None = None,
    scores: Mapping[int, float],
    fleet: Fleet | None,
    confirmed: frozenset[int] | None,
) -> PairsResult:
    """Return pairs as they are published.

    Parameters
    ----------
    runs
        What each run measured.
    records
        Of the runs.
    device
        What it ran on.
    ranks
        How many took part [1].
    size_bytes
        What each rank sends its partner [bytes].
    nodes
        How many took part [1].
    hosts
        Their names; ``None`` where ranks of this machine stand for them.
    scores, fleet
        Of the first run; no fleet where nothing was measured.
    confirmed
        Nodes low in a second run too; ``None`` where there was none.
    """
    names = {node: str(node) if hosts is None else hosts.get(node, str(node)) for node in range(nodes)}
    verdict, reason = _judged(fleet, confirmed, names)
    per_node = ranks // nodes
    return PairsResult(
        place=records[0].place,
        device=device,
        backend=_BACKENDS[device],
        ranks=ranks,
        runs=[run_result(record) for record in records],
        notes=list(_pairs_notes(runs, None if hosts is None else per_node)),
        size_bytes=size_bytes,
        ranks_per_node=per_node,
        verdict=verdict,
        reason=reason,
        middle_bytes_per_s=None if fleet is None else fleet.middle,
        floor_bytes_per_s=None if fleet is None else fleet.floor,
        nodes=[] if fleet is None else node_results(scores, fleet, confirmed, hosts),
        pairs=pair_results(runs),
    )


def _pairs_notes(runs: Sequence[Sequence[MeasuredPair]], ranks_per_node: int | None) -> Iterator[str]:
    if ranks_per_node is None:
        yield "on this machine ranks stand for nodes"
    else:
        yield f"all {counted(ranks_per_node, 'rank')} of a node send at once, each to the one in its place"
    yield "score: bandwidth by the median of a node's pairs, or its best where it has two or fewer"
    yield "low: below the median by 3.5 robust deviations (1.4826 x median absolute deviation) and by 3 %"
    yield from _interval_notes(each.time_s for pairs in runs for each in pairs)


def _judged(
    fleet: Fleet | None, confirmed: frozenset[int] | None, names: Mapping[int, str]
) -> tuple[Literal["alike", "slow nodes", "cannot tell"], str]:
    if fleet is None:
        return "cannot tell", "the run ended before every node had a score"
    if not fleet.is_enough:
        return "cannot tell", f"{len(names)} nodes; at least 8 make a baseline of their own"
    if not fleet.low:
        return "alike", f"no node is below {three_digits(fleet.floor / 1e9)} GB/s"
    named = ", ".join(names[node] for node in fleet.low)
    if confirmed is None:
        return "cannot tell", f"low in the first run: {named}; the second, which confirms, did not end well"
    if not confirmed:
        return "cannot tell", f"low in the first run: {named}; not again beside good nodes in the second"
    again = ", ".join(names[node] for node in sorted(confirmed))
    return "slow nodes", f"{counted(len(confirmed), 'node')} low in both runs: {again}"


def training_result(
    measured: Sequence[MeasuredCut],
    records: Sequence[RunRecord],
    plan: TrainingPlan,
    *,
    device: str,
    ranks: int,
) -> TrainingResult:
    """Return a training as it is published.

    Parameters
    ----------
    measured
        What was measured.
    records
        Of the run.
    plan
        What was trained.
    device
        What it ran on.
    ranks
        How many took part [1].
    """
    shape = plan.shape
    agree = None if len(measured) < 2 else not any(one.differs_from(measured[0]) for one in measured[1:])
    notes = [*_training_notes(agree), *_interval_notes(one.step_time_s for one in measured)]
    return TrainingResult(
        place=records[0].place,
        device=device,
        backend=_BACKENDS[device],
        ranks=ranks,
        runs=[run_result(record) for record in records],
        notes=notes,
        model={
            "layers": shape.layers,
            "hidden": shape.hidden,
            "heads": shape.heads,
            "sequence_length": shape.sequence_length,
            "vocabulary": shape.vocabulary,
            "parameters": shape.parameters,
        },
        tokens_per_step=plan.batch * ranks * shape.sequence_length,
        losses_agree=agree,
        cuts=cut_results(measured, plan, ranks),
    )


def _training_notes(agree: bool | None) -> Iterator[str]:  # noqa: FBT001 (three states of one fact)
    due = "every cut has the same first weights and the same tokens, so that losses must agree within 1 %"
    yield due if agree is None else f"{due}; {'they do' if agree else 'they do NOT'}"
    yield "phases are fenced on each rank, and each is that of its slowest rank"
    yield "backward has the gradient sync that computing does not hide; a schedule has all passes"


def sampled(samples_s: Sequence[float], interval: MedianInterval | None) -> SampledResult:
    """Return samples and their median as they are published.

    Parameters
    ----------
    samples_s
        All of them [s].
    interval
        Their median; ``None`` with too few.
    """
    if interval is None:
        return SampledResult(samples_s=list(samples_s))
    return SampledResult(
        samples_s=list(samples_s),
        median_s=interval.median,
        low_s=interval.low,
        high_s=interval.high,
        coverage_fraction=interval.coverage_fraction,
    )


def run_result(record: RunRecord) -> RunResult:
    """Return how a run went as it is published.

    Parameters
    ----------
    record
        Its record.
    """
    return RunResult(
        id=record.run_id,
        outcome=record.ending.outcome.value,
        reason=record.ending.reason,
        exit_code=record.ending.exit_code,
        started=record.started.isoformat(timespec="milliseconds"),
        ended=None if record.ended is None else record.ended.isoformat(timespec="milliseconds"),
        hosts=list(record.hosts),
        argv=list(record.argv),
        settings=dict(record.settings),
        versions=dict(record.versions),
        valid=record.is_valid,
        checks=check_results(record.checks),
    )


def isolation_result(isolation: Isolation, proof: Proof) -> IsolationResult:
    """Return an isolated path as it is published.

    Parameters
    ----------
    isolation, proof
        What was to be, and what the log shows.
    """
    return IsolationResult(
        path=isolation.path,
        is_shown=proof.is_shown,
        transports=dict(proof.seen),
        text=proof.text,
        limits=list(isolation.limits),
    )


def size_results(
    measured: Sequence[MeasuredSize],
    predictions: Sequence[Prediction] | None,
    *,
    ranks: int,
    is_comparable: bool,
) -> list[SizeResult]:
    """Return sizes as they are published.

    Parameters
    ----------
    measured
        What was measured.
    predictions
        What each should take; ``None`` where no cluster was named.
    ranks
        How many took part [1].
    is_comparable
        Whether the predictions are for what ran.
    """
    return [
        _size_result(one, predictions[place] if predictions else None, ranks, is_comparable=is_comparable)
        for place, one in enumerate(measured)
    ]


def _size_result(
    one: MeasuredSize, predicted: Prediction | None, ranks: int, *, is_comparable: bool
) -> SizeResult:
    median_s = None if one.time_s is None else one.time_s.median
    algbw = one.size_bytes / median_s if median_s else None
    return SizeResult(
        collective=one.operation,
        size_bytes=one.size_bytes,
        calls=one.calls,
        time=sampled(one.samples_s, one.time_s),
        first_samples_s=list(one.first_s),
        algbw_bytes_per_s=algbw,
        busbw_bytes_per_s=None if algbw is None else algbw * one.busbw_factor(ranks),
        wrong=one.wrong,
        predicted=None if predicted is None else _predicted(predicted, median_s, is_comparable=is_comparable),
    )


_STANDINGS: Mapping[Standing, Literal["slower", "faster", "inside"]] = {
    Standing.ABOVE: "slower",
    Standing.BELOW: "faster",
    Standing.ACROSS: "inside",
}


def _predicted(predicted: Prediction, median_s: float | None, *, is_comparable: bool) -> PredictedResult:
    is_known = is_comparable and median_s is not None and predicted.standing is not None
    return PredictedResult(
        algorithm=predicted.algorithm,
        protocol=predicted.protocol,
        time_s=predicted.time_s,
        time_low_s=predicted.low_s,
        time_high_s=predicted.high_s,
        ratio=predicted.time_s / median_s if is_known and median_s else None,
        standing=_STANDINGS[predicted.standing] if is_known and predicted.standing else None,
    )


def pair_results(runs: Sequence[Sequence[MeasuredPair]]) -> list[PairResult]:
    """Return the pairs of every run as they are published.

    Parameters
    ----------
    runs
        What each run measured.
    """
    return [
        PairResult(
            run=number, round=each.round_number, pair=each.pair, time=sampled(each.samples_s, each.time_s)
        )
        for number, pairs in enumerate(runs)
        for each in pairs
    ]


def node_results(
    scores: Mapping[int, float],
    fleet: Fleet,
    confirmed: frozenset[int] | None,
    hosts: Mapping[int, str] | None,
) -> list[NodeResult]:
    """Return nodes as they are published, worst first.

    Parameters
    ----------
    scores
        By node [bytes/s].
    fleet
        Which are low.
    confirmed
        Those that were low in a second run; ``None`` where there was none.
    hosts
        Names of nodes; ``None`` where ranks stand for them.
    """
    return [
        NodeResult(
            node=node,
            host=None if hosts is None else hosts.get(node),
            score_bytes_per_s=score,
            is_low=node in fleet.low,
            confirmed=None if confirmed is None or node not in fleet.low else node in confirmed,
        )
        for node, score in sorted(scores.items(), key=lambda each: each[1])
    ]


def cut_results(measured: Sequence[MeasuredCut], plan: TrainingPlan, ranks: int) -> list[TrainingCutResult]:
    """Return cuts as they are published.

    Parameters
    ----------
    measured
        What was measured.
    plan
        What was trained.
    ranks
        How many took part [1].
    """

    def with_median(samples_s: Sequence[float]) -> SampledResult:
        return sampled(samples_s, median_interval(samples_s) if len(samples_s) >= LEAST_SAMPLES else None)

    tokens = plan.batch * ranks * plan.shape.sequence_length
    return [
        TrainingCutResult(
            cut=one.cut,
            step_time=with_median(one.samples_s),
            phases={name: with_median(values) for name, values in one.phases_s.items()},
            losses=list(one.losses),
            tokens_per_s=tokens / one.step_time_s.median if one.step_time_s else None,
        )
        for one in measured
    ]
