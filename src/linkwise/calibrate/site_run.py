"""From a training log or a trace to the time of a steady step, and from there to observations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from linkwise.calibrate.observation import STEP_NOISE, Observation, step_observation
from linkwise.calibrate.site_files import SiteFile, SiteFileKind
from linkwise.cluster.growth import first_gpus
from linkwise.errors import DocumentError, Fault, InputError
from linkwise.estimate.job_inputs import checked_layout, fixed_columns, layout_columns
from linkwise.readers.kineto import KinetoTrace, parse_kineto
from linkwise.readers.launch_record import LaunchedRun, parse_launch_record
from linkwise.readers.training_log import LoggedStep, TrainingLog, is_training_log, parse_training_log

if TYPE_CHECKING:
    from linkwise.cluster import Cluster
    from linkwise.estimate.term import Floats
    from linkwise.job import Job
    from linkwise.layout import Layout

__all__ = [
    "COMPUTE_TERMS",
    "EXPOSED_TERMS",
    "LEAST_STEPS",
    "SiteRun",
    "check_same_job",
    "launched_run",
    "layout_words",
    "read_site_run",
    "run_cluster",
    "run_columns",
    "run_observations",
]

LEAST_STEPS = 5
"""Steady steps without which a log is not used: one step is no measurement [1]."""
WARM_UP = 0.2
"""Share of the steps at the start that is left out, three at least where there are so many: compilation,
allocation and the first batches [1]."""
_PART_NOISE = 0.15
"""Spread of the logarithm of what a trace calls computing against what the model does: kernels and launches
are not cut alike (assumed: three times that of a step) [1]."""
_EXPOSED_NOISE = 0.4
"""The same of communication that shows: a wait for a slower neighbour is in it (assumed) [1]."""
COMPUTE_TERMS = ("compute_s", "optimizer_s")
EXPOSED_TERMS = ("tensor_s", "context_s", "expert_s", "pipeline_s", "data_s")
_RUN_TO_RUN = 1.2533
"""Standard deviation of a median over that of a mean, for normal errors [1]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteRun:
    """A steady step as it was measured.

    Attributes
    ----------
    source
        What told it: a framework, or ``Kineto trace``.
    step_times_s
        Times of the steps that count [s].
    left_out
        Steps at the start that do not [1].
    trace
        Where the time goes, of a trace.
    phases_s
        Median times of the timers of a log, by name [s].
    """

    source: str
    step_times_s: tuple[float, ...]
    left_out: int
    trace: KinetoTrace | None = None
    phases_s: tuple[tuple[str, float], ...] = ()

    @property
    def step_time_s(self) -> float:
        """Return the median [s]."""
        return float(np.median(self.step_times_s))

    @property
    def spread_fraction(self) -> float:
        """Return the standard deviation of the median over it [1]."""
        times = np.array(self.step_times_s)
        if len(times) < 2:
            return 0.0
        return float(_RUN_TO_RUN * np.std(times, ddof=1) / np.sqrt(len(times)) / np.median(times))


def read_site_run(file: SiteFile, job: Job, layout: Layout) -> SiteRun:
    """Return the steady step of a log or a trace.

    Parameters
    ----------
    file
        What was measured.
    job
        What was run.
    layout
        How it was cut, its data degree filled.

    Raises
    ------
    InputError
        If it is of another batch, holds too few steps, or is a trace without a GPU.
    """
    if file.kind is SiteFileKind.KINETO:
        return _of_trace(parse_kineto(file.text, path=file.path), file.path)
    if file.kind is SiteFileKind.LAUNCH:
        return launched_run(file, job, layout)
    if file.kind is SiteFileKind.TRAINING_LOG:
        return _of_log(parse_training_log(file.text, path=file.path), file.path, job, layout)
    raise _refused(file.path, f"holds {file.kind}, which is of no job; give it without JOB=")


def run_cluster(job: Job, cluster: Cluster) -> tuple[Cluster, Layout]:
    """Return the part of a cluster that a run took, and its layout with every blank filled.

    Parameters
    ----------
    job
        What was run, with its layout.
    cluster
        What there is.

    Raises
    ------
    InputError
        If the job has no layout, needs more GPUs than there are, or cannot run as it says.
    """
    if job.layout is None:
        raise InputError(
            "the job says layout: search, but a measured run has one layout; write the degrees it ran with, "
            "as in layout: {tensor: 8, pipeline: 2, data: 4, micro_batch: 1}, or give explain a --layout"
        )
    data = job.layout.data
    used = cluster if data is None else first_gpus(cluster, job.layout.model_parallel * data)
    return used, checked_layout(job, used, job.layout)


def run_columns(job: Job, cluster: Cluster, layout: Layout) -> dict[str, Floats]:
    """Return the columns of one layout without any calibration.

    Parameters
    ----------
    job, cluster, layout
        As `run_cluster` gives them.
    """
    return {**fixed_columns(job, replace(cluster, calibration=None)), **layout_columns((layout,))}


