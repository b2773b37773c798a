"""`linkwise rollout check`: what is wrong with a rollout before GPU-time is spent on it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import click

from linkwise.errors import ExitCode

__all__ = ["check"]


@click.command()
@click.argument("file")
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
@click.pass_obj
def check(today: Callable[[], dt.date], file: str, form: str) -> int:
    """Lint FILE, a rollout/1 document; - is standard input.

    Exit codes: 0 no fault (there may be warnings), 1 a fault, 2 no rollout/1 document.
    """
    from linkwise.cluster import load_cluster
    from linkwise.report.rollout_check import print_rollout_check, rollout_check_result
    from linkwise.rollout.checking import check_rollout
    from linkwise.rollout.reading import read_rollout
    from linkwise.rollout.remark import Level

    rollout = read_rollout(file)
    cluster = load_cluster(rollout.scope.cluster)
    remarks = check_rollout(rollout, cluster, today=today())
    result = rollout_check_result(rollout, cluster, remarks)
    if form == "json":
        from linkwise.report.results import published_json

        click.echo(published_json(result))
    else:
        from linkwise.report.tables import console_for

        print_rollout_check(result, console_for())
    is_faulty = any(remark.level is Level.FAULT for remark in remarks)
    return ExitCode.AGAINST if is_faulty else ExitCode.DONE
