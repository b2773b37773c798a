"""The record of a launched run as text: how it ended, what was seen against the plan, how long steps took."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from linkwise.readers.job_log.lines import printable
from linkwise.report.tables import print_line, wrapped
from linkwise.report.wording import three_digits

if TYPE_CHECKING:
    from rich.console import Console

    from linkwise.report.launch_result import LaunchResult

__all__ = ["print_launch", "progress_text"]

_MARKS = {True: "ok", False: "NO", None: "?"}
_LABEL = 16


def print_launch(result: LaunchResult, folder: str, console: Console) -> None:
    """Print a record.

    Parameters
    ----------
    result
        The record.
    folder
        The run folder.
    console
        Where to.
    """
    style = "bold green" if result.valid and result.outcome.value == "done" else "bold red"
    print_line(
        console, wrapped(printable(_head(result)), width=console.width, indent="  ", first=""), style=style
    )
    for label, text in (*_lines(result), ("record", f"{folder}/record.json")):
        first = f"  {label:<{_LABEL}}"
        indent = " " * (_LABEL + 2)
        print_line(console, wrapped(printable(text), width=console.width, indent=indent, first=first))
    print_line(console)
    print_line(console, "Seen against the plan", style="bold")
    for each in result.checks:
        mark = _MARKS[each.is_as_planned]
        words = each.seen if each.is_as_planned else f"{each.seen}; planned: {each.planned}"
        first = f"  {mark:<4}{each.what:<{_LABEL - 2}}"
        text = wrapped(printable(words), width=console.width, indent=" " * (_LABEL + 4), first=first)
        print_line(console, text, style=None if each.is_as_planned else "bold yellow")


def _head(result: LaunchResult) -> str:
    ended = f"the job ended badly ({result.outcome.value}): {result.reason}"
    if result.outcome.value == "done":
        ended = "the job ended well"
    if result.valid:
        return f"{ended}; the run is valid"
    bad = [each.what for each in result.checks if not each.is_as_planned]
    return f"{ended}; the run is invalid ({', '.join(bad)}): do not compare or average it with others"


def _lines(result: LaunchResult) -> Iterator[tuple[str, str]]:
    expected, time = result.expected, result.step_time
    ranks = expected.nodes * expected.ranks_per_node
    yield "job", f"{result.name}: {ranks} ranks on {', '.join(result.hosts[:4]) or 'no host'}"
    if result.exit_code is not None:
        yield "exit code", str(result.exit_code)
    predicted = f"{three_digits(result.predicted.step_time_s)} s predicted"
    if expected.device == "cpu":
        predicted += " for the GPUs of the plan, none of which ran"
    if time is not None:
        tokens = three_digits(result.predicted.tokens_per_step / time.median_s)
        span = f"{three_digits(time.low_s)} to {three_digits(time.high_s)}"
        yield "step time", f"{three_digits(time.median_s)} s ({span} s, {time.count} steps), {predicted}"
        yield "tokens/s", tokens
    else:
        yield "step time", f"no median: {_why_none(result)}; {predicted}"
    if result.versions:
        yield "versions", ", ".join(f"{name} {value}" for name, value in result.versions.items())
    for name, value in result.transports.items():
        yield name.replace("_", " "), value
    if result.findings:
        yield "doctor", f"{result.verdict.replace('_', ' ')}: {', '.join(result.findings)}"
    for note in result.notes:
        yield "note", note


def _why_none(result: LaunchResult) -> str:
    if not result.valid:
        return "the run is invalid"
    if result.outcome.value != "done":
        return "the job ended badly"
    return f"{len(result.samples)} steps were told, seven are needed"


def progress_text(number: int, planned: int | None, time_s: float, *, tokens: int, predicted_s: float) -> str:
    """Return one line on how far a job is.

    Parameters
    ----------
    number
        The last step [1].
    planned
        How many there will be, where that is known [1].
    time_s
        What the step took [s].
    tokens
        Of one step [tokens].
    predicted_s
        What a step should take [s].
    """
    of = "" if planned is None else f" of {planned}"
    rate = three_digits(tokens / time_s)
    times = f"{three_digits(time_s)} s ({three_digits(predicted_s)} s predicted)"
    return f"step {number}{of}: {times}, {rate} tokens/s"
