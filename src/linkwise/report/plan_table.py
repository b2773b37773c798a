"""A plan on a terminal: the best layouts, where their steps and memory go, why the others lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from linkwise.report.bill import bill_columns
from linkwise.report.cost_table import print_cost
from linkwise.report.plan_notes import plan_notes
from linkwise.report.tables import Column, print_line, split_table, wrapped
from linkwise.report.wording import counted, duration, gigabytes, percent, three_digits
from linkwise.units import format_quantity

if TYPE_CHECKING:
    from rich.console import Console

    from linkwise.report.cost import CostResult
    from linkwise.report.results import ClusterResult, JobResult, LayoutResult, PlanResult

__all__ = [
    "job_and_cluster_lines",
    "lacking_words",
    "layout_words",
    "print_layout",
    "print_layouts",
    "print_plan",
]

_NOT_CONCERNED = "-"


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
        print_layouts(result.layouts, console, cost=result.bill)
    elif result.closest is not None:
        _print_closest(result.closest, console, alone=result.evaluated == 1)
    print_line(console)
    for line in plan_notes(result, width):
        print_line(console, line)


def print_layouts(
    layouts: Sequence[LayoutResult], console: Console, *, cost: CostResult | None = None
) -> None:
    """Print layouts in tables: degrees, times and memory; below them the parts of the step.

    Parameters
    ----------
    layouts
        Best first; one alone is printed with the parts of its memory.
    console
        Where to.
    cost
        The bill of the cluster, with the tokens of the first layout.
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
    print_cost(cost, console, of="layout 1" if len(layouts) > 1 else "this layout")
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
    if cluster.oversubscription > 1:
        where += f" oversubscribed {cluster.oversubscription:g}:1"
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
    """Yield heading, word per layout, and the word where it is shared, of what has no column of its own.

    A layout that a habit does not concern has a dash for it.
    """

    def words(of: Callable[[LayoutResult], str], degree: str) -> tuple[str, ...]:
        return tuple(of(each) if getattr(each, degree) > 1 else _NOT_CONCERNED for each in layouts)

    parallel = words(lambda each: "yes" if each.sequence_parallel else "no", "tensor")
    yield "SP", parallel, "sequence parallel" if "yes" in parallel else "no sequence parallel"
    exchanges = words(lambda each: each.context_exchange, "context")
    yield "context\nexchange", exchanges, f"context exchange {_common(exchanges)}"
    schedules = words(lambda each: each.schedule, "pipeline")
    yield "schedule", schedules, f"schedule {_common(schedules)}"
    orders = words(lambda each: each.rank_order, "pipeline")
    nearest = words(
        lambda each: "pipeline" if each.rank_order.endswith("pipeline-data") else "data", "pipeline"
    )
    yield "nearer\nranks", nearest, f"rank order {_common(orders)}"


def _common(words: Sequence[str]) -> str:
    """Return the word of the first layout that is concerned."""
    return next((word for word in words if word != _NOT_CONCERNED), _NOT_CONCERNED)


def _kinds(words: Sequence[str]) -> int:
    return len(set(words) - {_NOT_CONCERNED})


def _differing_habits(layouts: Sequence[LayoutResult]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for heading, words, _ in _habits(layouts):
        if _kinds(words) > 1:
            yield heading, words


def _shared_habits(layouts: Sequence[LayoutResult]) -> str:
    return ", ".join(shared for _, words, shared in _habits(layouts) if _kinds(words) == 1)


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
