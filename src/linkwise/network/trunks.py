"""Counts of one network of switches, and trunks that spread evenly over the switches above."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

__all__ = ["Tree", "count_line", "even_trunks", "leaf_line"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """The counts of one network, named as in `Wiring`."""

    group_nodes: int
    group_leaves: int
    leaves: int
    pod_leaves: int
    up_links: int = 0
    pods: int = 1
    pod_spines: int = 0
    core_links: int = 0
    group_cores: int = 0
    pair_links: int = 0

    @property
    def switches(self) -> int:
        """Return spines and cores."""
        return self.pods * self.pod_spines + self.pod_spines * self.group_cores

    def joined(self, pair_links: int) -> Tree:
        """Return the same with so many links between every two groups.

        Parameters
        ----------
        pair_links
            Links of one pair.
        """
        return replace(self, pair_links=pair_links)


def even_trunks(below: int, least: int, most: int, ports: int) -> tuple[int, int]:
    """Return the fewest switches above and the links of each switch below that spread evenly over them.

    Parameters
    ----------
    below
        Switches below.
    least, most
        Links of each of them.
    ports
        Ports that a switch above gives to them.
    """
    return min(
        (above, links)
        for links in range(least, most + 1)
        for above in _divisors(links)
        if below * links <= above * ports
    )


@lru_cache(maxsize=4096)
def _divisors(number: int) -> tuple[int, ...]:
    return tuple(each for each in range(1, number + 1) if number % each == 0)


def leaf_line(ports: int, used: int, down: int, up: int, least: int, oversubscription: float) -> str:
    """Return how the ports of a leaf are used, in words.

    Parameters
    ----------
    ports
        Links that one switch takes.
    used, down
        Links towards nodes, and the most that the oversubscription allows.
    up, least
        Links towards spines, and how many would do.
    oversubscription
        What is allowed.
    """
    line = f"a leaf: {ports} ports, {used} links down (at {oversubscription:g}:1 {down} at most), {up} up"
    return line if up == least else f"{line} ({least} suffice; {up} spread evenly over fewer switches)"


def count_line(what: str, product: str, ends: int, ports: int, count: int) -> str:
    """Return how many switches a number of links asks for, and why there are more where there are.

    Parameters
    ----------
    what
        The switches, in words.
    product
        How many links there are, as a product.
    ends, ports
        That number, and what one switch takes of it.
    count
        Switches there are.
    """
    bound = -(-ends // ports)
    line = f"{what}: {product} links up / {ports} ports = {bound:,}"
    return line if count == bound else f"{line}; {count:,} so that each leaf has as many links to every one"
