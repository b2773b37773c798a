"""From a cluster to where a collective of it runs, with what is taken for granted."""

from __future__ import annotations

from collections.abc import Iterator

from linkwise.cluster import Cluster, RoutingKind
from linkwise.cluster.calibration import Calibration
from linkwise.cluster.changes import NETWORK_RULE, gpu_speed_fraction, network_fraction
from linkwise.errors import InputError
from linkwise.nccl.communicator import NO_LIMITS, Limits
from linkwise.nccl.constants import release_constants
from linkwise.network.changed_fabric import fabric_words, leaf_fraction
from linkwise.network.clos import unwired_words
from linkwise.network.collective_constants import collective_constants
from linkwise.network.collective_interval import measured_gpus, reach_of
from linkwise.network.contention import PEERS_AT_ONCE
from linkwise.network.link_factors import AS_MODELLED, LinkFactors
from linkwise.network.links import borrowed_generation, is_behind_nic, local_links, network_kind
from linkwise.network.setting import WITH_CHOICE, Launch, Setting
from linkwise.network.tiers import rail_words
from linkwise.network.uplinks import describe, uplinks_of

__all__ = ["assumptions_of", "link_factors", "network_of", "setting_of"]

_OF_TRAINING = ("host memory: ",)
"""Assumptions of a cluster that hold for the step of a training job alone."""


