"""What stands below the tables of a plan: why layouts lost, cautions, what was taken for granted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from linkwise.report.tables import wrapped
from linkwise.report.wording import counted
from linkwise.units import format_quantity

if TYPE_CHECKING:
    from linkwise.report.results import LayoutResult, PlanResult

__all__ = ["plan_notes"]

_LACKING = "memory: "
"""What the reason of a layout that does not fit starts with; other reasons are of degrees that make none."""

_LACKING_PRINTED, _ILLEGAL_PRINTED = 6, 4

_PLACES_NAMED = 9

_TIGHT_FRACTION = 0.9
"""Fuller than this the memory is warned about: estimates of it miss by about a tenth (docs/accuracy.md)."""


def plan_notes(result: PlanResult, width: int) -> Iterator[str]:
    """Yield the lines below the tables of a plan.

    Parameters
    ----------
    result
        The plan as it is published.
    width
        Characters of a line.
    """
    if result.evaluated != 1:  # one layout was estimated, not searched for: what it lacks stands above
        yield from _reasons(result, width)
    if result.layouts:
        yield from _other_orders(result, width)
        yield from _cautions(result.layouts, width)
    if result.assumptions:
        yield "Taken for granted:"
    for assumption in result.assumptions:
        yield wrapped(assumption, width=width, indent="    ", first="  - ")


def _reasons(result: PlanResult, width: int) -> Iterator[str]:
    """Yield what the layouts that do not fit lack, and which combinations of degrees were never layouts."""
    lacking = {words: count for words, count in result.infeasible.items() if words.startswith(_LACKING)}
    illegal = {words: count for words, count in result.infeasible.items() if words not in lacking}
    fitting = f"{result.fitting:,} of them {'fits' if result.fitting == 1 else 'fit'}"
    looked = f"Looked at {counted(result.evaluated, 'layout')}, {fitting}."
    yield wrapped(looked + (" What the others lack:" if lacking else ""), width=width)
    digits = max((len(f"{count:,}") for count in result.infeasible.values()), default=0)
    yield from _listed(lacking, _LACKING_PRINTED, "layout", digits, width)
    if illegal:
        yield wrapped("Combinations of degrees that are no layout:", width=width)
    yield from _listed(illegal, _ILLEGAL_PRINTED, "combination", digits, width)


def _listed(reasons: Mapping[str, int], most: int, what: str, digits: int, width: int) -> Iterator[str]:
    ranked = sorted(reasons.items(), key=lambda item: -item[1])
    shown, rest = ranked[:most], ranked[most:]
    for reason, count in shown:
        yield wrapped(reason, width=width, indent=" " * (digits + 4), first=f"  {count:>{digits},}  ")
    if rest:
        others = counted(sum(count for _, count in rest), what)
        words = f"{counted(len(rest), 'further reason')}, {others} (--format json lists all)"
        yield wrapped(words, width=width, indent="    ", first="  ")


def _other_orders(result: PlanResult, width: int) -> Iterator[str]:
    """Yield what the first layout takes with its ranks in another order."""
    first = result.layouts[0]
    layout = "Layout 1" if len(result.layouts) > 1 else "This layout"
    for order, seconds in result.rank_orders.items():
        if order != first.rank_order:
            change = f"{100.0 * (seconds / first.step_time_s - 1.0):+.1f} %"
            words = (
                f"{layout} with its ranks in the order {order}: {format_quantity(seconds, 's')} ({change})."
            )
            yield wrapped(words, width=width)


def _cautions(layouts: Sequence[LayoutResult], width: int) -> Iterator[str]:
    full = [
        str(place)
        for place, each in enumerate(layouts, start=1)
        if _TIGHT_FRACTION * each.memory_available_bytes < each.memory_bytes <= each.memory_available_bytes
    ]
    if full:
        words = "less than 10 % of the memory free; estimates of memory may miss by as much."
        yield wrapped(f"{_those(full, len(layouts))} {words}", width=width)
    words = (
        f"Basis of the weakest figure behind these numbers: {layouts[0].basis}. linkwise explain names each."
    )
    yield wrapped(words, width=width)


def _those(places: Sequence[str], of: int) -> str:
    """Return the layouts at `places` as the subject of a sentence about what they leave."""
    if len(places) == 1:
        return f"Layout {places[0]} leaves"
    if len(places) == of:
        return "All of these layouts leave"
    few = len(places) <= _PLACES_NAMED
    return f"Layouts {', '.join(places)} leave" if few else f"{len(places):,} of these layouts leave"
