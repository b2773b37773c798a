"""Whether a table of links fits the nodes of a cluster: who is not joined, whose ports do not suffice."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from itertools import islice

from linkwise.cluster.link_table import LinkTable, TableLink, node_number
from linkwise.units import format_quantity

__all__ = ["has_choice", "link_table_misfits", "narrowest_node"]

MOST_SWITCHES = 2000
_SHOWN = 3


def link_table_misfits(
    table: LinkTable,
    *,
    nodes: int,
    nics_of: Callable[[int], tuple[int, float]],
    ports: Mapping[float, int] | None,
) -> Iterator[str]:
    """Yield what is wrong with a table for the nodes of a cluster.

    Parameters
    ----------
    table
        The links, each with its rate.
    nodes
        Operating systems; named ``node-0`` to one less.
    nics_of
        What gives the NICs of a node by its number, and what one of them carries [bytes/s].
    ports
        How many links of a rate one switch takes; ``None`` where the switch is not known.
    """
    rows = table.links
    numbers = {end: node_number(end) for row in rows for end in row.ends}
    switches = [end for end, number in numbers.items() if number is None]
    if len(switches) > MOST_SWITCHES:
        yield f"{len(switches):,} switches are more than the {MOST_SWITCHES:,} that are read; describe a kind"
        return
    beyond = [end for end, number in numbers.items() if number is not None and number >= nodes]
    if beyond:
        yield f"{_some(beyond)}: there are {nodes:,} nodes, node-0 to node-{nodes - 1}"
    known = {number for number in numbers.values() if number is not None}
    bare = nodes - len([number for number in known if number < nodes])
    if bare:
        first = islice((f"node-{number}" for number in range(nodes) if number not in known), _SHOWN)
        more = f" and {bare - _SHOWN:,} more" if bare > _SHOWN else ""
        yield f"{', '.join(first)}{more} without a link; give each node a row"
    yield from _node_misfits(rows, nics_of)
    yield from _port_misfits(rows, ports)
    near = _neighbours(rows)
    ends = [switch for switch in switches if len(near[switch]) == 1]
    if ends:
        yield f"{_some(ends)}: joined to one end alone, so that nothing passes; add its other links"
    networks = _networks(near, nodes)
    apart = [name for name, members in networks.items() if not members]
    if apart and not beyond:
        yield f"{_some(apart)}: no node is joined to this network of switches; leave it out or join it"
    if not beyond and not bare and nodes > 1:
        yield from _unreachable(list(networks.values()), nodes)


def has_choice(table: LinkTable) -> bool:
    """Return whether switches have more than one cable to choose from on some path.

    Parameters
    ----------
    table
        The links.

    Notes
    -----
    Without parallel cables between switches and without a loop of switches there is one path. A loop may
    still offer one shortest path alone; it counts as a choice, as routing need not be shortest.
    """
    root: dict[str, str] = {}

    def top(switch: str) -> str:
        while root.setdefault(switch, switch) != switch:
            root[switch] = switch = root[root[switch]]
        return switch

    for row in table.links:
        one, other = row.ends
        if node_number(one) is not None or node_number(other) is not None:
            continue
        if row.count > 1 or top(one) == top(other):
            return True
        root[top(one)] = top(other)
    return False


def narrowest_node(table: LinkTable, nodes: int) -> tuple[float, float, int]:
    """Return the least and the most that the links of a node carry, and the first node with the least.

    Parameters
    ----------
    table
        The links, each with its rate.
    nodes
        Operating systems.

    Returns
    -------
    tuple
        Two rates of all links of a node [bytes/s], and the number of a node.
    """
    carried = dict.fromkeys(range(nodes), 0.0)
    for row in table.links:
        for end in row.ends:
            number = node_number(end)
            if number is not None:
                carried[number] += row.count * (row.bytes_per_s or 0.0)
    node = min(carried, key=lambda number: carried[number])
    return carried[node], max(carried.values()), node


def _some(names: list[str]) -> str:
    """Return the first few of names, and how many there are."""
    rest = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {rest:,} more" if rest > 0 else "")


def _node_misfits(rows: tuple[TableLink, ...], nics_of: Callable[[int], tuple[int, float]]) -> Iterator[str]:
    ports: dict[int, int] = defaultdict(int)
    for row in rows:
        for end in row.ends:
            number = node_number(end)
            if number is None:
                continue
            ports[number] += row.count
            _, most = nics_of(number)
            if (row.bytes_per_s or 0.0) > most * 1.001:
                rate, limit = (
                    format_quantity(8 * each, "bits_per_s") for each in (row.bytes_per_s or 0.0, most)
                )
                yield f"{row.place}: {rate} is more than a NIC of {end} carries ({limit}); give a slower link"
    over = [number for number, count in ports.items() if count > nics_of(number)[0]]
    if over:
        what = f"{ports[over[0]]} links of node-{over[0]} are more than its {nics_of(over[0])[0]} NICs"
        others = [f"node-{number}" for number in over[1:]]
        yield what + (f", and so are those of {_some(others)}" if others else "")


def _port_misfits(rows: tuple[TableLink, ...], ports: Mapping[float, int] | None) -> Iterator[str]:
    if ports is None:
        return
    used: dict[str, float] = defaultdict(float)
    links: dict[str, int] = defaultdict(int)
    for row in rows:
        for end in row.ends:
            if node_number(end) is None:
                used[end] += row.count / ports[row.bytes_per_s or 0.0]
                links[end] += row.count
    over = [end for end, share in used.items() if share > 1.0 + 1e-9]
    if over:
        yield (
            f"{_some(over)}: the {links[over[0]]} links of {over[0]} are more than the ports of the switch; "
            "name one with more as fabric.switch"
        )


def _neighbours(rows: tuple[TableLink, ...]) -> dict[str, set[str]]:
    near: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        one, other = row.ends
        near[one].add(other)
        near[other].add(one)
    return near


def _unreachable(networks: list[set[int]], nodes: int) -> Iterator[str]:
    """Yield what the first node that does not reach all others misses; nodes pass nothing on.

    Two nodes reach each other by a network of switches, or a cable, that both are on.
    """
    if any(len(each) == nodes for each in networks):
        return
    of_node: dict[int, list[int]] = defaultdict(list)
    for number, members in enumerate(networks):
        for node in members:
            of_node[node].append(number)
    checked: set[tuple[int, ...]] = set()
    for node in range(nodes):
        on = tuple(of_node[node])
        if on in checked:
            continue
        checked.add(on)
        reached = set[int]().union(*(networks[number] for number in on))
        if len(reached) < nodes:
            missed = [f"node-{other}" for other in range(nodes) if other not in reached and other != node]
            why = "no switches join them, and nodes pass nothing on"
            yield f"node-{node} does not reach {_some(missed)}: {why}"
            return


def _networks(near: Mapping[str, set[str]], nodes: int) -> dict[str, set[int]]:
    """Return the nodes of every network of switches, and of every cable between two nodes."""
    found: dict[str, set[int]] = {}
    seen: set[str] = set()
    for start in near:
        number = node_number(start)
        if number is not None:
            for other in near[start]:
                peer = node_number(other)
                if peer is not None and peer > number:
                    found[f"{start} {other}"] = {number, peer}
            continue
        if start in seen:
            continue
        members, todo = set[int](), [start]
        seen.add(start)
        while todo:
            for other in near[todo.pop()]:
                peer = node_number(other)
                if peer is not None:
                    members.add(peer)
                elif other not in seen:
                    seen.add(other)
                    todo.append(other)
        found[start] = {member for member in members if member < nodes}
    return found
