"""A comparison on a terminal: steps, exposed communication, money, break-even prices, the network wall."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from linkwise.report.cost_table import print_costs
from linkwise.report.plan_table import job_and_cluster_lines
from linkwise.report.tables import Column, print_line, split_table, wrapped
from linkwise.report.wording import duration, percent, three_digits

if TYPE_CHECKING:
    from rich.console import Console

    from linkwise.report.comparison import BreakEvenResult, ComparedResult, CompareResult, WallResult

__all__ = ["print_comparison"]

_NOTHING = "-"
_MILLION = 1e6


def print_comparison(result: CompareResult, console: Console) -> None:
    """Print a comparison.

    Parameters
    ----------
    result
        The comparison as it is published.
    console
        Where to.
    """
    _print_what(result, console)
    if result.reference is not None:
        _print_tables(result, console)
    _print_lacking(result, console)
    if result.has_curves:
        _print_walls(result, console)
    print_line(console, "Taken for granted:")
    for assumption in result.assumptions:
        print_line(console, wrapped(assumption, width=console.width, indent="    ", first="  - "))


def _print_what(result: CompareResult, console: Console) -> None:
    for place, each in enumerate(result.clusters):
        job, cluster = job_and_cluster_lines(result.job, each.cluster)
        if place == 0:
            print_line(console, wrapped(job, width=console.width))
        print_line(console, wrapped(cluster, width=console.width, indent="    ", first=f"{place + 1:>2}  "))
    print_line(console)


def _print_tables(result: CompareResult, console: Console) -> None:
    numbers = {each.name: str(place) for place, each in enumerate(result.clusters, start=1)}
    beside = numbers[result.reference or ""]
    key = Column(heading="#", cells=tuple(numbers.values()))
    quickest = max(range(len(numbers)), key=lambda place: result.clusters[place].speed_ratio or 0.0)
    for title, columns in (
        ("Best layout of each", list(_step_columns(result.clusters, beside))),
        *_exposed_table(result.clusters),
        ("Energy and money", list(_money_columns(result.clusters))),
    ):
        _print_table(title, columns, key, console, best=quickest)
    bills = {numbers[each.name]: each.bill for each in result.clusters}
    print_costs({number: bill for number, bill in bills.items() if bill is not None}, console)
    _print_layouts(result, console)
    lacking = {each.name for each in result.clusters if each.bill is not None and each.bill.not_priced}
    _print_break_even(result.break_even, numbers, console, lacking=lacking)


def _print_table(
    title: str, columns: Sequence[Column], key: Column, console: Console, *, best: int | None
) -> None:
    if not columns:
        return
    print_line(console, wrapped(title, width=console.width))
    for number, table in enumerate(split_table(columns, key=key, width=console.width, best=best)):
        if number:
            print_line(console)
        console.print(table, crop=False)
    print_line(console)


def _column(
    heading: str,
    clusters: Sequence[ComparedResult],
    value: Callable[[ComparedResult], float | None],
    written: Callable[[float], str],
    *,
    group: str,
) -> Column:
    values = [value(each) for each in clusters]
    cells = tuple(_NOTHING if each is None else written(each) for each in values)
    return Column(heading=heading, cells=cells, group=group)


def _step_columns(clusters: Sequence[ComparedResult], beside: str) -> Iterator[Column]:
    yield _column("\nGPUs", clusters, lambda each: each.cluster.gpus, lambda n: f"{n:,.0f}", group="step")
    yield _column("step time\n[s]", clusters, lambda each: each.step_time_s, three_digits, group="step")
    yield Column(heading="80 % interval\n[s]", cells=tuple(map(_interval, clusters)), group="step")
    times = f"times\nthat of {beside}"
    if len(clusters) > 1:
        yield _column(times, clusters, lambda each: each.step_time_ratio, _ratio, group="step")
    yield _column(
        "tokens/s\nper GPU", clusters, lambda each: each.tokens_per_s_per_gpu, three_digits, group="rate"
    )
    if len({each.cluster.gpus for each in clusters}) > 1:
        yield _column(
            times.replace("that", "those"), clusters, lambda each: each.speed_ratio, _ratio, group="rate"
        )
    yield _column("MFU\n[%]", clusters, lambda each: each.mfu_fraction, percent, group="rate")
    if len(clusters) > 1:
        words = tuple(
            _beside(each, is_reference=str(place) == beside) for place, each in enumerate(clusters, 1)
        )
        yield Column(heading=f"GPU for GPU\nbeside {beside}", cells=words, justify="left", group="rate")


def _beside(each: ComparedResult, *, is_reference: bool) -> str:
    if each.step_time_s is None:
        return "cannot run" if each.closest is None else "does not fit"
    return _NOTHING if is_reference or each.verdict is None else each.verdict


def _interval(each: ComparedResult) -> str:
    if each.step_time_low_s is None or each.step_time_high_s is None:
        return _NOTHING
    return f"{three_digits(each.step_time_low_s)} to {three_digits(each.step_time_high_s)}"


def _ratio(value: float) -> str:
    return f"{value:.3f}" if value < 9.9995 else three_digits(value)


def _exposed_table(clusters: Sequence[ComparedResult]) -> Iterator[tuple[str, list[Column]]]:
    """Yield title and columns of the exposed communication, kinds that no cluster has named in the title."""

    def share(each: ComparedResult, kind: str) -> float | None:
        if each.exposed_s is None or each.step_time_s is None:
            return None
        return each.exposed_s[kind] / each.step_time_s

    kinds = next(each.exposed_s for each in clusters if each.exposed_s is not None)
    absent = [kind for kind in kinds if not any(share(each, kind) for each in clusters)]
    columns = [
        _column(kind, clusters, partial(share, kind=kind), percent, group="exposed")
        for kind in kinds
        if kind not in absent
    ]
    columns.append(_column("all", clusters, lambda each: each.exposed_fraction, percent, group="exposed"))
    nothing = f"; 0 everywhere: {', '.join(absent)}" if absent else ""
    yield f"Exposed communication [% of the step]{nothing}", columns


def _money_columns(clusters: Sequence[ComparedResult]) -> Iterator[Column]:
    def known(
        heading: str, value: Callable[[ComparedResult], float | None], written: Callable[[float], str]
    ) -> Iterator[Column]:
        if any(value(each) is not None for each in clusters):
            yield _column(heading, clusters, value, written, group=heading)

    short_energy = [bool(each.energy_leaves_out) for each in clusters]
    short_money = [each.bill is not None and bool(each.bill.not_priced) for each in clusters]
    for column in known("energy per\ntoken [J]", lambda each: each.energy_j_per_token, three_digits):
        yield _more(column, short_energy)
    for column in (
        *known("USD per\nmillion tokens", lambda each: each.price_usd_per_token, _per_million),
        *known("USD\nper run", lambda each: each.price_usd_per_run, three_digits),
        *known("USD per\nGPU-hour", lambda each: each.usd_per_gpu_hour, three_digits),
    ):
        yield _more(column, short_money)
    yield from known("whole\ntraining", lambda each: each.training_time_s, duration)


def _more(column: Column, is_short: Sequence[bool]) -> Column:
    """Return a column whose amounts are more than they say where something is not counted."""
    cells = [
        f">{cell}" if short and cell != _NOTHING else cell
        for cell, short in zip(column.cells, is_short, strict=True)
    ]
    return replace(column, cells=tuple(cells))


def _per_million(usd_per_token: float) -> str:
    return three_digits(usd_per_token * _MILLION)


def _print_layouts(result: CompareResult, console: Console) -> None:
    print_line(console, "Layouts")
    for place, each in enumerate(result.clusters, start=1):
        if each.layout_words is not None:
            first = f"{place:>2}  "
            print_line(console, wrapped(each.layout_words, width=console.width, indent="    ", first=first))
    print_line(console)


def _print_break_even(
    found: Sequence[BreakEvenResult], numbers: dict[str, str], console: Console, *, lacking: Collection[str]
) -> None:
    """Print what each faster cluster may cost, one sentence each; `lacking` have costs without a price."""
    if not found:
        return
    title = "Break-even price of a GPU-hour, at which a token costs the same on both"
    print_line(console, wrapped(title, width=console.width))
    for each in found:
        faster, slower = numbers[each.faster], numbers[each.slower]
        words = f"a GPU of {faster} may cost {_ratio(each.price_ratio)} times one of {slower}"
        words += f"{_money_words(each)}{_fabric_words(each)}{_caution(each)}"
        short = [numbers[name] for name in (each.faster, each.slower) if name in lacking]
        if short and each.most_usd_per_gpu_hour is not None:
            words += f"; not all of {' and '.join(sorted(short))} is priced"
        print_line(console, wrapped(words, width=console.width, indent="    ", first="  - "))
    print_line(console)


def _money_words(each: BreakEvenResult) -> str:
    if each.most_usd_per_gpu_hour is None or each.slower_usd_per_gpu_hour is None:
        return ""
    more = each.most_usd_per_gpu_hour - each.slower_usd_per_gpu_hour
    words = f": {each.most_usd_per_gpu_hour:.2f} USD, {more:.2f} more"
    if each.faster_usd_per_gpu_hour is not None:
        words += f" (it costs {each.faster_usd_per_gpu_hour:.2f})"
    return words


def _fabric_words(each: BreakEvenResult) -> str:
    if each.most_fabric_usd is None or each.faster_fabric_usd is None:
        return ""
    if each.most_fabric_usd < 0:
        return "; no price of its fabric makes up for its other costs"
    bought, most = (f"{usd:,.0f} USD" for usd in (each.faster_fabric_usd, each.most_fabric_usd))
    return f"; its fabric, for {bought}, may cost {most} to buy, all else as priced"


def _caution(each: BreakEvenResult) -> str:
    if each.verdict == "equal":
        return "; they are equal"
    return "; too close to call which is faster" if each.verdict == "too close to call" else ""


def _print_walls(result: CompareResult, console: Console) -> None:
    sizes = sorted({point.gpus for wall in result.wall for point in wall.points})
    batch = "with their batch" if result.scaling == "weak" else "at one batch"
    key = Column(heading="GPUs", cells=tuple(f"{size:,}" for size in sizes))
    speeds = [
        _wall_column(place, [_relative(wall, size) for size in sizes])
        for place, wall in enumerate(result.wall, start=1)
    ]
    title = f"Tokens/s per GPU as clusters grow {batch} [% of the first size]"
    _print_table(title, speeds, key, console, best=None)
    shares = [
        _wall_column(place, [*(_share(wall, size) for size in sizes), _wall_words(wall)])
        for place, wall in enumerate(result.wall, start=1)
    ]
    share = f"{100 * result.wall_share_fraction:g} %"
    title = f"Exposed communication as clusters grow {batch} [% of the step]; wall: first above {share}"
    key = Column(heading=key.heading, cells=(*key.cells, "wall"))
    _print_table(title, shares, key, console, best=None)
    for place, wall in enumerate(result.wall, start=1):
        if wall.stopped is not None:
            words = f"{place} grows to {wall.points[-1].gpus:,} GPUs at most: {wall.stopped}."
            print_line(console, wrapped(words, width=console.width) + "\n")


def _wall_column(place: int, cells: Sequence[str]) -> Column:
    return Column(heading=f"# {place}", cells=tuple(cells), group="wall")


def _relative(wall: WallResult, size: int) -> str:
    """Return the throughput of a GPU at one size, over that at the first size where a layout fits."""
    speeds = {each.gpus: each.tokens_per_s_per_gpu for each in wall.points}
    if size not in speeds:
        return ""
    first = next((speed for speed in speeds.values() if speed is not None), None)
    speed = speeds[size]
    return _NOTHING if speed is None or first is None else percent(speed / first)


def _share(wall: WallResult, size: int) -> str:
    shares = {each.gpus: each.exposed_fraction for each in wall.points}
    if size not in shares:
        return ""
    share = shares[size]
    return _NOTHING if share is None else percent(share)


def _wall_words(wall: WallResult) -> str:
    return "none" if wall.gpus is None else f"{wall.gpus:,}"


def _print_lacking(result: CompareResult, console: Console) -> None:
    lacking = [(place, each.lacks) for place, each in enumerate(result.clusters, start=1) if each.lacks]
    for place, words in lacking:
        first = f"{place:>2}  "
        print_line(console, wrapped(words, width=console.width, indent="    ", first=first), style="bold red")
    if lacking:
        print_line(console)
