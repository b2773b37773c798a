"""`linkwise compare`: one job with its best layout on each of several clusters."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from linkwise.cli.job_and_cluster import job_and_clusters_arguments, read_job_and_clusters
from linkwise.cli.numbers import FiniteFloat
from linkwise.errors import DocumentError, ExitCode, Fault, InputError

if TYPE_CHECKING:
    from linkwise.cluster import Cluster
    from linkwise.cluster.variants import VariantAxes
    from linkwise.job import Job
    from linkwise.report.comparison import CompareResult

__all__ = ["compare"]

LARGEST_WALL_GPUS = 1_048_576
"""Beyond it no cluster has been built, and a curve takes longer than a reader waits."""


@click.command()
@job_and_clusters_arguments
@click.option("--fabrics", metavar="LINK,...", help="Compare one cluster with these links of the catalogue.")
@click.option("--domains", metavar="GPUS,...", help="... with NVLink domains of so many GPUs.")
@click.option("--oversubscription", metavar="RATIO,...", help="... with its leaves oversubscribed so much.")
@click.option(
    "--wall-gpus",
    type=click.IntRange(1, LARGEST_WALL_GPUS),
    default=16_384,
    show_default=True,
    help="Largest cluster of the search for the network wall.",
)
@click.option(
    "--wall-share",
    type=FiniteFloat(0, 1, min_open=True, max_open=True),
    default=0.2,
    show_default=True,
    help="Share of the step that exposed communication may take before it is called the wall.",
)
@click.option(
    "--scaling",
    type=click.Choice(["weak", "strong"]),
    default="weak",
    show_default=True,
    help="Whether the global batch grows with the cluster (weak) or stays (strong).",
)
@click.option(
    "--plot",
    "picture",
    type=click.Path(path_type=Path),
    metavar="FILE.svg|png|pdf",
    help="Draw the curves behind the network wall, too; needs the extra plot.",
)
@click.option(
    "--format", "form", type=click.Choice(["table", "json", "csv"]), default="table", show_default=True
)
def compare(
    *,
    job: str | None,
    clusters: tuple[str, ...],
    cluster_options: tuple[str, ...],
    fabrics: str | None,
    domains: str | None,
    oversubscription: str | None,
    wall_gpus: int,
    wall_share: float,
    scaling: str,
    picture: Path | None,
    form: str,
    **options: object,
) -> int:
    """Print one job with its best layout on each of several clusters.

    JOB and CLUSTER are as in plan; --fabrics, --domains and --oversubscription make variants of one cluster,
    every combination of them. Ratios and break-even prices refer to the first cluster that a layout fits.
    The network wall is the size from which exposed communication takes more than --wall-share of the step,
    the cluster doubling again and again. Exit code 5: no layout fits any of the clusters.

    \b
    linkwise compare examples/llama-70b.yaml examples/h100-256.yaml gb200-nvl72:64
    linkwise compare examples/llama-70b.yaml dgx-h100:32 --fabrics infiniband-ndr-400,roce-400,ethernet-100
    linkwise compare --model llama-3.1-70b --cluster gb200-nvl72:64 --domains 8,72 \\
        --sequence-length 8192 --global-batch 1024
    """  # noqa: D301 (click reads \b as: do not wrap)
    if picture is not None:
        from linkwise.report.wall_plot import check_plot

        check_plot(picture)
    axes = _axes(fabrics, domains, oversubscription)
    _refuse_axes(axes, [*clusters, *cluster_options])
    asked, there = read_job_and_clusters(job, clusters, cluster_options, options, axes=axes)
    _refuse_idle_oversubscription(axes, there)
    result = _compared(asked, there, wall_gpus=wall_gpus, wall_share=wall_share, scaling=scaling)
    _print(result, form)
    if picture is not None:
        _draw(result, picture)
    return ExitCode.INFEASIBLE if result.reference is None else ExitCode.DONE


def _compared(
    job: Job, clusters: tuple[Cluster, ...], *, wall_gpus: int, wall_share: float, scaling: str
) -> CompareResult:
    from linkwise.report.comparison import compare_result
    from linkwise.search.comparison import compare as search
    from linkwise.search.network_wall import Scaling, network_wall

    found, how = search(job, clusters), Scaling(scaling)
    walls = [
        network_wall(job, each, most_gpus=wall_gpus, share_fraction=wall_share, scaling=how)
        for each in clusters
    ]
    return compare_result(found, walls, wall_share_fraction=wall_share, scaling=how)


_Value = TypeVar("_Value")


def _axes(fabrics: str | None, domains: str | None, oversubscription: str | None) -> VariantAxes:
    from linkwise.cluster.variants import VariantAxes

    return VariantAxes(
        fabrics=_values("--fabrics", fabrics, str, "a link of the catalogue"),
        domains=_values("--domains", domains, int, "a number of GPUs"),
        oversubscription=_values("--oversubscription", oversubscription, float, "a ratio from 1, such as 2"),
    )


def _values(option: str, text: str | None, read: Callable[[str], _Value], what: str) -> tuple[_Value, ...]:
    """Return the values between the commas of an option; none where it is not given."""
    if text is None:
        return ()
    values = []
    for word in text.split(","):
        try:
            if not word.strip():
                raise ValueError
            values.append(read(word.strip()))
        except ValueError:
            message = f"{word!r} in {text!r} is not {what}; write values with commas between them"
            raise DocumentError([Fault(key=option, message=message)]) from None
    return tuple(values)


def _refuse_axes(axes: VariantAxes, places: list[str]) -> None:
    if axes.given and len(places) > 1:
        names = ", ".join(f"--{name}" for name in axes.given)
        raise InputError(f"{names}: variants are of one cluster, but {len(places)} are given; leave one")


def _refuse_idle_oversubscription(axes: VariantAxes, clusters: tuple[Cluster, ...]) -> None:
    from linkwise.estimate.job_inputs import nvlink_domain
    from linkwise.network.tiers import tiers_of

    if not axes.oversubscription:
        return
    if not any(tiers_of(each, domain_gpus=nvlink_domain(each).gpus) for each in clusters):
        largest = max(each.gpus for each in clusters)
        words = f"has no effect: all {largest:,} GPUs are below one set of leaves, so that no link up is used"
        todo = "give more nodes, or a fabric whose leaves take fewer of them"
        raise DocumentError([Fault(key="--oversubscription", message=f"{words}; {todo}")])


def _draw(result: CompareResult, path: Path) -> None:
    from linkwise.report.wall_plot import plot_walls

    if not result.has_curves:
        click.echo(f"linkwise: --plot: no layout fits at any size; {path} is not drawn", err=True)
        return
    plot_walls(result, path)
    click.echo(f"wrote {path}", err=True)


def _print(result: CompareResult, form: str) -> None:
    if form == "json":
        from linkwise.report.results import published_json

        click.echo(published_json(result))
    elif form == "csv":
        from linkwise.report.compare_csv import write_comparison

        write_comparison(result, sys.stdout)
    else:
        from linkwise.report.compare_table import print_comparison
        from linkwise.report.tables import console_for

        print_comparison(result, console_for(sys.stdout))
