"""Flows on directed links: how long they take when they share links, without packets or queues.

A flow has a route (the links it crosses) and a rate. Links are shared by max-min fairness: nobody's rate can
be raised without lowering that of a flow that has no more. A pipelined ring or tree is one flow whose rate is
that of its slowest hop and which uses a link once for each hop that crosses it (`Routes.use`).

What is not here: queues, pauses that spread, incast, congestion control. A step whose flows start together
and are of one size needs no solver, `load_bound_s` is exact for it.

References
----------
D. Bertsekas, R. Gallager, Data Networks, 1992, section 6.5.2 (max-min fairness).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from linkwise.errors import InputError

__all__ = ["Routes", "finish_times_s", "link_bytes", "load_bound_s", "max_min_rates"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_CLOSE = 1e-12
"""Shares that differ by less than this part are equal: what summing in another order changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Routes:
    """The links of each flow, one after another.

    Parameters
    ----------
    links
        Link of each hop, shape (hops,); those of flow f are ``links[starts[f]:starts[f + 1]]``.
    starts
        Shape (flows + 1,), from 0 to the number of hops; each flow has at least one.
    use
        Shape (hops,), how many times its rate the flow takes of the link; once where absent.

    Raises
    ------
    InputError
        When a flow has no link or the arrays do not belong together.
    """

    links: Integers
    starts: Integers
    use: Floats = field(default_factory=lambda: np.ones(0))

    def __post_init__(self) -> None:
        """Check that the arrays belong together."""
        if self.use.size == 0:
            object.__setattr__(self, "use", np.ones(len(self.links)))
        ends = len(self.starts) >= 1 and self.starts[0] == 0 and self.starts[-1] == len(self.links)
        if not ends or len(self.use) != len(self.links):
            raise InputError(
                "routes: starts must run from 0 to the number of hops, with one use for each hop"
            )
        if np.any(np.diff(self.starts) < 1):
            place = int(np.flatnonzero(np.diff(self.starts) < 1)[0])
            raise InputError(f"routes: flow {place} crosses no link; leave out what stays on one GPU")
        if np.any(self.links < 0) or not np.all(self.use > 0.0):
            raise InputError("routes: a link is counted from 0 and is used more than zero times")

    @property
    def count(self) -> int:
        """Return the number of flows."""
        return len(self.starts) - 1

    @property
    def flow_of_hop(self) -> Integers:
        """Return the flow of each hop, shape (hops,)."""
        return np.repeat(np.arange(self.count), np.diff(self.starts))

    def joined(self, flows: int) -> Routes:
        """Return each `flows` flows that follow one another as one that has all their links.

        That is a pipelined ring: its hops go at one rate.

        Parameters
        ----------
        flows
            Flows of a ring; the number of all flows is a multiple.

        Raises
        ------
        InputError
            When it is none.
        """
        if self.count % flows:
            raise InputError(f"routes: {self.count} flows are no multiple of {flows} to a ring")
        return Routes(links=self.links, starts=self.starts[::flows], use=self.use)

    def take(self, kept: NDArray[np.bool_]) -> Routes:
        """Return the routes of some flows.

        Parameters
        ----------
        kept
            Which flows, shape (flows,).
        """
        lengths = np.diff(self.starts)
        hops = np.repeat(kept, lengths)
        starts = np.concatenate(([0], np.cumsum(lengths[kept])))
        return Routes(links=self.links[hops], starts=starts, use=self.use[hops])


def link_bytes(routes: Routes, flow_bytes: Floats, links: int) -> Floats:
    """Return the bytes each link carries, shape (links,) [bytes].

    Parameters
    ----------
    routes
        Links of the flows.
    flow_bytes
        Bytes of each flow, shape (flows,) [bytes].
    links
        Number of links of the fabric.
    """
    carried = np.repeat(flow_bytes, np.diff(routes.starts)) * routes.use
    return np.bincount(routes.links, weights=carried, minlength=links).astype(np.float64)


