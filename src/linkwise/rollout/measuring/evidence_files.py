"""Runs that gates are replayed over: a folder of results, or the exported log of a real rollout."""

from __future__ import annotations

from pathlib import Path

from linkwise.errors import InputError
from linkwise.rollout.carrying.progress import progress_of
from linkwise.rollout.exports.decision_log import LARGEST_BYTES, parse_log
from linkwise.rollout.measuring.recorded_runs import RecordedRuns, read_recorded
from linkwise.rollout.plan import Rollout
from linkwise.rollout.runs import Side, StepRun
from linkwise.rollout.store.reading import record_of
from linkwise.rollout.store.verification import flaws_of

__all__ = ["read_evidence"]


def read_evidence(path: Path, rollout: Rollout) -> RecordedRuns:
    """Return the runs of a folder, or of a log that ``linkwise rollout log --export json`` wrote.

    Parameters
    ----------
    path
        The folder or the file.
    rollout
        Whose gates are asked. Of a log, the runs of its candidate are taken.

    Raises
    ------
    InputError
        When it is neither, the log was altered, or has no run of this candidate.

    Notes
    -----
    Runs of an earlier rollout that were a baseline are not in its log: bars against one have no data.
    """
    if not path.is_file():
        return read_recorded(path, rollout)
    if path.stat().st_size > LARGEST_BYTES:
        raise InputError(f"{path} is larger than any log that is exported ({LARGEST_BYTES >> 30} GiB)")
    try:
        contents = parse_log(path.read_bytes())
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    flaws = flaws_of(contents)
    if flaws:
        raise InputError(f"{path}: {flaws[0]}; nothing is judged on evidence that was altered")
    record = record_of(contents)
    trials = progress_of(record.entries).trials
    by_step: dict[str, tuple[StepRun, ...]] = {}
    for step in rollout.steps:
        mine = (rollout.candidate.digest, step.name)
        runs = [
            run for run in record.runs if trials.get(run.run_id) == mine and run.side is not Side.PROMOTED
        ]
        if runs:
            by_step[step.name] = tuple(runs)
    if not by_step:
        raise InputError(
            f"{path} is the log of {record.rollout}, and has no run of candidate "
            f"{rollout.candidate.digest[:12]} in a step of {rollout.name}; was the file changed since?"
        )
    return RecordedRuns(by_step=by_step, baseline=())
