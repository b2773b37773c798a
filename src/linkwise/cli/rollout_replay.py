"""`linkwise rollout replay`: the gates of a rollout over recorded runs."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from linkwise.cli.files import check_target, write_whole

if TYPE_CHECKING:
    from linkwise.rollout.plan import Rollout
    from linkwise.rollout.verdicts import StepVerdict

__all__ = ["replay"]


@click.command()
@click.argument("file")
@click.option(
    "--records",
    type=click.Path(path_type=Path),
    required=True,
    metavar="DIR|FILE",
    help="Results of bench and launch as DIR/STEP/SIDE/NAME.json; SIDE is candidate, control or promoted.",
)
@click.option(
    "--step", "steps", multiple=True, metavar="NAME", help="Judge this step alone; may be repeated."
)
@click.option(
    "--junit", type=click.Path(path_type=Path), metavar="FILE", help="Write the verdicts as JUnit XML, too."
)
@click.option(
    "--ctrf", type=click.Path(path_type=Path), metavar="FILE", help="Write the verdicts as CTRF JSON, too."
)
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
@click.pass_obj
def replay(
    today: Callable[[], dt.date],
    *,
    file: str,
    records: Path,
    steps: tuple[str, ...],
    junit: Path | None,
    ctrf: Path | None,
    form: str,
) -> int:
    """Judge recorded runs by the gates of FILE, a rollout/1 document; - is standard input.

    The code that judges is that of a real rollout, so that a gate file is tested without a cluster. Runs are
    taken in the order of their names, those that begin with warmup left out of the verdicts; a result that
    cannot be read is a run that failed.

    Exit codes: 0 all pass, 1 a step fails, 2 wrong use or input, 3 inconclusive or an approval is due, 4 no
    data.

    \b
    linkwise rollout replay rollout.yaml --records records
    linkwise rollout replay rollout.yaml --records records --step one-node --junit gates.xml
    """  # noqa: D301 (click reads \b as: do not wrap)
    from linkwise.report.rollout_verdicts import print_verdicts, verdicts_result
    from linkwise.rollout.document.reading import read_rollout
    from linkwise.rollout.gates.replay import exit_code_of, replay_rollout
    from linkwise.rollout.measuring.evidence_files import read_evidence

    for option, target in (("--junit", junit), ("--ctrf", ctrf)):
        if target is not None:
            check_target(option, target)
    rollout = read_rollout(file)
    found = replay_rollout(rollout, read_evidence(records, rollout), steps=steps, today=today())
    result = verdicts_result(rollout, found.verdicts)
    _write_exports(rollout, found.verdicts, junit=junit, ctrf=ctrf)
    if form == "json":
        from linkwise.report.results import published_json

        click.echo(published_json(result))
    else:
        from linkwise.report.tables import console_for

        print_verdicts(result, console_for())
    return exit_code_of(found)


def _write_exports(
    rollout: Rollout, verdicts: Sequence[StepVerdict], *, junit: Path | None, ctrf: Path | None
) -> None:
    if junit is not None:
        from linkwise.rollout.exports.junit import verdicts_junit

        write_whole("--junit", junit, verdicts_junit(rollout, verdicts))
    if ctrf is not None:
        from linkwise.rollout.exports.ctrf import verdicts_ctrf

        now = dt.datetime.now(tz=dt.UTC)
        write_whole("--ctrf", ctrf, verdicts_ctrf(rollout, verdicts, now=now))
