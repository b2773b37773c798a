"""The class of a run: what its interval is looked up by."""

from __future__ import annotations

from linkwise.calibrate.measured import MeasuredRun
from linkwise.estimate.interval import interval_key

__all__ = ["interval_class", "model_kind"]


def model_kind(run: MeasuredRun) -> str:
    """Return ``dense`` or ``mixture``."""
    return "mixture" if run.model.experts else "dense"


def interval_class(run: MeasuredRun) -> str:
    """Return ``family/kind/interconnect``, the key of `linkwise.estimate.interval.interval_factors`."""
    return interval_key(
        family=run.framework.family, mixture=run.model.experts > 0, network=run.interconnect_class
    )
