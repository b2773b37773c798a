"""`linkwise validate`: score the model against measurements."""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from linkwise.cli.files import check_target, write_whole
from linkwise.errors import ExitCode, InputError, UnknownName

if TYPE_CHECKING:
    from linkwise.report.collective_validation import CollectiveValidationResult
    from linkwise.report.validation import ValidationResult

__all__ = ["validate"]


class _Kinds(click.Group):
    """A group whose unknown names get the nearest one."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the kind that is called."""
        if args and not args[0].startswith("-") and args[0] not in self.commands:
            raise UnknownName.among(self.commands, kind="kind of measurements", given=args[0])
        return super().resolve_command(ctx, args)


@click.group(cls=_Kinds)
def validate() -> None:
    """Score the model against measurements of one kind."""


@validate.command(short_help="Score the model on measured training runs.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--use", metavar="WORD,...", help="Score only rows with one of these words in the column use.")
@click.option(
    "--rows",
    "rows_path",
    type=click.Path(path_type=Path),
    help="Write every row there with its prediction, as CSV.",
)
@click.option(
    "--require",
    metavar="FIGURE=LIMIT,...",
    help="Exit with 1 unless every figure is at most its limit: median, mape, p90, bias, width, regret, "
    "regret_p95, memory, infeasible, skipped; coverage at least.",
)
@click.option(
    "--format", "form", type=click.Choice(["table", "json", "csv"]), default="table", show_default=True
)
def training(file: Path, use: str | None, rows_path: Path | None, require: str | None, form: str) -> int:
    """Score the model on the measured training runs of FILE, a CSV; - is standard input.

    Columns are those of docs/measurements.md; a column config (path of a config.json, from the place of
    FILE) may stand in place of the model's shape. Rows whose task is not pretrain are not scored; blank cells
    of a layout are filled by one rule and marked.

    Exit codes: 0 done, 1 a limit of --require does not hold, 2 wrong input, 4 no row could be scored.
    """
    from linkwise.calibrate.requirement import judge, parse_requirements
    from linkwise.calibrate.validate import validate_training
    from linkwise.report.scored_rows import scored_rows_csv
    from linkwise.report.validation import RequirementResult, validation_result

    required = () if require is None else parse_requirements(require)
    words = _words(use)
    if rows_path is not None:
        _check_target(rows_path, file)
    score = validate_training(file, use=words)
    judged = judge(required, score)
    result = validation_result(
        score,
        requirements=[
            RequirementResult(
                name=each.name,
                limit_fraction=each.limit_fraction,
                value_fraction=each.value_fraction,
                met=each.met,
            )
            for each in judged
        ],
    )
    if rows_path is not None:
        write_whole("--rows", rows_path, scored_rows_csv(score.predicted, score.left_out))
    _print_result(result, form)
    if not result.scored:
        click.echo(f"linkwise: {file}: no row could be scored", err=True)
        return ExitCode.NOT_MEASURED
    return ExitCode.DONE if all(each.met for each in judged) else ExitCode.AGAINST


@validate.command(short_help="Score the model on measured collectives.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--runs",
    "runs_path",
    type=click.Path(path_type=Path),
    required=True,
    help="The table of runs: where each was measured.",
)
@click.option(
    "--format", "form", type=click.Choice(["table", "json", "csv"]), default="table", show_default=True
)
def collectives(file: Path, runs_path: Path, form: str) -> int:
    """Score the model of collectives on measured sizes and times, the rows of FILE, a CSV.

    Healthy rows of nccl-tests and rccl-tests are scored, those of 1 MiB and more as the headline. Variables
    of a run are applied. Whole runs are flagged that fall short of what their links should give.

    Exit codes: 0 done, 2 wrong input, 4 no row could be scored.
    """
    from linkwise.calibrate.collective_score import validate_collectives
    from linkwise.report.collective_validation import collective_validation_result

    score = validate_collectives(file, runs_path)
    result = collective_validation_result(score)
    for words in score.assumed if form == "csv" else ():
        click.echo(f"linkwise: {runs_path}: {words}", err=True)
    _print_collectives(result, form)
    if not result.scored:
        click.echo(f"linkwise: {file}: no row could be scored", err=True)
        return ExitCode.NOT_MEASURED
    return ExitCode.DONE


