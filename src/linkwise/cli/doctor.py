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
@click.option("--baseline", metavar="GOOD", help="Log or folder of a good run: say what differs from it.")
@click.option("--follow", is_flag=True, help="Follow the logs of a running job, and tell what is found.")
@click.option(
    "--until-quiet", metavar="TIME", help="With --follow: end when no log grew for so long, such as '5 min'."
)
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
def doctor(
    *,
    files: tuple[str, ...],
    cluster: str | None,
    job: str | None,
    baseline: str | None,
    follow: bool,
    until_quiet: str | None,
    form: str,
) -> int:
    """Say what interconnect a job uses, what is wrong with it, the cause and the fix.

    FILE is anything the job or its hosts printed, in any mix, plain or gzip, or a folder of it: logs with
    NCCL_DEBUG=WARN or INFO and any launcher's prefixes, errors of PyTorch, dumps of its Flight Recorder,
    tables of nccl-tests, nvidia-smi topo -m, NCCL's topology XML, dmesg, ibstat, lspci -vvv, ulimit -a;
    outputs of commands may stand in the log under their prompt. - is standard input.

    With --cluster it says what is missing against what there is, and what that costs; with --baseline what
    differs from a good run. With --follow it reads on as the logs grow, through rotation and truncation,
    tells each finding within a second, and ends with the verdict at Ctrl-C, SIGTERM or the end of standard
    input.

    Exit codes: 0 healthy, 1 broken or slow, 2 wrong use or input, 3 cannot tell.

    \b
    linkwise doctor train.log
    linkwise doctor logs/ topo.txt --format json
    linkwise doctor train.log --cluster dgx-h100:4
    linkwise doctor today.log --baseline yesterday.log
    linkwise doctor --follow logs/ --until-quiet '10 min'
    """  # noqa: D301 (click reads \b as: do not wrap)
    from linkwise.diagnose.doctor import diagnose
    from linkwise.readers.job_log.lines import printable
    from linkwise.readers.job_log.reading import read_job_logs
    from linkwise.report.doctor import doctor_result

    there, asked = _cluster_and_job(files, cluster, job, baseline)
    good = None if baseline is None else read_job_logs([baseline])
    if follow:
        from linkwise.cli.doctor_follow import follow_job

        found = follow_job(
            files,
            judge=lambda log: diagnose(log, cluster=there),
            judge_at_end=lambda log: diagnose(log, cluster=there, job=asked, baseline=good),
            form=form,
            until_quiet_s=_duration_s(until_quiet),
        )
    elif until_quiet is not None:
        raise InputError("--until-quiet has no effect without --follow; give both, or leave it out")
    else:
        found = diagnose(read_job_logs(files), cluster=there, job=asked, baseline=good)
    result = doctor_result(found)
    for each in result.unread:
        click.echo(printable(f"linkwise: {each}; left out"), err=True)
    if form == "json":
        from linkwise.report.results import published_json

        # A line for each change, and the answer as the last one.
        click.echo(result.model_dump_json(by_alias=True) if follow else published_json(result))
    else:
        from linkwise.report.doctor_table import print_doctor
        from linkwise.report.tables import console_for

        print_doctor(result, console_for())
    codes = {"healthy": ExitCode.DONE, "cannot_tell": ExitCode.INCONCLUSIVE}
    return codes.get(result.verdict, ExitCode.AGAINST)


def _duration_s(text: str | None) -> float | None:
    if text is None:
        return None
    from linkwise.units import parse

    time_s = parse(text, "s")
    if time_s <= 0:
        raise InputError(f"--until-quiet {text}: write a time above zero, such as '5 min'")
    return time_s


def _cluster_and_job(
    files: tuple[str, ...], cluster: str | None, job: str | None, baseline: str | None
) -> tuple[Cluster | None, Job | None]:
    if job is not None and cluster is None:
        raise InputError("--job has no effect without --cluster; give the cluster, or leave --job out")
    if [*files, cluster, job, baseline].count("-") > 1:
        raise InputError("'-' is given twice, but standard input can be read once; name files")
    if cluster is None:
        return None, None
    from linkwise.cluster import load_cluster

    there = load_cluster(cluster)
    if job is None:
        return there, None
    from linkwise.job import read_job

    return there, read_job(job)