def setting_of(cluster: Cluster, *, gpus: int | None = None, limits: Limits = NO_LIMITS) -> Setting:
    """Return where a collective over the first GPUs of a cluster runs.

    Parameters
    ----------
    cluster
        What there is.
    gpus
        How many take part, node after node; all by default [1].
    limits
        What may be chosen.

    Raises
    ------
    InputError
        If fewer than two GPUs take part, more than there are, or no network joins them.

    Notes
    -----
    What NCCL calls a node is an NVLink domain, or the host where NVLink joins fewer GPUs than it holds. The
    NICs of all nodes of a domain add up, and up-links of leaves limit what leaves those. One call on an idle
    network. Changes count of the nodes that take part.
    """
    ranks = cluster.gpus if gpus is None else gpus
    _check(cluster, ranks)
    span = max(cluster.nvlink_domain_gpus, cluster.gpus_per_node)
    domains = -(-ranks // span)
    per_domain = -(-ranks // domains)
    links = local_links(
        cluster.gpu,
        ranks_per_domain=per_domain,
        joined_by=cluster.gpu_links,
        bridged_gpus=cluster.nvlink_domain_gpus,
    )
    across = _node_bytes_per_s(cluster, ranks) * span / cluster.gpus_per_node if domains > 1 else 0.0
    return Setting(
        group=links.communicator(ranks=ranks, domains=domains, network_bytes_per_s=across),
        network=network_of(cluster) if domains > 1 else "nvlink",
        pair_bytes_per_s=links.pair_bytes_per_s,
        bridged=links.bridged,
        through_host=links.through_host,
        nic_on_switch=domains > 1 and is_behind_nic(links, cluster.nic_bytes_per_s),
        limits=limits,
        uplinks=uplinks_of(cluster, ranks=ranks, domain_gpus=span) if domains > 1 else None,
        factors=link_factors(cluster.calibration),
    )


def link_factors(calibration: Calibration | None) -> LinkFactors:
    """Return what a site's calibration says of its links.

    Parameters
    ----------
    calibration
        The calibration of a cluster; ``None`` for none.
    """
    if calibration is None:
        return AS_MODELLED
    return LinkFactors(
        local_latency=calibration.factor("nvlink_latency"),
        local_bandwidth=calibration.factor("nvlink_bandwidth"),
        network_latency=calibration.factor("network_latency"),
        network_bandwidth=calibration.factor("network_bandwidth"),
    )


def assumptions_of(cluster: Cluster, setting: Setting, operation: str) -> Iterator[str]:
    """Yield what a time rests on: synchrony, routing, latency constants, runs measured, release of NCCL.

    Parameters
    ----------
    cluster
        What there is.
    setting
        As `setting_of` gives it.
    operation
        One of `linkwise.network.setting.OPERATIONS`.
    """
    who = "one process or thread each"
    if setting.launch is Launch.ONE_THREAD:
        who = "one thread for all GPUs of a node"
    yield f"all GPUs call at the same moment, {who}, and nothing else is on the links"
    if setting.group.domains > 1:
        yield f"{_routing(cluster, setting)}; no reduction in the switches of the network"
        yield from _latency(setting)
        yield from describe(setting.uplinks, cluster)
        if operation == "all_to_all":
            yield from rail_words(cluster)
        if setting.group.ranks % setting.group.domains:
            yield "the last NVLink domain is partly filled; its ranks are priced as if spread evenly"
    yield from _borrowed(cluster, setting)
    yield from _beyond(setting, operation)
    yield _choice(setting, operation)
    yield from (one for one in cluster.assumptions if not one.startswith(_OF_TRAINING))
    if cluster.calibration is not None:
        yield cluster.calibration.words
    yield from _changed(cluster, setting)


def _node_bytes_per_s(cluster: Cluster, ranks: int) -> float:
    """Return what the NICs of a node carry beside the changes of the nodes that take part [bytes/s]."""
    left = network_fraction(cluster, ranks) * leaf_fraction(cluster, ranks)
    return cluster.nics_per_node * cluster.nic_bytes_per_s * left


def _changed(cluster: Cluster, setting: Setting) -> Iterator[str]:
    if not cluster.changes:
        return
    ranks = setting.group.ranks
    left = network_fraction(cluster, ranks) * leaf_fraction(cluster, ranks)
    if setting.group.domains > 1 and left < 1:
        yield f"changes: {left:.3g} of the rate of the NICs is left, {NETWORK_RULE}"
    else:
        yield "changes: no NIC that takes part is changed"
    if gpu_speed_fraction(cluster, ranks) < 1:
        yield "changes: a slow GPU is not priced here, where nothing is computed"
    if setting.uplinks is not None:
        yield from fabric_words(cluster)


def _check(cluster: Cluster, ranks: int) -> None:
    if ranks > cluster.gpus:
        raise InputError(f"{ranks} GPUs are more than the {cluster.gpus} of {cluster.name}; ask for fewer")
    if ranks < 2:
        raise InputError(f"a collective needs at least two GPUs, and {cluster.name} gives {ranks}")
    span = max(cluster.nvlink_domain_gpus, cluster.gpus_per_node)
    if ranks > span and not cluster.node_bytes_per_s:
        raise InputError(f"{ranks} GPUs span nodes of {span}, and nothing joins those; name a fabric")


def _beyond(setting: Setting, operation: str) -> Iterator[str]:
    reach = reach_of(setting)
    most = measured_gpus(operation, reach)
    if most == 0:
        where = "within an NVLink domain" if reach == "one_domain" else "across the network"
        yield f"no run of {operation} {where} was measured: the interval is that of other collectives"
    elif setting.group.ranks > most:
        yield (
            f"beyond the {most:,} GPUs that were measured: the interval is that of smaller runs, and the "
            "truth may lie outside"
        )


def _borrowed(cluster: Cluster, setting: Setting) -> Iterator[str]:
    generation = borrowed_generation(cluster.gpu)
    if generation is not None and setting.group.generation != "pcie":
        of = f"{cluster.gpu.name} ({cluster.gpu.architecture})"
        yield (
            f"no collective of {of} was measured: latencies and shares of the link rate are those of "
            f"{generation}, and so is the interval"
        )


def _choice(setting: Setting, operation: str) -> str:
    """Return who chose algorithm and protocol."""
    if operation not in WITH_CHOICE:
        return (
            f"{operation} has one algorithm, and its protocols are priced alike: there is nothing to choose"
        )
    given = [
        f"{kind} {' or '.join(sorted(words))}"
        for kind, words, every in (
            ("algorithm", setting.limits.algorithms, NO_LIMITS.algorithms),
            ("protocol", setting.limits.protocols, NO_LIMITS.protocols),
        )
        if words != every
    ]
    source = release_constants(setting.group.release).source
    if not given:
        return (
            f"algorithm and protocol as NCCL chooses them by default ({source}), by estimates of its own: "
            "where one hands over to another, more bytes may take less time and faster links more"
        )
    rest = "" if len(given) == 2 else f"; the other as NCCL chooses it: {source}"
    return f"{' and '.join(given)} as asked for, whatever NCCL would choose{rest}"


def _routing(cluster: Cluster, setting: Setting) -> str:
    """Return how flows are laid on links, and how many of one NIC are taken to be on the way at once."""
    routing = cluster.fabric.routing
    if routing.kind is not RoutingKind.ECMP:
        return f"routing {routing.kind}: flows spread evenly, no collisions"
    if setting.uplinks is None:
        return "routing ecmp: no flow leaves its leaf, so none collide"
    if not setting.uplinks.leaf_gpus:
        return f"routing ecmp: {unwired_words(cluster)}, so flows that share a link are not priced"
    return (
        f"routing ecmp, queue pairs of a connection: {routing.queue_pairs}; each chooses links by hash, and "
        f"the mean of the fullest link counts; an all-to-all keeps {PEERS_AT_ONCE} peers on the way at once "
        "(fewer collide more)"
    )


def network_of(cluster: Cluster) -> str:
    """Return the kind of network between domains that latencies are known by.

    Parameters
    ----------
    cluster
        What there is.
    """
    link = cluster.fabric.link
    if link is None:
        return "infiniband"
    if link.protocol == "efa":
        return link.name.replace("-", "_")
    return network_kind(link.protocol, cluster.nic_bytes_per_s, cluster.nics_per_node)


def _latency(setting: Setting) -> Iterator[str]:
    figures = [collective_constants()[f"hops_{name}_{setting.network}"] for name in ("ll", "ll128", "simple")]
    times = " / ".join(f"{figure.value:g}" for figure in figures)
    kind = setting.network.replace("_", "-")
    yield f"a hop over {kind} takes {times} times that of verbs (LL / LL128 / Simple; {figures[0].basis})"