@validate.command()
@click.argument("cases", type=click.Path(path_type=Path), metavar="CASES")
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@click.option(
    "--require",
    metavar="FIGURE=LIMIT,...",
    help="Exit with 1 unless every share is at least its limit: first, three, well, verdict.",
)
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
def doctor(cases: Path, folder: Path, require: str | None, form: str) -> int:
    """Score the doctor on logs whose cause is known.

    CASES is JSON, an object a line: id, category (the cause), also (causes that are right too) and severity.
    The log of a case is DIR/ID.log, with further inputs DIR/ID.*; a log without a case must be healthy.

    Exit codes: 0 done, 1 a limit of --require does not hold, 2 wrong input.
    """
    from linkwise.calibrate.doctor_score import score_doctor
    from linkwise.report.doctor_validation import doctor_validation_result, print_doctor_validation

    limits = _shares(require)
    result = doctor_validation_result(score_doctor(cases, folder))
    if form == "json":
        from linkwise.report.results import published_json

        click.echo(published_json(result))
    else:
        from linkwise.report.tables import console_for

        print_doctor_validation(result, console_for())
    values = {
        "first": result.first_fraction,
        "three": result.within_three_fraction,
        "well": result.well_fraction,
        "verdict": result.verdict_fraction,
    }
    missed = {name: limit for name, limit in limits.items() if (values[name] or 0.0) < limit}
    for name, limit in missed.items():
        click.echo(f"linkwise: --require {name}={limit:g} does not hold", err=True)
    return ExitCode.AGAINST if missed else ExitCode.DONE


_SHARES = ("first", "three", "well", "verdict")


def _shares(require: str | None) -> dict[str, float]:
    limits: dict[str, float] = {}
    for word in (require or "").split(",") if require is not None else ():
        name, _, text = word.strip().partition("=")
        if name not in _SHARES:
            raise UnknownName.among(_SHARES, kind="figure of --require", given=name)
        try:
            limits[name] = float(text)
        except ValueError:
            raise InputError(f"--require {word.strip()}: write a share, as in {name}=0.9") from None
        if not 0 <= limits[name] <= 1:
            raise InputError(f"--require {word.strip()}: a share is from 0 to 1, as in {name}=0.9")
    return limits


def _words(use: str | None) -> tuple[str, ...]:
    if use is None:
        return ()
    words = tuple(word.strip() for word in use.split(",") if word.strip())
    if not words:
        raise InputError("--use is empty; write it as --use bench,core, or leave it out")
    return words


def _check_target(target: Path, source: Path) -> None:
    check_target("--rows", target)
    if target.exists() and source.exists() and target.samefile(source):
        raise InputError(f"--rows {target} is the file that is scored; give another name")


def _print_result(result: ValidationResult, form: str) -> None:
    if form == "json":
        from linkwise.report.results import published_json

        click.echo(published_json(result))
    elif form == "csv":
        from linkwise.report.validation import validation_csv_rows

        csv.writer(sys.stdout, lineterminator="\n").writerows(validation_csv_rows(result))
    else:
        from linkwise.report.tables import console_for
        from linkwise.report.validation_table import print_validation

        print_validation(result, console_for())


def _print_collectives(result: CollectiveValidationResult, form: str) -> None:
    if form == "json":
        from linkwise.report.results import published_json

        click.echo(published_json(result))
    elif form == "csv":
        from linkwise.report.collective_validation import collective_validation_csv_rows

        csv.writer(sys.stdout, lineterminator="\n").writerows(collective_validation_csv_rows(result))
    else:
        from linkwise.report.collective_validation import print_collective_validation
        from linkwise.report.tables import console_for

        print_collective_validation(result, console_for())
