"""Predicted memory against measured peaks, and runs that happened but are said not to fit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkwise.calibrate.measured import MeasuredRun
from linkwise.calibrate.predict import PredictedRuns, filled_cells

__all__ = ["MemoryScore", "peak_errors", "score_memory"]

_LAYOUT_CELLS = frozenset({"recompute", "micro_batch", "zero_stage", "vpp"})


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryScore:
    """How far predicted memory is from measured peaks.

    Attributes
    ----------
    scored
        Rows with a measured peak and a complete layout.
    median_abs_error_fraction, bias_fraction
        Median absolute and mean signed error over them [1]; ``None`` without any.
    infeasible
        Rows, of all that were scored for time, whose predicted memory exceeds what the GPU has. They ran.
    infeasible_fraction
        Their share [1]; ``None`` without rows.
    infeasible_ids
        Their ids.
    """

    scored: int
    median_abs_error_fraction: float | None
    bias_fraction: float | None
    infeasible: int
    infeasible_fraction: float | None
    infeasible_ids: tuple[str, ...]


def score_memory(predicted: PredictedRuns) -> MemoryScore:
    """Return the errors of peak memory and the share of runs that are wrongly called infeasible."""
    _, errors = peak_errors(predicted)
    wrong = tuple(run.id for run, fits in zip(predicted.runs, predicted.feasible, strict=True) if not fits)
    return MemoryScore(
        scored=len(errors),
        median_abs_error_fraction=float(np.median(np.abs(errors))) if len(errors) else None,
        bias_fraction=float(np.mean(errors)) if len(errors) else None,
        infeasible=len(wrong),
        infeasible_fraction=len(wrong) / len(predicted.runs) if predicted.runs else None,
        infeasible_ids=wrong,
    )


def peak_errors(predicted: PredictedRuns) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions of the runs with a peak, and predicted over measured peak minus one [1].

    Notes
    -----
    A peak that the source calls allocated is compared with what the allocator hands out; one that it calls
    reserved, or does not describe, with what the allocator holds.
    """
    rows = np.array([i for i, run in enumerate(predicted.runs) if _has_peak(run)], dtype=np.intp)
    measured = np.array([predicted.runs[row].peak_memory_bytes for row in rows], dtype=np.float64)
    allocated = np.array([predicted.runs[row].peak_memory_kind == "allocated" for row in rows], dtype=bool)
    same_kind = np.where(
        allocated, predicted.allocated_memory_bytes[rows], predicted.reserved_memory_bytes[rows]
    )
    return rows, same_kind / measured - 1.0


def _has_peak(run: MeasuredRun) -> bool:
    return bool(run.peak_memory_bytes) and not _LAYOUT_CELLS.intersection(filled_cells(run))
