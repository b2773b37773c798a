"""`linkwise calibrate`: the model fitted to what was measured on a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from linkwise.cli.files import check_target, write_whole
from linkwise.errors import DocumentError, ExitCode, Fault, InputError

if TYPE_CHECKING:
    from linkwise.calibrate.site import SiteCalibration, SiteMeasurement
    from linkwise.report.calibrate_result import CalibrateResult

__all__ = ["calibrate"]


@click.command()
@click.argument("cluster")
@click.argument("files", nargs=-1, required=True, metavar="[JOB=]FILE...")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="OVERLAY.yaml",
    help="Write the calibration, for --calibration of plan, explain, compare and collective.",
)
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
def calibrate(*, cluster: str, files: tuple[str, ...], output: Path | None, form: str) -> int:
    """Fit the model to what was measured on CLUSTER.

    FILE is what nccl-tests (text or JSON) or linkwise bench (JSON) printed. With the job it is of before it,
    JOB=FILE, it is a log of Megatron-LM, NeMo, torchtitan or DeepSpeed that tells times of steps, or a trace
    of PyTorch's profiler (JSON, .gz too). JOB is a job/1 document whose layout is fixed; with data: it may
    have taken fewer GPUs than CLUSTER has.

    Printed are factors on what the model says of GPUs, NVLink and network, how well each file is met, how
    well files are predicted by a fit on the others, and which measurement would tell most next.

    \b
    linkwise calibrate dgx-h100:4 all_reduce.log all_gather.log -o overlay.yaml
    linkwise calibrate cluster.yaml tp8.yaml=run1.log tp4.yaml=run2.log -o overlay.yaml
    linkwise plan job.yaml cluster.yaml --calibration overlay.yaml
    """  # noqa: D301 (click reads \b as: do not wrap)
    from linkwise.calibrate.site import calibrate_site
    from linkwise.cluster import load_cluster
    from linkwise.report.calibrate_result import calibrate_result

    if output is not None:
        check_target("--output", output)
    places = [place for each in files for place in _split(each) if place is not None]
    if [cluster, *places].count("-") > 1:
        raise InputError("'-' stands twice, but standard input can be read once; name files for the others")
    there = load_cluster(cluster)
    today = click.get_current_context().obj
    found = calibrate_site(there, _measurements(files), today=today())
    if output is not None:
        write_whole("--output", output, _text(found))
        click.echo(f"wrote {output}", err=True)
    _print(calibrate_result(found, cluster=there.name), form)
    return ExitCode.DONE


def _split(text: str) -> tuple[str | None, str]:
    """Return job and file of ``JOB=FILE``; a file whose own name has the sign is none."""
    job, sign, file = text.partition("=")
    if not sign or Path(text).exists():
        return None, text
    if not job or not file:
        raise InputError(f"{text!r} is not JOB=FILE, such as job.yaml=train.log")
    return job, file


def _measurements(files: tuple[str, ...]) -> list[SiteMeasurement]:
    """Return the files with their jobs, or the faults of all."""
    from linkwise.calibrate.site import SiteMeasurement
    from linkwise.calibrate.site_files import read_site_file
    from linkwise.job import read_job

    found: list[SiteMeasurement] = []
    faults: list[Fault] = []
    for text in files:
        job, file = _split(text)
        try:
            read = None if job is None else read_job(job)
            found.append(SiteMeasurement(file=read_site_file(file), job=read))
        except DocumentError as error:
            faults += error.faults
        except InputError as error:
            faults.append(Fault(path=job or file, message=str(error)))
    if faults:
        raise DocumentError(dict.fromkeys(faults))
    return found


def _text(found: SiteCalibration) -> str:
    from linkwise.cluster.calibration_document import calibration_text

    return calibration_text(found.calibration, comments={})


def _print(result: CalibrateResult, form: str) -> None:
    if form == "json":
        from linkwise.report.results import published_json

        click.echo(published_json(result))
        return
    from linkwise.report.calibrate_result import print_calibration
    from linkwise.report.tables import console_for

    print_calibration(result, console_for())
