"""`linkwise env`: the NCCL settings that a cluster needs, or what is wrong with those that are given."""

from __future__ import annotations

import csv
import os
import sys
from typing import TYPE_CHECKING

import click

from linkwise.errors import DocumentError, ExitCode, Fault, InputError

if TYPE_CHECKING:
    from linkwise.nccl.variables import Release
    from linkwise.readers.settings_file import SettingsFile
    from linkwise.report.env_result import EnvResult
    from linkwise.settings.node import NodeFacts

__all__ = ["env"]

_MOST_FILES = 100


@click.command()
@click.argument("targets", nargs=-1, metavar="CLUSTER [JOB] | --check [FILE]...")
@click.option("--check", "is_check", is_flag=True, help="Judge FILEs; the environment if none is given.")
@click.option("--cluster", metavar="CLUSTER", help="With --check: where the settings apply.")
@click.option(
    "--nccl", metavar="RELEASE", help="The release of NCCL, such as 2.27; the newest known if left out."
)
@click.option("--node", metavar="PATH", help="What 'linkwise collect' wrote on a node, or 'ip link' printed.")
@click.option("--dscp", type=click.IntRange(0, 63), help="RoCE: the DSCP that the switches keep lossless.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json", "csv", "shell", "conf"]),
    default="table",
    show_default=True,
    help="shell and conf write settings as exports and as an nccl.conf.",
)
def env(
    *,
    targets: tuple[str, ...],
    is_check: bool,
    cluster: str | None,
    nccl: str | None,
    node: str | None,
    dscp: int | None,
    form: str,
) -> int:
    """Write the NCCL settings that CLUSTER and JOB need, as few as possible, each with reason and source.

    With --check, say what is wrong with an environment, an nccl.conf, a launch script (torchrun, deepspeed,
    srun, mpirun, sbatch) or a Kubernetes manifest. - is standard input. Values of variables that have nothing
    to do with communication are neither kept nor printed.

    Exit codes: 0 done, 1 a harmful setting, 2 wrong input, 3 nothing in a file that can be judged.

    \b
    linkwise env dgx-h100:32
    linkwise env cluster.yaml job.yaml --nccl 2.27 --format shell
    env | linkwise env --check -
    linkwise env --check train.sbatch --cluster dgx-h100:32 --nccl 2.27
    """  # noqa: D301 (click reads \b as: do not wrap)
    from linkwise.cli.node_facts import facts_at
    from linkwise.nccl.variables import NEWEST, parse_release

    _refuse_without_effect(targets, is_check=is_check, cluster=cluster, dscp=dscp, form=form)
    release = NEWEST if nccl is None else parse_release(nccl)
    facts = None if node is None else facts_at(node)
    if is_check:
        return _check(targets, cluster, release, facts, is_assumed=nccl is None, form=form)
    return _recommend(targets, release, facts, dscp, is_assumed=nccl is None, form=form)


def _refuse_without_effect(
    targets: tuple[str, ...], *, is_check: bool, cluster: str | None, dscp: int | None, form: str
) -> None:
    if is_check:
        if dscp is not None:
            raise InputError("--dscp has no effect with --check: what is set is judged; leave it out")
        if form in ("shell", "conf"):
            raise InputError(f"--format {form} writes settings; with --check choose table, json or csv")
        if len(targets) > _MOST_FILES:
            raise InputError(f"{len(targets)} files are more than {_MOST_FILES}; check them in several runs")
        if (*targets, cluster).count("-") > 1:
            raise InputError("standard input can be read once; give '-' once")
        return
    if cluster is not None:
        raise InputError("--cluster has no effect without --check; give the cluster as the argument CLUSTER")
    if not targets:
        raise InputError("no CLUSTER; give a file or SYSTEM:NODES, as in dgx-h100:32, or --check")
    if len(targets) > 2:
        raise InputError(f"{targets[2]!r} is one argument too many: give CLUSTER and JOB, or --check FILE...")


