"""`linkwise plan`: the best layouts of a job on a cluster, and why the others lose."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from linkwise.cli.job_and_cluster import job_and_cluster_arguments, read_job_and_cluster
from linkwise.errors import ExitCode

if TYPE_CHECKING:
    from linkwise.report.results import PlanResult

__all__ = ["plan"]


@click.command()
@job_and_cluster_arguments
@click.option(
    "--top", type=click.IntRange(1, 10_000), default=10, show_default=True, help="How many layouts to print."
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

    asked, there = read_job_and_cluster(job, cluster, cluster_option, options)
    found = plan_result(search(asked, there, top=top), job=asked, cluster=there)
    _print(found, form)
    return ExitCode.DONE if found.layouts else ExitCode.INFEASIBLE


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
