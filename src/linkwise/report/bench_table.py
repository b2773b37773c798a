"""What a bench measured, as tables for a reader."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from linkwise.report.bench_result import (
    BenchResult,
    CollectivesResult,
    PairsResult,
    SampledResult,
    SizeResult,
    TrainingCutResult,
    TrainingResult,
)
from linkwise.report.collective_result import size_text
from linkwise.report.tables import Column, print_line, split_table, wrapped
from linkwise.report.wording import counted, percent, three_digits

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["print_bench"]

_BACKENDS = {"gloo": "gloo on CPUs", "nccl": "NCCL by torch", "nccl-tests": "nccl-tests"}


def print_bench(result: BenchResult, console: Console) -> None:
    """Print what was measured, and what it rests on.

    Parameters
    ----------
    result
        The result.
    console
        Where to.
    """
    if isinstance(result, CollectivesResult):
        _print_collectives(result, console)
    elif isinstance(result, PairsResult):
        _print_pairs(result, console)
    elif isinstance(result, TrainingResult):
        _print_training(result, console)
    _print_notes(result, console)


def _where(result: BenchResult) -> str:
    return f"{counted(result.ranks, 'rank')}, {_BACKENDS[result.backend]}, {result.place}"


def _print_collectives(result: CollectivesResult, console: Console) -> None:
    for collective in dict.fromkeys(row.collective for row in result.rows):
        rows = [row for row in result.rows if row.collective == collective]
        beside = f", beside {result.cluster}" if result.cluster else ""
        heading = f"{collective}: {_where(result)}{beside}; times in us, bandwidths in GB/s"
        print_line(console, wrapped(heading, width=console.width, indent="  ", first=""))
        print_line(console)
        _print_columns("size", [size_text(row.size_bytes) for row in rows], _size_columns(rows), console)
    if result.isolation is not None:
        print_line(console, wrapped(result.isolation.text, width=console.width))
        print_line(console)


def _size_columns(rows: Sequence[SizeResult]) -> Iterator[Column]:
    yield Column(heading="time", cells=tuple(_us(row.time.median_s) for row in rows))
    yield Column(heading="interval", cells=tuple(_interval(row.time, 1e6) for row in rows))
    predicted = [row.predicted for row in rows if row.predicted is not None]
    if not predicted:
        yield Column(heading="calls", cells=tuple(f"{len(row.time.samples_s)} x {row.calls}" for row in rows))
        yield Column(heading="algbw", cells=tuple(_gb_per_s(row.algbw_bytes_per_s) for row in rows))
    yield Column(heading="busbw", cells=tuple(_gb_per_s(row.busbw_bytes_per_s) for row in rows))
    yield Column(heading="wrong", cells=tuple("-" if row.wrong is None else f"{row.wrong:,}" for row in rows))
    if predicted:
        yield Column(heading="model", cells=tuple(_us(each.time_s) for each in predicted), group="model")
        ratios = tuple(_number(each.ratio) for each in predicted)
        if any(each.ratio is not None for each in predicted):
            yield Column(heading="ratio", cells=ratios, group="model")
        standings = tuple(
            "" if each.standing in (None, "inside") else str(each.standing) for each in predicted
        )
        if any(standings):
            yield Column(heading="", cells=standings, justify="left", group="model")


def _print_pairs(result: PairsResult, console: Console) -> None:
    each = f" by each of {result.ranks_per_node} ranks of a node" if result.ranks_per_node > 1 else ""
    heading = f"pairs: {_where(result)}; {size_text(result.size_bytes)} each way{each}; GB/s"
    print_line(console, wrapped(heading, width=console.width, indent="  ", first=""))
    print_line(console)
    columns = (
        Column(heading="score", cells=tuple(_gb_per_s(node.score_bytes_per_s) for node in result.nodes)),
        Column(heading="of median [%]", cells=tuple(_of_middle(result))),
        Column(
            heading="",
            cells=tuple(_state(node.is_low, node.confirmed) for node in result.nodes),
            justify="left",
        ),
    )
    _print_columns("node", [node.host or str(node.node) for node in result.nodes], columns, console)
    print_line(console, wrapped(f"{result.verdict.capitalize()}: {result.reason}.", width=console.width))
    print_line(console)


def _of_middle(result: PairsResult) -> Iterator[str]:
    for node in result.nodes:
        middle = result.middle_bytes_per_s
        yield percent(node.score_bytes_per_s / middle) if middle else "-"


def _state(is_low: bool, confirmed: bool | None) -> str:  # noqa: FBT001 (two columns of one table)
    if not is_low:
        return ""
    return "slow" if confirmed else "low once" if confirmed is None else "low, not confirmed"


def _print_training(result: TrainingResult, console: Console) -> None:
    tokens = f"{result.tokens_per_step:,} tokens a step"
    model = f"{result.model['parameters']:,} parameters"
    heading = f"training: {_where(result)}; {model}, {tokens}; times in ms"
    print_line(console, wrapped(heading, width=console.width, indent="  ", first=""))
    print_line(console)
    _print_columns(
        "cut", [cut.cut for cut in result.cuts], _cut_columns(result.cuts), console, justify="left"
    )


def _cut_columns(cuts: Sequence[TrainingCutResult]) -> Iterator[Column]:
    yield Column(heading="step", cells=tuple(_ms(cut.step_time.median_s) for cut in cuts))
    yield Column(heading="interval", cells=tuple(_interval(cut.step_time, 1e3) for cut in cuts))
    for name in dict.fromkeys(name for cut in cuts for name in cut.phases):
        cells = tuple(_ms(cut.phases[name].median_s if name in cut.phases else None) for cut in cuts)
        yield Column(heading=name, cells=cells)
    yield Column(heading="tokens/s", cells=tuple(_number(cut.tokens_per_s) for cut in cuts))
    yield Column(heading="first loss", cells=tuple(_loss(cut.losses[:1]) for cut in cuts))
    yield Column(heading="last", cells=tuple(_loss(cut.losses[-1:]) for cut in cuts))


def _print_columns(
    heading: str,
    key: Sequence[str],
    columns: Iterator[Column] | Sequence[Column],
    console: Console,
    *,
    justify: str = "right",
) -> None:
    first = Column(heading=heading, cells=tuple(key), justify="left" if justify == "left" else "right")
    for table in split_table(tuple(columns), key=first, width=console.width, best=None):
        console.print(table, crop=False)
        print_line(console)


def _print_notes(result: BenchResult, console: Console) -> None:
    print_line(console, "What this rests on:")
    for line in result.notes:
        print_line(console, wrapped(line, width=console.width, indent="    ", first="  "))


def _interval(time: SampledResult, factor: float) -> str:
    if time.low_s is None or time.high_s is None:
        return counted(len(time.samples_s), "sample")
    return f"{three_digits(time.low_s * factor)} to {three_digits(time.high_s * factor)}"


def _us(time_s: float | None) -> str:
    return _number(None if time_s is None else time_s * 1e6)


def _ms(time_s: float | None) -> str:
    return _number(None if time_s is None else time_s * 1e3)


def _gb_per_s(bytes_per_s: float | None) -> str:
    return _number(None if bytes_per_s is None else bytes_per_s / 1e9)


def _number(value: float | None) -> str:
    return "-" if value is None else three_digits(value)


def _loss(losses: Sequence[float]) -> str:
    return f"{losses[0]:.4f}" if losses else "-"
