"""One run: written down as started, measured, written down as ended; or taken in after a kill."""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from linkwise.errors import InputError, LinkwiseError
from linkwise.rollout.carrying import actions
from linkwise.rollout.carrying.acting import Acting
from linkwise.rollout.carrying.progress import Cause, progress_of
from linkwise.rollout.carrying.restoring import restored_configuration
from linkwise.rollout.carrying.schedule import WorkloadPlan, workloads_of
from linkwise.rollout.measuring.measure import RunRequest
from linkwise.rollout.plan import Configuration, Step
from linkwise.rollout.runs import RunState, Side, StepRun
from linkwise.rollout.store.decisions import Kind
from linkwise.rollout.store.writing import Writing

__all__ = ["measure_run", "recover_run"]


def measure_run(action: actions.Measure, acting: Acting) -> bool:
    """Measure one run, and return whether nothing else was decided before it started.

    Parameters
    ----------
    action
        What is wanted.
    acting
        What it was decided on.
    """
    wanted = action.wanted
    configuration = _configuration(acting, wanted.side)
    started = StepRun(
        run_id=secrets.token_hex(8),
        step=action.step.name,
        workload=wanted.plan.digest,
        side=wanted.side,
        configuration=configuration.digest,
        turn=wanted.turn,
        is_warmup=wanted.is_warmup,
        state=RunState.STARTED,
        started=acting.ground.clock(),
    )
    request = _request(acting, action.step, wanted.plan, started, configuration)
    why = f"{wanted.side.value}, turn {wanted.turn}" + (", warm-up" if wanted.is_warmup else "")

    def start(writing: Writing) -> None:
        ground = acting.ground
        writing.put_run(started, at=ground.clock(), by=ground.who, why=why, host=ground.host)

    if not acting.write(start):
        return False
    acting.ground.tell(f"{action.step.name}: {wanted.plan.workload.kind.value}, {why}")
    _measure(acting, started, request)
    return True


def _measure(acting: Acting, started: StepRun, request: RunRequest) -> None:
    try:
        found = acting.ground.measure.measure(request)
    except LinkwiseError as error:
        _could_not(acting, started, str(error))
    else:
        _end(acting, started, found)


def recover_run(action: actions.Recover, acting: Acting) -> bool:
    """Take in what a run left whose keeper was killed; one of which nothing was started is started now.

    Parameters
    ----------
    action
        The run as it was written when it started.
    acting
        What it was decided on.
    """
    started = action.run
    plan = _plan_of(acting, action.step, started)
    if plan is None:
        reason = "whoever ran it was ended, and the file has its workload no more"
        _end(acting, started, replace(started, state=RunState.CUT, reason=reason))
        return True
    configuration = _configuration(acting, started.side)
    request = _request(acting, action.step, plan, started, configuration)
    host = _other_host(acting, request)
    if host:
        reason = f"{host}, which kept it, is lost"
        _end(acting, started, replace(started, state=RunState.CUT, reason=reason))
        return True
    try:
        found = _found_of(acting, request)
    except LinkwiseError as error:
        found = replace(started, state=RunState.CUT, reason=f"what it left cannot be read: {error}")
    if found is not None:
        _end(acting, started, found)
    elif configuration.digest == started.configuration:
        _measure(acting, started, replace(request, folder=_new_folder(request.folder)))
    else:
        reason = "whoever ran it was ended before it began, and its configuration is another one now"
        _end(acting, started, replace(started, state=RunState.CUT, reason=reason))
    return True


def _other_host(acting: Acting, request: RunRequest) -> str:
    """Return the lost host that kept a run; empty where it was kept here.

    Raises
    ------
    InputError
        When it was kept on another host, where it may still go on.
    """
    kept = next(
        each
        for each in acting.known.entries
        if each.kind is Kind.RUN_STARTED and each.fact("run_id") == request.run_id
    )
    host = kept.fact("host")
    if host in ("", acting.ground.host) or request.folder.exists():
        return ""
    if host not in acting.ground.lost_hosts:
        raise InputError(
            f"run {request.run_id} was started on {host} by {kept.by} and may still go on there: carry on on "
            f"{host}; if it will not come back, give --lost-host {host}, which gives the run up"
        )
    return host


