"""Why a collective is slower than its cluster should give: changes that the model itself prices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from linkwise.catalog import Gpu
from linkwise.errors import InputError
from linkwise.nccl.choice import candidates
from linkwise.nccl.communicator import NO_LIMITS
from linkwise.network.collective_constants import collective_values
from linkwise.network.collective_interval import interval_factors, reach_of
from linkwise.network.collective_time import collective_times
from linkwise.network.links import local_links
from linkwise.network.setting import Setting

__all__ = ["LikelyCause", "Suspect", "likely_causes", "suspects"]

Floats = NDArray[np.float64]

LEAST_EXPLAINED = 0.65
"""Share of the distance between measured and expected that a cause must explain to be named [1]."""
MOST_CAUSES = 5
"""Causes that are named."""
_PORTS_GBIT_PER_S = (10, 25)
"""Ports for management that sockets may have taken instead of the fabric; a document does not name them."""
_CHOOSING = ("all_reduce", "all_gather", "reduce_scatter")


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """One thing that may be wrong.

    Parameters
    ----------
    cause
        What it is, in words.
    setting
        Where the collective would run if it were so.
    """

    cause: str
    setting: Setting


@dataclass(frozen=True, slots=True, kw_only=True)
class LikelyCause:
    """A cause that explains what was measured.

    Parameters
    ----------
    cause
        What it is, in words.
    ratio
        Bandwidth it would leave over the expected one, at the largest size [1].
    explained
        Share of the distance between measured and expected that it explains, 1 for all of it [1].
    """

    cause: str
    ratio: float
    explained: float


def suspects(operation: str, setting: Setting, *, gpu: Gpu, nics: int) -> Iterator[Suspect]:
    """Yield what may be wrong, the most common first.

    Parameters
    ----------
    operation
        One of `linkwise.network.setting.OPERATIONS`.
    setting
        Where it should run.
    gpu
        Its GPUs.
    nics
        NICs of a domain [1].
    """
    if setting.group.domains > 1:
        yield from _network_suspects(setting, gpu=gpu, nics=nics)
    if setting.group.ranks_per_domain > 1:
        yield from _local_suspects(setting, gpu)
    if operation in _CHOOSING:
        yield from _choice_suspects(operation, setting)


def likely_causes(
    operation: str, setting: Setting, size_bytes: Floats, time_s: Floats, *, gpu: Gpu, nics: int
) -> tuple[LikelyCause, ...]:
    """Return the causes that explain measured times, best first; empty where none does.

    Parameters
    ----------
    operation, setting, gpu, nics
        As for `suspects`.
    size_bytes, time_s
        Sizes, and the time measured at each (rows,) [bytes], [s].

    Notes
    -----
    A distance is the root of the summed squares of log(measured / modelled), each over the half-width of the
    stated interval at that size, so that large messages, which are known better, count more. Explained is 1
    less the distance to the cause over that to what was expected. Of causes with the same times the more
    common one is named.
    """
    expected = collective_times(operation, setting, size_bytes).time_s
    low, high = interval_factors(reach_of(setting), size_bytes)
    weight = 2.0 / np.log(high / low)
    largest = int(np.argmax(size_bytes))
    apart = _distance(time_s, expected, weight)
    found: list[LikelyCause] = []
    seen: list[Floats] = [expected]
    for one in suspects(operation, setting, gpu=gpu, nics=nics):
        try:
            times = collective_times(operation, one.setting, size_bytes).time_s
        except InputError:  # nothing is left to choose from in that setting
            continue
        if any(np.allclose(times, other, rtol=1e-6, atol=0.0) for other in seen):
            continue
        seen.append(times)
        explained = 1.0 - _distance(time_s, times, weight) / apart if apart else 0.0
        if explained >= LEAST_EXPLAINED:
            ratio = float(expected[largest] / times[largest])
            found.append(LikelyCause(cause=one.cause, ratio=ratio, explained=explained))
    return tuple(sorted(found, key=lambda cause: -cause.explained)[:MOST_CAUSES])


def _distance(measured_s: Floats, modelled_s: Floats, weight: Floats) -> float:
    return float(np.linalg.norm(weight * np.log(measured_s / modelled_s)))


def _network_suspects(setting: Setting, *, gpu: Gpu, nics: int) -> Iterator[Suspect]:
    sockets = replace(setting, network="sockets")
    if setting.network != "sockets":
        yield Suspect(cause="sockets (TCP) instead of RDMA on the same NICs", setting=sockets)
    counts = sorted({nics // 2**power for power in range(1, 8) if nics >= 2**power})
    for count in counts:
        yield Suspect(cause=_fewer_nics(count, nics), setting=_slower(setting, count / nics))
    if setting.network != "sockets":
        yield from _staged(setting, gpu)
        if nics > 1:
            yield Suspect(cause=f"sockets (TCP) on 1 of {nics} NICs", setting=_slower(sockets, 1 / nics))
    for port in _PORTS_GBIT_PER_S:
        share = port * 1.25e8 / setting.group.network_bytes_per_s
        if share * nics < 1:
            cause = f"sockets (TCP) on one port of {port} Gbit/s a domain"
            yield Suspect(cause=cause, setting=_slower(sockets, share))


def _fewer_nics(count: int, nics: int) -> str:
    """Return what leaves such a share of the network: times do not tell NICs that idle from slow ones."""
    return f"{count} of {nics} NICs, or each at {100 * count / nics:.3g} % (PCIe: ACS, wrong slot)"


def _staged(setting: Setting, gpu: Gpu) -> Iterator[Suspect]:
    """Yield the setting without GPUDirect RDMA: what leaves a GPU is copied through host memory."""
    if gpu.pcie_bytes_per_s is None:
        return
    group = setting.group
    staged = collective_values()["pcie_host_fraction"] * gpu.pcie_bytes_per_s * group.ranks_per_domain
    if staged < group.network_bytes_per_s:
        share = staged / group.network_bytes_per_s
        yield Suspect(cause="GPUDirect RDMA off: through host memory", setting=_slower(setting, share))


def _slower(setting: Setting, share: float) -> Setting:
    rate = share * setting.group.network_bytes_per_s
    return replace(setting, group=replace(setting.group, network_bytes_per_s=rate))


def _local_suspects(setting: Setting, gpu: Gpu) -> Iterator[Suspect]:
    group = setting.group
    if group.generation != "pcie":
        if group.has_multicast:
            without = replace(setting.limits, algorithms=setting.limits.algorithms - {"nvls", "nvls_tree"})
            yield Suspect(cause="NVLS off", setting=replace(setting, limits=without))
        yield Suspect(cause="half of the NVLinks", setting=_fewer_links(setting, 0.5))
        yield Suspect(cause="PCIe instead of NVLink", setting=_over_pcie(setting, gpu, "pcie"))
    if not setting.through_host:
        cause = "host memory between GPUs: no peer-to-peer access"
        yield Suspect(cause=cause, setting=_over_pcie(setting, gpu, "pcie-shm"))


def _fewer_links(setting: Setting, share: float) -> Setting:
    group = replace(setting.group, local_bytes_per_s=share * setting.group.local_bytes_per_s)
    return replace(setting, group=group, pair_bytes_per_s=share * setting.pair_bytes_per_s)


def _over_pcie(setting: Setting, gpu: Gpu, joined_by: str) -> Setting:
    group = setting.group
    links = local_links(gpu, ranks_per_domain=int(group.ranks_per_domain), joined_by=joined_by)
    return replace(
        setting,
        group=links.communicator(
            ranks=group.ranks,
            domains=group.domains,
            network_bytes_per_s=group.network_bytes_per_s,
            release=group.release,
        ),
        pair_bytes_per_s=links.pair_bytes_per_s,
        bridged=False,
        through_host=links.through_host,
        nic_on_switch=False,
    )


def _choice_suspects(operation: str, setting: Setting) -> Iterator[Suspect]:
    """Yield each protocol and each algorithm that NCCL could take, forced."""
    if setting.limits != NO_LIMITS:
        return
    offered = candidates(operation, setting.group)
    for protocol in dict.fromkeys(one.protocol for one in offered):
        limits = replace(NO_LIMITS, protocols=frozenset((protocol,)))
        yield Suspect(cause=f"protocol {protocol} forced", setting=replace(setting, limits=limits))
    for algorithm in dict.fromkeys(one.algorithm for one in offered):
        limits = replace(NO_LIMITS, algorithms=frozenset((algorithm,)))
        yield Suspect(cause=f"algorithm {algorithm} forced", setting=replace(setting, limits=limits))
