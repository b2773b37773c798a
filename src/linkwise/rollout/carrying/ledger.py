"""What a rollout cost and what its decisions are worth, in GPU-hours, as far as that was measured.

How each figure is computed:

- *spent*: GPU-seconds of all runs, warm-up and bad ones among them.
- *lost to faults*: GPU-seconds of runs that failed, were cut off, or were not what was planned.
- *worth of a decision*: a step time of 1.08 times that of the control means that of every hour of N GPUs
  N x (1 - 1 / 1.08) GPU-hours do no work that the control would not have done. Stopping saves that, every
  hour that all GPUs of the last step would have run the candidate; promoting or waiving loses it, or gains it
  where the step time is shorter. Only step time and tokens per second are GPU-time; of others nothing is
  said.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from linkwise.rollout.carrying.progress import Cause
from linkwise.rollout.plan import Against, Rollout
from linkwise.rollout.runs import RunState, StepRun
from linkwise.rollout.store.decisions import Entry, Kind
from linkwise.rollout.verdicts import StepVerdict

__all__ = ["DecisionWorth", "Ledger", "gpu_time_facts", "ledger_of"]

_GPU_TIME = {"train.step_time": False, "train.tokens_per_s": True}
"""Metrics that are GPU-time for a given work, and whether more is less time."""
_FAULTS = (RunState.FAILED, RunState.INVALID, RunState.CUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionWorth:
    """What a decision saves or loses.

    Parameters
    ----------
    number, what
        Entry of the log, and in words.
    saved_gpu_h_per_h
        GPU-hours saved in each hour of all GPUs of the last step; below zero where they are lost.
    hours
        Since it was decided, until it was decided otherwise [h].
    basis
        How it was computed.
    """

    number: int
    what: str
    saved_gpu_h_per_h: float
    hours: float
    basis: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """What a rollout cost, and what its decisions are worth.

    Parameters
    ----------
    spent_gpu_s
        Of all runs [s].
    by_step
        The same, by name of the step [s].
    lost_gpu_s
        By state of the bad run [s].
    lost_runs
        By state of the bad run [1].
    without_time
        Runs whose GPU-time nobody wrote down [1].
    decisions
        Those whose worth follows from what was measured.
    """

    spent_gpu_s: float
    by_step: Mapping[str, float]
    lost_gpu_s: Mapping[str, float]
    lost_runs: Mapping[str, int]
    without_time: int
    decisions: tuple[DecisionWorth, ...]


def ledger_of(entries: Sequence[Entry], runs: Sequence[StepRun], *, now: dt.datetime) -> Ledger:
    """Return the ledger of a rollout.

    Parameters
    ----------
    entries, runs
        What was decided and measured.
    now
        In UTC.
    """
    bad = {state: [run for run in runs if run.state is state] for state in _FAULTS}
    return Ledger(
        spent_gpu_s=sum(run.gpu_s for run in runs),
        by_step={
            step: sum(run.gpu_s for run in runs if run.step == step)
            for step in dict.fromkeys(run.step for run in runs)
        },
        lost_gpu_s={state.value: sum(run.gpu_s for run in mine) for state, mine in bad.items() if mine},
        lost_runs={state.value: len(mine) for state, mine in bad.items() if mine},
        without_time=sum(run.gpu_s == 0 for run in runs),
        decisions=tuple(_worths(entries, now)),
    )


def gpu_time_facts(rollout: Rollout, verdict: StepVerdict) -> dict[str, object]:
    """Return what the log keeps of a verdict for the ledger; nothing where no objective is about GPU-time.

    Parameters
    ----------
    rollout
        What is carried out.
    verdict
        Of a step. Of several such objectives the one with the most GPU-time counts.
    """
    ratios = {}
    for each in verdict.objectives:
        objective = rollout.objective(each.objective)
        decisive = [one.against for one in objective.comparisons if one.bar == each.bar]
        is_relative = decisive and all(one in (Against.CONTROL, Against.BASELINE) for one in decisive)
        if objective.metric in _GPU_TIME and is_relative and each.value is not None and each.value > 0:
            ratios[each.objective] = 1 / each.value if _GPU_TIME[objective.metric] else each.value
    if not ratios:
        return {}
    worst = max(ratios, key=lambda name: ratios[name])
    return {"gpu_time_ratio": ratios[worst], "gpu_time_by": worst}


def _worths(entries: Sequence[Entry], now: dt.datetime) -> Iterator[DecisionWorth]:
    gpus = 0
    judged: dict[str, Entry] = {}
    for place, entry in enumerate(entries):
        if entry.kind in (Kind.BEGUN, Kind.FILE_ACCEPTED):
            gpus = _gpus(entry)
        if entry.kind is Kind.JUDGED:
            judged[entry.step] = entry
        verdict = _verdict_behind(entry, judged)
        ratio = None if verdict is None else verdict.facts.get("gpu_time_ratio")
        if verdict is None or not isinstance(ratio, float | int) or not gpus:
            continue
        is_stop = entry.kind is Kind.SUSPENDED
        share = 1 - 1 / ratio
        yield DecisionWorth(
            number=entry.number,
            what=f"{entry.kind.value}: {verdict.step}",
            saved_gpu_h_per_h=gpus * (share if is_stop else -share),
            hours=(_until(entry, entries[place + 1 :], now) - entry.at) / dt.timedelta(hours=1),
            basis=(
                f"{verdict.fact('gpu_time_by')}: {ratio:.4g} times the GPU-time for the same work, as entry "
                f"{verdict.number} judged; on the {gpus} GPUs of the last step"
            ),
        )


def _verdict_behind(entry: Entry, judged: Mapping[str, Entry]) -> Entry | None:
    """Return the verdict that a decision rests on; ``None`` for one that has no such worth."""
    is_verdict = entry.kind is Kind.SUSPENDED and entry.fact("cause") == Cause.FAIL.value
    if is_verdict or entry.kind is Kind.WAIVED:
        return judged.get(entry.step)
    if entry.kind is Kind.PROMOTED and judged:
        return list(judged.values())[-1]
    return None


def _gpus(entry: Entry) -> int:
    steps = entry.facts.get("steps")
    last = steps[-1] if isinstance(steps, list) and steps else {}
    return int(last.get("gpus", 0)) if isinstance(last, dict) else 0


def _until(entry: Entry, later: Iterable[Entry], now: dt.datetime) -> dt.datetime:
    """Return when a decision was replaced by another one, or now."""
    ending = {Kind.RESUMED, Kind.FILE_ACCEPTED, Kind.WAIVED, Kind.ROLLBACK_BEGUN, Kind.PROMOTED}
    ending -= {Kind.ROLLBACK_BEGUN} if entry.kind is Kind.SUSPENDED else set()
    return next((each.at for each in later if each.kind in ending), now)
