"""The decision log as text: one paragraph for each decision."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkwise.readers.job_log.lines import printable
from linkwise.report.tables import print_line, wrapped
from linkwise.report.wording import counted
from linkwise.rollout.store.decisions import BOOKKEEPING
from linkwise.rollout.store.verdict_text import verdict_of_text

if TYPE_CHECKING:
    from rich.console import Console

    from linkwise.rollout.store.decisions import SealedEntry
    from linkwise.rollout.store.reading import Record

__all__ = ["print_log"]

_INDENT = "      "


def print_log(record: Record, console: Console, *, is_all: bool = False) -> None:
    """Print a decision log.

    Parameters
    ----------
    record
        Of a rollout.
    console
        Where to.
    is_all
        Whether what was only recorded is printed, too: each run that started and ended.
    """
    shown = [each for each in record.log if is_all or each.entry.kind not in BOOKKEEPING]
    for sealed in shown:
        _print_entry(console, sealed, record)
    left_out = len(record.log) - len(shown)
    if left_out:
        print_line(console, f"{counted(left_out, 'entry', 'entries')} about runs left out: --all prints them")
    head = record.head
    print_line(console, f"{counted(head.entries, 'entry', 'entries')}, head {head.digest}")


def _print_entry(console: Console, sealed: SealedEntry, record: Record) -> None:
    entry = sealed.entry
    step = f" {entry.step}" if entry.step else ""
    signed = f", signed {entry.signer}" if entry.signer else ""
    evidence = "".join(f", {name} {digest[:12]}" for name, digest in entry.evidence.items())
    head = f"{entry.number:<4}  {entry.at:%Y-%m-%d %H:%M:%S}  {entry.kind.value}{step}, by {entry.by}"
    _print(console, head, first="")
    _print(console, entry.why, first=_INDENT)
    if "verdict" in entry.evidence:
        for each in verdict_of_text(record.kept[entry.evidence["verdict"]]).objectives:
            _print(console, f"{each.objective}: {each.sentence}", first=f"{_INDENT}- ")
    _print(console, f"digest {sealed.digest[:12]}{evidence}{signed}", first=_INDENT)


def _print(console: Console, text: str, *, first: str) -> None:
    indent = " " * max(len(first), len(_INDENT))
    print_line(console, wrapped(printable(text), width=console.width, indent=indent, first=first))
