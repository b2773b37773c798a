"""A plan on a terminal: the best layouts, where their steps and memory go, why the others lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from linkwise.report.bill import bill_columns
from linkwise.report.tables import Column, print_line, split_table, wrapped
from linkwise.report.wording import counted, duration, gigabytes, percent, three_digits
from linkwise.units import format_quantity

if TYPE_CHECKING:
    from rich.console import Console

    from linkwise.report.results import ClusterResult, JobResult, LayoutResult, PlanResult

__all__ = [
    "job_and_cluster_lines",
    "lacking_words",
    "layout_words",
    "print_layout",
    "print_layouts",
    "print_plan",
]

_LACKING = "memory: "
"""What the reason of a layout that does not fit starts with; other reasons are of degrees that make none."""

_LACKING_PRINTED, _ILLEGAL_PRINTED = 6, 4

_PLACES_NAMED = 9

_TIGHT_FRACTION = 0.9
"""Fuller than this the memory is warned about: estimates of it miss by about a tenth (docs/accuracy.md)."""


def print_plan(result: PlanResult, console: Console) -> None:
    """Print a plan.

    Parameters
    ----------
    result
        The plan as it is published.
    console
        Where to.
    """
    width = console.width
    for line in job_and_cluster_lines(result.job, result.cluster):
        print_line(console, wrapped(line, width=width))
    print_line(console)
    if result.layouts:
        print_layouts(result.layouts, console)
    elif result.closest is not None:
        _print_closest(result.closest, console, alone=result.evaluated == 1)
    print_line(console)
    for line in _below(result, width):
        print_line(console, line)


def print_layouts(layouts: Sequence[LayoutResult], console: Console) -> None:
    """Print layouts in tables: degrees, times and memory; below them the parts of the step.

    Parameters
    ----------
    layouts
        Best first; one alone is printed with the parts of its memory.
    console
        Where to.
    """
    key = Column(heading="#", cells=tuple(str(place + 1) for place in range(len(layouts))))
    for number, table in enumerate(split_table(list(_columns(layouts)), key=key, width=console.width)):
        if number:
            print_line(console)
        console.print(table, crop=False)
    shared = _shared_habits(layouts)
    if shared:
        words = shared if len(layouts) == 1 else f"all: {shared}"
        print_line(console, wrapped(words, width=console.width), style="dim")
    if any(each.hybrid_shard for each in layouts):
        words = "ZeRO 3h: sharded inside one NVLink domain, replicated across"
        print_line(console, wrapped(words, width=console.width), style="dim")
    print_line(console)
    _print_bills(layouts, key, console)
    if len(layouts) == 1:
        print_layout(layouts[0], console)
        return
    parts, absent = _parts_columns(layouts)
    print_line(console, "Parts of the step [%]" + (f"; 0 everywhere: {', '.join(absent)}" if absent else ""))
    for table in split_table(parts, key=key, width=console.width):
        console.print(table, crop=False)


def _print_bills(layouts: Sequence[LayoutResult], key: Column, console: Console) -> None:
    columns = bill_columns(layouts)
    if not columns:
        return
    print_line(console, "Money and energy")
    for table in split_table(columns, key=key, width=console.width):
        console.print(table, crop=False)
    print_line(console)


def print_layout(layout: LayoutResult, console: Console) -> None:
    """Print where the time and the memory of one layout go.

    Parameters
    ----------
    layout
        The layout.
    console
        Where to.
    """
    time, memory = layout.step_time_s, layout.memory_bytes
    print_line(console, f"Parts of the step, {format_quantity(time, 's')}")
    for name, part_s in layout.parts.items():
        print_line(console, f"  {name:<12} {format_quantity(part_s, 's'):>9}  {percent(part_s / time):>5} %")
    words = f"Memory of the fullest GPU (stage {layout.stage}), {format_quantity(memory, 'bytes')}"
    print_line(console, f"\n{words} of {format_quantity(layout.memory_available_bytes, 'bytes')}")
    for name, part_bytes in layout.memory_parts.items():
        size = format_quantity(part_bytes, "bytes")
        print_line(console, f"  {name:<12} {size:>9}  {percent(part_bytes / memory):>5} %")


def job_and_cluster_lines(job: JobResult, cluster: ClusterResult) -> tuple[str, str]:
    """Return what was planned, in two lines.

    Parameters
    ----------
    job, cluster
        The job and the cluster as they are published.
    """
    batch = f"{counted(job.global_batch, 'sequence')} of {job.sequence_length:,} tokens per step"
    tokens = "" if job.tokens is None else f", {format_quantity(job.tokens, 'tokens')}s in all"
    what = f"{job.model}, {job.precision}, {batch}{tokens}, {job.framework}"
    nodes = counted(cluster.nodes, "node") + ("" if cluster.system is None else f" ({cluster.system})")
    where = f"{cluster.name}: {counted(cluster.gpus, cluster.gpu, cluster.gpu)} in {nodes}"
    if cluster.link is not None:
        rate = format_quantity(8 * cluster.node_bytes_per_s, "bits_per_s")
        where += f" of {rate}, {cluster.fabric} {cluster.link}"
    return _printable(what), _printable(where)


def _printable(text: str) -> str:
    """Return `text` with control characters escaped: a name from a file must not steer the terminal."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def layout_words(layout: LayoutResult) -> str:
    """Return a layout in words, for a heading.

    Parameters
    ----------
    layout
        The layout.
    """
    words = [
        f"{name.replace('_', ' ')} {getattr(layout, name)}"
        for name in ("tensor", "context", "pipeline", "virtual_pipeline", "expert", "data")
        if getattr(layout, name) > 1
    ]
    words += [
        f"micro-batch {layout.micro_batch}",
        f"ZeRO {layout.zero_stage}",
        f"recompute {layout.recompute}",
    ]
    return ", ".join(words)


