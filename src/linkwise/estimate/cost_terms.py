"""Money of a cluster, of a step and of a run, as terms on columns; only what `prices/1` states is in it.

Every line of a bill is a rate of the whole cluster in use [USD/s], so that lines of unlike kinds add up. Not
here: the power behind the electricity (`energy`), the share of good tokens (`goodput`), words (`cost_lines`).
"""

from __future__ import annotations

from linkwise.estimate.term import Floats, term

__all__ = ["LINE_TERMS", "TERMS"]

_DEFINED = "by definition"
_PUE = "ISO/IEC 30134-2, Data centres, key performance indicators: power usage effectiveness (PUE), 2016"
_STRAIGHT = "IAS 16, Property, plant and equipment: depreciation by the straight-line method"
_GPUS_PER_STATED_TIME = 1000.0


@term("USD/s", "GPUs x price of one for a time", _DEFINED)
def rent_usd_per_s(gpus: Floats, gpu_usd_per_s: Floats) -> Floats:
    """Return what the GPUs cost where they are paid by the hour."""
    return gpus * gpu_usd_per_s


@term("USD/s", "purchase price of nodes x (1 - residual) / lifetime", _STRAIGHT)
def nodes_usd_per_s(nodes_usd: Floats, residual_fraction: Floats, lifetime_s: Floats) -> Floats:
    """Return what nodes lose in value."""
    return nodes_usd * (1.0 - residual_fraction) / lifetime_s


@term("USD/s", "purchase price of the fabric x (1 - residual) / lifetime", _STRAIGHT)
def fabric_usd_per_s(fabric_usd: Floats, residual_fraction: Floats, lifetime_s: Floats) -> Floats:
    """Return what switches, cables, transceivers and NICs lose in value."""
    return fabric_usd * (1.0 - residual_fraction) / lifetime_s


@term("USD/s", "price of nodes and fabric x share of spares / lifetime", f"{_STRAIGHT}; spares are used up")
def spares_usd_per_s(
    nodes_usd: Floats, fabric_usd: Floats, spares_fraction: Floats, lifetime_s: Floats
) -> Floats:
    """Return what spare parts cost."""
    return (nodes_usd + fabric_usd) * spares_fraction / lifetime_s


@term("USD/s", "price of nodes and fabric x share that support costs in a time", _DEFINED)
def support_usd_per_s(nodes_usd: Floats, fabric_usd: Floats, support_fraction_per_s: Floats) -> Floats:
    """Return what support and maintenance cost."""
    return (nodes_usd + fabric_usd) * support_fraction_per_s


@term("USD/s", "GPUs / 1000 x working time for 1,000 x price of that time", _DEFINED)
def staff_usd_per_s(gpus: Floats, staff_per_1000_gpus: Floats, staff_hour_usd_per_s: Floats) -> Floats:
    """Return what the people who run and tune the cluster cost."""
    return gpus / _GPUS_PER_STATED_TIME * staff_per_1000_gpus * staff_hour_usd_per_s


@term("USD/s", "power of nodes x PUE x price of electricity", _PUE)
def node_electricity_usd_per_s(node_power_w: Floats, pue: Floats, electricity_usd_per_j: Floats) -> Floats:
    """Return what the electricity of nodes costs, cooling and conversion included."""
    return node_power_w * pue * electricity_usd_per_j


@term("USD/s", "power of switches and cables x PUE x price of electricity", _PUE)
def fabric_electricity_usd_per_s(
    fabric_power_w: Floats, pue: Floats, electricity_usd_per_j: Floats
) -> Floats:
    """Return what the electricity of the fabric costs, cooling and conversion included."""
    return fabric_power_w * pue * electricity_usd_per_j


@term("USD/s", "power x price of cooling", _DEFINED)
def cooling_usd_per_s(cluster_power_w: Floats, cooling_usd_per_j: Floats) -> Floats:
    """Return what cooling costs where it is paid apart."""
    return cluster_power_w * cooling_usd_per_j


@term("USD/s", "sum of the lines", _DEFINED)
def cost_usd_per_s(
    rent_usd_per_s: Floats,
    nodes_usd_per_s: Floats,
    fabric_usd_per_s: Floats,
    spares_usd_per_s: Floats,
    support_usd_per_s: Floats,
    staff_usd_per_s: Floats,
    node_electricity_usd_per_s: Floats,
    fabric_electricity_usd_per_s: Floats,
    cooling_usd_per_s: Floats,
) -> Floats:
    """Return what the cluster in use costs."""
    return (
        rent_usd_per_s
        + nodes_usd_per_s
        + fabric_usd_per_s
        + spares_usd_per_s
        + support_usd_per_s
        + staff_usd_per_s
        + node_electricity_usd_per_s
        + fabric_electricity_usd_per_s
        + cooling_usd_per_s
    )


@term("USD", "cost of the cluster x step time", _DEFINED)
def cost_usd_per_step(cost_usd_per_s: Floats, step_time_s: Floats) -> Floats:
    """Return what a step costs that nothing interrupts."""
    return cost_usd_per_s * step_time_s


@term("USD/token", "cost of a step / its tokens / goodput", _DEFINED)
def cost_usd_per_token(
    cost_usd_per_step: Floats, tokens_per_step: Floats, goodput_fraction: Floats
) -> Floats:
    """Return what a token costs that counts: work that is lost and done again is paid as well."""
    return cost_usd_per_step / tokens_per_step / goodput_fraction


@term("USD", "cost of a step x steps / goodput", "derived: steps back to back but for what goodput counts")
def cost_usd_per_run(cost_usd_per_step: Floats, steps: Floats, goodput_fraction: Floats) -> Floats:
    """Return what the whole training costs."""
    return cost_usd_per_step * steps / goodput_fraction


LINE_TERMS = (
    rent_usd_per_s,
    nodes_usd_per_s,
    fabric_usd_per_s,
    spares_usd_per_s,
    support_usd_per_s,
    staff_usd_per_s,
    node_electricity_usd_per_s,
    fabric_electricity_usd_per_s,
    cooling_usd_per_s,
)
"""The lines of a bill, in the order they are shown."""

TERMS = (*LINE_TERMS, cost_usd_per_s, cost_usd_per_step, cost_usd_per_token, cost_usd_per_run)
