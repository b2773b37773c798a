"""What `linkwise explain --against` does: a job beside its estimate, a bench beside the model."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from linkwise.errors import ExitCode, InputError

if TYPE_CHECKING:
    from linkwise.calibrate.site_files import SiteFile
    from linkwise.cluster import Cluster
    from linkwise.estimate import Estimate
    from linkwise.job import Job
    from linkwise.report.against_bench import BenchAgainstResult
    from linkwise.report.against_result import AgainstResult
    from linkwise.report.results import ExplainResult

__all__ = ["against_bench", "against_run", "is_of_bench", "measured_file"]

_CODES = {"slower": ExitCode.AGAINST, "invalid": ExitCode.AGAINST, "cannot tell": ExitCode.INCONCLUSIVE}


def measured_file(record: str) -> SiteFile:
    """Return what --against names, read.

    Parameters
    ----------
    record
        A file, or a run folder.
    """
    from linkwise.calibrate.site_files import read_site_file

    return read_site_file(record)


def is_of_bench(file: SiteFile) -> bool:
    """Return whether a file is a record of a bench.

    Parameters
    ----------
    file
        What --against names.
    """
    from linkwise.calibrate.site_files import SiteFileKind

    return file.kind is SiteFileKind.BENCH


def against_run(
    job: Job,
    cluster: Cluster,
    file: SiteFile,
    *,
    form: str,
    explained: Callable[[Job, Cluster], ExplainResult],
    estimated: Callable[[Job, Cluster], Estimate],
) -> int:
    """Print a measured run beside the estimate of its layout, and return the exit code.

    Parameters
    ----------
    job, cluster
        What was run on what.
    file
        What --against names.
    form
        ``table`` or ``json``.
    explained, estimated
        Explain, and estimate, a job on a cluster.
    """
    from linkwise.calibrate.site_run import run_cluster

    used, placed = run_cluster(job, cluster)
    asked = replace(job, layout=placed)
    compared = _compared(asked, file, estimated(asked, used))
    result = explained(asked, used).model_copy(update={"against": compared})
    if form == "json":
        from linkwise.report.results import published_json

        click.echo(published_json(result))
    else:
        from linkwise.report.against_result import print_against
        from linkwise.report.plan_table import job_and_cluster_lines
        from linkwise.report.tables import console_for, print_line, wrapped

        console = console_for(sys.stdout)
        for line in job_and_cluster_lines(result.job, result.cluster):
            print_line(console, wrapped(line, width=console.width))
        print_line(console)
        print_against(compared, console)
    return _CODES.get(compared.verdict, ExitCode.DONE)


def _compared(job: Job, file: SiteFile, estimate: Estimate) -> AgainstResult:
    from linkwise.calibrate.against import against
    from linkwise.calibrate.site_files import SiteFileKind
    from linkwise.calibrate.site_run import read_site_run
    from linkwise.report.against_result import against_result

    if file.kind is SiteFileKind.LAUNCH:
        return _of_launch(job, file, estimate)
    if job.layout is None:
        raise InputError(f"{file.path}: the layout that ran is not known; give one as --layout")
    return against_result(against(estimate, read_site_run(file, job, job.layout)), record=file.path)


def _of_launch(job: Job, file: SiteFile, estimate: Estimate) -> AgainstResult:
    """Return a launched run beside its estimate; one that is invalid or on CPUs is said to be so."""
    from linkwise.calibrate.against import against
    from linkwise.calibrate.site_run import check_same_job, launched_run
    from linkwise.readers.launch_record import parse_launch_record
    from linkwise.report.against_result import against_result, not_compared

    run = parse_launch_record(file.text, path=file.path)
    check_same_job(run, file.path, job, estimate.layout)
    verdict, reason = run.hindrance
    if verdict:
        return not_compared(estimate, run, record=file.path, verdict=verdict, reason=reason)
    found = against(estimate, launched_run(file, job, estimate.layout, output=_output_of(file.path)))
    if found.is_slower and run.findings:
        told = f"the doctor found {', '.join(run.findings[:3])} in its logs, which it explains"
        found = replace(found, reason=f"{told}; {found.reason}" if found.reason else told)
    return against_result(found, record=file.path)


def _output_of(path: str) -> str:
    """Return the output beside a record, in which frameworks print times of phases; empty without one."""
    target = Path(path)
    output = (target if target.is_dir() else target.parent) / "output.log"
    try:
        return output.read_text(encoding="utf-8", errors="replace") if path != "<stdin>" else ""
    except OSError:
        return ""


def against_bench(
    file: SiteFile,
    job: str | None,
    cluster: str | None,
    cluster_option: str | None,
    options: Mapping[str, object],
    *,
    form: str,
) -> int:
    """Print a record of a bench beside the model of a cluster, and return the exit code.

    Parameters
    ----------
    file
        What --against names.
    job, cluster, cluster_option
        As given; one of them alone names the cluster.
    options
        The other options, none of which has an effect but --calibration.
    form
        ``table`` or ``json``.

    Raises
    ------
    InputError
        When a job is named, or no cluster.
    """
    from linkwise.readers.bench_record import bench_kind

    named = [each for each in (job, cluster, cluster_option) if each is not None]
    idle = [name for name, value in options.items() if value is not None and name != "calibration"]
    if len(named) != 1 or idle:
        what = f"--{idle[0].replace('_', '-')} has" if idle else "a JOB has" if named else "nothing has"
        raise InputError(
            f"{file.path} is a record of linkwise bench, which is of no job, so {what} an effect: name the "
            "CLUSTER alone, as in linkwise explain dgx-h100:1 --against bench.json"
        )
    there = _cluster(named[0], options.get("calibration"))
    kind = bench_kind(file.text, path=file.path)
    result = _training(file, there) if kind == "training" else _collectives(file, there)
    if form == "json":
        from linkwise.report.results import published_json

        click.echo(published_json(result))
    else:
        from linkwise.report.against_bench import print_bench_against
        from linkwise.report.tables import console_for

        print_bench_against(result, console_for(sys.stdout))
    return _CODES.get(result.verdict, ExitCode.DONE)


def _cluster(where: str, calibration: object) -> Cluster:
    from linkwise.cli.job_and_cluster import calibrated_clusters
    from linkwise.cluster import load_cluster

    there = load_cluster(where)
    if isinstance(calibration, str):
        (there,) = calibrated_clusters((there,), calibration, others=(where,))
    return there


def _collectives(file: SiteFile, cluster: Cluster) -> BenchAgainstResult:
    from linkwise.bench.against import collectives_against, hindrance
    from linkwise.readers.bench_record import parse_bench_record
    from linkwise.report.against_bench import collectives_against_result, not_compared_result

    record = parse_bench_record(file.text, path=file.path)
    verdict, reason = hindrance(record)
    if verdict:
        return not_compared_result(cluster.name, file.path, "collectives", verdict=verdict, reason=reason)
    found = collectives_against(record, cluster)
    return collectives_against_result(found, cluster=cluster.name, record=file.path, ranks=record.ranks)


def _training(file: SiteFile, cluster: Cluster) -> BenchAgainstResult:
    from linkwise.bench.against import hindrance, training_against
    from linkwise.readers.bench_record import parse_bench_training
    from linkwise.report.against_bench import not_compared_result, training_against_result

    record = parse_bench_training(file.text, path=file.path)
    verdict, reason = hindrance(record)
    if verdict:
        return not_compared_result(cluster.name, file.path, "training", verdict=verdict, reason=reason)
    return training_against_result(training_against(record, cluster), cluster=cluster.name, record=file.path)
