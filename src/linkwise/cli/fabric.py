"""`linkwise fabric`: what a fabric is built of, what it carries, and what its failures cost."""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from linkwise.cli.files import check_target, write_whole
from linkwise.errors import DocumentError, Fault, InputError

if TYPE_CHECKING:
    from linkwise.cluster import Cluster
    from linkwise.report.fabric import FabricResult

__all__ = ["fabric"]


@click.command()
@click.argument("cluster")
@click.option("--cables", type=click.Path(path_type=Path), help="Write every cable there, as CSV.")
@click.option(
    "--drawing", type=click.Path(path_type=Path), help="Write a drawing of the tiers there, as SVG."
)
@click.option(
    "--format", "form", type=click.Choice(["table", "json", "csv"]), default="table", show_default=True
)
def fabric(cluster: str, cables: Path | None, drawing: Path | None, form: str) -> None:
    """Print switches, cables, optics, power, money, bisection, collisions and worst failures of a fabric.

    CLUSTER is a cluster/1 document or SYSTEM:NODES, such as dgx-h100:32. - is standard input. All its nodes
    are wired, in use or not. Money needs a cluster that names its prices. CSV is the bill of materials. Files
    that exist are replaced.

    Exit codes: 0 done, 2 wrong input, 3 the switch is not known.

    \b
    linkwise fabric examples/h100-256.yaml
    linkwise fabric dgx-b200:2048 --cables cables.csv --drawing fabric.svg
    """  # noqa: D301 (click reads \b as: do not wrap)
    from linkwise.cli.job_and_cluster import warn_of_old_prices
    from linkwise.cluster import load_cluster

    _check_targets({"--cables": cables, "--drawing": drawing}, source=cluster)
    there = load_cluster(cluster)
    warn_of_old_prices([there])
    found = _of_links(there) if there.fabric.table is not None else _of_kind(there)
    if cables is not None:
        write_whole("--cables", cables, found.cables())
        click.echo(f"wrote {cables}", err=True)
    if drawing is not None:
        write_whole("--drawing", drawing, found.drawing())
        click.echo(f"wrote {drawing}", err=True)
    _print(found.result, form)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """What is printed, and what makes the files that were asked for."""

    result: FabricResult
    cables: Callable[[], str]
    drawing: Callable[[], str]


def _of_kind(cluster: Cluster) -> _Found:
    from linkwise.network.clos import wiring_of
    from linkwise.report.cable_list import cable_list_csv
    from linkwise.report.fabric import fabric_result
    from linkwise.report.topology_drawing import topology_svg

    wiring = wiring_of(cluster)
    result = fabric_result(cluster, wiring)
    return _Found(
        result=result,
        cables=lambda: cable_list_csv(wiring),
        drawing=lambda: topology_svg(wiring, title=_title(result)),
    )


def _of_links(cluster: Cluster) -> _Found:
    from linkwise.network.link_graph import graph_of
    from linkwise.report.cable_list import link_cables_csv
    from linkwise.report.link_drawing import link_topology_svg
    from linkwise.report.link_fabric import link_fabric_result

    result, graph = link_fabric_result(cluster), graph_of(cluster)
    table = cluster.fabric.table
    return _Found(
        result=result,
        cables=lambda: "" if table is None else link_cables_csv(table, graph),
        drawing=lambda: link_topology_svg(graph, title=_title(result)),
    )


def _title(result: FabricResult) -> str:
    return f"{result.name}: {result.kind}, {result.link}, {result.switch}"


def _check_targets(targets: Mapping[str, Path | None], *, source: str) -> None:
    """Refuse files that cannot be written, all at once and before anything is computed."""
    given = {option: path for option, path in targets.items() if path is not None}
    faults = [fault for option, path in given.items() for fault in _target_faults(option, path, source)]
    if len({path.resolve() for path in given.values()}) < len(given):
        faults.append(f"{' and '.join(given)} name the same file; give each a name of its own")
    if faults:
        raise DocumentError(Fault(message=f"linkwise: {fault}") for fault in faults)


def _target_faults(option: str, path: Path, source: str) -> Iterator[str]:
    try:
        check_target(option, path)
    except InputError as error:
        yield str(error)
        return
    if path.exists() and Path(source).exists() and path.samefile(source):
        yield f"{option} {path} is the file that is read; give another name"


def _print(result: FabricResult, form: str) -> None:
    if form == "json":
        from linkwise.report.results import published_json

        click.echo(published_json(result))
    elif form == "csv":
        from linkwise.report.fabric_csv import fabric_csv_rows

        csv.writer(sys.stdout, lineterminator="\n").writerows(fabric_csv_rows(result))
    else:
        from linkwise.report.fabric_table import print_fabric
        from linkwise.report.tables import console_for

        print_fabric(result, console_for(sys.stdout))
