"""Rollouts and runs for tests."""

import datetime as dt
from dataclasses import replace

from linkwise.rollout.digests import workload_digest
from linkwise.rollout.plan import (
    Against,
    Aggregate,
    Change,
    Comparison,
    Configuration,
    Dimension,
    Objective,
    Reason,
    Rollout,
    Sampling,
    Scope,
    Severity,
    Step,
    Target,
    TargetKind,
    Workload,
    WorkloadKind,
)
from linkwise.rollout.runs import RunState, Side, StepRun

TODAY = dt.date(2026, 11, 30)
START = dt.datetime(2026, 11, 30, 8, 0, tzinfo=dt.UTC)
WORK = Workload(kind=WorkloadKind.COLLECTIVES, operations=("all_reduce",), sizes_bytes=(2**30,))
JOB = Workload(kind=WorkloadKind.JOB, steps=20)
DIGESTS = {Side.CANDIDATE: "c" * 64, Side.CONTROL: "a" * 64, Side.PROMOTED: "a" * 64}


def at_least(bar, against=Against.CONTROL):
    return Comparison(against=against, bar=bar, is_least=True)


def at_most(bar, against=Against.CONTROL):
    return Comparison(against=against, bar=bar, is_least=False)


def objective(
    *comparisons,
    name="bandwidth",
    metric="collective.busbw",
    workload=WORK,
    aggregate=Aggregate.MEDIAN,
    severity=Severity.MUST,
    review_by=dt.date(2027, 1, 1),
):
    return Objective(
        name=name,
        dimension=Dimension.THROUGHPUT,
        metric=metric,
        workload=workload,
        aggregate=aggregate,
        comparisons=comparisons or (at_least(0.95),),
        severity=severity,
        reason=Reason(why="a test", by="tests", review_by=review_by),
    )


def rollout(*objectives, repeats=5, most_repeats=15, **more):
    objectives = objectives or (objective(),)
    names = tuple(each.name for each in objectives)
    more.setdefault("digest", "d" * 64)
    return Rollout(
        name="change",
        owner="tests",
        change=Change(what="a change", kind="nccl"),
        scope=Scope(cluster="dgx-h100:4", place="local"),
        candidate=Configuration(settings={"A": "2"}, digest=DIGESTS[Side.CANDIDATE]),
        control=Configuration(digest=DIGESTS[Side.CONTROL]),
        objectives=objectives,
        steps=(Step(name="one", target=Target(kind=TargetKind.NODES, amount=1), objectives=names),),
        sampling=Sampling(repeats=repeats, most_repeats=most_repeats, warmup=0),
        **more,
    )


def run(turn, samples, *, side=Side.CANDIDATE, workload=WORK, metric="collective.busbw", **more):
    """Return a run; `samples` is one value, several, or a mapping of metrics."""
    if not isinstance(samples, dict):
        samples = {metric: tuple(samples) if isinstance(samples, list | tuple) else (float(samples),)}
    more.setdefault("state", RunState.VALID)
    more.setdefault("gpus", 8)
    return StepRun(
        run_id=more.pop("run_id", f"{side}-{turn}"),
        step="one",
        workload=workload_digest(workload),
        side=side,
        configuration=more.pop("configuration", DIGESTS[side]),
        turn=turn,
        samples=samples,
        started=START + dt.timedelta(minutes=turn),
        ended=START + dt.timedelta(minutes=turn, seconds=30),
        **more,
    )


def bad_run(turn, state=RunState.INVALID, reason="another world size", **more):
    return run(turn, {}, state=state, reason=reason, **more)


def turns(candidate, control, **more):
    """Return runs in the order A B B A: the k-th of one is a neighbour of the k-th of the other."""
    runs = []
    for place, (ours, theirs) in enumerate(zip(candidate, control, strict=True)):
        order = ((Side.CANDIDATE, ours), (Side.CONTROL, theirs))
        for side, value in order if place % 2 == 0 else order[::-1]:
            runs.append(run(len(runs), value, side=side, **more))
    return runs


def replace_steps(plan, steps):
    return replace(plan, steps=tuple(steps))
