"""What is in use: versions, transports, NICs, GPUDirect RDMA, NVLS, each with the line that proves it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from linkwise.diagnose.facts import Facts
from linkwise.readers.job_log.values import ChannelUse, Evidence, Sighting

__all__ = ["InUse", "Transport", "nics_by_host", "nics_of", "transport_of"]

_DEVICE = re.compile(r"\[\d+\](?:=\{[^}]*\}|\S+)|(?<!\S)\w[\w.-]*:\d+\.\d+\.\d+\.\d+<\d+>")


@dataclass(frozen=True, slots=True, kw_only=True)
class InUse:
    """One thing in use.

    Parameters
    ----------
    value
        What it is; ``None`` where the log does not show it.
    evidence
        The line that proves it.
    hint
        Without a value: why, and what would show it.
    """

    value: str | int | bool | None = None
    evidence: Evidence | None = None
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transport:
    """All that is in use; the names are those of the published result."""

    nccl_version: InUse
    cuda_version: InUse
    ranks: InUse
    nodes: InUse
    intra_node: InUse
    inter_node: InUse
    nics_per_node: InUse
    nic_link: InUse
    nic_gbit_per_s: InUse
    gpudirect_rdma: InUse
    nvls: InUse
    algorithms: InUse
    bootstrap_interface: InUse


def transport_of(facts: Facts) -> Transport:
    """Return what is in use.

    Parameters
    ----------
    facts
        What is known of the job.
    """
    return Transport(
        nccl_version=_version(facts),
        cuda_version=_cuda_version(facts),
        ranks=_ranks(facts),
        nodes=_nodes(facts),
        intra_node=_intra_node(facts),
        inter_node=_inter_node(facts),
        nics_per_node=_nics_per_node(facts),
        nic_link=_nic_link(facts),
        nic_gbit_per_s=_nic_gbit_per_s(facts),
        gpudirect_rdma=_gpudirect(facts),
        nvls=_nvls(facts),
        algorithms=_algorithms(facts),
        bootstrap_interface=_bootstrap(facts),
    )


def nics_of(line: Sighting) -> tuple[str, ...]:
    """Return the devices that a line lists, such as ``mlx5_0:1/IB``.

    Parameters
    ----------
    line
        A line of the devices of IB, sockets or FasTrak.
    """
    found = _DEVICE.findall(line.fields.get("devices", ""))
    return tuple(re.sub(r"^\[\d+\]=?", "", each) for each in found)


def _version(facts: Facts) -> InUse:
    for each in facts.seen("version"):
        if facts.version and each.fields["version"] == ".".join(map(str, facts.version)):
            return InUse(value=each.fields["version"], evidence=each.evidence)
    return InUse(hint="not visible in this log, set NCCL_DEBUG=VERSION")


def _cuda_version(facts: Facts) -> InUse:
    for each in facts.seen("version"):
        if "cuda" in each.fields and each.fields.get("runtime") == "cuda":
            return InUse(value=each.fields["cuda"], evidence=each.evidence)
    return InUse(hint="not visible in this log, set NCCL_DEBUG=VERSION")


def _ranks(facts: Facts) -> InUse:
    for each in facts.seen("init", "size"):
        if int(each.fields["nranks"]) == facts.ranks:
            return InUse(value=facts.ranks, evidence=each.evidence)
    return InUse(value=facts.ranks, hint=_set("INIT"))


def _nodes(facts: Facts) -> InUse:
    for each in facts.seen("size"):
        if int(each.fields["nranks"]) == facts.ranks:
            return InUse(value=facts.nodes, evidence=each.evidence)
    evidence = next((each.evidence for each in facts.net_channels), None)
    return InUse(value=facts.nodes, evidence=evidence, hint=_set("INIT,GRAPH"))


def _intra_node(facts: Facts) -> InUse:
    inside = [
        each for each in facts.channels if each.kind in {"P2P", "SHM"} and False in _joins_nodes(facts, each)
    ]
    if inside:
        return _named(inside)
    if facts.nodes and facts.ranks == facts.nodes:
        return InUse(hint="one rank per node: nothing to use")
    return InUse(hint=_channels_hint(facts))


def _inter_node(facts: Facts) -> InUse:
    across = [
        each
        for each in facts.channels
        if each.kind in {"NET", "COLLNET"} or True in _joins_nodes(facts, each)
    ]
    if across:
        return _named(across)
    if facts.is_one_node:
        return InUse(hint="one node: nothing to use")
    if facts.nodes and facts.networks:
        name = facts.networks.most_common(1)[0][0]
        line = next(each for each in facts.seen("network") if each.fields["name"] == name)
        return InUse(value=f"NET/{name}", evidence=line.evidence)
    return InUse(hint=_channels_hint(facts))


def _joins_nodes(facts: Facts, channel: ChannelUse) -> set[bool]:
    """Return whether the pairs of a channel are on two nodes, or on one; both are possible in a rack."""
    if "MNNVL" not in channel.transport:
        return {False} if channel.kind in {"P2P", "SHM"} else {True}
    hosts = facts.host_of
    known = {(hosts[a] != hosts[b]) for a, b in channel.pairs if a in hosts and b in hosts}
    return known or {True}


def _named(channels: Sequence[ChannelUse]) -> InUse:
    counts: Counter[str] = Counter()
    for each in channels:
        counts[_short(each)] += each.count
    names = [name for name, _ in counts.most_common(3)]
    first = next(each for each in channels if _short(each) == names[0])
    return InUse(value=" and ".join(names), evidence=first.evidence)


def _short(channel: ChannelUse) -> str:
    if channel.kind == "SHM":
        return "SHM"
    return "/".join(channel.transport.split("/")[:2])


def nics_by_host(facts: Facts) -> dict[str | None, tuple[int, Sighting]]:
    """Return how many devices each host lists for the network in use, with the line that says so.

    Parameters
    ----------
    facts
        What is known of the job.
    """
    per_host: dict[str | None, tuple[int, Sighting]] = {}
    for each in _device_lines(facts):
        count = int(each.fields["count"]) if each.what == "ofi_nics" else len(nics_of(each))
        per_host[each.host] = (count, each)
    return per_host


def _nics_per_node(facts: Facts) -> InUse:
    per_host = nics_by_host(facts)
    if not per_host:
        return _nics_in_channels(facts)
    counts = Counter(count for count, _ in per_host.values())
    usual = counts.most_common(1)[0][0]
    line = next(each for count, each in per_host.values() if count == usual)
    return InUse(value=usual, evidence=line.evidence)


def _nics_in_channels(facts: Facts) -> InUse:
    """Return how many devices the channels of a host name, for networks that print no list of theirs."""
    used: dict[str | None, set[str]] = {}
    for each in facts.net_channels:
        used.setdefault(each.host, set()).add(each.nic)
    if not used:
        return InUse(hint=_set("INIT,NET"))
    most = max(len(numbers) for numbers in used.values())
    return InUse(value=most, evidence=facts.net_channels[0].evidence)


def _device_lines(facts: Facts) -> tuple[Sighting, ...]:
    names = set(facts.used_networks) or set(facts.networks)
    if any(name.startswith("IB") for name in names):
        return tuple(each for each in facts.seen("ib_devices") if nics_of(each))
    if any("Libfabric" in name for name in names):
        return facts.seen("ofi_nics")
    if any("FasTrak" in name for name in names):
        return facts.seen("fastrak_devices")
    return facts.seen("socket_devices")


def _nic_link(facts: Facts) -> InUse:
    """Return the link layer of the devices in use, where they are of InfiniBand or RoCE."""
    if not facts.is_rdma:
        is_known = bool(facts.networks or facts.net_channels)
        return InUse(hint="no RDMA device is used: nothing to use" if is_known else _set("INIT,NET"))
    for each in facts.seen("ib_devices"):
        layers = sorted({name.rsplit("/", 1)[-1].rstrip("},") for name in nics_of(each)})
        if layers:
            return InUse(value=" and ".join(layers), evidence=each.evidence)
    return InUse(hint=_set("INIT,NET"))


def _nic_gbit_per_s(facts: Facts) -> InUse:
    """Return the rate of a NIC in Gbit/s, the slowest that is shown."""
    rates = [(int(each.fields["mbit_s"]) / 1000, each) for each in facts.seen("ib_speed")]
    rates = rates or [(8 * float(each.fields["gbyte_s"]), each) for each in facts.seen("graph_nic")]
    if not rates:
        return InUse(hint=_set("INIT,NET,GRAPH"))
    slowest, line = min(rates, key=lambda each: each[0])
    return InUse(value=round(slowest), evidence=line.evidence)


_ALGORITHMS = ("Tree", "Ring", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree", "PAT")
_PROTOCOLS = ("LL", "LL128", "Simple")


def _algorithms(facts: Facts) -> InUse:
    """Return algorithm and protocol of the largest calls that are shown."""
    lines = facts.seen("algorithm")
    if not lines:
        return InUse(hint=_set("TUNING"))
    largest = max(lines, key=lambda each: int(each.fields["bytes"]))
    algorithm = _word(largest.fields["algorithm"], _ALGORITHMS)
    protocol = _word(largest.fields["protocol"], _PROTOCOLS)
    return InUse(value=f"{largest.fields['operation']} {algorithm}/{protocol}", evidence=largest.evidence)


def _word(text: str, names: Sequence[str]) -> str:
    """Return the name of what older releases print as a number."""
    return names[int(text)] if text.isdigit() and int(text) < len(names) else text


def _gpudirect(facts: Facts) -> InUse:
    if facts.net_channels:
        # One side without it stages every transfer: in use means on all channels.
        without = [each for each in facts.net_channels if not each.is_gpudirect]
        first = without[0] if without else facts.net_channels[0]
        return InUse(value=not without, evidence=first.evidence)
    if facts.is_one_node:
        return InUse(hint="one node: nothing to use")
    for each in facts.seen("rings_connected"):
        if "gdr" in each.fields and facts.nodes:
            return InUse(value=each.fields["gdr"] == "1", evidence=each.evidence)
    return InUse(hint=_channels_hint(facts))


def _nvls(facts: Facts) -> InUse:
    for each in facts.seen("channel_counts"):
        if "nvls" in each.fields:
            return InUse(value=int(each.fields["nvls"]) > 0, evidence=each.evidence)
    for each in facts.seen("nvls"):
        return InUse(value="absent" not in each.fields, evidence=each.evidence)
    if facts.version and facts.version < (2, 17):
        return InUse(value=False, evidence=_version(facts).evidence)
    return InUse(hint=_set("INIT,NVLS"))


def _bootstrap(facts: Facts) -> InUse:
    for each in facts.seen("bootstrap"):
        return InUse(value=each.fields["interface"], evidence=each.evidence)
    return InUse(hint=_set("INIT,BOOTSTRAP"))


def _channels_hint(facts: Facts) -> str:
    if facts.has_completed and facts.version and facts.version >= (2, 22):
        return "no collective has run yet in this log; NCCL connects at the first one"
    return _set("INIT,P2P,SHM,NET")


def _set(subsystems: str) -> str:
    return f"not visible in this log, set NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS={subsystems}"
