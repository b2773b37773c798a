"""Over which interfaces ranks without GPUs really talked: by the ends of their connections.

A program may set ``GLOO_SOCKET_IFNAME`` itself, after the kernel has kept the environment it was started
with: the variable proves nothing. A connection between two ranks does. Its end is an address, and an address
is on an interface.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from linkwise.launch.run.checks import Check, Expected, SeenRank, listed

__all__ = ["interface_check", "interfaces_of"]

Addresses = Mapping[str, Mapping[str, str]]


def interface_check(expected: Expected, ranks: Sequence[SeenRank], addresses: Addresses) -> Iterator[Check]:
    """Yield the check of the interfaces, where one is planned and there is somebody to talk to.

    Parameters
    ----------
    expected
        What was planned.
    ranks
        Those that were seen.
    addresses
        Interfaces by address, for each host.
    """
    if not expected.interfaces or expected.device != "cpu" or expected.ranks < 2:
        return
    used = interfaces_of(ranks, addresses)
    mute = [rank for rank in range(expected.ranks) if not used.get(rank)]
    other = {rank: names for rank, names in used.items() if names - set(expected.interfaces)}
    seen = sorted(set().union(*used.values()))
    unused = sorted(set(expected.interfaces) - set(seen))
    if other:
        words = [f"{listed(sorted(names))} (rank {rank})" for rank, names in sorted(other.items())]
        text = f"connections on {listed(words)}"
    elif mute:
        text = f"no connection to another rank of rank {listed(list(map(str, mute)))}"
    elif unused:
        text = f"connections on {listed(seen)}, none on {listed(unused)}"
    else:
        text = listed(seen)
    yield Check(
        what="interface",
        planned=f"connections between ranks on {listed(expected.interfaces)}, and on no other",
        seen=text,
        is_as_planned=None if mute and not other else not other and not unused,
    )


def interfaces_of(ranks: Sequence[SeenRank], addresses: Addresses) -> dict[int, set[str]]:
    """Return the interfaces on which each rank was connected with another.

    Parameters
    ----------
    ranks, addresses
        As for `interface_check`.
    """
    owner = {_place(each.host, own): each.rank for each in ranks for own, _ in each.connections}
    found: dict[int, set[str]] = {each.rank: set() for each in ranks}
    for each in ranks:
        for own, other in each.connections:
            if owner.get(_place(each.host, other), each.rank) != each.rank:
                address = own.rpartition(":")[0]
                found[each.rank].add(addresses.get(each.host, {}).get(address, address))
    return found


def _place(host: str, end: str) -> tuple[str, str]:
    """Return what an end is known by: one of a loopback is another on every host."""
    return (host if end.startswith(("127.", "::1:")) else "", end)