def lacking_words(layout: LayoutResult) -> str:
    """Return how much memory a layout lacks, and where.

    Parameters
    ----------
    layout
        A layout that does not fit.
    """
    return f"lacks {format_quantity(layout.short_bytes, 'bytes')} per GPU on stage {layout.stage}"


def _columns(layouts: Sequence[LayoutResult]) -> Iterator[Column]:
    def column(
        heading: str, cell: Callable[[LayoutResult], object], group: str, *, left: bool = False
    ) -> Column:
        cells = tuple(str(cell(each)) for each in layouts)
        return Column(heading=heading, cells=cells, justify="left" if left else "right", group=group)

    interleaved = any(each.virtual_pipeline > 1 for each in layouts)
    yield column("TP", lambda each: each.tensor, "degrees")
    yield column("CP", lambda each: each.context, "degrees")
    yield column("PPxv" if interleaved else "PP", _stages, "degrees", left=True)
    yield column("EP", lambda each: each.expert, "degrees")
    yield column("DP", lambda each: each.data, "degrees")
    yield column("micro-\nbatch", lambda each: each.micro_batch, "degrees")
    yield column("ZeRO", _zero, "degrees")
    yield column("recompute", lambda each: each.recompute, "degrees", left=True)
    for heading, words in _differing_habits(layouts):
        yield Column(heading=heading, cells=words, justify="left", group="degrees")
    yield column("step time\n[s]", lambda each: three_digits(each.step_time_s), "cost")
    yield column("80 % interval\n[s]", _interval, "cost")
    yield column("tokens/s\nper GPU", lambda each: three_digits(each.tokens_per_s_per_gpu), "cost")
    yield column("MFU\n[%]", lambda each: percent(each.mfu_fraction), "cost")
    if any(each.training_time_s is not None for each in layouts):
        yield column("training", lambda each: duration(each.training_time_s or 0.0), "cost")
    available = gigabytes(layouts[0].memory_available_bytes)
    yield column(f"memory\nof {available}\n[GB]", lambda each: gigabytes(each.memory_bytes), "cost")


def _stages(layout: LayoutResult) -> str:
    depth = layout.virtual_pipeline
    return f"{layout.pipeline}x{depth}" if depth > 1 else str(layout.pipeline)


def _zero(layout: LayoutResult) -> str:
    return f"{layout.zero_stage}h" if layout.hybrid_shard else str(layout.zero_stage)


def _interval(layout: LayoutResult) -> str:
    return f"{three_digits(layout.step_time_low_s)} to {three_digits(layout.step_time_high_s)}"


def _habits(layouts: Sequence[LayoutResult]) -> Iterator[tuple[str, tuple[str, ...], str]]:
    """Yield heading, word per layout, and the word where it is shared, of what has no column of its own."""
    parallel = tuple("yes" if each.sequence_parallel else "no" for each in layouts)
    if any(each.tensor > 1 for each in layouts):
        yield "SP", parallel, "sequence parallel" if parallel[0] == "yes" else "no sequence parallel"
    if any(each.context > 1 for each in layouts):
        exchanges = tuple(each.context_exchange if each.context > 1 else "-" for each in layouts)
        yield "context\nexchange", exchanges, f"context exchange {exchanges[0]}"
    if any(each.pipeline > 1 for each in layouts):
        schedules = tuple(each.schedule if each.pipeline > 1 else "-" for each in layouts)
        yield "schedule", schedules, f"schedule {schedules[0]}"
        orders = tuple(each.rank_order for each in layouts)
        nearest = tuple("pipeline" if each.endswith("pipeline-data") else "data" for each in orders)
        yield "nearer\nranks", nearest, f"rank order {orders[0]}"


def _differing_habits(layouts: Sequence[LayoutResult]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for heading, words, _ in _habits(layouts):
        if len(set(words)) > 1:
            yield heading, words


def _shared_habits(layouts: Sequence[LayoutResult]) -> str:
    return ", ".join(shared for _, words, shared in _habits(layouts) if len(set(words)) == 1)


def _parts_columns(layouts: Sequence[LayoutResult]) -> tuple[list[Column], list[str]]:
    """Return the parts as columns, and the names of those that are nothing in every layout."""
    columns: list[Column] = []
    absent: list[str] = []
    for name in layouts[0].parts:
        shares = [each.parts[name] / each.step_time_s for each in layouts]
        if any(shares):
            columns.append(Column(heading=name, cells=tuple(map(percent, shares)), group=name))
        else:
            absent.append(name)
    return columns, absent


def _print_closest(layout: LayoutResult, console: Console, *, alone: bool) -> None:
    where = f"{lacking_words(layout)}: {layout_words(layout)}."
    words = f"The layout does not fit. It {where}" if alone else f"No layout fits. The closest {where}"
    print_line(console, wrapped(words, width=console.width), style="bold red")
    words = f"It needs {format_quantity(layout.memory_bytes, 'bytes')}"
    print_line(console, f"{words} of {format_quantity(layout.memory_available_bytes, 'bytes')}:")
    for name, part_bytes in sorted(layout.memory_parts.items(), key=lambda part: -part[1]):
        share = percent(part_bytes / layout.memory_bytes)
        print_line(console, f"  {name:<12} {format_quantity(part_bytes, 'bytes'):>9}  {share:>5} %")


def _below(result: PlanResult, width: int) -> Iterator[str]:
    if result.evaluated != 1:  # one layout was estimated, not searched for: what it lacks stands above
        yield from _reasons(result, width)
    if result.layouts:
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
