"""The end of a rollout: its candidate becomes what others are compared with and go back to."""

from __future__ import annotations

from linkwise.rollout.canonical import canonical_text
from linkwise.rollout.carrying.acting import Acting
from linkwise.rollout.carrying.fingerprint import fingerprint_digest
from linkwise.rollout.carrying.progress import Progress, progress_of
from linkwise.rollout.carrying.restoring import kept_text, write_promoted
from linkwise.rollout.runs import RunState, Side, StepRun
from linkwise.rollout.store.decisions import Kind
from linkwise.rollout.store.reading import BaselineRow
from linkwise.rollout.store.verification import BASELINE

__all__ = ["promote"]


def promote(acting: Acting) -> bool:
    """Write the candidate for launchers, and its runs as the baseline; return whether that was decided.

    Parameters
    ----------
    acting
        What is done.
    """
    rollout = acting.loaded.rollout
    progress = progress_of(acting.known.entries)
    kept = kept_text(acting, progress.candidate)
    promoted = acting.ground.clock().isoformat()
    rows = sorted(
        (_row(acting, progress, run, promoted) for run in _measured(acting, progress)),
        key=lambda row: row.columns,
    )
    listed = canonical_text({"rows": [list(row.columns) for row in rows]})
    waived = [each.step for each in progress.passed if each.is_waived]
    behind = f"all {len(rollout.steps)} steps are behind" if rollout.steps[1:] else "the one step is behind"
    why = behind + (f"; by waiver alone: {', '.join(waived)}" if waived else "")
    # The file first: where this is killed in between, it is written again, and decided once.
    write_promoted(acting, kept)
    return acting.decide(
        Kind.PROMOTED,
        why=why,
        facts={"candidate": progress.candidate, "waived": waived},
        texts={"candidate": kept, BASELINE: listed},
        also=lambda writing: writing.put_baseline(rows),
    )


def _measured(acting: Acting, progress: Progress) -> list[StepRun]:
    return [
        run
        for step in acting.loaded.rollout.steps
        for run in progress.of_trial(acting.known.runs, step=step.name)
        if run.side is Side.CANDIDATE and run.state is RunState.VALID and not run.is_warmup
    ]


def _row(acting: Acting, progress: Progress, run: StepRun, promoted: str) -> BaselineRow:
    return BaselineRow(
        run_id=run.run_id,
        scope=acting.loaded.scope,
        configuration=progress.candidate,
        fingerprint=fingerprint_digest(run.seen),
        target=acting.loaded.sizes[run.step].words,
        promoted=promoted,
    )
