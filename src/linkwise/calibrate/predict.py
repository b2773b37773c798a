"""Measured runs with the model's prediction of each, as columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from linkwise.calibrate.interval_class import interval_class
from linkwise.calibrate.measured import MeasuredLayout, MeasuredRun
from linkwise.calibrate.run_table import candidates_of, choose
from linkwise.estimate.columns import Floats, Integers
from linkwise.estimate.constants import constant_values
from linkwise.estimate.interval import interval_factors
from linkwise.estimate.terms import STEP_PARTS

__all__ = ["Intervals", "PredictedRuns", "filled_cells", "predict_runs"]

Intervals = Callable[[str], tuple[float, float]]
"""From a class of runs to the factors on the predicted time at the ends of the interval."""

_MEMORY = ("memory_bytes", "memory_available_bytes", "allocated_memory_bytes", "reserved_memory_bytes")
_RUNS_AT_ONCE = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedRuns:
    """Runs and what the model says of each, in the same order.

    Attributes
    ----------
    runs
        The measured runs.
    layouts
        Their layouts with every blank filled.
    measured_s, step_time_s, low_s, high_s : (runs,)
        Measured and predicted time of a step, and the ends of the interval [s].
    parts
        Parts of the predicted time by name, (runs,) each [s]; they sum to `step_time_s`.
    memory_bytes, memory_available_bytes : (runs,)
        Predicted memory of the fullest GPU, and what it has [bytes].
    allocated_memory_bytes, reserved_memory_bytes : (runs,)
        What the framework's allocator hands out and holds at the peak [bytes].
    """

    runs: tuple[MeasuredRun, ...]
    layouts: tuple[MeasuredLayout, ...]
    measured_s: Floats
    step_time_s: Floats
    low_s: Floats
    high_s: Floats
    parts: Mapping[str, Floats]
    memory_bytes: Floats
    memory_available_bytes: Floats
    allocated_memory_bytes: Floats
    reserved_memory_bytes: Floats

    @property
    def error_fraction(self) -> Floats:
        """Return predicted over measured time, minus one [1]."""
        return self.step_time_s / self.measured_s - 1.0

    @property
    def feasible(self) -> np.ndarray:
        """Return which runs are predicted to fit, (runs,) of bool."""
        return self.memory_bytes <= self.memory_available_bytes

    @property
    def covered(self) -> np.ndarray:
        """Return in which runs the interval holds the measured time, (runs,) of bool."""
        return (self.low_s <= self.measured_s) & (self.measured_s <= self.high_s)

    @property
    def width_fraction(self) -> Floats:
        """Return the width of the interval over the predicted time [1]."""
        return (self.high_s - self.low_s) / self.step_time_s

    def take(self, rows: Integers) -> PredictedRuns:
        """Return only the runs at the given positions, in that order."""
        return PredictedRuns(
            runs=tuple(self.runs[row] for row in rows),
            layouts=tuple(self.layouts[row] for row in rows),
            measured_s=self.measured_s[rows],
            step_time_s=self.step_time_s[rows],
            low_s=self.low_s[rows],
            high_s=self.high_s[rows],
            parts={name: values[rows] for name, values in self.parts.items()},
            memory_bytes=self.memory_bytes[rows],
            memory_available_bytes=self.memory_available_bytes[rows],
            allocated_memory_bytes=self.allocated_memory_bytes[rows],
            reserved_memory_bytes=self.reserved_memory_bytes[rows],
        )

    def with_step_times(self, step_time_s: Floats) -> PredictedRuns:
        """Return the same runs with other predicted times [s]; parts and intervals scale with them.

        Times of runs that were left out of a fit are scored this way: memory does not depend on that fit.
        """
        ratio = step_time_s / self.step_time_s
        return PredictedRuns(
            runs=self.runs,
            layouts=self.layouts,
            measured_s=self.measured_s,
            step_time_s=step_time_s,
            low_s=self.low_s * ratio,
            high_s=self.high_s * ratio,
            parts={name: values * ratio for name, values in self.parts.items()},
            memory_bytes=self.memory_bytes,
            memory_available_bytes=self.memory_available_bytes,
            allocated_memory_bytes=self.allocated_memory_bytes,
            reserved_memory_bytes=self.reserved_memory_bytes,
        )


def predict_runs(
    runs: Sequence[MeasuredRun],
    *,
    constants: Mapping[str, float] | None = None,
    intervals: Intervals = interval_factors,
) -> PredictedRuns:
    """Return the predictions of runs, blanks of their layouts filled by the one rule of `run_table.choose`.

    Parameters
    ----------
    runs
        The measured runs.
    constants
        Constants of the model by name; the shipped fit if left out.
    intervals
        Factors of the interval by class of run.
    """
    values = dict(constant_values() if constants is None else constants)
    pieces = [
        _columns(runs[start : start + _RUNS_AT_ONCE], values) for start in range(0, len(runs), _RUNS_AT_ONCE)
    ]
    columns = {
        name: np.concatenate([np.zeros(0), *(piece[name] for _, piece in pieces)])
        for name in ("step_time_s", *STEP_PARTS, *_MEMORY)
    }
    factors = np.array([intervals(interval_class(run)) for run in runs], dtype=np.float64).reshape(-1, 2)
    step = columns["step_time_s"]
    return PredictedRuns(
        runs=tuple(runs),
        layouts=tuple(layout for layouts, _ in pieces for layout in layouts),
        measured_s=np.array([run.step_time_s for run in runs], dtype=np.float64),
        step_time_s=step,
        low_s=step * factors[:, 0],
        high_s=step * factors[:, 1],
        parts={name: columns[name] for name in STEP_PARTS},
        memory_bytes=columns["memory_bytes"],
        memory_available_bytes=columns["memory_available_bytes"],
        allocated_memory_bytes=columns["allocated_memory_bytes"],
        reserved_memory_bytes=columns["reserved_memory_bytes"],
    )


def _columns(
    runs: Sequence[MeasuredRun], constants: Mapping[str, float]
) -> tuple[tuple[MeasuredLayout, ...], dict[str, Floats]]:
    candidates = candidates_of(runs)
    chosen = candidates.take(choose(candidates, constants, len(runs)))
    evaluated = chosen.evaluate(constants)
    return chosen.layouts, {name: evaluated[name] for name in ("step_time_s", *STEP_PARTS, *_MEMORY)}


def filled_cells(run: MeasuredRun) -> tuple[str, ...]:
    """Return the columns that were blank where the estimate needs a value, so that a rule filled them.

    Notes
    -----
    A blank that can have one value only is not counted: interleaving without a pipeline or in a framework
    that has none, ZeRO with one data-parallel rank, sequence parallelism with one tensor-parallel rank, the
    network of a run inside one NVLink domain.
    """
    layout = run.layout
    choices = {
        "recompute": layout.recompute is None,
        "micro_batch": layout.micro_batch is None,
        "zero_stage": layout.zero_stage is None and layout.data > 1,
        "vpp": layout.virtual_pipeline is None and layout.pipeline > 1 and run.framework.interleaves > 1,
        "seq_parallel": layout.sequence_parallel is None and layout.tensor > 1,
        "inter_gbps_per_node": run.network.assumed and run.gpus > run.domain_gpus,
    }
    return tuple(name for name, filled in choices.items() if filled)
