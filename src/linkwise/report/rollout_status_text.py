"""Where a rollout stands, as text: what a person needs first at three in the morning stands first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from linkwise.readers.job_log.lines import printable
from linkwise.report.tables import print_line, wrapped
from linkwise.report.wording import counted, three_digits
from linkwise.rollout.carrying.standing import Standing
from linkwise.rollout.verdicts import Outcome

if TYPE_CHECKING:
    from rich.console import Console

    from linkwise.report.rollout_status import LedgerResult, RolloutResult, StepStandingResult

__all__ = ["print_rollout"]

_LABEL = 10
_BAD = (Standing.SUSPENDED, Standing.ROLLED_BACK, Standing.NOT_PROVEN, Standing.ROLLING_BACK)


def print_rollout(result: RolloutResult, console: Console) -> None:
    """Print where a rollout stands.

    Parameters
    ----------
    result
        As it is published.
    console
        Where to.
    """
    style = "bold red" if result.standing in _BAD else "bold green"
    _print(console, f"{result.name}: {result.standing.value}", style=style)
    for label, text in _lines(result):
        _labelled(console, label, text)
    print_line(console)
    print_line(console, "Steps", style="bold")
    for step in result.steps:
        _print_step(console, step)
    print_line(console)
    print_line(console, "Ledger", style="bold")
    for text in _ledger_lines(result.ledger):
        _print(console, f"  {text}", indent="    ")
    print_line(console)
    head = result.head
    _print(console, f"log: {counted(head.entries, 'entry', 'entries')}, head {head.digest}")


def _lines(result: RolloutResult) -> Iterator[tuple[str, str]]:
    yield "change", f"{result.change}; owner {result.owner}; {result.scope}"
    if result.why and result.since is not None:
        is_verdict = result.cause is None or any(result.cause.value == each.value for each in Outcome)
        cause = "" if is_verdict or result.cause is None else f"{result.cause.value}: "
        yield "why", f"{cause}{result.why} ({result.since:%Y-%m-%d %H:%M} UTC)"
    way = result.rollback
    if way is not None:
        command = "" if way.command_exit_code is None else f"command ended with {way.command_exit_code}; "
        restored = "restored" if way.restored else "not restored"
        proven = {None: "not proven yet", True: "proven", False: "NOT PROVEN"}[way.proven]
        yield "rollback", f"{command}{restored}, {proven}{': ' + way.why if way.why else ''}"
    if result.held_by:
        yield "held by", result.held_by
    if result.file_changed:
        yield "file", "it is not the one that was accepted; 'linkwise rollout resume --accept-file' takes it"
    if result.next:
        yield "next", result.next
    if result.standing in _BAD and result.page:
        yield "page", ", ".join(result.page)
        yield "runbook", result.runbook


def _print_step(console: Console, step: StepStandingResult) -> None:
    marks = {"ahead": " ", "measured": "~", "judged": "?", "passed": "+", "waived": "w"}
    mark = marks[step.standing]
    if step.standing == "judged" and step.outcome is not Outcome.PASS:
        mark = "x"
    runs = ", ".join(f"{count} {state}" for state, count in step.runs.items())
    outcome = "" if step.outcome is None else f": {step.outcome.value}"
    style = {"x": "bold red", "+": "green"}.get(mark)
    _print(
        console,
        f"{mark} {step.name}, {step.target}{outcome}" + (f" (runs: {runs})" if runs else ""),
        style=style,
    )
    for each in step.objectives:
        text = f"    {each.name}: {each.outcome.value}. {each.sentence}"
        _print(console, text, indent="      ")
    missing = [who for who in step.approvals if who not in step.approved]
    if step.approved:
        _print(console, f"    approved by {', '.join(step.approved)}", indent="      ")
    if missing and step.standing not in ("passed", "waived"):
        _print(console, f"    needs the approval of {', '.join(missing)}", indent="      ")
    if step.waived_by:
        _print(console, f"    waived by {step.waived_by} until {step.waived_until}", indent="      ")


def _ledger_lines(ledger: LedgerResult) -> Iterator[str]:
    steps = ", ".join(f"{name} {three_digits(value)}" for name, value in ledger.spent_gpu_h_by_step.items())
    yield f"spent on tests: {three_digits(ledger.spent_gpu_h)} GPU-hours" + (f" ({steps})" if steps else "")
    if ledger.lost_gpu_h:
        lost = ", ".join(
            f"{three_digits(value)} in {counted(ledger.lost_runs[state], f'{state} run')}"
            for state, value in ledger.lost_gpu_h.items()
        )
        yield f"lost to faults: {lost}"
    if ledger.runs_without_time:
        yield f"{counted(ledger.runs_without_time, 'run')} without a known GPU-time: not counted"
    for each in ledger.decisions:
        verb = "saves" if each.saved_gpu_h_per_h >= 0 else "loses"
        rate, so_far = abs(each.saved_gpu_h_per_h), abs(each.saved_gpu_h_per_h * each.hours)
        yield (
            f"entry {each.entry}, {each.what}: {verb} {three_digits(rate)} GPU-hours an hour, "
            f"{three_digits(so_far)} in the {three_digits(each.hours)} hours it held ({each.basis})"
        )


def _labelled(console: Console, label: str, text: str) -> None:
    first = f"  {label:<{_LABEL}}"
    print_line(console, wrapped(printable(text), width=console.width, indent=" " * (_LABEL + 2), first=first))


def _print(console: Console, text: str, *, style: str | None = None, indent: str = "  ") -> None:
    stripped = printable(text.lstrip(" "))
    first = " " * (len(text) - len(text.lstrip(" ")))
    print_line(console, wrapped(stripped, width=console.width, indent=indent, first=first), style=style)