def _found_of(acting: Acting, request: RunRequest) -> StepRun | None:
    """Return what a run left in the last of its folders; it has several where it was started again."""
    tried = [folder for folder in _folders(request.folder) if folder.exists()]
    if not tried:
        return acting.ground.measure.recover(request)
    return acting.ground.measure.recover(replace(request, folder=tried[-1]))


def _new_folder(first: Path) -> Path:
    return next(folder for folder in _folders(first) if not folder.exists())


def _folders(first: Path) -> Iterator[Path]:
    """Yield the folders that a run may have, those that exist and the next one."""
    for number in itertools.count():
        folder = first if number == 0 else first.with_name(f"{first.name}.{number}")
        yield folder
        if not folder.exists():
            return


def _plan_of(acting: Acting, step: Step, run: StepRun) -> WorkloadPlan | None:
    """Return the workload of a run; ``None`` where the file has it no more."""
    alone = Side.PROMOTED if run.side is Side.PROMOTED else None
    plans = workloads_of(acting.loaded.rollout, step, alone=alone)
    return next((plan for plan in plans if plan.digest == run.workload), None)


def _configuration(acting: Acting, side: Side) -> Configuration:
    rollout = acting.loaded.rollout
    if side is Side.PROMOTED:
        way = progress_of(acting.known.entries).rollback
        if way is not None:
            return restored_configuration(acting, way.begun)
    return rollout.candidate if side is Side.CANDIDATE else rollout.control


def _request(
    acting: Acting, step: Step, plan: WorkloadPlan, run: StepRun, configuration: Configuration
) -> RunRequest:
    rollout = acting.loaded.rollout
    return RunRequest(
        run_id=run.run_id,
        step=step,
        workload=plan.workload,
        workload_digest=plan.digest,
        metrics=plan.metrics,
        side=run.side,
        configuration=configuration,
        scope=rollout.scope,
        valid_run=rollout.valid_run,
        turn=run.turn,
        is_warmup=run.is_warmup,
        folder=acting.ground.runs / run.run_id,
    )


def _end(acting: Acting, started: StepRun, found: StepRun) -> None:
    """Write down the end; what the run was for is as it was when it started, whoever measured it."""
    ended = replace(
        found,
        run_id=started.run_id,
        step=started.step,
        workload=started.workload,
        side=started.side,
        configuration=started.configuration,
        turn=started.turn,
        is_warmup=started.is_warmup,
        started=started.started,
        ended=found.ended or acting.ground.clock(),
        state=RunState.CUT if found.state is RunState.STARTED else found.state,
    )
    why = f"{ended.state.value}" + (f": {ended.reason}" if ended.reason else "")
    acting.note(lambda writing: _put(writing, acting, ended, why))
    acting.ground.tell(f"{ended.step}: {ended.side.value}, turn {ended.turn}: {why}")


def _put(writing: Writing, acting: Acting, run: StepRun, why: str) -> None:
    writing.put_run(run, at=acting.ground.clock(), by=acting.ground.who, why=why)


def _could_not(acting: Acting, started: StepRun, words: str) -> None:
    """Write down that nothing could be measured, and stop: the next try would end alike."""
    ended = replace(started, state=RunState.INVALID, reason=words, ended=acting.ground.clock())
    is_way_back = started.side is Side.PROMOTED

    def write(writing: Writing) -> None:
        _put(writing, acting, ended, f"it could not be measured: {words}")
        if not is_way_back:
            writing.append(
                Kind.SUSPENDED,
                at=acting.ground.clock(),
                by=acting.ground.who,
                why=f"nothing could be measured: {words}",
                step=started.step,
                facts={"cause": Cause.ERROR.value},
            )

    acting.note(write)
    acting.ground.tell(f"nothing could be measured: {words}")