def load_bound_s(routes: Routes, flow_bytes: Floats, link_bytes_per_s: Floats) -> float:
    """Return the time of the link that has most to carry for what it can [s].

    No schedule is faster. For flows of one size that start together and share fairly it is the time itself:
    a flow's rate is never below the least of capacity over number of flows along its route, that number only
    falls, and so no flow ends later than those of the link with the largest load over capacity.

    Parameters
    ----------
    routes
        Links of the flows.
    flow_bytes
        Bytes of each flow, shape (flows,) [bytes].
    link_bytes_per_s
        Capacity of each link, above zero, shape (links,) [bytes/s].
    """
    if routes.count == 0:
        return 0.0
    return float(np.max(link_bytes(routes, flow_bytes, len(link_bytes_per_s)) / link_bytes_per_s))


def max_min_rates(routes: Routes, link_bytes_per_s: Floats) -> Floats:
    """Return the max-min fair rate of each flow, shape (flows,) [bytes/s].

    Parameters
    ----------
    routes
        Links of the flows.
    link_bytes_per_s
        Capacity of each link, above zero, shape (links,) [bytes/s].

    Notes
    -----
    Rounds of local bottlenecks: a link is tight if none of its flows has a smaller share on another link.
    What its flows get cannot change any more, since the shares of other links only grow as flows are settled.
    All tight links settle in one round, so rounds are few: the longest chain of links that wait for one
    another.
    """
    rates = np.zeros(routes.count)
    left = link_bytes_per_s.astype(np.float64)
    open_flows = np.arange(routes.count)
    while routes.count:
        settled, shares = _tight_flows(routes, left)
        rates[open_flows[settled]] = shares[settled]
        left = np.maximum(left - link_bytes(routes.take(settled), shares[settled], len(left)), 0.0)
        open_flows = open_flows[~settled]
        routes = routes.take(~settled)
    return rates


def _tight_flows(routes: Routes, left_bytes_per_s: Floats) -> tuple[NDArray[np.bool_], Floats]:
    """Return which flows cross a tight link, and the smallest share of each flow [bytes/s]."""
    users = np.bincount(routes.links, weights=routes.use, minlength=len(left_bytes_per_s))
    share_of_hop = left_bytes_per_s[routes.links] / users[routes.links]
    shares = np.minimum.reduceat(share_of_hop, routes.starts[:-1])
    elsewhere = np.repeat(shares, np.diff(routes.starts)) < share_of_hop * (1.0 - _CLOSE)
    loose = np.bincount(routes.links, weights=elsewhere, minlength=len(left_bytes_per_s)) > 0
    return np.logical_or.reduceat(~loose[routes.links], routes.starts[:-1]), shares


def finish_times_s(
    routes: Routes, flow_bytes: Floats, link_bytes_per_s: Floats, *, merge_fraction: float = 0.0
) -> Floats:
    """Return when each flow ends if all start together and share fairly, shape (flows,) [s].

    Parameters
    ----------
    routes
        Links of the flows.
    flow_bytes
        Bytes of each flow, shape (flows,) [bytes].
    link_bytes_per_s
        Capacity of each link, above zero, shape (links,) [bytes/s].
    merge_fraction
        Flows that would end within this part of the time to the next end are taken to end at their present
        rate: fewer events, an error of about as much [1].
    """
    ends = np.zeros(routes.count)
    left = flow_bytes.astype(np.float64)
    open_flows = np.arange(routes.count)
    now = 0.0
    while routes.count:
        rates = max_min_rates(routes, link_bytes_per_s)
        rest = left / rates
        step = float(np.min(rest))
        done = rest <= step * (1.0 + max(merge_fraction, _CLOSE))
        ends[open_flows[done]] = now + rest[done]
        now += step
        left = np.maximum(left - rates * step, 0.0)[~done]
        open_flows = open_flows[~done]
        routes = routes.take(~done)
    return ends
