"""What a job lacks against what its cluster has, and what that costs in bus bandwidth and step time."""

from __future__ import annotations

from dataclasses import dataclass, replace

from linkwise.cluster import Cluster
from linkwise.diagnose.facts import Facts, lines_of
from linkwise.diagnose.finding import Confidence, Finding, Severity, finding
from linkwise.diagnose.over_sockets import over_sockets
from linkwise.diagnose.transport import Transport, nics_by_host
from linkwise.job import Job
from linkwise.readers.job_log.values import Evidence

__all__ = ["Shortfall", "lacking", "shortfalls_of"]

_SIZE_BYTES = 1 << 30
_HOSTS_SHOWN = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortfall:
    """One thing that the cluster has and the job does not use.

    Parameters
    ----------
    what
        ``NICs per node``, ``network`` or ``GPUs``.
    there, used
        What the cluster has, and what the job uses of it.
    evidence
        A line that shows what is used.
    busbw_there_bytes_per_s, busbw_used_bytes_per_s
        Predicted bus bandwidth of an all-reduce of 1 GiB over all GPUs, with either [bytes/s]; ``None``
        where it does
        not depend on it.
    step_there_s, step_used_s
        Predicted time of a step of the job, with either [s]; ``None`` without a job.
    note
        What the costs rest on; may be empty.
    """

    what: str
    there: str
    used: str
    evidence: Evidence | None
    busbw_there_bytes_per_s: float | None = None
    busbw_used_bytes_per_s: float | None = None
    step_there_s: float | None = None
    step_used_s: float | None = None
    note: str = ""


def shortfalls_of(
    facts: Facts, transport: Transport, cluster: Cluster, *, job: Job | None = None
) -> tuple[Shortfall, ...]:
    """Return what the job lacks against a cluster.

    Parameters
    ----------
    facts, transport
        What is known of the job, and what it uses.
    cluster
        What there is.
    job
        What is run, for the time of a step.
    """
    found = (
        _network(facts, transport, cluster, job),
        _nics(facts, transport, cluster, job),
        _gpus(transport, cluster),
    )
    return tuple(each for each in found if each is not None)


def lacking(facts: Facts, shortfalls: tuple[Shortfall, ...]) -> tuple[Finding, ...]:
    """Return the findings that follow from what is lacking.

    Parameters
    ----------
    facts
        What is known of the job.
    shortfalls
        As `shortfalls_of` gives them.
    """
    found = []
    for each in shortfalls:
        lines = [] if each.evidence is None else [each.evidence]
        if each.what == "network":
            found.append(_fallback([*lines, *lines_of(facts.net_channels)], each))
        elif each.what == "NICs per node":
            found.append(_missing_rails(lines, each))
    return tuple(found)


def _network(facts: Facts, transport: Transport, cluster: Cluster, job: Job | None) -> Shortfall | None:
    link = cluster.fabric.link
    names = facts.used_networks or facts.networks
    is_socket = bool(names) and all(name == "Socket" for name in names)
    if link is None or link.protocol not in {"infiniband", "roce"} or not is_socket or facts.is_one_node:
        return None
    lines = lines_of(facts.net_channels) or [each.evidence for each in facts.seen("network")]
    instead = over_sockets(facts, transport, cluster)
    return Shortfall(
        what="network",
        there=link.name,
        used="TCP sockets",
        evidence=lines[0],
        busbw_there_bytes_per_s=_busbw(cluster),
        busbw_used_bytes_per_s=_busbw(instead.cluster) if instead else None,
        step_there_s=_step_s(cluster, job),
        step_used_s=_step_s(instead.cluster, job) if instead else None,
        note=instead.note if instead else "",
    )


def _nics(facts: Facts, transport: Transport, cluster: Cluster, job: Job | None) -> Shortfall | None:
    """Return the NICs that the node with the fewest lacks: it sets the rate of all."""
    used, evidence = transport.nics_per_node.value, transport.nics_per_node.evidence
    is_socket = transport.inter_node.value == "NET/Socket"
    per_host = nics_by_host(facts)
    fewest, line = min(per_host.values(), key=lambda each: each[0], default=(0, None))
    short = sorted(host for host, (count, _) in per_host.items() if host is not None and count == fewest)
    is_uneven = line is not None and isinstance(used, int) and 0 < fewest < used
    if is_uneven and line is not None:
        used, evidence = fewest, line.evidence
    if not isinstance(used, int) or used >= cluster.nics_per_node or is_socket or used < 1:
        return None
    fewer = replace(cluster, nics_per_node=used)
    return Shortfall(
        what="NICs per node",
        there=str(cluster.nics_per_node),
        used=str(used),
        evidence=evidence,
        busbw_there_bytes_per_s=_busbw(cluster),
        busbw_used_bytes_per_s=_busbw(fewer),
        step_there_s=_step_s(cluster, job),
        step_used_s=_step_s(fewer, job),
        note=f"on {_listed(short)}; the node with the fewest sets the rate" if is_uneven else "",
    )


def _listed(hosts: list[str]) -> str:
    more = f" and {len(hosts) - _HOSTS_SHOWN} more" if len(hosts) > _HOSTS_SHOWN else ""
    return ", ".join(hosts[:_HOSTS_SHOWN]) + more


def _gpus(transport: Transport, cluster: Cluster) -> Shortfall | None:
    used = transport.ranks.value
    if not isinstance(used, int) or used >= cluster.gpus:
        return None
    return Shortfall(what="GPUs", there=str(cluster.gpus), used=str(used), evidence=transport.ranks.evidence)


def _busbw(cluster: Cluster) -> float | None:
    """Return the predicted bus bandwidth of a large all-reduce; ``None`` where one domain holds all GPUs."""
    import numpy as np

    from linkwise.network.cluster_setting import setting_of
    from linkwise.network.collective_time import collective_times

    if cluster.domains < 2 or not cluster.node_bytes_per_s:
        return None
    times = collective_times("all_reduce", setting_of(cluster), np.array([_SIZE_BYTES], dtype=np.float64))
    return float(times.busbw_bytes_per_s[0])


def _step_s(cluster: Cluster, job: Job | None) -> float | None:
    from linkwise.search import plan

    if job is None:
        return None
    found = plan(job, cluster, top=1)
    return found.layouts[0].step_time_s if found.layouts else None


def _fallback(proof: list[Evidence], each: Shortfall) -> Finding:
    return finding(
        "socket_fallback",
        Severity.SLOW,
        Confidence.MEDIUM,
        proof=proof,
        explanation=(
            f"The cluster has {each.there}, and the data between nodes goes over TCP sockets. Nothing in the"
            " logs says why the RDMA devices are not used."
        ),
        fix=("make the RDMA devices visible where the job runs: drivers, container devices, NCCL_IB_HCA",),
        next_check="ibv_devinfo, where the job runs; NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET",
    )


def _missing_rails(proof: list[Evidence], each: Shortfall) -> Finding:
    return finding(
        "rails",
        Severity.SLOW,
        Confidence.HIGH,
        proof=proof,
        explanation=(
            f"Nodes of this cluster have {each.there} NICs, and NCCL uses {each.used}. The others are down,"
            " filtered out by NCCL_IB_HCA, or not given to the container."
        ),
        fix=("bring the ports up, or name all of them in NCCL_IB_HCA",),
        next_check="ibstat and ibv_devices, where the job runs, beside the list after 'NET/IB : Using'",
    )
