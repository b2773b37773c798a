"""`linkwise fabric`: what a fabric is built of, what it carries, and what its failures cost."""

from __future__ import annotations

import csv
import sys
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from linkwise.report.fabric import FabricResult

__all__ = ["fabric"]


@click.command()
@click.argument("cluster")
@click.option(
    "--format", "form", type=click.Choice(["table", "json", "csv"]), default="table", show_default=True
)
def fabric(cluster: str, form: str) -> None:
    """Print switches, cables, optics, power, bisection, hash collisions and worst failures of a fabric.

    CLUSTER is a cluster/1 document or SYSTEM:NODES, such as dgx-h100:32. - is standard input. All its nodes
    are wired, in use or not. CSV is the bill of materials.

    \b
    linkwise fabric examples/h100-256.yaml
    linkwise fabric dgx-b200:2048 --format json
    """  # noqa: D301 (click reads \b as: do not wrap)
    from linkwise.cluster import load_cluster
    from linkwise.network.wiring import wiring_of
    from linkwise.report.fabric import fabric_result

    there = load_cluster(cluster)
    _print(fabric_result(there, wiring_of(there)), form)


def _print(result: FabricResult, form: str) -> None:
    if form == "json":
        from linkwise.report.results import published_json

        click.echo(published_json(result))
    elif form == "csv":
        from linkwise.report.fabric import fabric_csv_rows

        csv.writer(sys.stdout, lineterminator="\n").writerows(fabric_csv_rows(result))
    else:
        from linkwise.report.fabric_table import print_fabric
        from linkwise.report.tables import console_for

        print_fabric(result, console_for(sys.stdout))
