"""A whole calibration of a site: its files as observations, the fit, what it gains, what to measure next."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from linkwise.calibrate.observation import Observation, collective_observation, step_observation
from linkwise.calibrate.site_files import SiteFile, SiteFileKind
from linkwise.calibrate.site_fit import (
    HeldOut,
    NextMeasurement,
    SiteFit,
    fit_site,
    held_out,
    next_measurements,
)
from linkwise.calibrate.site_run import (
    layout_words,
    read_site_run,
    run_cluster,
    run_columns,
    run_observations,
)
from linkwise.cluster.calibration import Calibration, MeasuredFile, hardware_of
from linkwise.errors import DocumentError, Fault, InputError, UnknownName
from linkwise.estimate.constants import constants_digest
from linkwise.network.cluster_setting import setting_of
from linkwise.network.measured_collective import measured_collective
from linkwise.network.setting import OPERATIONS, Launch
from linkwise.readers.bench_record import BenchRecord, parse_bench_record
from linkwise.readers.nccl_tests import parse_nccl_tests

if TYPE_CHECKING:
    from linkwise.cluster import Cluster
    from linkwise.job import Job
    from linkwise.layout import Layout

__all__ = ["SiteCalibration", "SiteMeasurement", "calibrate_site"]

_PROGRAMS = {"alltoall": "all_to_all", "sendrecv": "send_recv"}
_SWEEP_BYTES = 2.0 ** np.arange(10, 35)
"""Sizes of a run of nccl-tests that is advised: 1 KiB to 16 GiB [bytes]."""
_TARGET_BYTES = 2.0 ** np.arange(20, 31, 2)
"""Sizes that are to be predicted where no job is given: 1 MiB to 1 GiB [bytes]."""
LEAST_SAMPLES = 5
"""Samples of a size without which a bench is not used [1]."""
ALTERNATIVES = 4
"""Other layouts of a job that are to be predicted, and advised to be run [1]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteMeasurement:
    """One file, and the job it is of.

    Attributes
    ----------
    file
        What was measured.
    job
        What was run; ``None`` for collectives.
    """

    file: SiteFile
    job: Job | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SiteCalibration:
    """A calibration and what is known of it.

    Attributes
    ----------
    calibration
        What is laid over the model.
    fit
        Factors, residuals, uncertainty.
    held_out
        Errors of what a fit has not seen; ``None`` with one file.
    advice
        What to measure next, best first; empty where nothing would tell more.
    """

    calibration: Calibration
    fit: SiteFit
    held_out: HeldOut | None
    advice: tuple[NextMeasurement, ...]


def calibrate_site(
    cluster: Cluster, measurements: Sequence[SiteMeasurement], *, today: dt.date
) -> SiteCalibration:
    """Return what the files of a site say of the model.

    Parameters
    ----------
    cluster
        What was measured.
    measurements
        The files, at least one.
    today
        The day that is written into the calibration.

    Raises
    ------
    InputError
        If a file cannot be used, with all such files.
    """
    observations: list[Observation] = []
    faults: list[Fault] = []
    for each in measurements:
        try:
            observations += _observations(each, cluster)
        except DocumentError as error:
            faults += error.faults
        except InputError as error:
            faults.append(Fault(path=each.file.path, message=str(error)))
    if faults:
        raise DocumentError(faults)
    fit = fit_site(observations)
    calibration = Calibration(
        made=today,
        hardware=hardware_of(cluster),
        constants=constants_digest(),
        factors=fit.factors,
        files=tuple(
            MeasuredFile(name=each.file.name, sha256=each.file.sha256, kind=str(each.file.kind))
            for each in measurements
        ),
    )
    jobs = [each.job for each in measurements if each.job is not None]
    candidates, targets = _ahead(cluster, jobs)
    return SiteCalibration(
        calibration=calibration,
        fit=fit,
        held_out=held_out(observations),
        advice=next_measurements(observations, candidates=candidates, targets=targets),
    )


def _observations(one: SiteMeasurement, cluster: Cluster) -> Iterator[Observation]:
    if one.job is None:
        if one.file.kind is SiteFileKind.BENCH:
            yield from _benched(one.file, cluster)
            return
        if one.file.kind is not SiteFileKind.NCCL_TESTS:
            message = (
                f"holds a {one.file.kind}: say which job it is of, with its layout, "
                f"as JOB.yaml={one.file.name}"
            )
            raise DocumentError([Fault(path=one.file.path, message=message)])
        yield _collective(one.file, cluster)
        return
    used, layout = run_cluster(one.job, cluster)
    run = read_site_run(one.file, one.job, layout)
    label = f"{one.file.name}: {layout_words(layout)}"
    yield from run_observations(run, one.job, used, layout, label=label)


