"""A calibration as it is published (`linkwise.calibrate/1`), and on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, Field

from linkwise.cluster.calibration import FACTORS
from linkwise.report.tables import Column, print_line, split_table, wrapped
from linkwise.report.wording import percent, three_digits

if TYPE_CHECKING:
    from rich.console import Console

    from linkwise.calibrate.site import SiteCalibration

__all__ = ["CalibrateResult", "calibrate_result", "print_calibration"]


class FactorResult(BaseModel):
    """One factor on what is modelled."""

    name: str
    tier: str
    value: float = Field(description="1 is as modelled.")
    low: float = Field(description="Lower end of the 80 % interval.")
    high: float = Field(description="Upper end of the 80 % interval.")


class ResidualResult(BaseModel):
    """One observation beside its prediction; errors are predicted over measured, minus one."""

    label: str
    kind: str
    rows: int
    shipped_error_fraction: float = Field(description="Median over its rows, shipped constants.")
    calibrated_error_fraction: float = Field(description="The same, calibrated.")
    shipped_abs_error_fraction: float
    calibrated_abs_error_fraction: float


class HeldOutResult(BaseModel):
    """Errors of what a fit has not seen: each file is left out in turn."""

    units: int
    shipped_abs_error_fraction: float
    calibrated_abs_error_fraction: float


class AdviceResult(BaseModel):
    """What to measure next."""

    label: str
    half_width_now_fraction: float
    half_width_then_fraction: float


class FileResult(BaseModel):
    """A file that was read."""

    name: str
    kind: str
    sha256: str


class CalibrateResult(BaseModel):
    """What was fitted on the measurements of a site."""

    published: Literal["linkwise.calibrate/1"] = Field(default="linkwise.calibrate/1", alias="schema")
    cluster: str
    made: str
    constants: str
    factors: list[FactorResult]
    residuals: list[ResidualResult]
    held_out: HeldOutResult | None
    advice: list[AdviceResult] = Field(description="Best first.")
    files: list[FileResult]
    suspects: list[str] = Field(
        description="Factors so far on the slow side that something is likely broken."
    )

    model_config = {"populate_by_name": True}


def calibrate_result(found: SiteCalibration, *, cluster: str) -> CalibrateResult:
    """Return a calibration as it is published.

    Parameters
    ----------
    found
        The calibration.
    cluster
        Name of the cluster.
    """
    kept = found.held_out
    return CalibrateResult(
        cluster=cluster,
        made=found.calibration.made.isoformat(),
        constants=found.calibration.constants,
        factors=[
            FactorResult(
                name=each.name, tier=FACTORS[each.name], value=each.value, low=each.low, high=each.high
            )
            for each in found.calibration.factors
        ],
        residuals=[
            ResidualResult(
                label=each.label,
                kind=each.kind,
                rows=each.rows,
                shipped_error_fraction=each.before_fraction,
                calibrated_error_fraction=each.after_fraction,
                shipped_abs_error_fraction=each.before_abs_fraction,
                calibrated_abs_error_fraction=each.after_abs_fraction,
            )
            for each in found.fit.residuals
        ],
        held_out=None
        if kept is None
        else HeldOutResult(
            units=kept.units,
            shipped_abs_error_fraction=kept.before_abs_fraction,
            calibrated_abs_error_fraction=kept.after_abs_fraction,
        ),
        advice=[
            AdviceResult(
                label=each.label,
                half_width_now_fraction=each.before_fraction,
                half_width_then_fraction=each.after_fraction,
            )
            for each in found.advice
        ],
        suspects=list(found.fit.suspects),
        files=[
            FileResult(name=each.name, kind=each.kind, sha256=each.sha256) for each in found.calibration.files
        ],
    )


def print_calibration(result: CalibrateResult, console: Console) -> None:
    """Print factors, residuals, what is gained and what to measure next.

    Parameters
    ----------
    result
        The calibration as it is published.
    console
        Where to.
    """
    count = "1 file" if len(result.files) == 1 else f"{len(result.files)} files"
    print_line(console, f"{result.cluster}, calibrated on {count}\n")
    _print_table(
        console,
        ("factor", [each.name for each in result.factors]),
        ("tier", [each.tier for each in result.factors]),
        ("value", [three_digits(each.value) for each in result.factors]),
        ("80 % interval", [f"{three_digits(e.low)} to {three_digits(e.high)}" for e in result.factors]),
        left=("tier",),
    )
    words = "1 is as modelled; speeds and bandwidths above 1 are faster, times above 1 slower."
    print_line(console, wrapped(words, width=console.width) + "\n")
    for number, each in enumerate(result.residuals, start=1):
        print_line(console, wrapped(f"{number} {each.label}", width=console.width, indent="  "))
    print_line(console)
    _print_table(
        console,
        ("#", [str(number) for number, _ in enumerate(result.residuals, start=1)]),
        ("times", [str(each.rows) for each in result.residuals]),
        ("shipped [%]", [_signed(each.shipped_error_fraction) for each in result.residuals]),
        ("calibrated [%]", [_signed(each.calibrated_error_fraction) for each in result.residuals]),
        ("size: shipped", [percent(each.shipped_abs_error_fraction) for each in result.residuals]),
        ("calibrated", [percent(each.calibrated_abs_error_fraction) for each in result.residuals]),
    )
    print_line(console, "Median errors, predicted over measured, minus one; and of their sizes.\n")
    for words in (
        *_suspect_words(result.suspects),
        _gain_words(result.held_out),
        *_advice_words(result.advice),
    ):
        print_line(console, wrapped(words, width=console.width, indent="  "))


def _suspect_words(suspects: list[str]) -> list[str]:
    if not suspects:
        return []
    words = "so far on the slow side that something is likely broken, which a calibration would hide"
    todo = "set a log of nccl-tests beside the model with linkwise collective --compare first"
    return [f"{', '.join(suspects)}: {words}; {todo}."]


def _gain_words(kept: HeldOutResult | None) -> str:
    if kept is None:
        return (
            "How much better others are predicted cannot be told from one file of a kind. Give a second log "
            "of another layout, or a second run of another collective or number of nodes."
        )
    before, after = kept.shipped_abs_error_fraction, kept.calibrated_abs_error_fraction
    figures = f"median error {percent(before)} % as shipped, {percent(after)} % calibrated on the others"
    said = f"Each of {kept.units} files left out in turn: {figures}."
    if after < before:
        return said
    return f"{said} The calibration does not help with what it has not seen; better plan without it."


def _advice_words(advice: list[AdviceResult]) -> list[str]:
    useful = [each for each in advice if each.half_width_then_fraction < 0.99 * each.half_width_now_fraction]
    if not useful:
        return ["No further measurement of those looked at would narrow the prediction."]
    now = percent(useful[0].half_width_now_fraction)
    first = f"To measure next (predictions are uncertain by {now} % through these factors):"
    return [first, *(f"  to {percent(e.half_width_then_fraction)} %: {e.label}" for e in useful[:3])]


def _signed(fraction: float) -> str:
    text = percent(abs(fraction))
    return f"-{text}" if fraction < 0 else f"+{text}"


def _print_table(console: Console, *columns: tuple[str, list[str]], left: tuple[str, ...] = ()) -> None:
    (heading, cells), *others = columns
    key = Column(heading=heading, cells=tuple(cells), justify="left")
    rest = [
        Column(heading=name, cells=tuple(texts), justify="left" if name in left else "right")
        for name, texts in others
    ]
    for table in split_table(rest, key=key, width=console.width):
        console.print(table, crop=False)
