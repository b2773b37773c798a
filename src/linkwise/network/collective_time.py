"""How long a collective takes: NCCL's choice, and what that choice costs on the links there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from linkwise.errors import InputError
from linkwise.nccl.choice import Candidate, candidates, choice_table
from linkwise.network.collective_constants import collective_values
from linkwise.network.collective_forms import FORMS, Ground, chain_s, direct_s, ground_of, pair_s
from linkwise.network.setting import Launch, Setting, bus_factor

__all__ = ["CollectiveTimes", "collective_times"]

Floats = NDArray[np.float64]

_CHUNK_ROWS = 16_384
"""Sizes that are taken at a time, so that their columns stay in the cache."""
_WITHOUT_CHOICE = {
    "all_to_all": ("direct", direct_s),
    "send_recv": ("direct", pair_s),
    "broadcast": ("ring", chain_s),
    "reduce": ("ring", chain_s),
}
"""Operations with one algorithm, whose form holds for all protocols."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveTimes:
    """Times of an operation over a column of sizes.

    Attributes
    ----------
    size_bytes
        Bytes of the full buffer, as nccl-tests counts them (rows,) [bytes].
    names
        Algorithm and protocol of each candidate.
    choice
        Position in `names` of what NCCL takes (rows,).
    time_s
        Time of one call (rows,) [s].
    bus
        Bus bandwidth over algorithm bandwidth [1].
    """

    size_bytes: Floats
    names: tuple[tuple[str, str], ...]
    choice: NDArray[np.intp]
    time_s: Floats
    bus: float

    @property
    def algbw_bytes_per_s(self) -> Floats:
        """Return size over time (rows,) [bytes/s]."""
        return self.size_bytes / self.time_s

    @property
    def busbw_bytes_per_s(self) -> Floats:
        """Return the algorithm bandwidth times the bus factor of nccl-tests (rows,) [bytes/s]."""
        return self.algbw_bytes_per_s * self.bus


def collective_times(
    operation: str, setting: Setting, size_bytes: Floats, *, constants: Mapping[str, float] | None = None
) -> CollectiveTimes:
    """Return the time of an operation for each size.

    Parameters
    ----------
    operation
        One of `linkwise.network.setting.OPERATIONS`.
    setting
        Where it runs; two ranks at least.
    size_bytes
        Bytes of the full buffer (rows,) [bytes].
    constants
        Constants by name, SI; the shipped ones by default.

    Raises
    ------
    InputError
        If there is one rank only, or the variables of the job leave nothing to choose from.

    Notes
    -----
    All ranks are taken to call at the same moment, and the network to be idle and evenly used.
    """
    if setting.group.ranks < 2:
        raise InputError("a collective needs at least two GPUs; there is one")
    known = collective_values() if constants is None else constants
    at = _ground(operation, setting) if constants is None else ground_of(operation, setting, known)
    names, choice, time_s = _chosen(at, setting, size_bytes)
    return CollectiveTimes(
        size_bytes=size_bytes,
        names=names,
        choice=choice,
        time_s=_launched(at, time_s, size_bytes),
        bus=bus_factor(operation, setting.group.ranks),
    )


@lru_cache(maxsize=4096)
def _ground(operation: str, setting: Setting) -> Ground:
    return ground_of(operation, setting, collective_values())


def _chosen(
    at: Ground, expected: Setting, size_bytes: Floats
) -> tuple[tuple[tuple[str, str], ...], NDArray[np.intp], Floats]:
    """Return the candidates, which is taken for each size by what NCCL expects, and what that costs."""
    choice = np.zeros(len(size_bytes), dtype=np.intp)
    if at.operation in _WITHOUT_CHOICE:
        algorithm, form = _WITHOUT_CHOICE[at.operation]
        return ((algorithm, "simple"),), choice, form(at, size_bytes)
    table = choice_table(at.operation, expected.group, expected.limits)
    if not table.offered:
        raise InputError(_nothing_left(at))
    time_s = np.empty(len(size_bytes))
    for start in range(0, len(size_bytes), _CHUNK_ROWS):
        rows = slice(start, start + _CHUNK_ROWS)
        choice[rows] = table.choose(size_bytes[rows])
        time_s[rows] = _times(at, table.offered, choice[rows], size_bytes[rows])
    return tuple(map(_name, table.offered)), choice, time_s


def _times(at: Ground, offered: Sequence[Candidate], choice: NDArray[np.intp], size_bytes: Floats) -> Floats:
    time_s = np.empty(len(size_bytes))
    for place in set(choice.tolist()):
        rows = choice == place
        time_s[rows] = FORMS[_name(offered[place])](at, size_bytes[rows])
    return time_s


def _name(one: Candidate) -> tuple[str, str]:
    return one.algorithm, one.protocol


def _nothing_left(at: Ground) -> str:
    there = sorted({" ".join(_name(one)) for one in candidates(at.operation, at.setting.group)})
    wanted = (sorted(words) for words in (at.setting.limits.algorithms, at.setting.limits.protocols))
    algorithms, protocols = ("/".join(words) for words in wanted)
    return f"{at.operation} has no {algorithms} with {protocols} here; there are: {', '.join(there)}"


def _launched(at: Ground, time_s: Floats, size_bytes: Floats) -> Floats:
    """Return the times with what the launch adds."""
    known = at.constants
    if at.setting.launch is Launch.FRAMEWORK:
        return time_s + known["framework_base"]
    if at.setting.launch is Launch.OWN_THREADS:
        return time_s
    fill = known["thread_fill"] * size_bytes / (size_bytes + known["thread_fill_size"])
    slower = time_s + known["thread_base"] + fill
    return np.maximum(slower, known["thread_direct_floor"]) if at.operation == "all_to_all" else slower
