"""Recorded runs of a rollout: a folder of what `linkwise bench` and `launch` printed, by step and side.

`DIR/STEP/SIDE/NAME.json`, SIDE being candidate, control or promoted (what was promoted last, for baselines).
Names give the order: the k-th run of the control is the partner of the k-th of the candidate. Those whose
names begin with "warmup" are left out of verdicts. A file that cannot be read is a run that failed.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import zip_longest
from pathlib import Path
from typing import Any

from linkwise.errors import DocumentError, InputError, UnknownName
from linkwise.readers.faults import Faults
from linkwise.readers.json_text import parse_json
from linkwise.rollout.digests import workload_digest
from linkwise.rollout.gates.priced import asked_samples
from linkwise.rollout.measuring.measure import RunRequest
from linkwise.rollout.measuring.measured_result import read_result
from linkwise.rollout.measuring.own_commands import judged_state
from linkwise.rollout.plan import Rollout, Step, Workload, WorkloadKind
from linkwise.rollout.runs import RunState, Side, StepRun

__all__ = ["RecordedRuns", "read_recorded"]

_LARGEST_BYTES = 256 << 20
_MOST_FILES = 100_000
_UNKNOWN_TIME = datetime(1970, 1, 1, tzinfo=UTC)
_SIZE_SLACK_FRACTION = 0.001
"""Sizes are rounded to whole elements for each rank [1]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRuns:
    """Runs that a folder holds.

    Parameters
    ----------
    by_step
        Runs of candidate and control by the name of the step.
    baseline
        Valid runs of what was promoted last.
    """

    by_step: Mapping[str, tuple[StepRun, ...]]
    baseline: tuple[StepRun, ...]