def _collective(file: SiteFile, cluster: Cluster) -> Observation:
    run = parse_nccl_tests(file.text, path=file.path)
    name = _PROGRAMS.get(run.program or "", run.program or "")
    if name not in OPERATIONS:
        what = (
            f"is of {run.program}, which is not modelled"
            if run.program
            else "does not say of which collective"
        )
        todo = "keep the line of the program, such as ./build/all_reduce_perf -b 8 -e 16G, in the log"
        raise DocumentError([Fault(path=file.path, message=f"{what}; {todo}")])
    measured = measured_collective(name, replace(cluster, calibration=None), run)
    ranks = measured.setting.group.ranks
    return collective_observation(
        f"{file.name}: {name} on {ranks} GPUs",
        name,
        measured.setting,
        measured.size_bytes,
        measured_s=measured.time_s,
    )


def _benched(file: SiteFile, cluster: Cluster) -> Iterator[Observation]:
    """Yield the collectives of a bench; one that ended badly or computed wrongly is not used."""
    record = parse_bench_record(file.text, path=file.path)
    _check_bench(record, file.path)
    launch = Launch.FRAMEWORK if record.backend == "nccl" else Launch.OWN_THREADS
    setting = replace(setting_of(replace(cluster, calibration=None), gpus=record.ranks), launch=launch)
    for operation in dict.fromkeys(row.operation for row in record.rows):
        rows = [row for row in record.rows if row.operation == operation]
        if operation not in OPERATIONS:
            raise DocumentError([Fault(path=file.path, message=str(_unknown(operation)))])
        sizes = np.array([row.size_bytes for row in rows])
        yield collective_observation(
            f"{file.name}: {operation} on {record.ranks} GPUs",
            operation,
            setting,
            sizes,
            measured_s=np.array([float(np.median(row.samples_s)) for row in rows]),
            unit=file.name,
        )


def _check_bench(record: BenchRecord, path: str) -> None:
    bad = [outcome for outcome in record.outcomes if outcome != "done"]
    if bad or not record.outcomes:
        ended = f"ended as {bad[0]}" if bad else "names no run"
        message = f"{ended}; a run that did not end well is not used"
    elif record.unlike:
        message = f"is of a run that is invalid ({record.unlike[0]}); it is not used"
    elif any(row.wrong for row in record.rows):
        message = "has wrong results; times of a collective that computes wrongly are not used"
    elif record.backend not in ("nccl", "nccl-tests"):
        message = f"is of {record.backend}, which says nothing of GPUs; bench with NCCL"
    elif any(len(row.samples_s) < LEAST_SAMPLES for row in record.rows):
        message = f"has sizes with fewer than {LEAST_SAMPLES} samples; repeat each at least so often"
    else:
        return
    raise DocumentError([Fault(path=path, message=message)])


def _unknown(operation: str) -> UnknownName:
    return UnknownName.among(OPERATIONS, kind="collective", given=operation)


def _ahead(cluster: Cluster, jobs: Sequence[Job]) -> tuple[list[Observation], list[Observation]]:
    """Return what could be measured, and what is to be predicted."""
    candidates = list(_sweeps(cluster))
    targets = [] if jobs else [_sweep(cluster, cluster.gpus, _TARGET_BYTES)] if cluster.gpus > 1 else []
    for job in jobs:
        used, layout = run_cluster(job, cluster)
        targets.append(_step(job, used, layout))
        for other in _alternatives(job, cluster):
            step = _step(other, *run_cluster(other, cluster))
            if step.label not in {each.label for each in targets}:
                targets.append(step)
                candidates.append(step)
    return candidates, targets or candidates


def _sweeps(cluster: Cluster) -> Iterator[Observation]:
    domain = max(cluster.nvlink_domain_gpus, cluster.gpus_per_node)
    for gpus in dict.fromkeys((min(domain, cluster.gpus), min(2 * domain, cluster.gpus), cluster.gpus)):
        if gpus > 1:
            yield _sweep(cluster, gpus, _SWEEP_BYTES)


def _sweep(cluster: Cluster, gpus: int, size_bytes: np.ndarray) -> Observation:
    setting = setting_of(replace(cluster, calibration=None), gpus=gpus)
    label = f"all_reduce_perf on {gpus} GPUs, 1 KiB to 16 GiB"
    return collective_observation(label, "all_reduce", setting, size_bytes)


def _step(job: Job, cluster: Cluster, layout: Layout) -> Observation:
    label = f"{job.model.name} {job.precision}, {cluster.gpus} GPUs: {layout_words(layout)}"
    return step_observation(label, run_columns(job, cluster, layout), precision=str(job.precision))


def _alternatives(job: Job, cluster: Cluster) -> Iterator[Job]:
    """Yield a job with the fastest other layouts for the whole cluster that fit."""
    from linkwise.search import plan

    try:
        found = plan(replace(job, layout=None), replace(cluster, calibration=None), top=ALTERNATIVES)
    except InputError:
        return
    for estimate in found.layouts:
        yield replace(job, layout=estimate.layout)
