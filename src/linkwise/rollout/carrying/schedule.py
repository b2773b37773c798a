"""Which runs a step wants, in which order: warm-up, then pairs in the order A B B A, workloads in turns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from linkwise.rollout.digests import workload_digest
from linkwise.rollout.plan import Against, Rollout, Step, Workload
from linkwise.rollout.runs import Side, StepRun

__all__ = ["WantedRun", "WorkloadPlan", "measured_slots", "next_run", "workloads_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadPlan:
    """One workload of a step, which all its objectives share.

    Parameters
    ----------
    workload, digest
        What is run.
    metrics
        What objectives need of it.
    objectives
        Their names.
    sides
        Which configurations run it: with a control, candidate and control in turns.
    """

    workload: Workload
    digest: str
    metrics: tuple[str, ...]
    objectives: tuple[str, ...]
    sides: tuple[Side, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedRun:
    """One run that a step wants next.

    Parameters
    ----------
    plan
        The workload.
    side, turn, is_warmup
        As in `StepRun`.
    """

    plan: WorkloadPlan
    side: Side
    turn: int
    is_warmup: bool


def workloads_of(rollout: Rollout, step: Step, *, alone: Side | None = None) -> tuple[WorkloadPlan, ...]:
    """Return the workloads of a step, in the order of its objectives.

    Parameters
    ----------
    rollout, step
        What is asked.
    alone
        The only side that is run, such as what a rollback restored; ``None`` for the candidate, with the
        control where an objective is compared with it.
    """
    objectives = [rollout.objective(name) for name in step.objectives]
    found: list[WorkloadPlan] = []
    for digest in dict.fromkeys(workload_digest(each.workload) for each in objectives):
        mine = [each for each in objectives if workload_digest(each.workload) == digest]
        has_control = any(one.against is Against.CONTROL for each in mine for one in each.comparisons)
        both = (Side.CANDIDATE, Side.CONTROL) if has_control else (Side.CANDIDATE,)
        found.append(
            WorkloadPlan(
                workload=mine[0].workload,
                digest=digest,
                metrics=tuple(dict.fromkeys(each.metric for each in mine)),
                objectives=tuple(each.name for each in mine),
                sides=both if alone is None else (alone,),
            )
        )
    return tuple(found)


def next_run(
    plans: Sequence[WorkloadPlan], runs: Sequence[StepRun], *, warmup: int, slots: Mapping[str, int]
) -> WantedRun | None:
    """Return the run that is wanted next; ``None`` where all have been.

    Parameters
    ----------
    plans
        The workloads of the step.
    runs
        All of the step so far. One that ended badly had its place: none is made again for it.
    warmup
        Slots before the first that counts [1].
    slots
        By digest of the workload: how many count that are wanted [1].

    Notes
    -----
    A slot is one run of each side of a workload.
    """
    been = Counter((run.workload, run.side) for run in runs)
    for slot in range(warmup + max(slots.values(), default=0)):
        for plan in plans:
            if slot >= warmup + slots[plan.digest]:
                continue
            for side in _order(plan, slot, warmup):
                if been[plan.digest, side] <= slot:
                    return WantedRun(plan=plan, side=side, turn=len(runs), is_warmup=slot < warmup)
    return None


def _order(plan: WorkloadPlan, slot: int, warmup: int) -> tuple[Side, ...]:
    """Return the sides of a slot in order; every other one that counts begins with the other side."""
    is_turned = slot >= warmup and (slot - warmup) % 2 == 1
    return plan.sides[::-1] if is_turned else plan.sides


def measured_slots(
    plan: WorkloadPlan, runs: Sequence[StepRun], *, warmup: int
) -> tuple[tuple[StepRun, ...], ...]:
    """Return the slots that count and are complete: each with the runs of all its sides.

    Parameters
    ----------
    plan
        The workload.
    runs
        All of the step so far.
    warmup
        Slots before the first that counts [1].
    """
    sides = [
        [run for run in runs if run.workload == plan.digest and run.side is side and run.ended is not None]
        for side in plan.sides
    ]
    return tuple(zip(*sides, strict=False))[warmup:]
