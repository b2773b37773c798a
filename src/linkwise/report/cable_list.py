"""The cables of a fabric as CSV: one row for each, with both of its ends."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from linkwise.cluster.link_table import node_number

if TYPE_CHECKING:
    from collections.abc import Iterable

    from linkwise.cluster.link_table import LinkTable
    from linkwise.network.link_graph import LinkGraph
    from linkwise.network.wiring import Wiring

__all__ = ["CABLE_COLUMNS", "cable_list_csv", "link_cables_csv"]

CABLE_COLUMNS = ("tier", "network", "from", "from_port", "to", "to_port")


def cable_list_csv(wiring: Wiring) -> str:
    """Return every cable of a fabric as CSV, from the nodes upwards.

    Parameters
    ----------
    wiring
        How its switches are joined.
    """
    from linkwise.network.cabling import cable_runs

    return _csv(
        (str(run.tier), run.network, run.lower, run.lower_port, run.upper, run.upper_port)
        for run in cable_runs(wiring)
    )


def link_cables_csv(table: LinkTable, graph: LinkGraph) -> str:
    """Return every cable of a table of links as CSV, in its order; ports are counted as they come.

    Parameters
    ----------
    table
        The links.
    graph
        The same, with the networks that they make.
    """
    networks = dict(zip(graph.names, (graph.networks() + 1).tolist(), strict=True))
    used: Counter[str] = Counter()
    return _csv(_cables(table, networks, used))


def _cables(
    table: LinkTable, networks: Mapping[str, int], used: Counter[str]
) -> Iterator[tuple[str, int, str, str, str, str]]:
    for row in table.links:
        lower, upper = sorted(row.ends, key=lambda end: node_number(end) is None)
        tier = "node-switch" if node_number(lower) is not None else "switch-switch"
        if node_number(upper) is not None:
            tier = "node-node"
        network = networks.get(upper) or networks[f"{row.ends[0]} to {row.ends[1]}"]
        for _ in range(row.count):
            yield tier, network, lower, _port(lower, used), upper, _port(upper, used)


def _port(end: str, used: Counter[str]) -> str:
    """Return the next port of an end: NICs from 0, ports of switches from 1."""
    used[end] += 1
    return str(used[end]) if node_number(end) is None else f"nic-{used[end] - 1}"


def _csv(rows: Iterable[tuple[object, ...]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(CABLE_COLUMNS)
    writer.writerows(rows)
    return text.getvalue()
