"""What stops a rollout before anything is measured: the file, the cluster, and the limits."""

from __future__ import annotations

import datetime as dt
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from linkwise.rollout.carrying.actions import Suspend
from linkwise.rollout.carrying.fingerprint import changed, mismatches
from linkwise.rollout.carrying.progress import Cause, Progress
from linkwise.rollout.carrying.schedule import WantedRun
from linkwise.rollout.plan import Rollout, Step
from linkwise.rollout.runs import RunState, StepRun

__all__ = ["Guarded", "first_guard", "waiver_guard"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarded:
    """What guards look at.

    Parameters
    ----------
    rollout, progress, runs, nodes, now
        As in `next_action.Situation`.
    """

    rollout: Rollout
    progress: Progress
    runs: Sequence[StepRun]
    nodes: Mapping[str, int] = field(default_factory=dict)
    now: dt.datetime

    def spending(self, step: Step, wanted: WantedRun) -> Suspend | None:
        """Return why a run would cost more than the step may spend; ``None`` where it does not.

        Parameters
        ----------
        step
            The step.
        wanted
            The run; it is taken to cost what runs of its workload did so far.
        """
        budget = self.rollout.sampling.budget_gpu_s
        mine = self.progress.of_trial(self.runs, step=step.name)
        if budget is None or not mine:
            return None
        spent = sum(run.gpu_s for run in mine)
        alike = [run.gpu_s for run in mine if run.workload == wanted.plan.digest and run.ended is not None]
        next_s = statistics.fmean(alike) if alike else 0.0
        if spent + next_s <= budget:
            return None
        why = (
            f"its tests have taken {spent / 60:.3g} GPU-minutes and the next run takes about "
            f"{next_s / 60:.3g}, over the budget of {budget / 60:.3g}: raise sampling.budget, or measure less"
        )
        return Suspend(cause=Cause.BUDGET, why=why, step=step.name)


def first_guard(guarded: Guarded, step: Step | None) -> Suspend | None:
    """Return the first reason not to go on; ``None`` where there is none.

    Parameters
    ----------
    guarded
        What is looked at.
    step
        The step that is next; ``None`` where all are behind.
    """
    name = "" if step is None else step.name
    for cause, why in _reasons(guarded, step):
        return Suspend(cause=cause, why=why, step=name)
    return None


def _reasons(guarded: Guarded, step: Step | None) -> Iterator[tuple[Cause, str]]:
    yield from ((Cause.FILE, why) for why in _file(guarded))
    yield from ((Cause.CLUSTER, why) for why in _cluster(guarded))
    if step is not None:
        yield from ((Cause.REVIEW, why) for why in _review(guarded))
        yield from ((Cause.FAILURES, why) for why in _failures(guarded))
        yield from ((Cause.NODES, why) for why in _nodes(guarded, step))


def _file(guarded: Guarded) -> Iterator[str]:
    rollout, progress = guarded.rollout, guarded.progress
    pairs = (
        (rollout.candidate.digest, progress.candidate, "its candidate is another one"),
        (rollout.control.digest, progress.control, "its control is another one"),
        (rollout.digest, progress.file, "it was edited"),
    )
    for now, accepted, words in pairs:
        if now != accepted:
            yield (
                f"the file is not the one that was accepted: {words} ({now[:12]}, was {accepted[:12]}); "
                "'linkwise rollout resume --accept-file' takes it, or put the old one back"
            )


def _cluster(guarded: Guarded) -> Iterator[str]:
    """Yield what is not as the file says, or not as it was, of what the runs since the last resume saw.

    Runs are compared with those of the same work and configuration: programs spell versions in their ways.
    """
    since = guarded.progress.resumed
    recent = [run for run in guarded.runs if run.seen and (since is None or run.started >= since)]
    if recent:
        yield from mismatches(guarded.rollout.scope.fingerprint, recent[-1].seen)
        last = recent[-1]
        alike = (
            run
            for run in recent
            if (run.side, run.configuration, run.workload) == (last.side, last.configuration, last.workload)
        )
        yield from changed(next(alike).seen, last.seen)


def _review(guarded: Guarded) -> Iterator[str]:
    rollout, today = guarded.rollout, guarded.now.date()
    ahead = [step for step in rollout.steps if not guarded.progress.has_passed(step.name)]
    for name in dict.fromkeys(name for step in ahead for name in step.objectives):
        reason = rollout.objective(name).reason
        if reason.review_by is not None and reason.review_by <= today:
            yield (
                f"the number of {name!r} was to be looked at again by {reason.review_by} ({reason.by}): "
                "look at it, give a new review_by, and take the file with 'resume --accept-file'"
            )


def _failures(guarded: Guarded) -> Iterator[str]:
    limits, since = guarded.rollout.limits, guarded.progress.resumed
    if limits.most_failures is None or limits.within_s is None:
        return
    begin = guarded.now - dt.timedelta(seconds=limits.within_s)
    begin = begin if since is None else max(begin, since)
    failed = [
        run
        for run in guarded.runs
        if run.state is RunState.FAILED and run.ended is not None and run.ended >= begin
    ]
    if len(failed) >= limits.most_failures:
        yield (
            f"{len(failed)} runs failed within {limits.within_s / 60:.3g} minutes, and "
            f"{limits.most_failures} stop it; the last one: {failed[-1].reason or 'no reason was given'}"
        )


def _nodes(guarded: Guarded, step: Step) -> Iterator[str]:
    most = guarded.rollout.limits.most_nodes
    if most is None:
        return
    wanted = guarded.nodes.get(step.name, 0)
    touched = {node for run in guarded.runs for node in run.nodes}
    if wanted > most:
        yield f"the step touches {wanted} nodes, and limits.nodes allows {most}"
    elif len(touched) > most:
        yield f"{len(touched)} nodes were touched so far, and limits.nodes allows {most}"


def waiver_guard(progress: Progress, today: dt.date) -> Suspend | None:
    """Return why a step that passed by a waiver does so no more; ``None`` where all waivers hold.

    Parameters
    ----------
    progress
        How far it is.
    today
        The calendar.
    """
    waived = {each.step for each in progress.passed if each.is_waived}
    for step, waiver in progress.waivers.items():
        if (step in waived or not progress.has_passed(step)) and waiver.until < today:
            why = (
                f"the waiver of {waiver.by} for step {step!r} ended on {waiver.until}: waive again, or resume"
            )
            return Suspend(cause=Cause.WAIVER, why=why, step=step)
    return None
