"""What a scan of an InfiniBand fabric says of a cluster: nodes, NICs, links, switches and their wiring."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from linkwise import catalog
from linkwise.cluster.claims import Claim, counted
from linkwise.cluster.node_claims import link_of
from linkwise.cluster.parts import fabric_switch_misfits, rate_text
from linkwise.errors import UnknownName
from linkwise.readers.infiniband_fabric import InfinibandFabric, InfinibandLink

__all__ = ["infiniband_claims"]

_LISTED = 20
"""Degraded links and odd hosts that are named one by one."""

_NO_HOST = re.compile(r"^localhost\b|Mellanox|NVIDIA|Aggregation|ConnectX|MT\d{4,5}", re.IGNORECASE)
"""What adapters are called that no driver has given a name of a host, and those inside a switch."""

_MODEL = re.compile(r"\bM?(QM\d\d|SB\d\d|Q\d\d)\d\d\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class _HostPort:
    """The link of a host: to which switch, and the cable itself."""

    host: str
    switch: str
    link: InfinibandLink


def infiniband_claims(fabric: InfinibandFabric, path: str) -> Iterator[Claim]:
    """Yield what the fabric says of a cluster.

    Parameters
    ----------
    fabric
        The fabric.
    path
        The file it was read in.

    Notes
    -----
    A node is a host with as many ports as the machines have that hold most of the ports; a host with more
    than half of them is one with ports missing, a host with fewer serves another purpose.
    """
    by_host = defaultdict(list)
    nameless = 0
    for port in _host_ports(fabric):
        if port.host:
            by_host[port.host].append(port)
        else:
            nameless += 1
    if nameless:
        why = f"{nameless} ports of adapters without the name of a host are not counted"
        yield Claim(key="note", value=None, path=path, why=why)
    if not by_host:
        yield Claim(key="note", value=None, path=path, why="no host with a link to a switch")
        return
    nics = _usual_ports([len(ports) for ports in by_host.values()])
    nodes = {host: ports for host, ports in by_host.items() if 2 * len(ports) > nics}
    most = "" if all(len(ports) == nics for ports in nodes.values()) else "most "
    why = f"{counted(len(nodes), 'host')}, {most}with {counted(nics, 'port')}"
    yield Claim(key="nodes", value=len(nodes), path=path, why=why)
    why = f"{counted(nics, 'port')} of a host"
    yield Claim(key="nics", value=nics, path=path, why=why, assumed=True)
    yield from _odd_host_notes(by_host, nics, path)
    yield from _changes(fabric, nodes, nics, path)
    ports = [port for each in nodes.values() for port in each]
    yield from _link_claims(fabric, ports, path)
    yield from _wiring_claims(fabric, nodes, path)


def _changes(
    fabric: InfinibandFabric, nodes: Mapping[str, Sequence[_HostPort]], nics: int, path: str
) -> Iterator[Claim]:
    """Yield the NICs that are missing or run below the best, counted as a document counts them.

    Hosts are ordered by leaf and name, so that those of one leaf follow one another; the ports of a host by
    the name of the adapter. Which port is missing is told by the names that other hosts have.
    """
    best = max(port.link.bytes_per_s for ports in nodes.values() for port in ports)
    named = {host: {_adapter(fabric, port): port for port in ports} for host, ports in nodes.items()}
    whole = [tuple(sorted(each, key=_in_order)) for each in named.values() if len(each) == nics]
    usual = Counter(whole).most_common(1)[0][0] if whole else ()
    order = sorted(nodes, key=lambda host: (min(port.switch for port in nodes[host]), _in_order(host)))
    for number, host in enumerate(order):
        ports = named[host]
        names = usual if set(ports) <= set(usual) else tuple(sorted(ports, key=_in_order))
        for nic, name in enumerate(names):
            where = {"nics": f"node {number} nic {nic}"}
            port = ports.get(name)
            if port is None:
                why = f"{host} {name} has no link"
                yield Claim(key="change", value={**where, "missing": True}, path=path, why=why)
            elif port.link.bytes_per_s < 0.999 * best:
                why = f"{_ends(fabric, port.link)} at {port.link.width}x{port.link.speed}"
                left = {**where, "rate": rate_text(port.link.bytes_per_s)}
                yield Claim(key="change", value=left, path=path, why=why)


def _adapter(fabric: InfinibandFabric, port: _HostPort) -> str:
    """Return what the adapter of a port is called beside its host, with the number of its port."""
    device, number = next(
        (end, number) for end, number in port.link.ends if not fabric.devices[end].is_switch
    )
    name = fabric.devices[device].name
    return f"{name.removeprefix(port.host).strip() or device} {number}"


def _in_order(name: str) -> list[tuple[int, str]]:
    """Return a key by which the tenth comes after the ninth."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d{1,9})", name)]


