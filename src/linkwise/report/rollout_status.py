"""The published result `linkwise.rollout/1`: where a rollout stands, on what evidence, and what it cost."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from linkwise.report.results import PublishedResult
from linkwise.rollout.carrying.actions import Action
from linkwise.rollout.carrying.ledger import ledger_of
from linkwise.rollout.carrying.progress import Cause, Progress, progress_of
from linkwise.rollout.carrying.standing import Standing, exit_code_of, next_words, standing_of
from linkwise.rollout.runs import StepRun
from linkwise.rollout.store.decisions import Entry, Kind
from linkwise.rollout.store.lock import HeldBy
from linkwise.rollout.store.reading import Record
from linkwise.rollout.store.verdict_text import verdict_of_text
from linkwise.rollout.verdicts import ObjectiveVerdict, Outcome

__all__ = ["RolloutResult", "StatusInput", "rollout_result"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusInput:
    """What a status is made of.

    Parameters
    ----------
    record
        What the store holds.
    store
        Where it is.
    action
        What comes next; ``None`` where there was no file to ask.
    file
        Digest of the file as it is now; empty where there was none.
    holder
        Who carries it out just now; ``None`` for nobody.
    page, runbook
        Whom to call, and where the steps are written down.
    now
        In UTC.
    """

    record: Record
    store: str
    action: Action | None = None
    file: str = ""
    holder: HeldBy | None = None
    page: tuple[str, ...] = ()
    runbook: str = ""
    now: dt.datetime


class ObjectiveResult(PublishedResult):
    """What evidence says of one objective."""

    name: str
    outcome: Outcome
    severity: str
    value: float | None = Field(description="Median over runs, or a ratio; null where there is too little.")
    low: float | None
    high: float | None
    bar: float | None
    planned: int
    executed: int
    judged: int
    sentence: str
    runs: list[str] = Field(description="Names of the runs it rests on.")


class StepStandingResult(PublishedResult):
    """One step."""

    name: str
    target: str
    gpus: int
    standing: Literal["ahead", "measured", "judged", "passed", "waived"]
    outcome: Outcome | None = Field(description="null before it was judged.")
    sentence: str
    objectives: list[ObjectiveResult]
    runs: dict[str, int] = Field(description="Runs by state, under all candidates.")
    approvals: list[str] = Field(description="Who must approve.")
    approved: list[str]
    waived_by: str
    waived_until: dt.date | None


class RollbackResult(PublishedResult):
    """The way back, where it was taken."""

    to: str = Field(description="Digest of the configuration.")
    command_exit_code: int | None
    restored: bool = Field(description="Whether the file that launchers read holds it again.")
    proven: bool | None = Field(description="null before its objectives were asked.")
    why: str


class DecisionWorthResult(PublishedResult):
    """What a decision saves or loses, where that follows from what was measured."""

    entry: int
    what: str
    saved_gpu_h_per_h: float = Field(
        description="GPU-hours saved in each hour; below zero where they are lost."
    )
    hours: float = Field(description="Since it was decided, until it was decided otherwise.")
    basis: str


class LedgerResult(PublishedResult):
    """What the rollout cost, and what its decisions are worth."""

    spent_gpu_h: float
    spent_gpu_h_by_step: dict[str, float]
    lost_gpu_h: dict[str, float] = Field(description="By state of the bad run.")
    lost_runs: dict[str, int]
    runs_without_time: int = Field(description="Runs whose GPU-time nobody wrote down.")
    decisions: list[DecisionWorthResult]


class HeadResult(PublishedResult):
    """The end of the decision log: note it down, and a cut or rewritten log shows."""

    entries: int
    digest: str


class RolloutResult(PublishedResult):
    """Where a rollout stands."""

    published: Literal["linkwise.rollout/1"] = Field(default="linkwise.rollout/1", alias="schema")
    name: str
    owner: str
    change: str
    scope: str
    store: str
    standing: Standing
    exit_code: int = Field(description="What a command that ends here exits with.")
    cause: Cause | None = Field(description="Why it is suspended.")
    why: str
    since: dt.datetime | None = Field(description="When it was suspended.")
    next: str
    held_by: str = Field(description="Who carries it out just now; empty for nobody.")
    file_changed: bool | None = Field(description="null where no file was given.")
    candidate: str
    control: str
    steps: list[StepStandingResult]
    rollback: RollbackResult | None
    page: list[str]
    runbook: str
    ledger: LedgerResult
    head: HeadResult


def rollout_result(given: StatusInput) -> RolloutResult:
    """Return where a rollout stands, as it is published.

    Parameters
    ----------
    given
        What it is made of.
    """
    record = given.record
    progress = progress_of(record.entries)
    begun = next(each for each in reversed(record.entries) if each.kind in (Kind.BEGUN, Kind.FILE_ACCEPTED))
    suspended = progress.suspended
    return RolloutResult(
        name=record.rollout,
        owner=begun.fact("owner"),
        change=begun.fact("change"),
        scope=begun.fact("scope"),
        store=given.store,
        standing=standing_of(progress, given.action),
        exit_code=int(exit_code_of(progress, given.action)),
        cause=progress.cause,
        why="" if suspended is None else suspended.why,
        since=None if suspended is None else suspended.at,
        next="" if given.action is None else next_words(given.action),
        held_by="" if given.holder is None else given.holder.words,
        file_changed=None if not given.file else given.file != progress.file,
        candidate=progress.candidate,
        control=progress.control,
        steps=_steps(record, progress, begun),
        rollback=_rollback(progress),
        page=list(given.page),
        runbook=given.runbook,
        ledger=_ledger(record, given.now),
        head=HeadResult(entries=record.head.entries, digest=record.head.digest),
    )


def _steps(record: Record, progress: Progress, begun: Entry) -> list[StepStandingResult]:
    stated = begun.facts.get("steps")
    return [
        _step(record, progress, each)
        for each in (stated if isinstance(stated, list) else [])
        if isinstance(each, dict)
    ]


def _step(record: Record, progress: Progress, stated: dict[str, object]) -> StepStandingResult:
    name = str(stated["name"])
    judged = progress.judged.get(name)
    runs = [run for run in record.runs if run.step == name]
    waiver = progress.waivers.get(name)
    approvals = stated.get("approvals")
    return StepStandingResult(
        name=name,
        target=str(stated["target"]),
        gpus=int(str(stated["gpus"])),
        standing=_standing(progress, name, runs),
        outcome=None if judged is None else Outcome(judged.fact("outcome")),
        sentence="" if judged is None else judged.why,
        objectives=_objectives(record, judged),
        runs={state: sum(run.state.value == state for run in runs) for state in _states(runs)},
        approvals=[str(who) for who in approvals] if isinstance(approvals, list) else [],
        approved=list(progress.approved.get(name, ())),
        waived_by="" if waiver is None else waiver.by,
        waived_until=None if waiver is None else waiver.until,
    )


def _states(runs: Sequence[StepRun]) -> list[str]:
    return list(dict.fromkeys(run.state.value for run in runs))


def _standing(
    progress: Progress, name: str, runs: Sequence[StepRun]
) -> Literal["ahead", "measured", "judged", "passed", "waived"]:
    passed = next((each for each in progress.passed if each.step == name), None)
    if passed is not None:
        return "waived" if passed.is_waived else "passed"
    if name in progress.judged:
        return "judged"
    return "measured" if runs else "ahead"


def _objectives(record: Record, judged: Entry | None) -> list[ObjectiveResult]:
    if judged is None:
        return []
    verdict = verdict_of_text(record.kept[judged.evidence["verdict"]])
    return [_objective(each) for each in verdict.objectives]


def _objective(verdict: ObjectiveVerdict) -> ObjectiveResult:
    return ObjectiveResult(
        name=verdict.objective,
        outcome=verdict.outcome,
        severity=verdict.severity.value,
        value=verdict.value,
        low=verdict.low,
        high=verdict.high,
        bar=verdict.bar,
        planned=verdict.planned,
        executed=verdict.executed,
        judged=verdict.judged,
        sentence=verdict.sentence,
        runs=list(verdict.run_ids),
    )


def _rollback(progress: Progress) -> RollbackResult | None:
    way = progress.rollback
    if way is None:
        return None
    return RollbackResult(
        to=way.to,
        command_exit_code=way.command_exit,
        restored=way.is_restored,
        proven=way.is_proven,
        why=way.why,
    )


def _ledger(record: Record, now: dt.datetime) -> LedgerResult:
    found = ledger_of(record.entries, record.runs, now=now)
    return LedgerResult(
        spent_gpu_h=found.spent_gpu_s / 3600,
        spent_gpu_h_by_step={name: value / 3600 for name, value in found.by_step.items()},
        lost_gpu_h={name: value / 3600 for name, value in found.lost_gpu_s.items()},
        lost_runs=dict(found.lost_runs),
        runs_without_time=found.without_time,
        decisions=[
            DecisionWorthResult(
                entry=each.number,
                what=each.what,
                saved_gpu_h_per_h=each.saved_gpu_h_per_h,
                hours=each.hours,
                basis=each.basis,
            )
            for each in found.decisions
        ],
    )
