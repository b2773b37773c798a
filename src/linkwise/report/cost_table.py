"""The bills of clusters on a terminal: lines beside one another, their arithmetic, where the time goes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from linkwise.report.cost import LOST
from linkwise.report.tables import Column, print_line, split_table, wrapped
from linkwise.report.wording import duration, percent, three_digits
from linkwise.units import format_quantity

if TYPE_CHECKING:
    from rich.console import Console

    from linkwise.report.cost import CostResult, GoodputResult

__all__ = ["print_cost", "print_costs"]

_IN_ALL = "in all"
_NOTHING = "-"
_HOUR_S = 3600.0


def print_cost(cost: CostResult | None, console: Console, *, of: str) -> None:
    """Print the bill of one cluster with the arithmetic of each line; nothing where it has none.

    Parameters
    ----------
    cost
        The bill as it is published.
    console
        Where to.
    of
        Whose tokens are priced: ``"layout 1"``.
    """
    if cost is None:
        return
    heading = f"What the cluster costs, and a million tokens of {of} [USD]"
    print_line(console, wrapped(heading, width=console.width))
    names = [line.name for line in cost.lines]
    per_hour = [line.usd_per_gpu_hour for line in cost.lines]
    per_million = [line.usd_per_million_tokens for line in cost.lines]
    columns = [
        Column(heading="per\nGPU-hour", cells=_cells(per_hour, cost.usd_per_gpu_hour, cost)),
        Column(heading="per million\ntokens", cells=_cells(per_million, cost.usd_per_million_tokens, cost)),
    ]
    _print(columns, names, console)
    for line in cost.lines:
        print_line(console, _worded(f"{line.name}: {line.arithmetic}", console))
    for name, words in _below(cost):
        print_line(console, _worded(f"{name}: {words}", console))
    print_line(console)


def print_costs(costs: Mapping[str, CostResult], console: Console) -> None:
    """Print the bills of several clusters beside one another; nothing where there are none.

    Parameters
    ----------
    costs
        The bills as they are published, by what stands above their columns.
    console
        Where to.
    """
    if not costs:
        return
    print_line(console, wrapped("What a million tokens costs, line by line [USD]", width=console.width))
    names = _names(costs.values())
    columns = [
        Column(heading=f"# {key}", cells=_cells(_by_name(cost, names), cost.usd_per_million_tokens, cost))
        for key, cost in costs.items()
    ]
    _print(columns, names, console)
    for words, keys in _arithmetic(costs, names).items():
        name, said = words
        print_line(console, _worded(f"{name}{_whose(keys, costs)}: {said}", console))
    for words, keys in _rest(costs).items():
        name, said = words
        print_line(console, _worded(f"{name}{_whose(keys, costs)}: {said}", console))
    print_line(console)


def _print(columns: Sequence[Column], names: Sequence[str], console: Console) -> None:
    key = Column(heading="line", cells=(*names, _IN_ALL), justify="left")
    for table in split_table(list(columns), key=key, width=console.width, best=None):
        console.print(table, crop=False)


def _cells(amounts: Sequence[float | None], whole: float | None, cost: CostResult) -> tuple[str, ...]:
    """Return amounts and their sum, which is more than it says where something has no price."""
    cells = [_NOTHING if each is None else three_digits(each) for each in (*amounts, whole)]
    if whole is not None and cost.not_priced:
        cells[-1] = f">{cells[-1]}"
    return tuple(cells)


def _names(costs: Iterable[CostResult]) -> list[str]:
    """Return the names of the lines of all bills, lost time last."""
    found: dict[str, None] = {}
    for cost in costs:
        found.update(dict.fromkeys(line.name for line in cost.lines))
    return sorted(found, key=lambda name: name == LOST)


def _by_name(cost: CostResult, names: Sequence[str]) -> list[float | None]:
    amounts = {line.name: line.usd_per_million_tokens for line in cost.lines}
    return [amounts.get(name) for name in names]


def _arithmetic(costs: Mapping[str, CostResult], names: Sequence[str]) -> dict[tuple[str, str], list[str]]:
    """Return the arithmetic of each line, every wording with the clusters that have it."""
    found: dict[tuple[str, str], list[str]] = {}
    for name in names:
        for key, cost in costs.items():
            for line in cost.lines:
                if line.name == name:
                    found.setdefault((name, line.arithmetic), []).append(key)
    return found


def _rest(costs: Mapping[str, CostResult]) -> dict[tuple[str, str], list[str]]:
    """Return what is said below the lines, every wording with the clusters that it is of."""
    found: dict[tuple[str, str], list[str]] = {}
    for key, cost in costs.items():
        for words in _below(cost):
            found.setdefault(words, []).append(key)
    return dict(sorted(found.items(), key=lambda item: item[0][0] == "goodput"))


def _whose(keys: Sequence[str], costs: Mapping[str, CostResult]) -> str:
    return "" if len(keys) == len(costs) else f" of {', '.join(keys)}"


def _below(cost: CostResult) -> Iterator[tuple[str, str]]:
    if cost.not_priced:
        yield "not priced", "; ".join(cost.not_priced)
    if cost.goodput is not None:
        yield from (("goodput", words) for words in _goodput_lines(cost.goodput))


def _worded(words: str, console: Console) -> str:
    return wrapped(words, width=console.width, indent="    ", first="  ")


def _goodput_lines(goodput: GoodputResult) -> Iterator[str]:
    shares = (
        f"{percent(goodput.fraction)} % of the time moves training on, {percent(goodput.writing_fraction)} % "
        f"writes checkpoints, {percent(goodput.redone_fraction)} % does lost work again, "
        f"{percent(goodput.restarting_fraction)} % restarts"
    )
    if not goodput.interruptions_per_day:
        yield f"{shares}; no failures are stated"
        return
    every = f"one interruption in {_long(24 * _HOUR_S / goodput.interruptions_per_day)}"
    yield f"{shares}; {every}"
    best = goodput.best_interval_s or 0.0
    stated = f"checkpoints every {_long(goodput.checkpoint_interval_s)}"
    same = abs(best / goodput.checkpoint_interval_s - 1.0) < 1e-9
    yield f"{stated}, the best interval" if same else f"{stated}; the best interval is {_long(best)}"


def _long(time_s: float) -> str:
    return duration(time_s) if time_s >= 60 else format_quantity(time_s, "s")
