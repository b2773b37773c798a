"""`linkwise doctor`: what a job is really running on, what is wrong, and how to mend it."""

from __future__ import annotations

import click

from linkwise.errors import ExitCode

__all__ = ["doctor"]


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
def doctor(*, files: tuple[str, ...], form: str) -> int:
    """Say what interconnect a job uses, what is wrong with it, the cause and the fix.

    FILE is anything the job or its hosts printed, in any mix, plain or gzip, or a folder of it: logs with
    NCCL_DEBUG=WARN or INFO and any launcher's prefixes, errors of PyTorch, tables of nccl-tests, nvidia-smi
    topo -m, NCCL's topology XML, dmesg, ibstat, lspci -vvv, ulimit -a; outputs of commands may stand in the
    log under
    their prompt. - is standard input.

    Exit codes: 0 healthy, 1 broken or slow, 2 wrong use or input, 3 cannot tell.

    \b
    linkwise doctor train.log
    linkwise doctor logs/ topo.txt --format json
    """  # noqa: D301 (click reads \b as: do not wrap)
    from linkwise.diagnose.doctor import diagnose
    from linkwise.readers.job_log.reading import read_job_logs
    from linkwise.report.doctor import doctor_result

    result = doctor_result(diagnose(read_job_logs(files)))
    for each in result.unread:
        click.echo(f"linkwise: {each}; left out", err=True)
    if form == "json":
        from linkwise.report.results import published_json

        click.echo(published_json(result))
    else:
        from linkwise.report.doctor_table import print_doctor
        from linkwise.report.tables import console_for

        print_doctor(result, console_for())
    codes = {"healthy": ExitCode.DONE, "cannot_tell": ExitCode.INCONCLUSIVE}
    return codes.get(result.verdict, ExitCode.AGAINST)
