"""Why layouts do not fit: which bytes, on which stage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from linkwise.estimate.columns import Evaluation

__all__ = ["shortfall_counts"]

_STATES: Mapping[str, str] = {
    "weight_memory_bytes": "weights",
    "gradient_memory_bytes": "gradients",
    "optimizer_memory_bytes": "optimizer state",
    "gathered_memory_bytes": "gathered parameters",
}
_WHAT = (*_STATES.values(), "activations", "logits and loss")
_WHERE = ("", " (first stage)", " (last stage)")


def shortfall_counts(evaluation: Evaluation, fits: NDArray[np.bool_]) -> dict[str, int]:
    """Return how many layouts do not fit, by the largest part of the memory of their fullest stage.

    Parameters
    ----------
    evaluation
        The layouts.
    fits
        Which of them fit, in a shape that broadcasts to that of the table.

    Notes
    -----
    The fullest stage is the first (all its micro-batches in flight), or the last where the loss outweighs
    them.
    """
    loss = evaluation.compact("loss_memory_bytes")
    activations = evaluation.compact("activation_memory_bytes")
    states = [evaluation.compact(name) for name in _STATES]
    largest_state = np.maximum.reduce(np.broadcast_arrays(*states))
    state = np.select([part == largest_state for part in states], range(len(states)), default=0)
    passing = np.where(loss > activations, len(_STATES) + 1, len(_STATES))
    what = np.where(np.maximum(activations, loss) > largest_state, passing, state)
    where = np.where(evaluation.compact("pipeline") > 1.0, np.where(loss > 0.0, 2, 1), 0)
    codes = np.broadcast_to(what * len(_WHERE) + where, fits.shape)[~fits]
    counts = np.bincount(codes, minlength=len(_WHAT) * len(_WHERE)) * (evaluation.table.rows // fits.size)
    return {
        f"memory: {_WHAT[code // len(_WHERE)]}{_WHERE[code % len(_WHERE)]}": int(counts[code])
        for code in np.flatnonzero(counts)
    }