def _recommend(
    targets: tuple[str, ...],
    release: Release,
    node: NodeFacts | None,
    dscp: int | None,
    *,
    is_assumed: bool,
    form: str,
) -> int:
    from linkwise.cluster import load_cluster
    from linkwise.nccl.variables import release_text
    from linkwise.report.env_result import recommendation_result
    from linkwise.settings.recommended import recommended

    there = load_cluster(targets[0])
    job = None
    if len(targets) > 1:
        from linkwise.job import read_job

        job = read_job(targets[1])
    protocol = there.fabric.link.protocol if there.fabric.link is not None else "nothing"
    if dscp is not None and protocol != "roce":
        raise InputError(f"--dscp has no effect: the fabric of {there.name} speaks {protocol}, not roce")
    found = recommended(there, job, release=release, node=node, dscp=dscp)
    result = recommendation_result(
        found, cluster=there.name, nccl=release_text(release), is_assumed=is_assumed
    )
    _print(result, form)
    return ExitCode.DONE


def _check(
    targets: tuple[str, ...],
    cluster: str | None,
    release: Release,
    node: NodeFacts | None,
    *,
    is_assumed: bool,
    form: str,
) -> int:
    from linkwise.cli.node_facts import own_facts
    from linkwise.cluster import load_cluster
    from linkwise.nccl.variables import release_text
    from linkwise.report.env_result import check_result
    from linkwise.settings.checking import check
    from linkwise.settings.finding import Severity, Subject

    there = None if cluster is None else load_cluster(cluster)
    files = _files(targets) if targets else (_own_environment(),)
    if not targets and node is None:
        node = own_facts()
    subject = Subject(files=files, release=release, cluster=there, node=node)
    findings = check(subject)
    _print(
        check_result(subject, findings, nccl=release_text(release), is_assumed=is_assumed),
        form,
    )
    if any(each.severity is Severity.HARMFUL for each in findings):
        return ExitCode.AGAINST
    return ExitCode.INCONCLUSIVE if _is_empty(files) else ExitCode.DONE


def _is_empty(files: tuple[SettingsFile, ...]) -> bool:
    """Return whether no file has anything to judge; an environment without settings is a healthy one."""
    from linkwise.readers.settings_file import SettingsKind

    kinds = (SettingsKind.ENVIRONMENT, SettingsKind.NCCL_CONF)
    if any(each.assignments or each.launches or each.kind in kinds for each in files):
        return False
    click.echo("linkwise: no setting and no launch in it that can be judged", err=True)
    return True


def _files(paths: tuple[str, ...]) -> tuple[SettingsFile, ...]:
    """Return what all files hold; the faults of all that cannot be read together."""
    from linkwise.documents import read_text
    from linkwise.readers.settings_file import LARGEST_BYTES, read_settings

    files: list[SettingsFile] = []
    faults: list[Fault] = []
    for path in dict.fromkeys(paths):
        try:
            text = read_text(path, largest_bytes=LARGEST_BYTES)
            files.append(read_settings(text, path="<stdin>" if path == "-" else path))
        except DocumentError as error:
            faults += error.faults
    if faults:
        raise DocumentError(faults)
    return tuple(files)


def _own_environment() -> SettingsFile:
    from linkwise.readers.environment import assignments_of_environment
    from linkwise.readers.settings_file import SettingsFile, SettingsKind

    return SettingsFile(
        path=None, kind=SettingsKind.ENVIRONMENT, assignments=assignments_of_environment(os.environ)
    )


def _print(result: EnvResult, form: str) -> None:
    if form == "json":
        from linkwise.report.results import published_json

        click.echo(published_json(result))
    elif form == "csv":
        from linkwise.report.env_result import env_csv_rows

        csv.writer(sys.stdout, lineterminator="\n").writerows(env_csv_rows(result))
    elif form in ("shell", "conf"):
        from linkwise.report.env_text import conf_text, shell_text

        click.echo(shell_text(result) if form == "shell" else conf_text(result), nl=False)
    else:
        from linkwise.report.env_text import print_check, print_settings
        from linkwise.report.tables import console_for

        console = console_for(sys.stdout)
        (print_settings if result.mode == "recommend" else print_check)(result, console)
