"""The published result `linkwise.launch/1`: the record of a launched run, written and read back."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import ConfigDict, Field, ValidationError

from linkwise.errors import InputError
from linkwise.evidence.median import LEAST_SAMPLES, median_interval
from linkwise.launch.run.checks import Check, Expected
from linkwise.launch.run.ending import Ending, Outcome
from linkwise.launch.run.launch_record import LaunchRecord, Prediction, Witnessed
from linkwise.launch.run.steps import MOST_STEPS, TrainedStep
from linkwise.report.checks import CheckResult, check_results
from linkwise.report.results import PublishedResult, published_json

__all__ = ["LaunchResult", "launch_json", "launch_result", "read_launch"]

_LARGEST_BYTES = 64 << 20
_PLACES: Mapping[str, Literal["local", "slurm", "lab"]] = {"local": "local", "slurm": "slurm", "lab": "lab"}


class ExpectedResult(PublishedResult):
    """What the run must be to be valid."""

    nodes: int = Field(ge=1)
    ranks_per_node: int = Field(ge=1)
    hosts: list[str]
    device: Literal["cuda", "cpu"]
    settings: dict[str, str] = Field(description="Variables of the environment.")
    protocol: str = Field(description="Between nodes; empty for one node.")
    has_nvlink: bool
    interfaces: list[str] = Field(
        default_factory=list, description="Those of connections between ranks without GPUs."
    )


class PredictionResult(PublishedResult):
    """What a step should take."""

    step_time_s: float = Field(gt=0)
    step_time_low_s: float
    step_time_high_s: float
    tokens_per_step: int = Field(ge=1)
    steps: int | None = Field(description="null where the program is the user's own.")
    sequences_per_step: int | None = Field(default=None, ge=1)


class StepResult(PublishedResult):
    """One step, as the program tells of it."""

    model_config = ConfigDict(ser_json_inf_nan="strings")

    number: int
    time_s: float = Field(gt=0)
    loss: float | None = Field(
        default=None, description='"NaN" for what is no number; null where it says none.'
    )


class StepTimeResult(PublishedResult):
    """The median step time of a valid run, warm-up left out."""

    median_s: float
    low_s: float
    high_s: float
    coverage_fraction: float = Field(description="How often such a range holds the true median.")
    count: int
    over_predicted: float = Field(description="Median over prediction.")


class LaunchResult(PublishedResult):
    """The record of a launched run."""

    published: Literal["linkwise.launch/1"] = Field(default="linkwise.launch/1", alias="schema")
    id: str = Field(pattern=r"^[0-9a-f]{16}$")
    name: str
    place: Literal["local", "slurm", "lab"]
    handle: str = Field(pattern=r"^\d{0,20}$", description="Process, or number of the Slurm job.")
    outcome: Outcome
    reason: str
    exit_code: int | None = Field(description="That of the job.")
    valid: bool | None = Field(description="Whether all checks are as planned; null while it runs.")
    checks: list[CheckResult]
    started: dt.datetime
    ended: dt.datetime | None
    argv: list[str]
    plan_digest: str = Field(description="SHA-256 of the rendered files.")
    expected: ExpectedResult
    predicted: PredictionResult
    notes: list[str]
    hosts: list[str]
    versions: dict[str, str]
    transports: dict[str, str]
    verdict: str = Field(description="That of the doctor; empty without a log.")
    findings: list[str] = Field(description="Causes that the doctor found, worst first.")
    samples: list[StepResult] = Field(max_length=MOST_STEPS)
    step_time: StepTimeResult | None = Field(
        description="null with fewer than five samples, and for a run that is invalid or ended badly."
    )


def launch_json(record: LaunchRecord) -> str:
    """Return a record as the JSON text that is published.

    Parameters
    ----------
    record
        The record.
    """
    return published_json(launch_result(record))


def launch_result(record: LaunchRecord) -> LaunchResult:
    """Return a record as it is published.

    Parameters
    ----------
    record
        The record.
    """
    seen, expected, predicted = record.witnessed, record.expected, record.prediction
    return LaunchResult(
        id=record.run_id,
        name=record.name,
        place=_PLACES[record.place],
        handle=record.handle,
        outcome=record.ending.outcome,
        reason=record.ending.reason,
        exit_code=record.ending.exit_code,
        valid=record.is_valid,
        checks=check_results(seen.checks),
        started=record.started,
        ended=record.ended,
        argv=list(record.argv),
        plan_digest=record.plan_digest,
        expected=ExpectedResult(
            nodes=expected.nodes,
            ranks_per_node=expected.ranks_per_node,
            hosts=list(expected.hosts),
            device="cpu" if expected.device == "cpu" else "cuda",
            settings=dict(expected.settings),
            protocol=expected.protocol,
            has_nvlink=expected.has_nvlink,
            interfaces=list(expected.interfaces),
        ),
        predicted=PredictionResult(
            step_time_s=predicted.step_time_s,
            step_time_low_s=predicted.step_time_low_s,
            step_time_high_s=predicted.step_time_high_s,
            tokens_per_step=predicted.tokens_per_step,
            steps=predicted.steps,
            sequences_per_step=predicted.sequences_per_step,
        ),
        notes=list(record.notes),
        hosts=list(seen.hosts),
        versions=dict(seen.versions),
        transports=dict(seen.transports),
        verdict=seen.verdict,
        findings=list(seen.findings),
        samples=[StepResult(number=each.number, time_s=each.time_s, loss=each.loss) for each in seen.steps],
        step_time=_step_time(record),
    )


def _step_time(record: LaunchRecord) -> StepTimeResult | None:
    samples = record.counted_times_s
    if len(samples) < LEAST_SAMPLES:
        return None
    found = median_interval(samples)
    return StepTimeResult(
        median_s=found.median,
        low_s=found.low,
        high_s=found.high,
        coverage_fraction=found.coverage_fraction,
        count=found.count,
        over_predicted=found.median / record.prediction.step_time_s,
    )


def read_launch(path: Path) -> LaunchRecord:
    """Return the record of a run folder.

    Parameters
    ----------
    path
        The run folder.

    Raises
    ------
    InputError
        When it holds no record, or a damaged one.
    """
    file = path / "record.json"
    try:
        if file.stat().st_size > _LARGEST_BYTES:
            raise InputError(f"{file}: is larger than {_LARGEST_BYTES >> 20} MiB, so no record of a launch")
        text = file.read_bytes()
    except OSError as error:
        raise InputError(f"{file}: {error.strerror}; name the run folder of 'linkwise launch'") from None
    try:
        return _record(LaunchResult.model_validate_json(text))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        what = re.sub(r"\s+", " ", first["msg"])[:200]
        raise InputError(f"{file}: is no record of a launch: {where}: {what}") from None


def _record(result: LaunchResult) -> LaunchRecord:
    expected, predicted = result.expected, result.predicted
    return LaunchRecord(
        run_id=result.id,
        name=result.name,
        place=result.place,
        handle=result.handle,
        argv=tuple(result.argv),
        plan_digest=result.plan_digest,
        expected=Expected(
            nodes=expected.nodes,
            ranks_per_node=expected.ranks_per_node,
            hosts=tuple(expected.hosts),
            device=expected.device,
            settings=expected.settings,
            protocol=expected.protocol,
            has_nvlink=expected.has_nvlink,
            interfaces=tuple(expected.interfaces),
        ),
        prediction=Prediction(
            step_time_s=predicted.step_time_s,
            step_time_low_s=predicted.step_time_low_s,
            step_time_high_s=predicted.step_time_high_s,
            tokens_per_step=predicted.tokens_per_step,
            steps=predicted.steps,
            sequences_per_step=predicted.sequences_per_step,
        ),
        notes=tuple(result.notes),
        started=result.started,
        ended=result.ended,
        ending=Ending(outcome=result.outcome, reason=result.reason, exit_code=result.exit_code),
        witnessed=_witnessed(result),
    )


def _witnessed(result: LaunchResult) -> Witnessed:
    return Witnessed(
        hosts=tuple(result.hosts),
        versions=result.versions,
        transports=result.transports,
        findings=tuple(result.findings),
        verdict=result.verdict,
        checks=tuple(
            Check(what=each.what, planned=each.planned, seen=each.seen, is_as_planned=each.is_as_planned)
            for each in result.checks
        ),
        steps=tuple(
            TrainedStep(number=each.number, time_s=each.time_s, loss=each.loss) for each in result.samples
        ),
    )
