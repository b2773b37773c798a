"""The model scored on measured training runs: one value with everything that is reported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from linkwise.calibrate.measured import LeftOut, Measurements, read_measurements
from linkwise.calibrate.peak_memory import MemoryScore, score_memory
from linkwise.calibrate.predict import PredictedRuns, predict_runs
from linkwise.calibrate.regret import RegretScore, regret_groups, score_regret
from linkwise.calibrate.score import ErrorScore, GroupScore, score_errors, score_groups

__all__ = ["TrainingScore", "score_training", "validate_training"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingScore:
    """What the model gets right and wrong over measured training runs.

    Attributes
    ----------
    rows
        Rows that were to be scored: those with task pretrain.
    skipped
        Rows that cannot be scored, by reason.
    errors
        Errors of step time over the scored rows; ``None`` without any.
    by
        The same by source, GPU, framework, family, kind of model, interconnect and completeness.
    regret
        What choosing by prediction costs.
    memory
        Errors of peak memory.
    predicted
        The scored rows with their predictions.
    left_out
        The rows that cannot be scored.
    """

    rows: int
    skipped: Mapping[str, int]
    errors: ErrorScore | None
    by: tuple[GroupScore, ...]
    regret: RegretScore
    memory: MemoryScore
    predicted: PredictedRuns
    left_out: tuple[LeftOut, ...]


def validate_training(path: Path, *, use: tuple[str, ...] = ()) -> TrainingScore:
    """Return the score over the rows of a CSV file.

    Parameters
    ----------
    path
        The file, in the columns of `linkwise.calibrate.measured`.
    use
        Values of the column ``use`` to keep; empty keeps all rows.

    Raises
    ------
    InputError
        When the file cannot be read, or holds what it must not (`DocumentError`, all faults).
    """
    measurements = read_measurements(path, use=use)
    return score_training(measurements, predict_runs(measurements.runs))


def score_training(measurements: Measurements, predicted: PredictedRuns) -> TrainingScore:
    """Return the score of predictions of the runs of `measurements`."""
    return TrainingScore(
        rows=measurements.rows,
        skipped=measurements.skipped,
        errors=score_errors(predicted),
        by=score_groups(predicted),
        regret=score_regret(regret_groups(predicted)),
        memory=score_memory(predicted),
        predicted=predicted,
        left_out=measurements.left_out,
    )
