"""What `linkwise bench` prints: a result in the form asked for, and a line of progress."""

from __future__ import annotations

import csv
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import click

from linkwise.errors import ExitCode

if TYPE_CHECKING:
    from linkwise.report.bench_result import BenchResult

__all__ = ["Progress", "print_result"]


def print_result(result: BenchResult, form: str, *, has_samples: bool) -> int:
    """Print a result as far as it goes, say what went wrong, and return the exit code.

    Parameters
    ----------
    result
        The result.
    form
        ``table``, ``json`` or ``csv``.
    has_samples
        Whether anything was measured.
    """
    if form == "json":
        from linkwise.report.results import published_json

        click.echo(published_json(result))
    elif form == "csv":
        from linkwise.report.bench_result import bench_csv_rows

        csv.writer(sys.stdout, lineterminator="\n").writerows(bench_csv_rows(result))
    elif has_samples:
        from linkwise.report.bench_table import print_bench
        from linkwise.report.tables import console_for

        print_bench(result, console_for())
    bad = [run for run in result.runs if run.outcome != "done"]
    for run in bad:
        click.echo(f"linkwise: the job ended badly ({run.outcome}): {run.reason}", err=True)
    invalid = [run for run in result.runs if run.valid is False]
    for run in invalid:
        wrong = "; ".join(
            f"{each.what}: {each.seen}, planned: {each.planned}"
            for each in run.checks
            if each.is_as_planned is False
        )
        click.echo(f"linkwise: the run is invalid, do not compare or average it: {wrong}", err=True)
    if not bad:
        return ExitCode.AGAINST if invalid else ExitCode.DONE
    return ExitCode.AGAINST if has_samples else ExitCode.NOT_MEASURED


class Progress:
    """One line on a terminal that says what is measured; nothing elsewhere."""

    def __init__(self) -> None:
        self._is_shown = sys.stderr.isatty()

    def __enter__(self) -> Self:
        """Say that it starts."""
        self._show("starting the ranks...")
        return self

    def __exit__(self, *_: object) -> None:
        """Clear the line."""
        self._show("")

    def hear(self, event: Mapping[str, Any]) -> None:
        """Show what a rank begins.

        Parameters
        ----------
        event
            What it said.
        """
        if event.get("event") == "waiting":
            self._show("")
            self._tell_waiting(str(event["job"]))
        elif event.get("event") == "begin":
            self._show(
                "measuring " + " ".join(f"{value}" for name, value in event.items() if name != "event")
            )

    def count(self, operation: str, number: int) -> None:
        """Show which run of a program begins.

        Parameters
        ----------
        operation, number
            What it measures, and for which time.
        """
        self._show(f"measuring {operation}, run {number}")

    def _tell_waiting(self, job: str) -> None:
        from linkwise.launch.run.slurm_queue import ask_slurm, queue_place, waiting_text

        reason = ask_slurm(("squeue", "-h", "-j", job, "-o", "%r")).strip().replace("None", "")
        click.echo(f"linkwise: {waiting_text(job, reason, queue_place(job, ask_slurm))}", err=True)

    def _show(self, text: str) -> None:
        if self._is_shown:
            click.echo(f"\r\x1b[K{text[:100]}", nl=False, err=True)