def _host_ports(fabric: InfinibandFabric) -> Iterator[_HostPort]:
    for link in fabric.links:
        (one, _), (other, _) = link.ends
        for adapter, switch in ((one, other), (other, one)):
            device = fabric.devices.get(adapter)
            far = fabric.devices.get(switch)
            if device is not None and far is not None and far.is_switch and not device.is_switch:
                named = not _NO_HOST.search(device.name) and device.name
                host = device.name.split()[0] if named else ""
                if "aggregation" not in device.name.lower():
                    yield _HostPort(host=host, switch=switch, link=link)


def _usual_ports(counts: Sequence[int]) -> int:
    """Return the number of ports of the hosts that together have most ports."""
    hosts = Counter(counts)
    return max(hosts, key=lambda count: (count * hosts[count], count))


def _odd_host_notes(by_host: Mapping[str, Sequence[_HostPort]], nics: int, path: str) -> Iterator[Claim]:
    odd = {host: len(ports) for host, ports in by_host.items() if len(ports) != nics}
    missing = [f"{host} ({count})" for host, count in odd.items() if 2 * count > nics]
    others = [f"{host} ({count})" for host, count in odd.items() if 2 * count <= nics]
    if missing:
        why = f"nodes with another number of ports than {nics}: {_listed(missing)}"
        yield Claim(key="note", value=None, path=path, why=why)
    if others:
        why = f"hosts that are not counted as nodes, they have few ports: {_listed(others)}"
        yield Claim(key="note", value=None, path=path, why=why)


def _listed(words: Sequence[str]) -> str:
    more = f" and {len(words) - _LISTED} more" if len(words) > _LISTED else ""
    return f"{', '.join(words[:_LISTED])}{more}"


def _link_claims(fabric: InfinibandFabric, ports: Sequence[_HostPort], path: str) -> Iterator[Claim]:
    best = max((port.link for port in ports), key=lambda link: link.bytes_per_s)
    name = link_of(("infiniband",), best.bytes_per_s)
    words = f"{best.width}x{best.speed}, {rate_text(best.bytes_per_s)}"
    if name is not None:
        yield Claim(key="link", value=name, path=path, why=f"links of nodes run at {words}")
    else:
        why = f"links of nodes run at {words}, which no InfiniBand link of the catalogue does"
        yield Claim(key="note", value=None, path=path, why=why)
    trunks = [link for link in fabric.links if _is_trunk(fabric, link)]
    yield from _degraded_notes(fabric, [port.link for port in ports], "links of nodes", path, is_held=True)
    yield from _degraded_notes(fabric, trunks, "links between switches", path, is_held=False)
    yield from _switch_claims(fabric, ports, name, path)


def _is_trunk(fabric: InfinibandFabric, link: InfinibandLink) -> bool:
    ends = [fabric.devices.get(device) for device, _ in link.ends]
    return all(end is not None and end.is_switch for end in ends)


def _degraded_notes(
    fabric: InfinibandFabric, links: Sequence[InfinibandLink], what: str, path: str, *, is_held: bool
) -> Iterator[Claim]:
    """Yield the links that run below the best of their kind, and what the tool itself remarks.

    Switches are numbered as a fabric is wired from its document, so cables between those of a scan have no
    number there.
    """
    best = max((link.bytes_per_s for link in links), default=0.0)
    slow = [link for link in links if link.bytes_per_s < 0.999 * best]
    if slow:
        named = [f"{_ends(fabric, link)} at {link.width}x{link.speed}" for link in slow]
        held = "" if is_held else "; changes cannot name the switches of a scan"
        kept = f"degraded {what}, below the best of {rate_text(best)}{held}"
        yield Claim(key="note", value=None, path=path, why=f"{kept}: {_listed(named)}")
    remarked = [link for link in links if "could be" in link.remark.lower() and link not in slow]
    if remarked:
        named = [f"{_ends(fabric, link)} ({link.remark})" for link in remarked]
        yield Claim(key="note", value=None, path=path, why=f"{what} that could be faster: {_listed(named)}")


