"""What the calls of a job cost in a lab: each kind of call is measured alone, before anything is predicted.

Two figures for each: what a message takes without its bytes, and the share of the slowest link that is
reached. Calls are of one kind where they put the same shares of their bytes on the same tiers of links.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from linkwise.lab.design import LabDesign
from linkwise.lab.job import JobEnd
from linkwise.lab.routes import LabLink, Tier, payload_bytes_per_s
from linkwise.lab.traffic import StepCall, loads_of, traffic_of
from linkwise.network.gloo import gloo_time_s

__all__ = ["Calibration", "CallCost", "CallKind", "calibrated", "calibration_calls", "kind_of"]

_LARGE_S, _LARGE_IN_A_ROW, _SMALL_IN_A_ROW = 0.12, 2, 4
_BUSY_S, _BESIDE_S = 0.002, 0.012
"""What a rank computes between two calls, as half a small layer does, and what these take (assumed) [s]."""
_STAND_INS = {"send": ("there_and_back", 2), "ahead": ("all_reduces_at_once", 4)}
"""What is called in the place of a kind, and how many of its calls are in it."""
_LEAST_REPEATS, _MOST_REPEATS, _WHOLE_S, _MESSAGE_S = 5, 25, 0.35, 0.002
"""Each size is called for a third of a second or more, longer than most of what disturbs it (assumed)."""
_SMALL_SHARE, _LEAST_BYTES = 8, 1024
_NOTHING, _HUGE_BYTES = 1e-9, 2.0**60


@dataclass(frozen=True, slots=True, kw_only=True)
class CallKind:
    """What calls have in common whose cost is the same.

    Parameters
    ----------
    operation
        As a step has it.
    groups, ranks
        Groups that call at the same time, and ranks of each [1].
    shares
        Tier of every link, and the share of the buffer that it carries.
    is_ahead
        Whether several are on their way at once.
    """

    operation: str
    groups: int
    ranks: int
    shares: tuple[tuple[str, str], ...]
    is_ahead: bool = False

    @property
    def slowest_tier(self) -> str:
        """Return the tier of the links that are shaped, or the inside of nodes where none is."""
        tiers = [tier for tier, _ in self.shares]
        return next((tier for tier in tiers if tier != Tier.INSIDE), str(Tier.INSIDE))


@dataclass(frozen=True, slots=True, kw_only=True)
class CallCost:
    """What a kind of call costs.

    Parameters
    ----------
    round_s
        What one of its messages takes without its bytes [s].
    reached_fraction
        Share of the rate of its slowest link that it reaches [1].
    """

    round_s: float
    reached_fraction: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """What was measured before a job.

    Parameters
    ----------
    loopback_bytes_per_s
        What a node's loopback carries while all nodes use theirs; infinite with one rank a node [bytes/s].
    costs
        Of each kind of call.
    core_share
        Seconds that a second of computing takes where ranks wait for one another in between [1].
    """

    loopback_bytes_per_s: float
    costs: Mapping[CallKind, CallCost]
    core_share: float = 1.0

    def time_s(self, call: StepCall, design: LabDesign) -> float:
        """Return what one call takes [s].

        Parameters
        ----------
        call
            Of a kind that was measured.
        design
            The lab.
        """
        cost = self.costs[kind_of(call, design)]
        return gloo_time_s(
            loads_of(call, design),
            _rate(design, self.loopback_bytes_per_s),
            rounds=traffic_of(call).rounds,
            round_s=cost.round_s,
            reached_fraction=cost.reached_fraction,
        )


def kind_of(call: StepCall, design: LabDesign) -> CallKind:
    """Return what calls have in common whose cost is the same.

    Parameters
    ----------
    call
        Of a step.
    design
        The lab.
    """
    whole = replace(call, size_bytes=_HUGE_BYTES)  # beside which gloo's own words are nothing
    shares = sorted((str(link.tier), load / _HUGE_BYTES) for link, load in loads_of(whole, design).items())
    told = tuple((tier, f"{share:.6f}") for tier, share in shares)
    return CallKind(
        operation=call.operation,
        groups=len(call.groups),
        ranks=len(call.groups[0]),
        shares=told,
        is_ahead=call.is_ahead,
    )


def calibration_calls(calls: Sequence[StepCall], design: LabDesign) -> list[dict[str, Any]]:
    """Return what is measured for the calls of a job: each kind small and large, then one beside computing.

    Parameters
    ----------
    calls
        Of a step.
    design
        The lab.
    """
    in_a_row = (_SMALL_IN_A_ROW, _LARGE_IN_A_ROW)
    found = [
        _told(call, design, size_bytes=size_bytes, in_a_row=count)
        for call in _kinds(calls, design).values()
        for size_bytes, count in zip(_sizes(call, design), in_a_row, strict=True)
    ]
    if (waited := _waited_for(calls)) is not None:
        size_bytes = _sizes(waited, design, most_s=_BESIDE_S)[1]
        beside = _told(waited, design, size_bytes=size_bytes, in_a_row=_SMALL_IN_A_ROW)
        found += [beside, {**beside, "busy_s": _BUSY_S}]
    return found


def _told(call: StepCall, design: LabDesign, *, size_bytes: int, in_a_row: int) -> dict[str, Any]:
    name, inside = _stand_in(call)
    return {
        "operation": name,
        "groups": [list(group) for group in call.groups],
        "size_bytes": size_bytes,
        "warmup": 1,
        "repeats": _repeats(call, design, size_bytes, in_a_row),
        "in_a_row": max(1, in_a_row // inside),
        "is_counted": False,
    }


def _stand_in(call: StepCall) -> tuple[str, int]:
    return _STAND_INS.get("ahead" if call.is_ahead else call.operation, (call.operation, 1))


def _waited_for(calls: Sequence[StepCall]) -> StepCall | None:
    """Return the call that ranks wait for in every layer, if there is one."""
    return next((call for call in calls if call.part in ("tensor", "gather")), None)


def calibrated(
    calls: Sequence[StepCall], design: LabDesign, end: JobEnd, *, loopback_bytes_per_s: float, first: int
) -> Calibration:
    """Return what a job measured of its calls.

    Parameters
    ----------
    calls
        As `calibration_calls` had them.
    design
        The lab.
    end
        How the job ended.
    loopback_bytes_per_s
        What a node's loopback carries [bytes/s].
    first
        Number of the first of these calls among those measured.
    """
    times = {
        int(each["call"]): _undisturbed(each["times_s"]) for each in end.events if each["event"] == "measured"
    }
    rate = _rate(design, loopback_bytes_per_s)
    costs = {}
    place = first
    for kind, call in _kinds(calls, design).items():
        taken = [times[place + which] / _stand_in(call)[1] for which in (0, 1)]
        links = [_link_s(call, design, rate, size) for size in _sizes(call, design)]
        costs[kind] = _cost(taken, links, rounds=traffic_of(call).rounds)
        place += 2
    share = 1.0
    if _waited_for(calls) is not None:
        share = max(1.0, (times[place + 1] - times[place]) / _BUSY_S)
    return Calibration(loopback_bytes_per_s=loopback_bytes_per_s, costs=costs, core_share=share)


def _undisturbed(times_s: Sequence[float]) -> float:
    """Return the lower quartile: what else the machine does only ever adds."""
    return sorted(times_s)[len(times_s) // 4]


def _cost(taken: Sequence[float], links: Sequence[float], *, rounds: int) -> CallCost:
    """Return the line through a small and a large call; one that would begin below nothing begins there."""
    slope = (taken[1] - taken[0]) / max(links[1] - links[0], _NOTHING)
    start_s = taken[0] - slope * links[0]
    if slope <= 0.0:
        return CallCost(round_s=max(taken) / rounds)
    if start_s < 0.0:
        return CallCost(round_s=0.0, reached_fraction=links[1] / taken[1])
    return CallCost(round_s=start_s / rounds, reached_fraction=1.0 / slope)


def _kinds(calls: Sequence[StepCall], design: LabDesign) -> dict[CallKind, StepCall]:
    """Return the largest call of each kind, in order."""
    largest: dict[CallKind, StepCall] = {}
    for call in calls:
        kind = kind_of(call, design)
        if kind not in largest or call.size_bytes > largest[kind].size_bytes:
            largest[kind] = call
    return largest


def _sizes(call: StepCall, design: LabDesign, *, most_s: float = _LARGE_S) -> tuple[int, int]:
    """Return a small size and that of the call itself, or what links carry in a moment."""
    ranks = len(call.groups[0])
    whole_s = _link_s(call, design, _rate(design, float("inf")), round(call.size_bytes))
    share = min(1.0, most_s / whole_s) if whole_s else 1.0
    large = max(call.size_bytes * share, float(_LEAST_BYTES))
    small = max(large / _SMALL_SHARE, float(_LEAST_BYTES) / 2)
    return _whole(small, ranks), _whole(large, ranks)


def _repeats(call: StepCall, design: LabDesign, size_bytes: int, in_a_row: int) -> int:
    once_s = in_a_row * (_link_s(call, design, _rate(design, float("inf")), size_bytes) + _MESSAGE_S)
    return min(max(round(_WHOLE_S / once_s), _LEAST_REPEATS), _MOST_REPEATS)


def _whole(size_bytes: float, ranks: int) -> int:
    each = 4 * ranks
    return max(each, int(size_bytes) // each * each)


def _link_s(call: StepCall, design: LabDesign, rate: Callable[[LabLink], float], size_bytes: int) -> float:
    """Return what the slowest link takes for a size [s]."""
    loads = loads_of(replace(call, size_bytes=float(size_bytes)), design)
    return max((load / rate(link) for link, load in loads.items()), default=0.0)


def _rate(design: LabDesign, loopback_bytes_per_s: float) -> Callable[[LabLink], float]:
    return lambda link: payload_bytes_per_s(design, link, loopback_bytes_per_s=loopback_bytes_per_s)
