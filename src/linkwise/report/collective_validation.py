"""The published result of `validate collectives`: predicted times of collectives against measured ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from linkwise.report.tables import print_line, wrapped
from linkwise.report.wording import counted, percent

if TYPE_CHECKING:
    from rich.console import Console

    from linkwise.calibrate.collective_score import CollectiveErrors, CollectiveScore

__all__ = [
    "CollectiveGroupResult",
    "CollectiveValidationResult",
    "FlagResult",
    "collective_validation_csv_rows",
    "collective_validation_result",
    "print_collective_validation",
]


class _Result(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class CollectiveErrorResult(_Result):
    """Errors of some rows; None where there are none."""

    scored: int
    median_abs_error_fraction: float | None = None
    mape_fraction: float | None = None
    bias_fraction: float | None = None
    within_25_fraction: float | None = Field(default=None, description="Share of rows within 25 %.")
    interval_coverage_fraction: float | None = None


class CollectiveGroupResult(CollectiveErrorResult):
    """Errors of the rows that share one property."""

    key: str = Field(description="size_class, reach, run, collective or inter_kind.")
    name: str


class FlagResult(_Result):
    """Runs told to be below what their cluster should give."""

    misconfigured: int
    healthy: int
    misconfigured_fraction: float | None
    healthy_fraction: float | None
    flagged_healthy: list[str]
    missed: list[str]


class CollectiveValidationResult(CollectiveErrorResult):
    """The model of collectives scored on measured runs; errors are predicted over measured, minus one."""

    published: Literal["linkwise.validate/1"] = Field(default="linkwise.validate/1", alias="schema")
    kind: Literal["collectives"] = "collectives"
    rows: int = Field(description="Healthy rows of 1 MiB and more, of NCCL and RCCL.")
    skipped: dict[str, int] = Field(description="Reason to number of `rows` that cannot be scored.")
    not_counted: dict[str, int] = Field(description="Reason to number of healthy rows beside `rows`.")
    run_median_abs_error_fraction: float | None = Field(description="Median over runs of a run's median.")
    multi_node_run_median_abs_error_fraction: float | None
    set_apart: dict[str, int] = Field(description="Rule to number of rows that after_rules lacks.")
    after_rules: CollectiveErrorResult
    by: list[CollectiveGroupResult] = Field(description="Properties run, collective, inter_kind: from 1 MiB.")
    flagged: FlagResult
    assumed: list[str] = Field(
        default_factory=list, description="What was taken for empty cells of the table of runs."
    )
    provenance: list[str] = Field(description="What the constants and the threshold were chosen on.")


_ERRORS = (
    "median_abs_error_fraction",
    "mape_fraction",
    "bias_fraction",
    "within_25_fraction",
    "interval_coverage_fraction",
)
_HEADINGS = ("rows", "median", "MAPE", "bias", "in 25 %", "inside")
_TITLES = {
    "size_class": "by size",
    "reach": "by reach and size",
    "collective": "by collective, from 1 MiB",
    "inter_kind": "by network, from 1 MiB",
}


def collective_validation_result(score: CollectiveScore) -> CollectiveValidationResult:
    """Return a score as it is published.

    Parameters
    ----------
    score
        The score.
    """
    flagged = score.flagged
    return CollectiveValidationResult(
        **_fields(score.errors),
        rows=score.rows,
        skipped=dict(sorted(score.skipped.items(), key=lambda item: -item[1])),
        not_counted=dict(score.not_counted),
        run_median_abs_error_fraction=score.run_median_fraction,
        multi_node_run_median_abs_error_fraction=score.multi_node_run_median_fraction,
        set_apart=dict(score.set_apart),
        after_rules=CollectiveErrorResult(**_fields(score.after_rules)),
        by=[CollectiveGroupResult(key=one.key, name=one.name, **_fields(one.errors)) for one in score.by],
        flagged=FlagResult(
            misconfigured=flagged.misconfigured,
            healthy=flagged.healthy,
            misconfigured_fraction=flagged.misconfigured_fraction,
            healthy_fraction=flagged.healthy_fraction,
            flagged_healthy=list(flagged.flagged_healthy),
            missed=list(flagged.missed),
        ),
        assumed=list(score.assumed),
        provenance=list(_provenance()),
    )


def collective_validation_csv_rows(result: CollectiveValidationResult) -> Iterator[tuple[object, ...]]:
    """Yield the heading and the errors of a result as rows of a CSV: all rows first, then every group."""
    yield ("key", "name", "scored", *_ERRORS)
    if result.scored:
        yield ("all", "all", result.scored, *(getattr(result, name) for name in _ERRORS))
    for group in result.by:
        yield (group.key, group.name, group.scored, *(getattr(group, name) for name in _ERRORS))


def print_collective_validation(result: CollectiveValidationResult, console: Console) -> None:
    """Print a score.

    Parameters
    ----------
    result
        The score as it is published.
    console
        Where to.
    """
    print_line(console, f"{counted(result.rows, 'healthy row')} of 1 MiB and more, {result.scored:,} scored.")
    for reason, count in result.skipped.items():
        print_line(console, f"  left out: {counted(count, 'row')}, {reason}")
    for reason, count in result.not_counted.items():
        print_line(console, f"  beside them: {counted(count, 'row')}, {reason}")
    for words in result.assumed:
        print_line(console, wrapped(words, width=console.width, first="  ", indent="    "))
    if result.scored:
        _print_errors(result, console)
    for line in (*_run_lines(result), *_rule_lines(result), *_flag_lines(result.flagged), *result.provenance):
        print_line(console, wrapped(line, width=console.width, indent="  ", first=""))


def _print_errors(result: CollectiveValidationResult, console: Console) -> None:
    from rich.table import Table

    print_line(console)
    print_line(
        console, "Error of the time, predicted over measured minus one [%]; share of rows within 25 %,"
    )
    print_line(console, "and inside the stated interval [%].")
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("", min_width=24, no_wrap=True)
    for heading in _HEADINGS:
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_row("from 1 MiB", *_cells(result), style="bold")
    for key, title in _TITLES.items():
        table.add_row()
        table.add_row(title, style="bold")
        for group in (one for one in result.by if one.key == key):
            table.add_row(f"  {group.name}", *_cells(group))
    console.print(table, crop=False)
    print_line(console)


def _run_lines(result: CollectiveValidationResult) -> Iterator[str]:
    runs = _percent(result.run_median_abs_error_fraction)
    several = _percent(result.multi_node_run_median_abs_error_fraction)
    yield f"Median over runs of a run's median error: {runs} %; runs on several nodes {several} %."


def _rule_lines(result: CollectiveValidationResult) -> Iterator[str]:
    if not result.set_apart:
        return
    rules = ", ".join(f"{reason} ({counted(count, 'row')})" for reason, count in result.set_apart.items())
    left = result.after_rules
    yield (
        f"Without {rules}: median {_percent(left.median_abs_error_fraction)} %, "
        f"{_percent(left.within_25_fraction)} % within 25 %, of {counted(left.scored, 'row')}."
    )


def _flag_lines(flagged: FlagResult) -> Iterator[str]:
    yield (
        f"Below what the cluster should give: {_percent(flagged.misconfigured_fraction)} % of "
        f"{counted(flagged.misconfigured, 'misconfigured run')}, {_percent(flagged.healthy_fraction)} % of "
        f"{counted(flagged.healthy, 'healthy run')}."
    )
    if flagged.missed:
        yield f"Missed: {', '.join(flagged.missed)}."
    if flagged.flagged_healthy:
        yield f"Healthy and flagged: {', '.join(flagged.flagged_healthy)}."


def _provenance() -> Iterator[str]:
    """Yield what the model has seen of the runs kept with the package."""
    from linkwise.calibrate.collective_accuracy import collective_accuracy
    from linkwise.calibrate.collective_score import FLAG_RATIO

    accuracy = collective_accuracy()
    seen, unseen = (
        next(group for group in accuracy[part]["groups"] if group["name"] == "from_1_mib")
        for part in ("in_sample", "left_out")
    )
    yield (
        "Constants were fitted on the runs kept with this package (tests/data/collectives.csv), whose median "
        f"error from 1 MiB is {percent(seen['median_abs_error_fraction'])} % in sample and "
        f"{percent(unseen['median_abs_error_fraction'])} % with each source left out: of those runs the "
        "figures above are in sample."
    )
    yield (
        f"A run is flagged where it takes more than {FLAG_RATIO:g} times what was expected; that threshold "
        "was chosen on the same runs."
    )


def _cells(errors: CollectiveErrorResult) -> tuple[str, ...]:
    bias = _percent(errors.bias_fraction)
    sign = "" if bias.startswith("-") or bias == "0" else "+"
    return (
        f"{errors.scored:,}",
        _percent(errors.median_abs_error_fraction),
        _percent(errors.mape_fraction),
        sign + bias,
        _percent(errors.within_25_fraction),
        _percent(errors.interval_coverage_fraction),
    )


def _percent(fraction: float | None) -> str:
    return "-" if fraction is None else percent(fraction)


def _fields(errors: CollectiveErrors | None) -> dict[str, Any]:
    if errors is None:
        return {"scored": 0}
    return {"scored": errors.scored, **{name: getattr(errors, name) for name in _ERRORS}}
