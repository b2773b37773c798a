"""The class of a run: what its interval is looked up by."""

from __future__ import annotations

from linkwise.calibrate.measured import MeasuredRun

__all__ = ["interval_class", "model_kind"]


def model_kind(run: MeasuredRun) -> str:
    """Return ``dense`` or ``mixture``."""
    return "mixture" if run.model.experts else "dense"


def interval_class(run: MeasuredRun) -> str:
    """Return ``family/kind/interconnect``, the key of `linkwise.estimate.interval.interval_factors`."""
    return f"{run.framework.family}/{model_kind(run)}/{run.interconnect_class}"


def interval_factors(key: str) -> tuple[float, float]:
    """Return a stand-in for `linkwise.estimate.interval.interval_factors`."""
    return (0.85, 1.18) if key else (0.8, 1.25)
