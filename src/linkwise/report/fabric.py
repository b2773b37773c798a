"""The published result `linkwise.fabric/1`: parts of a fabric, what it carries, what failures cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer

from linkwise.report.fabric_bill import FabricBillResult, fabric_bill

if TYPE_CHECKING:
    from linkwise.cluster import Cluster
    from linkwise.network.changed_fabric import ChangedFabric
    from linkwise.network.collisions import Collisions
    from linkwise.network.failures import Failure
    from linkwise.network.optics import Optics
    from linkwise.network.wiring import Wiring

__all__ = [
    "CablesResult",
    "CollisionsResult",
    "FabricResult",
    "FailureResult",
    "OpticsResult",
    "SwitchesResult",
    "drawn_collisions",
    "electricity_of",
    "fabric_result",
    "failure_results",
    "installed_gpus",
    "installed_gpus_per_node",
    "optics_result",
    "price_words",
]


class _Result(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class SwitchesResult(_Result):
    """Switches by tier, all networks."""

    leaf: int
    spine: int
    core: int


class CablesResult(_Result):
    """Cables by tier, all networks."""

    node_leaf: int
    leaf_spine: int
    spine_core: int
    same_tier: int = Field(
        default=0, description="Between switches of one tier: groups of dragonfly-plus; absent where none."
    )

    @model_serializer(mode="wrap")
    def _without_none(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        written: dict[str, Any] = write(self)
        return {name: count for name, count in written.items() if count or name != "same_tier"}


class OpticsResult(_Result):
    """Cables and the transceivers of those that are optical."""

    ends: int = Field(description="Ends of cables.")
    modules: int = Field(description="Pieces; a twin-port one serves two ends.")
    by_module: dict[str, int] = Field(
        default_factory=dict, description="Pieces by module; empty where the catalogue has none."
    )
    power_w: float | None = Field(
        default=None, description="At the ends of all cables; absent where the catalogue has none."
    )
    node_cables: str = Field(default="optical", description="What cables to nodes are: optical, dac, aoc.")
    switch_cables: str = Field(default="optical", description="The same of those between switches.")


class CollisionsResult(_Result):
    """Slowdown by hash collisions when every NIC sends to another leaf; 1 without collisions."""

    routing: str
    queue_pairs: int | None = Field(default=None, description="Only with ecmp.")
    seeds: int = Field(description="How often hashes were drawn; 0 where routing makes none collide.")
    mean: float | None = Field(description="Over seeds, all links between switches.")
    p95: float | None = Field(description="The same, 95th percentile.")
    up_mean: float | None = Field(description="Over seeds, links from leaves to spines alone.")
    exact_mean: float | None = Field(description="Exact law of the links from leaves to spines.")
    exact_p95: float | None


class FailureResult(_Result):
    """The worst failure of one part of a class."""

    part: str
    count: int = Field(description="Parts of the class in the fabric.")
    traffic: str = Field(description="Whose bandwidth falls.")
    gpus: int = Field(description="For how many GPUs.")
    remaining_fraction: float = Field(description="What they have left for that traffic.")
    cut_off_gpus: int = Field(description="GPUs that no longer reach others over the fabric.")


class AsBuiltResult(_Result):
    """What a fabric carried before its changes."""

    oversubscription: float
    bisection_bytes_per_s: float
    bisection_fraction: float | None


class FabricResult(_Result):
    """What a fabric is built of, what it carries and what its failures cost."""

    published: Literal["linkwise.fabric/1"] = Field(default="linkwise.fabric/1", alias="schema")
    name: str
    kind: str
    link: str
    switch: str
    nodes: int
    gpus: int = Field(description="Of all nodes on the fabric.")
    tiers: int
    networks: int = Field(description="Networks that are not joined: planes, and rails of rail-only.")
    ports: int = Field(description="Links that one switch takes.")
    switches: SwitchesResult
    cables: CablesResult
    optics: OpticsResult
    power_w: float | None = Field(description="Switches and optics; absent where one is not known.")
    switch_power_w: float | None = Field(description="Switches alone.")
    electricity_usd_per_year: float | None = Field(
        default=None, description="Of power_w, where its price is given."
    )
    bill: FabricBillResult | None = Field(
        default=None, description="What it costs to buy and in a year; only where prices are given."
    )
    reach_nodes: list[int] = Field(
        description="Most nodes that one tier of these switches joins, two, three; empty for kind links."
    )
    oversubscription: float = Field(
        description="Links down over links up at the fullest leaf, as wired; with changes at the worst leaf."
    )
    bisection_bytes_per_s: float = Field(
        description="Between two halves of the nodes, one direction; with changes a bound from above."
    )
    bisection_fraction: float | None = Field(
        description="Of what the NICs of one half carry; absent for one node."
    )
    changes: list[str] = Field(
        default_factory=list, description="Missing and slow parts; the counts of parts are as built."
    )
    as_built: AsBuiltResult | None = Field(default=None, description="Only with changes.")
    collisions: CollisionsResult
    failures: list[FailureResult]
    arithmetic: list[str] = Field(description="How the counts came about.")
    assumptions: list[str]


def fabric_result(cluster: Cluster, wiring: Wiring) -> FabricResult:
    """Return a fabric as it is published.

    Parameters
    ----------
    cluster
        What there is, with a fabric whose link and switch are known.
    wiring
        How its switches are joined.

    Raises
    ------
    InputError
        If the cluster has no fabric or its switch is not known.
    """
    from linkwise.network.bisection import bisection_bytes_per_s, full_bisection_bytes_per_s
    from linkwise.network.built_fabric import build
    from linkwise.network.changed_fabric import changed_fabric
    from linkwise.network.clos import parts_of
    from linkwise.network.failures import worst_failures
    from linkwise.network.optics import switch_power_w
    from linkwise.network.reach import reach_nodes

    switch, link = parts_of(cluster)
    built = build(cluster, wiring)
    optics, power_w = built.optics, built.power_w
    each_w, _ = switch_power_w(switch)
    bisection = bisection_bytes_per_s(wiring, link_bytes_per_s=link.bytes_per_s)
    changed = changed_fabric(cluster, wiring) if cluster.changes else None
    full = full_bisection_bytes_per_s(wiring, link_bytes_per_s=link.bytes_per_s)
    collisions, collision_words = _collisions(cluster, wiring)
    gpus_per_node = installed_gpus_per_node(cluster)
    result = FabricResult(
        name=cluster.name,
        kind=str(wiring.kind),
        link=link.name,
        switch=switch,
        nodes=wiring.nodes,
        gpus=installed_gpus(cluster),
        tiers=wiring.tiers,
        networks=wiring.networks,
        ports=wiring.ports,
        switches=_switches(wiring),
        cables=CablesResult(
            node_leaf=wiring.node_cables,
            leaf_spine=wiring.spine_cables,
            spine_core=wiring.core_cables,
            same_tier=wiring.global_cables,
        ),
        optics=optics_result(optics),
        power_w=power_w,
        switch_power_w=None if each_w is None else wiring.switches * each_w,
        electricity_usd_per_year=electricity_of(cluster, power_w),
        bill=fabric_bill(cluster, built, gpus=installed_gpus(cluster)),
        reach_nodes=list(
            reach_nodes(
                kind=wiring.kind,
                nics=wiring.nics,
                ports=wiring.ports,
                oversubscription=cluster.fabric.oversubscription,
            )
        ),
        oversubscription=wiring.oversubscription,
        bisection_bytes_per_s=bisection,
        bisection_fraction=bisection / full if full else None,
        collisions=collisions,
        failures=failure_results(worst_failures(wiring, gpus_per_node=gpus_per_node)),
        arithmetic=list(wiring.arithmetic),
        assumptions=list(_assumptions(cluster, wiring, optics, collision_words)),
    )
    return result if changed is None else _with_changes(result, cluster, changed, full=full)


def _with_changes(
    result: FabricResult, cluster: Cluster, changed: ChangedFabric, *, full: float
) -> FabricResult:
    """Return the result with what changes leave of the fabric as built."""
    from linkwise.network.clos import parts_of
    from linkwise.network.failures import worst_failures

    _, link = parts_of(cluster)
    bisection = changed.bisection_bytes_per_s(link_bytes_per_s=link.bytes_per_s)
    of = full / max(1, result.nodes // 2) * (changed.nodes_left // 2)
    built = AsBuiltResult(
        oversubscription=result.oversubscription,
        bisection_bytes_per_s=result.bisection_bytes_per_s,
        bisection_fraction=result.bisection_fraction,
    )
    return result.model_copy(
        update={
            "oversubscription": changed.oversubscription,
            "bisection_bytes_per_s": bisection,
            "bisection_fraction": bisection / of if of else None,
            "changes": [change.words for change in cluster.changes],
            "as_built": built,
            "failures": failure_results(
                changed.failures(
                    worst_failures(changed.wiring, gpus_per_node=installed_gpus_per_node(cluster))
                )
            ),
            "assumptions": [*result.assumptions, *_CHANGE_WORDS],
        }
    )


def _assumptions(
    cluster: Cluster, wiring: Wiring, optics: Optics, collision_words: tuple[str, ...]
) -> Iterator[str]:
    """Yield what was taken for granted, in sentences for a reader."""
    from linkwise.network.clos import parts_of
    from linkwise.network.optics import switch_power_w

    yield from cluster.assumptions
    yield from _wiring_words(wiring, cluster.fabric.oversubscription)
    yield f"power: {switch_power_w(parts_of(cluster)[0])[1]}"
    yield optics.words
    yield from price_words(cluster)
    yield from collision_words
    yield "failures: one part at a time, and traffic spreads evenly over the links that are left"


def installed_gpus(cluster: Cluster) -> int:
    """Return the GPUs of all nodes that are wired, in use or not.

    Parameters
    ----------
    cluster
        What there is.
    """
    if cluster.parts:
        return sum(part.nodes * part.gpus_per_node for part in cluster.parts)
    return cluster.nodes * installed_gpus_per_node(cluster)


def installed_gpus_per_node(cluster: Cluster) -> int:
    """Return the GPUs of one node that is wired, in use or not.

    Parameters
    ----------
    cluster
        What there is.
    """
    if cluster.system is None:
        return cluster.gpus_per_node
    from linkwise import catalog

    return catalog.system(cluster.system).gpus_per_node


def electricity_of(cluster: Cluster, power_w: float | None) -> float | None:
    """Return what electricity costs in a year; ``None`` where power or price is not known [USD].

    Parameters
    ----------
    cluster
        With prices, or without.
    power_w
        Of the fabric [W].
    """
    from linkwise.network.optics import electricity_usd_per_year

    if cluster.prices is None or power_w is None:
        return None
    return electricity_usd_per_year(power_w, cluster.prices)


def price_words(cluster: Cluster) -> Iterator[str]:
    """Yield what prices count.

    Parameters
    ----------
    cluster
        With prices, or without.
    """
    prices = cluster.prices
    if prices is None:
        return
    paid = "; gpu_hour pays for what has no price of its own" if prices.gpu_usd_per_s is not None else ""
    loss = "PUE 1 (not stated)" if prices.pue is None else f"PUE {prices.pue:g}"
    metered = "" if prices.electricity_usd_per_j is None else f"; electricity all the year, at {loss}"
    yield f"prices: of {prices.date}{metered}{paid}"


_CHANGE_WORDS = (
    "changes: parts, cables, power and collisions are those of the fabric as built",
    "changes: the bisection is that of the half of the nodes that lets least out; another may let out less",
    "changes: failures come on top, over what there was as built; those of nodes and cores stay",
)


def failure_results(found: Iterable[Failure]) -> list[FailureResult]:
    """Return failures as they are published.

    Parameters
    ----------
    found
        The worst of each class.
    """
    return [
        FailureResult(
            part=each.part,
            count=each.count,
            traffic=each.traffic,
            gpus=each.gpus,
            remaining_fraction=each.remaining_fraction,
            cut_off_gpus=each.cut_off_gpus,
        )
        for each in found
    ]


def _switches(wiring: Wiring) -> SwitchesResult:
    return SwitchesResult(
        leaf=wiring.networks * wiring.leaves,
        spine=wiring.networks * wiring.spines,
        core=wiring.networks * wiring.cores,
    )


def optics_result(optics: Optics) -> OpticsResult:
    """Return transceivers as they are published.

    Parameters
    ----------
    optics
        As counted.
    """
    return OpticsResult(
        ends=optics.ends,
        modules=optics.modules,
        by_module=dict(optics.by_module),
        power_w=optics.power_w,
        node_cables=str(optics.node_cables),
        switch_cables=str(optics.switch_cables),
    )


def _collisions(cluster: Cluster, wiring: Wiring) -> tuple[CollisionsResult, tuple[str, ...]]:
    """Return the slowdown by collisions, and what was taken for granted about it."""
    routing = cluster.fabric.routing
    if routing.queue_pairs is None:
        none = CollisionsResult(
            routing=str(routing.kind), seeds=0, mean=1.0, p95=1.0, up_mean=1.0, exact_mean=1.0, exact_p95=1.0
        )
        return none, (f"collisions: routing {routing.kind} is taken to spread flows evenly",)
    from linkwise.network.collisions import collisions_of

    found = collisions_of(wiring, queue_pairs=routing.queue_pairs)
    return drawn_collisions(str(routing.kind), found), _collision_words(wiring, found)


def drawn_collisions(routing: str, found: Collisions) -> CollisionsResult:
    """Return collisions as they are published.

    Parameters
    ----------
    routing
        Its name.
    found
        As drawn.
    """
    return CollisionsResult(
        routing=routing,
        queue_pairs=found.queue_pairs,
        seeds=found.seeds,
        mean=found.mean,
        p95=found.p95,
        up_mean=found.up_mean,
        exact_mean=found.exact_mean,
        exact_p95=found.exact_p95,
    )


_PAUSES = {2: 1.08, 3: 1.30}
"""Time in packet simulations over that of the flow model, by tiers: csg-htsim, RoCE with PFC, 400 Gbit/s,
flows of 2 MiB; 128 hosts (16 seeds) and 512 (5), and 1,024 (6). Own runs of 2026-11, few of them."""


def _collision_words(wiring: Wiring, found: Collisions) -> tuple[str, ...]:
    if not wiring.spines:
        return ("collisions: none, there is one path between two nodes",)
    pattern = (
        "collisions: every NIC sends at once to a NIC on another leaf, each queue pair hashed by itself at "
        "every tier; the step waits for the fullest link. Traffic that keeps to its leaf does not collide"
    )
    words = [pattern]
    if not found.seeds:
        words.append(f"collisions: {found.flows:,} flows are too many to draw")
    if wiring.pair_links:
        words.append("collisions: flows to other groups take the links between the two groups alone")
    if found.exact_mean is None and 0 < wiring.pair_links < wiring.pod_spines:
        words.append("collisions: no exact law, as few spines of a group lead to each other one")
    elif found.exact_mean is None:
        words.append("collisions: too many queue pairs for the exact law; so many spread almost evenly")
    words.append(
        f"collisions: pauses (PFC) that spread are not counted; a few packet simulations of {wiring.tiers} "
        f"tiers (at most 1,024 hosts) were {_PAUSES[wiring.tiers]:.2f} times slower than this model"
    )
    return tuple(words)


def _wiring_words(wiring: Wiring, allowed: float) -> Iterator[str]:
    if wiring.spines:
        yield "wiring: each switch has as many links to every switch of the next tier that it reaches"
    elif allowed > 1:
        fitting = f"{wiring.node_cables // wiring.networks:,} links fit one switch of {wiring.ports} ports"
        yield (
            f"wiring: oversubscription {allowed:g} to 1 is not reached, {fitting}, which has no up-links; "
            "leaves that exist are not drawn where fewer suffice"
        )
    yield from _group_words(wiring)
    if wiring.networks > 1 and wiring.node_links < wiring.nics:
        yield "rail-only: rails are joined by NVLink inside nodes alone"


def _group_words(wiring: Wiring) -> Iterator[str]:
    """Yield what the links between groups of dragonfly-plus let through."""
    if not wiring.pair_links:
        return
    from linkwise.network.dragonfly import detour_slowdown, direct_slowdown

    direct, detour = direct_slowdown(wiring), detour_slowdown(wiring)
    yield (
        f"dragonfly-plus: where every group sends to one other alone, direct links take {direct:.3g} times "
        f"as long as the NICs; adaptive routing past third groups {detour:.3g} times, if it spreads ideally"
    )