def run_observations(
    run: SiteRun, job: Job, cluster: Cluster, layout: Layout, *, label: str
) -> Iterator[Observation]:
    """Yield what a run tells of the model: its step, and of a trace what computes and what shows.

    Parameters
    ----------
    run
        The run.
    job, cluster, layout
        What was run on what.
    label
        What to call it.
    """
    columns, precision = run_columns(job, cluster, layout), str(job.precision)
    noise = float(np.hypot(STEP_NOISE, run.spread_fraction))
    yield step_observation(label, columns, precision=precision, measured_s=run.step_time_s, noise=noise)
    if run.trace is None or layout.pipeline > 1:
        return  # the process of a trace is of one stage, the terms are of the slowest
    for words, terms, measured, spread in (
        ("computing", COMPUTE_TERMS, run.trace.compute_s, _PART_NOISE),
        ("exposed communication", EXPOSED_TERMS, run.trace.exposed_s, _EXPOSED_NOISE),
    ):
        part = step_observation(
            f"{label}: {words}",
            columns,
            precision=precision,
            measured_s=max(measured, 1e-9),
            terms=terms,
            noise=spread,
            unit=label,
        )
        if measured > 0 and part.predict({})[0] > 1e-9:
            yield part


def layout_words(layout: Layout) -> str:
    """Return a layout in a few words.

    Parameters
    ----------
    layout
        Its data degree filled.
    """
    degrees = (
        ("TP", layout.tensor),
        ("CP", layout.context),
        ("PP", layout.pipeline),
        ("EP", layout.expert),
        ("DP", layout.data or 1),
    )
    named = " ".join(f"{name}{degree}" for name, degree in degrees if degree > 1)
    return f"{named or 'one GPU'}, micro-batch {layout.micro_batch}, ZeRO {layout.zero_stage}"


def _of_trace(trace: KinetoTrace, path: str) -> SiteRun:
    if not trace.on_gpu:
        raise _refused(path, "has no kernel of a GPU; profile with ProfilerActivity.CUDA")
    return SiteRun(source="Kineto trace", step_times_s=trace.step_times_s, left_out=0, trace=trace)


def _of_log(log: TrainingLog, path: str, job: Job, layout: Layout) -> SiteRun:
    for step in log.steps:
        if step.global_batch is not None and step.global_batch != job.global_batch:
            raise _refused(
                path,
                f"step {step.number} has a global batch of {step.global_batch}, the job one of "
                f"{job.global_batch}; give the job that was run, or the part of the log that is of it",
            )
    times = [_step_time_s(step, job, layout) for step in log.steps]
    steady = _steady(times, path)
    return SiteRun(
        source=log.framework,
        step_times_s=tuple(steady),
        left_out=len(times) - len(steady),
        phases_s=_phases(log),
    )


def _phases(log: TrainingLog) -> tuple[tuple[str, float], ...]:
    names = dict.fromkeys(name for step in log.steps for name in step.phases_s)
    return tuple(
        (name, float(np.median([step.phases_s[name] for step in log.steps if name in step.phases_s])))
        for name in names
    )


def launched_run(file: SiteFile, job: Job, layout: Layout, *, output: str = "") -> SiteRun:
    """Return the steady step of a launched job.

    Parameters
    ----------
    file
        Its record.
    job
        What was run.
    layout
        How it was cut, its data degree filled.
    output
        What it printed, in which some frameworks tell the times of phases.

    Raises
    ------
    DocumentError
        If it is invalid, of another job, or holds too few steps.
    """
    run = parse_launch_record(file.text, path=file.path)
    check_same_job(run, file.path, job, layout)
    verdict, reason = run.hindrance
    if verdict:
        raise _refused(file.path, f"is not used ({verdict}): {reason}")
    steady = tuple(_steady(run.step_times_s, file.path))
    left_out = len(run.step_times_s) - len(steady)
    told = parse_training_log(output) if is_training_log(output) else None
    return SiteRun(
        source="linkwise launch" if told is None else told.framework,
        step_times_s=steady,
        left_out=left_out,
        phases_s=() if told is None else _phases(told),
    )


def check_same_job(run: LaunchedRun, path: str, job: Job, layout: Layout) -> None:
    """Refuse the record of another job than the one that is named.

    Parameters
    ----------
    run
        What the record tells.
    path
        The record, for messages.
    job, layout
        What is named, and how it is cut.

    Raises
    ------
    DocumentError
        If it had other ranks, or another batch.
    """
    ranks = layout.model_parallel * (layout.data or 1)
    if run.ranks != ranks:
        raise _refused(
            path, f"is of {run.ranks} ranks, the layout of {ranks}; name the job that was launched"
        )
    if run.tokens_per_step != job.tokens_per_step:
        raise _refused(
            path,
            f"is of a job of {run.tokens_per_step:,} tokens a step, this one has {job.tokens_per_step:,}; "
            "name the job that was launched",
        )


def _steady(times: Sequence[float], path: str) -> Sequence[float]:
    """Return the steps that count: without the first, which compile, allocate and connect."""
    first = max(int(WARM_UP * len(times)), min(3, len(times) - LEAST_STEPS))
    steady = times[max(first, 0) :]
    if len(steady) < LEAST_STEPS:
        raise _refused(path, f"holds {len(times)} steps; at least {LEAST_STEPS} after the first are needed")
    return steady


def _step_time_s(step: LoggedStep, job: Job, layout: Layout) -> float:
    gpus = layout.model_parallel * (layout.data or 1)
    return step.seconds(sequences=job.global_batch, tokens_per_gpu=job.tokens_per_step / gpus)


def _refused(path: str, message: str) -> InputError:
    return DocumentError([Fault(path=path, message=message)])
