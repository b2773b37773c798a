"""`linkwise plan`: the best layouts of a job on a cluster, and why the others lose."""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from linkwise.cli.files import check_target, write_whole
from linkwise.cli.job_and_cluster import job_and_cluster_arguments, read_job_and_cluster
from linkwise.errors import ExitCode

if TYPE_CHECKING:
    from linkwise.cluster import Cluster
    from linkwise.report.results import PlanResult
    from linkwise.search import Plan

__all__ = ["plan"]


@click.command()
@job_and_cluster_arguments
@click.option(
    "--top", type=click.IntRange(1, 10_000), default=10, show_default=True, help="How many layouts to print."
)
@click.option(
    "--ranks",
    "ranks_path",
    type=click.Path(path_type=Path),
    metavar="OUT.csv",
    help="Write node, GPU and groups of each rank of the first layout.",
)
@click.option(
    "--format", "form", type=click.Choice(["table", "json", "csv"]), default="table", show_default=True
)
def plan(
    *,
    job: str | None,
    cluster: str | None,
    cluster_option: str | None,
    top: int,
    ranks_path: Path | None,
    form: str,
    **options: object,
) -> int:
    """Print the best layouts of a job on a cluster.

    JOB is a job/1 document; options may stand for it (--model, --sequence-length, --global-batch). CLUSTER
    is a cluster/1 document or SYSTEM:NODES, such as dgx-h100:32. - is standard input. A layout that the job
    fixes is estimated, not searched. Exit code 5: no layout fits, and the closest is printed.

    \b
    linkwise plan examples/llama-70b.yaml examples/h100-256.yaml
    linkwise plan --model llama-3.1-70b --cluster dgx-h100:32 --sequence-length 8192 --global-batch 1024
    """  # noqa: D301 (click reads \b as: do not wrap)
    from linkwise.report.results import plan_result
    from linkwise.search import plan as search

    if ranks_path is not None:
        check_target("--ranks", ranks_path)
    asked, there = read_job_and_cluster(job, cluster, cluster_option, options)
    found = search(asked, there, top=top)
    if ranks_path is not None and found.layouts:
        write_whole("--ranks", ranks_path, _ranks_csv(found, there))
        click.echo(f"wrote {ranks_path}", err=True)
    elif ranks_path is not None:
        click.echo(f"--ranks {ranks_path} is not written: no layout fits", err=True)
    _print(plan_result(found, job=asked, cluster=there), form)
    return ExitCode.DONE if found.layouts else ExitCode.INFEASIBLE


def _ranks_csv(found: Plan, cluster: Cluster) -> str:
    from linkwise.layout import rank_places

    places = rank_places(found.layouts[0].layout, cluster.gpus_per_node)
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(places)
    rows.writerows(zip(*(column.tolist() for column in places.values()), strict=True))
    return text.getvalue()


def _print(result: PlanResult, form: str) -> None:
    if form == "json":
        from linkwise.report.results import published_json

        click.echo(published_json(result))
    elif form == "csv":
        from linkwise.report.plan_csv import write_plan

        write_plan(result, sys.stdout)
    else:
        from linkwise.report.plan_table import print_plan
        from linkwise.report.tables import console_for

        print_plan(result, console_for(sys.stdout))
