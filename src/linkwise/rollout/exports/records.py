"""Runs of a rollout as the folder that `linkwise rollout replay` reads."""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path

from linkwise.errors import InputError
from linkwise.rollout.carrying.progress import Progress
from linkwise.rollout.runs import Side, StepRun
from linkwise.rollout.store.reading import Record

__all__ = ["write_records"]


def write_records(record: Record, progress: Progress, folder: Path) -> int:
    """Write the results of the runs under the candidate that is accepted now, and return how many.

    Parameters
    ----------
    record
        Of a rollout.
    progress
        How far it is.
    folder
        Where to; not there yet.

    Raises
    ------
    InputError
        When the result of a run is not here, or is not the one that was measured: a part would be judged
        otherwise than the whole.

    Notes
    -----
    A run that left no result becomes a file that is none, which a replay counts as a run that failed.
    """
    if folder.exists():
        raise InputError(f"-o {folder} exists and is left alone; give another name")
    texts: dict[Path, bytes] = {}
    steps = dict.fromkeys(run.step for run in record.runs if run.side is not Side.PROMOTED)
    for step in steps:
        counts: Counter[tuple[Side, bool]] = Counter()
        for run in progress.of_trial(record.runs, step=step):
            place = counts[run.side, run.is_warmup]
            counts[run.side, run.is_warmup] += 1
            name = f"{'warmup-' if run.is_warmup else ''}{place:04d}.json"
            texts[folder / step / run.side.value / name] = _result_of(run)
    folder.mkdir(parents=True)
    (folder / "HEAD").write_text(f"{record.head.digest}\n", encoding="ascii")
    for path, data in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return len(texts)


def _result_of(run: StepRun) -> bytes:
    if not run.record:
        return f"{run.state.value}: {run.reason}\n".encode()
    try:
        data = Path(run.record).read_bytes()
    except OSError as error:
        raise InputError(
            f"run {run.run_id}: its result {run.record} cannot be read ({error.strerror}); export where the "
            "runs were made"
        ) from None
    if hashlib.sha256(data).hexdigest() != run.record_digest:
        raise InputError(
            f"run {run.run_id}: its result {run.record} is not what was measured: it was altered"
        )
    return data
