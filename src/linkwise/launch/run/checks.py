"""What a run must be, what was seen of its ranks, and one check of the two: values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = ["Check", "Expected", "SeenRank", "listed"]

_SHOWN = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was planned, and what was seen of it.

    Parameters
    ----------
    what
        ``world size``, ``hosts``, ``environment``...
    planned, seen
        In words.
    is_as_planned
        ``None`` where nothing shows it.
    """

    what: str
    planned: str
    seen: str
    is_as_planned: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What a run must be to be valid.

    Parameters
    ----------
    nodes, ranks_per_node
        As planned [1].
    hosts
        Their names; empty while nobody has chosen them.
    device
        ``cuda`` or ``cpu``.
    settings
        Variables of the environment by name.
    protocol
        Of the fabric between nodes; empty where one node needs none.
    has_nvlink
        Whether GPUs of a node are joined by NVLink.
    interfaces
        Those that connections of ranks must be on, where GPUs are not used; empty where none is planned.
    """

    nodes: int
    ranks_per_node: int
    hosts: tuple[str, ...]
    device: str
    settings: Mapping[str, str]
    protocol: str
    has_nvlink: bool
    interfaces: tuple[str, ...] = ()

    @property
    def ranks(self) -> int:
        """Return the world size."""
        return self.nodes * self.ranks_per_node


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenRank:
    """One rank, as the kernel of its node shows it.

    Parameters
    ----------
    rank, ranks
        Which one, and of how many it was told [1].
    host
        Where it ran.
    settings
        Variables that move communication.
    connections
        Its own end and the other of each that it held, as ``address:port``; those to the store, at which
        ranks meet, are left out.
    """

    rank: int
    ranks: int
    host: str
    settings: Mapping[str, str]
    connections: tuple[tuple[str, str], ...] = ()


def listed(words: Sequence[str], by: str = ", ") -> str:
    """Return the first words, and how many more there are.

    Parameters
    ----------
    words
        All of them.
    by
        What stands between two.
    """
    more = f"{by}and {len(words) - _SHOWN} more" if len(words) > _SHOWN else ""
    return by.join(words[:_SHOWN]) + more
