"""The lines of a bill with their arithmetic in words, and what is not on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from linkwise.estimate.cost_terms import LINE_TERMS
from linkwise.units import format_quantity

if TYPE_CHECKING:
    from linkwise.cluster.prices import Prices
    from linkwise.estimate.columns import Evaluation
    from linkwise.estimate.cost_inputs import CostInputs
    from linkwise.network.built_fabric import PricedPart

__all__ = ["CostLine", "bought_words", "cost_lines", "fabric_lines", "not_stated", "price_words", "usd"]

_YEAR_S = 365.25 * 86400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CostLine:
    """One line of a bill.

    Parameters
    ----------
    name
        What is paid.
    usd_per_s
        For all that is on the bill [USD/s].
    arithmetic
        How that came about, in words.
    """

    name: str
    usd_per_s: float
    arithmetic: str


_NAMES: Mapping[str, str] = {
    "rent_usd_per_s": "GPUs by the hour",
    "nodes_usd_per_s": "nodes",
    "fabric_usd_per_s": "fabric",
    "spares_usd_per_s": "spares",
    "support_usd_per_s": "support",
    "staff_usd_per_s": "staff",
    "node_electricity_usd_per_s": "electricity, nodes",
    "fabric_electricity_usd_per_s": "electricity, fabric",
    "cooling_usd_per_s": "cooling",
}


def cost_lines(inputs: CostInputs, evaluation: Evaluation) -> tuple[CostLine, ...]:
    """Return the lines of the bill of a cluster in use, those that cost nothing left out.

    Parameters
    ----------
    inputs
        What the bill is computed from.
    evaluation
        The terms over it.
    """
    return tuple(_lines(_words(inputs), evaluation))


def fabric_lines(
    columns: Mapping[str, float], family: str | None, evaluation: Evaluation
) -> tuple[CostLine, ...]:
    """Return the lines of the bill of a whole fabric, those that cost nothing left out.

    Parameters
    ----------
    columns
        As `cost_inputs.fabric_inputs` gives them.
    family
        Whose working time counts.
    evaluation
        The terms over the columns.
    """
    return tuple(_lines(_shared_words(columns, family), evaluation))


def _lines(words: Mapping[str, Callable[[], str]], evaluation: Evaluation) -> Iterator[CostLine]:
    for each in LINE_TERMS:
        value = evaluation.fixed(each.name)
        if value:
            yield CostLine(name=_NAMES[each.name], usd_per_s=value, arithmetic=words[each.name]())


def _words(inputs: CostInputs) -> dict[str, Callable[[], str]]:
    columns = inputs.columns

    def nodes() -> str:
        return f"{_bought(inputs.nodes)}, {_written_off(columns)}"

    def fabric() -> str:
        share = (
            "" if inputs.fabric_share == 1 else f" (its share of nodes: {100 * inputs.fabric_share:.3g} %)"
        )
        return f"parts for {usd(columns['fabric_usd'])}{share}, {_written_off(columns)}"

    def node_electricity() -> str:
        what = "nodes" if inputs.draw is None or inputs.draw.consumer == "node" else "GPUs"
        power = f"{columns['consumers']:,.0f} {what} x {format_quantity(columns['consumer_power_w'], 'w')}"
        return f"{power}{_metered(columns)}"

    return {
        **_shared_words(columns, inputs.family),
        "rent_usd_per_s": lambda: (
            f"{columns['gpus']:,.0f} GPUs x {format_quantity(columns['gpu_usd_per_s'], 'usd_per_s')}"
        ),
        "nodes_usd_per_s": nodes,
        "fabric_usd_per_s": fabric,
        "node_electricity_usd_per_s": node_electricity,
    }


def _shared_words(columns: Mapping[str, float], family: str | None) -> dict[str, Callable[[], str]]:
    """Return the words of lines that a fabric alone has as well."""
    bought = usd(columns["nodes_usd"] + columns["fabric_usd"])
    power_w = columns["consumers"] * columns["consumer_power_w"] + columns["fabric_power_w"]

    def staff() -> str:
        hours = format_quantity(columns["staff_per_1000_gpus"], "s_per_s")
        rate = format_quantity(columns["staff_hour_usd_per_s"], "usd_per_s")
        return f"{columns['gpus']:,.0f} GPUs / 1,000 x {hours} ({family}) x {rate}"

    return {
        "fabric_usd_per_s": lambda: f"parts for {usd(columns['fabric_usd'])}, {_written_off(columns)}",
        "spares_usd_per_s": lambda: (
            f"{_percent(columns['spares_fraction'])} of {bought}, used up in {_years(columns['lifetime_s'])}"
        ),
        "support_usd_per_s": lambda: (
            f"{_percent(columns['support_fraction_per_s'] * _YEAR_S)} of {bought} a year"
        ),
        "staff_usd_per_s": staff,
        "fabric_electricity_usd_per_s": lambda: (
            f"{format_quantity(columns['fabric_power_w'], 'w')}{_metered(columns)}"
        ),
        "cooling_usd_per_s": lambda: (
            f"{format_quantity(power_w, 'w')} x {format_quantity(columns['cooling_usd_per_j'], 'usd_per_j')}"
        ),
    }


def usd(amount: float) -> str:
    """Return an amount of money for a reader, in whole dollars from 100 on.

    Parameters
    ----------
    amount
        The amount [USD].
    """
    return f"{amount:,.0f} USD" if amount >= 100 else f"{amount:.4g} USD"


def bought_words(inputs: CostInputs) -> dict[str, str]:
    """Return what purchase prices are of, by the column that holds them; none where nothing is bought.

    Parameters
    ----------
    inputs
        What the bill is computed from.
    """
    words = {}
    if inputs.nodes is not None and inputs.nodes.unit_usd is not None:
        words["nodes_usd"] = _bought(inputs.nodes)
    priced = [_bought(each) for each in inputs.parts if each.unit_usd is not None]
    if priced:
        share = "" if inputs.fabric_share == 1 else f", {100 * inputs.fabric_share:.3g} % of it"
        words["fabric_usd"] = f"{'; '.join(priced)}{share}"
    return words


def _bought(part: PricedPart | None) -> str:
    if part is None or part.unit_usd is None:
        return "nothing"
    item = f"{part.item} cables" if part.part == "cable" else part.item
    return f"{part.count:,} {item} x {usd(part.unit_usd)} = {usd(part.count * part.unit_usd)}"


def _written_off(columns: Mapping[str, float]) -> str:
    residual = columns["residual_fraction"]
    down = f" down to {_percent(residual)}" if residual else ""
    return f"written off{down} in {_years(columns['lifetime_s'])}"


def _metered(columns: Mapping[str, float]) -> str:
    loss = "" if columns["pue"] == 1 else f" x PUE {columns['pue']:g}"
    return f"{loss} x {format_quantity(columns['electricity_usd_per_j'], 'usd_per_j')}"


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.3g} %"


def _years(time_s: float) -> str:
    years = time_s / _YEAR_S
    return "1 year" if years == 1 else f"{years:.3g} years"


def not_stated(prices: Prices) -> tuple[str, ...]:
    """Return what a whole cost has and these prices do not state, in a word each.

    Parameters
    ----------
    prices
        What a cluster costs.
    """
    bought, rented = prices.hardware, prices.gpu_usd_per_s is not None
    absent = {
        "the GPUs themselves": bought is None and not rented,
        "support": bought is not None and bought.support_fraction_per_s is None,
        "spares": bought is not None and bought.spares_fraction is None,
        "electricity": not rented and prices.electricity_usd_per_j is None,
        "staff": not rented and prices.staff is None,
        "failures and checkpoints": prices.checkpoints is None,
    }
    return tuple(what for what, is_absent in absent.items() if is_absent)


def price_words(prices: Prices) -> str:
    """Return the prices of a cluster and what they leave out, in a sentence for a reader.

    Parameters
    ----------
    prices
        What a cluster costs.
    """
    words = []
    if prices.gpu_usd_per_s is not None:
        words.append(f"{format_quantity(prices.gpu_usd_per_s, 'usd_per_s')} a GPU")
    if prices.hardware is not None:
        what = "hardware bought" if prices.gpu_usd_per_s is None else "the fabric bought"
        words.append(f"{what} and written off in {_years(prices.hardware.lifetime_s)}")
    if prices.electricity_usd_per_j is not None:
        rate = format_quantity(prices.electricity_usd_per_j, "usd_per_j")
        loss = "PUE 1 (not stated: no cooling)" if prices.pue is None else f"PUE {prices.pue:g}"
        if prices.pue is None and prices.cooling_usd_per_j is not None:
            loss = "PUE 1 (cooling is paid apart)"
        words.append(f"electricity {rate} at {loss}")
    said = ", and beside it ".join(words) if words else "staff and cooling alone"
    if prices.gpu_usd_per_s is not None and prices.electricity_usd_per_j is None:
        said += "; electricity is not paid apart"
    absent = not_stated(prices)
    return f"{said}; not stated: {', '.join(absent)}" if absent else said
