"""`linkwise doctor`: what a job is really running on, what is wrong, and how to mend it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from linkwise.errors import ExitCode, InputError

if TYPE_CHECKING:
    from linkwise.cluster import Cluster
    from linkwise.job import Job

__all__ = ["doctor"]


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--cluster", metavar="CLUSTER", help="What the job should run on: a file, or SYSTEM:NODES.")
@click.option(
    "--job", metavar="JOB", help="What is run: a job/1 document; with --cluster, for the step time."
)
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
def doctor(*, files: tuple[str, ...], cluster: str | None, job: str | None, form: str) -> int:
    """Say what interconnect a job uses, what is wrong with it, the cause and the fix.

    FILE is anything the job or its hosts printed, in any mix, plain or gzip, or a folder of it: logs with
    NCCL_DEBUG=WARN or INFO and any launcher's prefixes, errors of PyTorch, tables of nccl-tests, nvidia-smi
    topo -m, NCCL's topology XML, dmesg, ibstat, lspci -vvv, ulimit -a; outputs of commands may stand in the
    log under
    their prompt. - is standard input. With --cluster it says what is missing against what there is, and what
    that costs.

    Exit codes: 0 healthy, 1 broken or slow, 2 wrong use or input, 3 cannot tell.

    \b
    linkwise doctor train.log
    linkwise doctor logs/ topo.txt --format json
    linkwise doctor train.log --cluster dgx-h100:4
    """  # noqa: D301 (click reads \b as: do not wrap)
    from linkwise.diagnose.doctor import diagnose
    from linkwise.readers.job_log.lines import printable
    from linkwise.readers.job_log.reading import read_job_logs
    from linkwise.report.doctor import doctor_result

    there, asked = _cluster_and_job(files, cluster, job)
    result = doctor_result(diagnose(read_job_logs(files), cluster=there, job=asked))
    for each in result.unread:
        click.echo(printable(f"linkwise: {each}; left out"), err=True)
    if form == "json":
        from linkwise.report.results import published_json

        click.echo(published_json(result))
    else:
        from linkwise.report.doctor_table import print_doctor
        from linkwise.report.tables import console_for

        print_doctor(result, console_for())
    codes = {"healthy": ExitCode.DONE, "cannot_tell": ExitCode.INCONCLUSIVE}
    return codes.get(result.verdict, ExitCode.AGAINST)


def _cluster_and_job(
    files: tuple[str, ...], cluster: str | None, job: str | None
) -> tuple[Cluster | None, Job | None]:
    if job is not None and cluster is None:
        raise InputError("--job has no effect without --cluster; give the cluster, or leave --job out")
    if [*files, cluster, job].count("-") > 1:
        raise InputError("'-' is given twice, but standard input can be read once; name files")
    if cluster is None:
        return None, None
    from linkwise.cluster import load_cluster

    there = load_cluster(cluster)
    if job is None:
        return there, None
    from linkwise.job import read_job

    return there, read_job(job)