def read_recorded(folder: Path, rollout: Rollout) -> RecordedRuns:
    """Return the runs of a folder.

    Parameters
    ----------
    folder
        The folder.
    rollout
        Whose steps and work they are of.

    Raises
    ------
    InputError
        When there is no such folder, a part of it is no step or side, or a result is of none of its work.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; give one with a folder for each step")
    steps = {step.name: step for step in rollout.steps}
    by_step: dict[str, tuple[StepRun, ...]] = {}
    baseline: list[StepRun] = []
    for part in sorted(each for each in folder.iterdir() if each.is_dir()):
        if part.name.startswith("."):  # .linkwise beside a rollout file, .git: never a step
            continue
        if part.name not in steps:
            raise UnknownName.among(
                steps, kind=f"folder of a step of {rollout.name} in {folder}:", given=part.name
            )
        found = _step_runs(part, rollout, steps[part.name])
        by_step[part.name] = found
        baseline += [run for run in found if run.side is Side.PROMOTED and run.state is RunState.VALID]
    own = {
        name: tuple(run for run in runs if run.side is not Side.PROMOTED) for name, runs in by_step.items()
    }
    return RecordedRuns(by_step=own, baseline=tuple(baseline))


def _step_runs(folder: Path, rollout: Rollout, step: Step) -> tuple[StepRun, ...]:
    """Return the runs of a step in turns, those of what was promoted last behind."""
    files: dict[Side, list[Path]] = {side: [] for side in Side}
    for part in sorted(each for each in folder.iterdir() if each.is_dir()):
        if part.name not in list(Side):
            raise UnknownName.among(list(Side), kind=f"side in {folder}", given=part.name)
        files[Side(part.name)] = sorted(part.glob("*.json"), key=_natural)
    if sum(map(len, files.values())) > _MOST_FILES:
        raise InputError(f"{folder} has more than {_MOST_FILES:,} results")
    runs: list[StepRun] = []
    for side, file in (*_in_turns(files), *((Side.PROMOTED, each) for each in files[Side.PROMOTED])):
        runs += _runs_of_file(file, rollout, step, side, turn=len(runs))
    return tuple(runs)


def _in_turns(files: Mapping[Side, Sequence[Path]]) -> Iterator[tuple[Side, Path]]:
    """Yield files in the order A B B A, as far as each side has any."""
    for place, (ours, theirs) in enumerate(zip_longest(files[Side.CANDIDATE], files[Side.CONTROL])):
        pair = ((Side.CANDIDATE, ours), (Side.CONTROL, theirs))
        for side, file in pair if place % 2 == 0 else reversed(pair):
            if file is not None:
                yield side, file


def _natural(file: Path) -> list[tuple[int, str]]:
    """Return what sorts ``10.json`` behind ``9.json``."""
    words = re.findall(r"\d+|\D+", file.name)
    return [(int(word), "") if word.isdecimal() else (-1, word) for word in words]


def _runs_of_file(file: Path, rollout: Rollout, step: Step, side: Side, *, turn: int) -> Iterator[StepRun]:
    """Yield the run of a file once for each work of the step that it is of; of a bad file, once for all."""
    works = _works(rollout, step)
    try:
        data = _read(file)
        told = parse_json(data.decode("utf-8"), Faults(path=str(file)))
    except (DocumentError, InputError, UnicodeDecodeError) as error:
        reason = f"its result cannot be read: {str(error)[:200]}"
        requests = [_request(rollout, step, work, side, file, turn=turn + k) for k, work in enumerate(works)]
        yield from (_bad(request, reason) for request in requests)
        return
    work = next((each for each in works if _is_of(each, told)), None)
    if work is None:
        what = f"{told.get('schema')!s:.40} of kind {told.get('kind')!s:.40}"
        wanted = ", ".join(dict.fromkeys(str(each.kind) for each in works))
        raise InputError(
            f"{file}: {what} is of no work of step {step.name!r}, which wants {wanted}; see its objectives"
        )
    yield _measured(_request(rollout, step, work, side, file, turn=turn), data)


def _read(file: Path) -> bytes:
    if file.stat().st_size > _LARGEST_BYTES:
        raise InputError(f"larger than {_LARGEST_BYTES >> 20} MiB")
    return file.read_bytes()


def _works(rollout: Rollout, step: Step) -> tuple[Workload, ...]:
    return tuple(dict.fromkeys(rollout.objective(name).workload for name in step.objectives))


def _is_of(work: Workload, told: Mapping[str, Any]) -> bool:
    """Return whether a result is what a work gives; one that is damaged is of any work of its kind."""
    kinds = {
        WorkloadKind.COLLECTIVES: ("linkwise.bench/1", "collectives"),
        WorkloadKind.PAIRS: ("linkwise.bench/1", "pairs"),
        WorkloadKind.TRAINING: ("linkwise.bench/1", "training"),
        WorkloadKind.JOB: ("linkwise.launch/1", None),
    }
    if kinds.get(work.kind) != (told.get("schema"), told.get("kind")):
        return False
    try:
        if work.kind is WorkloadKind.COLLECTIVES:
            return _sizes_are(work, [(row["collective"], row["size_bytes"]) for row in told["rows"]])
        if work.kind is WorkloadKind.PAIRS:
            return _is_near(told["size_bytes"], work.sizes_bytes[0])
        if work.kind is WorkloadKind.TRAINING:
            return [cut["cut"] for cut in told["cuts"]] in ([work.cut], [])
    except (KeyError, TypeError):
        return True
    return True


def _sizes_are(work: Workload, measured: Sequence[tuple[str, float]]) -> bool:
    """Return whether sizes are those of a work, as far as they go: a job that ended early has not all."""
    wanted = [(operation, size) for operation in work.operations for size in work.sizes_bytes]
    return all(
        any(operation == name and _is_near(size, asked) for name, asked in wanted)
        for operation, size in measured
    )


def _is_near(size: float, asked: float) -> bool:
    return abs(size - asked) <= max(_SIZE_SLACK_FRACTION * asked, 64)


def _request(
    rollout: Rollout, step: Step, work: Workload, side: Side, file: Path, *, turn: int
) -> RunRequest:
    names = [rollout.objective(name) for name in step.objectives]
    return RunRequest(
        run_id=f"{step.name}/{side}/{file.name}",
        step=step,
        workload=work,
        workload_digest=workload_digest(work),
        metrics=tuple(dict.fromkeys(each.metric for each in names if each.workload == work)),
        side=side,
        configuration=rollout.candidate if side is Side.CANDIDATE else rollout.control,
        scope=rollout.scope,
        valid_run=rollout.valid_run,
        turn=turn,
        is_warmup=file.name.startswith("warmup"),
        folder=file.parent,
    )


def _measured(request: RunRequest, data: bytes) -> StepRun:
    """Return the run that a result tells of, judged as if it had been made now."""
    try:
        found = read_result(data.decode("utf-8"), path=request.run_id)
    except DocumentError as error:
        return _bad(request, f"its result cannot be read: {str(error)[:200]}")
    state, reason = judged_state(request, found)
    samples, predictions = asked_samples(request, found)
    run = _bad(request, reason)
    return replace(
        run,
        state=state,
        samples=samples,
        predictions=predictions,
        gpu_s=found.ranks * found.duration_s,
        gpus=found.ranks,
        nodes=found.hosts,
        record_digest=hashlib.sha256(data).hexdigest(),
    )


def _bad(request: RunRequest, reason: str) -> StepRun:
    return StepRun(
        run_id=request.run_id if not reason else f"{request.run_id}#{request.workload_digest[:8]}",
        step=request.step.name,
        workload=request.workload_digest,
        side=request.side,
        configuration=request.configuration.digest,
        turn=request.turn,
        is_warmup=request.is_warmup,
        state=RunState.FAILED,
        reason=reason,
        started=_UNKNOWN_TIME,
    )
