"""A score on a terminal: errors by group, regret, memory, intervals, and what was left out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from linkwise.report.tables import wrapped
from linkwise.report.wording import counted, percent

if TYPE_CHECKING:
    from rich.console import Console

    from linkwise.report.validation import GroupResult, MemoryResult, RegretResult, ValidationResult

__all__ = ["print_validation"]

_HEADINGS = ("rows", "median", "MAPE", "p90", "bias", "inside", "width")
_TITLES = {
    "source": "by source",
    "gpu": "by GPU",
    "framework": "by framework",
    "family": "by framework family",
    "kind": "by kind of model",
    "interconnect": "by interconnect",
    "complete": "by completeness",
}
_LEAST_NAME_WIDTH = 20
_NUMBERS_WIDTH = 8 * len(_HEADINGS)
_IDS_PRINTED = 12


def print_validation(result: ValidationResult, console: Console) -> None:
    """Print a score.

    Parameters
    ----------
    result
        The score as it is published.
    console
        Where to.
    """
    for line in _head(result):
        _print(console, line)
    if result.scored:
        _print_errors(result, console)
    for line in (*_regret_lines(result.regret), *_memory_lines(result.memory), *_requirement_lines(result)):
        _print(console, line)


def _head(result: ValidationResult) -> Iterator[str]:
    yield f"{counted(result.rows, 'row')} with task pretrain, {result.scored:,} scored."
    if result.skipped:
        yield "Left out:"
        width = max(len(f"{count:,}") for count in result.skipped.values())
        yield from (f"  {count:>{width},}  {reason}" for reason, count in result.skipped.items())
    if result.scored:
        yield ""
        yield (
            "Error of the step time, predicted over measured minus one [%]; share of rows inside the "
            "interval and its median width over the prediction [%]."
        )


def _print_errors(result: ValidationResult, console: Console) -> None:
    from rich.table import Table

    keys = dict.fromkeys(group.key for group in result.by)
    longest = 2 + max((len(group.name) for group in result.by), default=_LEAST_NAME_WIDTH)
    room = min(longest, max(console.width - _NUMBERS_WIDTH - 2, _LEAST_NAME_WIDTH))
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("", min_width=room, no_wrap=True)
    for heading in _HEADINGS:
        table.add_column(heading, justify="right", no_wrap=True, min_width=6)
    table.add_row("all rows", *_cells(result), style="bold")
    for key in keys:
        table.add_row()
        table.add_row(_TITLES.get(key, f"by {key}"), style="bold")
        for group in (each for each in result.by if each.key == key):
            table.add_row(_name(group.name, room), *_cells(group))
    console.print(table, crop=False, width=max(console.width, room + 2 + _NUMBERS_WIDTH))
    _print(console, "")


def _name(name: str, room: int) -> str:
    """Return a name in lines of at most `room` characters, indented."""
    import textwrap

    return textwrap.fill(name, width=room, initial_indent="  ", subsequent_indent="    ")


def _cells(errors: ValidationResult | GroupResult) -> tuple[str, ...]:
    return (
        f"{errors.scored:,}",
        _percent(errors.median_abs_error_fraction),
        _percent(errors.mape_fraction),
        _percent(errors.p90_abs_error_fraction),
        _percent(errors.bias_fraction, sign=True),
        _percent(errors.interval_coverage_fraction),
        _percent(errors.interval_median_width_fraction),
    )


def _percent(fraction: float | None, *, sign: bool = False) -> str:
    if fraction is None:
        return "-"
    words = percent(fraction)
    return f"+{words}" if sign and words != "0" and not words.startswith("-") else words


def _regret_lines(regret: RegretResult) -> Iterator[str]:
    if not regret.groups:
        yield "Decision regret: no group of three layouts or more."
        return
    mean, p95, most = map(_percent, (regret.mean_fraction, regret.p95_fraction, regret.max_fraction))
    groups = counted(regret.groups, "group")
    yield f"Decision regret over {groups} of layouts: mean {mean} %, 95th percentile {p95} %, worst {most} %."
    if regret.worst is not None and regret.worst.regret_fraction > 0:
        yield f"  worst: {regret.worst.name}, {regret.worst.layouts} layouts; {regret.worst.reason}."


def _memory_lines(memory: MemoryResult) -> Iterator[str]:
    if memory.scored:
        median = _percent(memory.median_abs_error_fraction)
        bias = _percent(memory.bias_fraction, sign=True)
        yield f"Peak memory over {counted(memory.scored, 'row')}: median error {median} %, bias {bias} %."
    else:
        yield "Peak memory: no row has a measured peak and a complete layout."
    if memory.infeasible_fraction is not None:
        shown = ", ".join(memory.infeasible_ids[:_IDS_PRINTED])
        more = memory.infeasible - _IDS_PRINTED
        ids = f" ({shown}{f' and {more} more' if more > 0 else ''})" if shown else ""
        share = _percent(memory.infeasible_fraction)
        yield f"Runs that happened and are said not to fit: {memory.infeasible}, {share} % of the rows{ids}."


def _requirement_lines(result: ValidationResult) -> Iterator[str]:
    if result.requirements:
        yield ""
    for each in result.requirements:
        sense = "at least" if each.name == "coverage" else "at most"
        verdict = "met" if each.met else "NOT MET"
        limit, value = percent(each.limit_fraction), _percent(each.value_fraction)
        yield f"required {each.name} {sense} {limit} %: {value} %, {verdict}"


def _print(console: Console, text: str) -> None:
    indent = "  " if text.startswith("  ") else ""
    words = wrapped(text, width=console.width, indent=indent + "  ", first=indent) if text.strip() else text
    console.print(words, soft_wrap=True)
