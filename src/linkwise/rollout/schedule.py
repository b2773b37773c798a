"""Which runs a step wants, in which order: warm-up, then pairs in the order A B B A, workloads in turns."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from linkwise.rollout.digests import workload_digest
from linkwise.rollout.plan import Against, Rollout, Step, Workload
from linkwise.rollout.runs import RunState, Side, StepRun

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
    plans: Sequence[WorkloadPlan], runs: Collection[StepRun], *, warmup: int, slots: Mapping[str, int]
) -> WantedRun | None:
    """Return the run that is wanted next; ``None`` where all have been.

    Parameters
    ----------
    plans
        The workloads of the step.
    runs
        Those of the step so far. One that was cut off is wanted once more, whatever it said until then.
    warmup
        Slots before the first that counts [1].
    slots
        By digest of the workload: how many count that are wanted [1].
    """
    been = {(run.workload, run.side, run.turn) for run in runs if run.state is not RunState.CUT}
    for slot in range(warmup + max(slots.values(), default=0)):
        for plan in plans:
            if slot >= warmup + slots[plan.digest]:
                continue
            for turn, side in _order(plan, slot, warmup):
                if (plan.digest, side, turn) not in been:
                    return WantedRun(plan=plan, side=side, turn=turn, is_warmup=slot < warmup)
    return None


def _order(plan: WorkloadPlan, slot: int, warmup: int) -> Iterator[tuple[int, Side]]:
    """Yield turns and sides of a slot; every other one that counts begins with the other side."""
    is_turned = slot >= warmup and (slot - warmup) % 2 == 1
    for place, side in enumerate(reversed(plan.sides) if is_turned else plan.sides):
        yield 2 * slot + place, side


def measured_slots(
    plan: WorkloadPlan, runs: Collection[StepRun], *, warmup: int
) -> tuple[tuple[StepRun, ...], ...]:
    """Return the slots that count and are complete: each with the runs of all its sides.

    Parameters
    ----------
    plan
        The workload.
    runs
        Those of the step so far.
    warmup
        Slots before the first that counts [1].
    """
    slots: dict[int, list[StepRun]] = {}
    for run in runs:
        is_mine = run.workload == plan.digest and run.side in plan.sides and run.turn // 2 >= warmup
        if is_mine and run.state not in (RunState.CUT, RunState.STARTED):
            slots.setdefault(run.turn // 2, []).append(run)
    return tuple(
        tuple(slots[slot]) for slot in sorted(slots) if {run.side for run in slots[slot]} == set(plan.sides)
    )
