"""A fabric on a terminal: its parts, the arithmetic, what it carries, collisions and failures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from linkwise.report.fabric_bill import print_fabric_bill
from linkwise.report.tables import Column, print_line, split_table, wrapped
from linkwise.report.wording import counted, percent, three_digits
from linkwise.units import format_quantity

if TYPE_CHECKING:
    from rich.console import Console

    from linkwise.report.fabric import CollisionsResult, FabricResult

__all__ = ["print_fabric"]


def print_fabric(result: FabricResult, console: Console) -> None:
    """Print a fabric.

    Parameters
    ----------
    result
        The fabric as it is published.
    console
        Where to.
    """
    for line in _heading(result):
        print_line(console, wrapped(line, width=console.width))
    print_line(console)
    _print_parts(result, console)
    print_line(console, "\nHow the counts came about")
    for line in result.arithmetic:
        print_line(console, wrapped(line, width=console.width, first="  ", indent="    "))
    print_line(console)
    for line in _capacity(result):
        print_line(console, wrapped(line, width=console.width))
    more = "" if result.as_built is None else ", on top of the changes"
    print_line(console, f"\nWorst failure of one part{more}")
    _print_failures(result, console)
    print_fabric_bill(result.bill, console)
    print_line(console, "\nAssumptions")
    for line in result.assumptions:
        print_line(console, wrapped(line, width=console.width, first="- ", indent="  "), style="dim")


def _heading(result: FabricResult) -> Iterator[str]:
    nodes = f"{counted(result.gpus, 'GPU')} in {counted(result.nodes, 'node')}"
    name = "".join(each if each.isprintable() else ascii(each)[1:-1] for each in result.name)
    yield f"{name}: {nodes}, {result.kind} {result.link}, {counted(result.tiers, 'tier')} of {result.switch}"
    if result.changes:
        yield f"Changes: {counted(len(result.changes), 'entry', 'entries')}; parts are counted as built"
    if result.networks > 1:
        alike = "" if result.kind == "links" else "alike and "
        yield f"{result.networks} networks that are {alike}not joined; counts are of all of them"


def _print_parts(result: FabricResult, console: Console) -> None:
    optics, switches_w = result.optics, result.switch_power_w
    rows = [(f"{tier} switches", f"{count:,}", "") for tier, count in result.switches if count]
    drawn = "not known" if switches_w is None else format_quantity(switches_w, "w")
    if len(rows) == 1:
        rows = [(*rows[0][:2], drawn)]
    else:
        rows.append(("all switches", f"{sum(count for _, count in result.switches):,}", drawn))
    rows += [
        (f"cables {_between(tier, result.kind)}", f"{count:,}", "") for tier, count in result.cables if count
    ]
    rows.append(("transceivers", f"{optics.modules:,}", _power(optics.power_w, f"{optics.ends:,} ends")))
    if result.power_w is not None:
        each = format_quantity(result.power_w / result.gpus, "w")
        rows.append(("total", "", _power(result.power_w, f"{each} per GPU")))
    if result.electricity_usd_per_year is not None:
        rows.append(("electricity", "", f"{three_digits(result.electricity_usd_per_year)} USD a year"))
    names, counts, powers = (tuple(cells) for cells in zip(*rows, strict=True))
    key = Column(heading="part", cells=names, justify="left")
    columns = [Column(heading="count", cells=counts), Column(heading="power", cells=powers, justify="left")]
    for table in split_table(columns, key=key, width=console.width):
        console.print(table, crop=False)


def _between(tier: str, kind: str) -> str:
    """Return where cables of a tier run, as a reader calls it."""
    if tier == "same_tier":
        return "group-group" if kind == "dragonfly-plus" else "within a tier"
    return tier.replace("_", "-")


def _power(power_w: float | None, of: str) -> str:
    known = "not known" if power_w is None else format_quantity(power_w, "w")
    return f"{known} ({of})"


def _capacity(result: FabricResult) -> Iterator[str]:
    rate = format_quantity(result.bisection_bytes_per_s, "bytes_per_s")
    share = result.bisection_fraction
    of = "" if share is None else f", {percent(share)} % of what the NICs of half the nodes carry"
    built = result.as_built
    if built is None:
        yield f"Bisection: {rate} in one direction{of}"
    else:
        before = format_quantity(built.bisection_bytes_per_s, "bytes_per_s")
        yield f"Bisection with the changes: at most {rate} in one direction{of}; {before} as built"
    if result.switches.spine and built is not None:
        yield (
            f"Oversubscription at the worst leaf, with the changes: {result.oversubscription:.3g} to 1; "
            f"{built.oversubscription:.3g} to 1 as built"
        )
    elif result.switches.spine:
        yield f"Oversubscription at the fullest leaf, as wired: {result.oversubscription:.3g} to 1"
    tiers = ("one switch", "two tiers", "three tiers")
    reach = ", ".join(f"{name} {nodes:,}" for name, nodes in zip(tiers, result.reach_nodes, strict=False))
    if reach:
        yield f"Most nodes that these switches join: {reach}"
    yield from _collision_lines(result.collisions)


def _collision_lines(found: CollisionsResult) -> Iterator[str]:
    if found.queue_pairs is None:
        yield f"Hash collisions: none with routing {found.routing}"
        return
    pairs = counted(found.queue_pairs, "queue pair")
    drawn, exact = (
        None
        if mean is None or p95 is None
        else f"mean {three_digits(mean)}, 95th percentile {three_digits(p95)}"
        for mean, p95 in ((found.mean, found.p95), (found.exact_mean, found.exact_p95))
    )
    if found.seeds == 0 and exact is not None and found.exact_mean == 1.0:
        yield f"Hash collisions: none, there is one path (ecmp, {pairs})"
        return
    if drawn is None and exact is None:
        yield f"Hash collisions (ecmp, {pairs}): too many flows to count"
        return
    yield f"Hash collisions (ecmp, {pairs}), times slower than evenly spread:"
    if drawn is not None:
        yield f"  all links between switches, {found.seeds} draws: {drawn}"
    if found.up_mean is not None:
        yield f"  links from leaves to spines, the same draws: mean {three_digits(found.up_mean)}"
    if exact is not None:
        yield f"  links from leaves to spines, exact law: {exact}"


def _print_failures(result: FabricResult, console: Console) -> None:
    key = Column(heading="part", cells=tuple(each.part for each in result.failures), justify="left")
    columns = [
        Column(heading="of", cells=tuple(f"{each.count:,}" for each in result.failures)),
        Column(
            heading="left\n[%]",
            cells=tuple(percent(each.remaining_fraction) for each in result.failures),
        ),
        Column(heading="for GPUs", cells=tuple(f"{each.gpus:,}" for each in result.failures)),
        Column(heading="cut off", cells=tuple(f"{each.cut_off_gpus:,}" for each in result.failures)),
        Column(
            heading="of the traffic",
            cells=tuple(each.traffic for each in result.failures),
            justify="left",
        ),
    ]
    for table in split_table(columns, key=key, width=console.width):
        console.print(table, crop=False)