def _ends(fabric: InfinibandFabric, link: InfinibandLink) -> str:
    words = [
        f"{fabric.devices[device].name} [{port}]" for device, port in link.ends if device in fabric.devices
    ]
    return " - ".join(words)


def _switch_claims(
    fabric: InfinibandFabric, ports: Sequence[_HostPort], link: str | None, path: str
) -> Iterator[Claim]:
    """Yield the switch of the catalogue that the leaves are, by the model in their names."""
    models = set()
    for switch in {port.switch for port in ports}:
        match = _MODEL.search(fabric.devices[switch].name)
        models.add(match[1].lower() + "00" if match is not None else "")
    try:
        name = catalog.switch(next(iter(models))).name if len(models) == 1 else None
    except UnknownName:
        name = None
    if name is not None and link is not None and not [*fabric_switch_misfits(name, link)]:
        example = fabric.devices[ports[0].switch].name
        yield Claim(key="switch", value=name, path=path, why=f"leaves are named as {example}")


def _wiring_claims(
    fabric: InfinibandFabric, nodes: Mapping[str, Sequence[_HostPort]], path: str
) -> Iterator[Claim]:
    leaves = {port.switch for ports in nodes.values() for port in ports}
    trunks = [link for link in fabric.links if _is_trunk(fabric, link)]
    tiers = _tiers(leaves, trunks)
    rails = sum(len({port.switch for port in ports}) == len(ports) > 1 for ports in nodes.values())
    kind = _kind(len(leaves), tiers, rails=2 * rails > len(nodes))
    wired = f"{counted(len(leaves), 'leaf', 'leaves')}, {counted(tiers, 'tier')} of switches"
    if kind is not None:
        spread = f"{rails} of {len(nodes)} nodes have each port on a leaf of its own"
        mixed = 0 < rails < len(nodes)
        yield Claim(key="kind", value=kind, path=path, why=f"{wired}; {spread}", assumed=mixed)
    if tiers > 1:
        ports = [port for each in nodes.values() for port in each]
        yield from _oversubscription_claims(ports, leaves, trunks, path)


def _tiers(leaves: set[str], trunks: Sequence[InfinibandLink]) -> int:
    """Return how many tiers of switches there are from the leaves up; 0 where leaves join one another."""
    above: dict[str, set[str]] = defaultdict(set)
    for link in trunks:
        (one, _), (other, _) = link.ends
        above[one].add(other)
        above[other].add(one)
    if any(neighbour in leaves for leaf in leaves for neighbour in above[leaf]):
        return 0
    seen, edge, tiers = set(leaves), set(leaves), 1
    while edge := {neighbour for switch in edge for neighbour in above[switch]} - seen:
        seen |= edge
        tiers += 1
    return tiers


def _kind(leaves: int, tiers: int, *, rails: bool) -> str | None:
    if tiers == 1 and leaves == 1:
        return "single-switch"
    if tiers == 1:
        return "rail-only" if rails else None
    if tiers > 1 and rails:
        return "rail-optimized"
    return {2: "leaf-spine", 3: "fat-tree"}.get(tiers)


def _oversubscription_claims(
    ports: Sequence[_HostPort], leaves: set[str], trunks: Sequence[InfinibandLink], path: str
) -> Iterator[Claim]:
    """Yield rate of node ports over rate of up-links, as if none were degraded; at least 1."""
    up_links = [link for link in trunks if leaves.intersection(device for device, _ in link.ends)]
    down = len(ports) * max(port.link.bytes_per_s for port in ports)
    up = len(up_links) * max(link.bytes_per_s for link in up_links)
    value = round(max(1.0, down / up), 2)
    nodes, above = counted(len(ports), "port"), counted(len(up_links), "up-link")
    why = f"{nodes} of nodes, {rate_text(down)}, and {above}, {rate_text(up)}"
    yield Claim(key="oversubscription", value=value, path=path, why=why)
