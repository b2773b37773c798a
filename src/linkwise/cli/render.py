"""`linkwise render`: the files that start a job."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from linkwise.cli.job_and_cluster import job_and_cluster_arguments, read_job_and_cluster
from linkwise.cli.numbers import FiniteFloat
from linkwise.cli.rendered_folder import check_folder, write_folder
from linkwise.errors import ExitCode, InputError

if TYPE_CHECKING:
    from linkwise.cluster import Cluster
    from linkwise.job import Job
    from linkwise.report.render_result import RenderResult
    from linkwise.search import Plan

__all__ = ["render"]

_LONGEST_H = 8760
"""A year [h]."""


@click.command()
@click.argument("target", metavar="TARGET")
@job_and_cluster_arguments
@click.option(
    "-o",
    "--output",
    "folder",
    type=click.Path(path_type=Path),
    required=True,
    metavar="DIR",
    help="Folder for the files.",
)
@click.option("--script", metavar="PATH", help="What to start instead of the framework's usual program.")
@click.option(
    "--time-limit",
    type=FiniteFloat(min=0, min_open=True, max=_LONGEST_H),
    metavar="HOURS",
    help="When the job is ended.",
)
@click.option("--image", metavar="IMAGE", help="kubernetes: the container image with your program.")
@click.option("--nic-resource", metavar="NAME", help="kubernetes: the resource by which pods ask for NICs.")
@click.option("--nccl", metavar="RELEASE", help="The release of NCCL, such as 2.27; the newest if left out.")
@click.option("--node", metavar="PATH", help="What 'linkwise collect' wrote on a node: names its NICs.")
@click.option("--dscp", type=click.IntRange(0, 63), help="RoCE: the DSCP that the switches keep lossless.")
@click.option("--force", is_flag=True, help="Replace files that were not rendered, or edited since.")
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
def render(
    *,
    target: str,
    job: str | None,
    cluster: str | None,
    cluster_option: str | None,
    folder: Path,
    time_limit: float | None,
    nccl: str | None,
    node: str | None,
    dscp: int | None,
    force: bool,
    form: str,
    **options: str | None,
) -> int:
    """Write the files that start a job on a cluster, with the layout that JOB fixes or 'plan' finds.

    \b
    TARGET      starts with                  writes
    torchrun    torchrun on every node       start.sh
    slurm       sbatch                       job.sbatch
    kubernetes  kubectl apply                JobSet, TrainJob, PyTorchJob
    megatron    torchrun on every node       arguments of Megatron-LM
    torchtitan  torchrun on every node       TOML of torchtitan 0.2
    deepspeed   torchrun on every node       JSON of DeepSpeed
    ddp         torchrun on every node       a program with PyTorch's DDP

    The first three run the program of the job's framework. README.md in DIR says how to start, how to check,
    and what the files do not say of the plan; the latter is printed too. Exit code 5: no layout fits.

    \b
    linkwise render slurm job.yaml cluster.yaml -o run
    linkwise render torchtitan --model llama-3.1-8b --framework torchtitan --sequence-length 8192 \\
        --global-batch 64 --cluster dgx-h100:2 -o run
    """  # noqa: D301 (click reads \b as: do not wrap)
    from linkwise.launch.render import TARGETS
    from linkwise.search import plan

    choices = {name: options.pop(name) for name in ("script", "image", "nic_resource")}
    _refuse_without_effect(target, tuple(TARGETS), choices)
    check_folder(folder)
    asked, there = read_job_and_cluster(job, cluster, cluster_option, options)
    _refuse_dscp(there, dscp)
    found = plan(asked, there, top=1)
    if not found.layouts:
        return _nothing_fits(found, folder)
    result, texts, commands = _rendered(
        asked,
        there,
        found,
        target=target,
        nccl=nccl,
        node=node,
        dscp=dscp,
        limit_h=time_limit,
        choices=choices,
    )
    removed = write_folder(folder, result, texts, executable=commands, is_forced=force)
    for name in removed:
        click.echo(f"linkwise: removed {folder / name}, which another target had written", err=True)
    _print(result, folder, form)
    return ExitCode.DONE


def _refuse_without_effect(target: str, targets: tuple[str, ...], choices: dict[str, str | None]) -> None:
    from linkwise.errors import UnknownName

    if target not in targets:
        raise UnknownName.among(targets, kind="target", given=target)
    for name in ("image", "nic_resource"):
        given = choices[name]
        option = f"--{name.replace('_', '-')}"
        if given is None:
            continue
        if target != "kubernetes":
            raise InputError(f"{option} has no effect on target {target}, only on kubernetes; leave it out")
        if not given or not given.isprintable() or " " in given or len(given) > 300:
            raise InputError(f"{option} {given!r} is no name of an image or resource; it has no blanks")


def _refuse_dscp(there: Cluster, dscp: int | None) -> None:
    protocol = there.fabric.link.protocol if there.fabric.link is not None else "nothing"
    if dscp is not None and (protocol != "roce" or there.nodes_in_use == 1):
        raise InputError(f"--dscp has no effect: the nodes of {there.name} do not speak roce to one another")


def _nothing_fits(found: Plan, folder: Path) -> int:
    short = ""
    if found.closest is not None:
        short = f"; the closest lacks {found.closest.short_bytes / 1e9:.3g} GB on its fullest GPU"
    click.echo(f"linkwise: no layout fits{short}; nothing is written to {folder}", err=True)
    return ExitCode.INFEASIBLE


def _rendered(
    job: Job,
    there: Cluster,
    found: Plan,
    *,
    target: str,
    nccl: str | None,
    node: str | None,
    dscp: int | None,
    limit_h: float | None,
    choices: dict[str, str | None],
) -> tuple[RenderResult, dict[str, str], frozenset[str]]:
    from linkwise.cli.node_facts import facts_at
    from linkwise.launch.render import planned_start
    from linkwise.launch.render import render as files_of
    from linkwise.nccl.variables import NEWEST, parse_release
    from linkwise.report.render_result import render_result

    estimate = found.layouts[0]
    start, notes = planned_start(
        job,
        there,
        estimate,
        target=target,
        release=NEWEST if nccl is None else parse_release(nccl),
        node=None if node is None else facts_at(node),
        dscp=dscp,
        time_limit_s=None if limit_h is None else limit_h * 3600,
        **choices,
    )
    rendered = files_of(target, start, notes=notes, estimate=estimate)
    result = render_result(rendered, start, estimate, target=target, notes=notes)
    return result, dict(rendered.files), rendered.executable


def _print(result: RenderResult, folder: Path, form: str) -> None:
    from linkwise.report.render_result import print_not_expressed, print_render
    from linkwise.report.results import published_json
    from linkwise.report.tables import console_for

    if form == "json":
        click.echo(published_json(result))
    else:
        print_render(result, str(folder), console_for(sys.stdout))
    sys.stdout.flush()
    print_not_expressed(result, console_for(sys.stderr))
