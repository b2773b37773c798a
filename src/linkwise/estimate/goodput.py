"""Goodput: which share of a run's time moves training on, interruptions and checkpoints counted.

The model is Daly's: interruptions come at a constant rate whatever the run is doing, each throws back to the
last checkpoint, and the restart can be interrupted as well. To first order a second of training takes
``write / interval + rate x (restart + interval / 2)`` seconds more (Young). Not here: what failures do to the
speed of those that run on (`network.failures`), and spare nodes that wait.

References
----------
J. W. Young, A first order approximation to the optimum checkpoint interval, 1974.
J. T. Daly, A higher order estimate of the optimum checkpoint interval for restart dumps, 2006.
"""

from __future__ import annotations

import numpy as np

from linkwise.estimate.term import Floats, term

__all__ = ["LEAST_GOODPUT", "TERMS"]

LEAST_GOODPUT = 1e-6
"""Below it no run ends: a day of training would take thousands of years [1]."""

_DALY = "J. T. Daly, A higher order estimate of the optimum checkpoint interval for restart dumps, 2006"
_SEGMENT = f"{_DALY}: the expected time of a segment, taken apart"
_INDEPENDENT = (
    "derived: parts fail independently and at constant rates; the first failure interrupts training"
)

_LARGEST_EXPONENT = 300.0
"""A run with so many interruptions before its first checkpoint never ends; its square is still a number."""


@term("1/s", "sum over parts of count / mean time between failures of one", _INDEPENDENT)
def interruptions_per_s(
    gpus: Floats,
    gpu_failures_per_s: Floats,
    nodes: Floats,
    node_failures_per_s: Floats,
    nics: Floats,
    nic_failures_per_s: Floats,
    switches: Floats,
    switch_failures_per_s: Floats,
    cables: Floats,
    cable_failures_per_s: Floats,
) -> Floats:
    """Return how often training is interrupted."""
    return (
        gpus * gpu_failures_per_s
        + nodes * node_failures_per_s
        + nics * nic_failures_per_s
        + switches * switch_failures_per_s
        + cables * cable_failures_per_s
    )


@term(
    "s",
    "sqrt(2 w M) (1 + sqrt(w / 2M) / 3 + (w / 2M) / 9) - w, w the write, M the time between interruptions",
    f"{_DALY}; its first factor: J. W. Young, A first order approximation, 1974",
)
def best_interval_s(interruptions_per_s: Floats, checkpoint_write_s: Floats) -> Floats:
    """Return the time of training between checkpoints that wastes least; 0 where nothing interrupts."""
    between_s = 1.0 / np.where(interruptions_per_s > 0, interruptions_per_s, 1.0)
    ratio = checkpoint_write_s / (2.0 * between_s)
    root = np.sqrt(2.0 * checkpoint_write_s * between_s)
    best = np.where(
        ratio < 1.0, root * (1.0 + np.sqrt(ratio) / 3.0 + ratio / 9.0) - checkpoint_write_s, between_s
    )
    return np.where(interruptions_per_s > 0, best, 0.0)


@term("s", "as stated, else the best", "by definition")
def checkpoint_interval_s(stated_interval_s: Floats, best_interval_s: Floats) -> Floats:
    """Return the time of training from one checkpoint to the next."""
    return np.where(stated_interval_s > 0, stated_interval_s, best_interval_s)


@term("1", "exp(rate x (interval + write)) - 1", _SEGMENT)
def interruptions_per_interval(
    interruptions_per_s: Floats, checkpoint_interval_s: Floats, checkpoint_write_s: Floats
) -> Floats:
    """Return how often training is interrupted until the next checkpoint is written."""
    exponent = interruptions_per_s * (checkpoint_interval_s + checkpoint_write_s)
    return np.expm1(np.minimum(exponent, _LARGEST_EXPONENT))


@term("s", "interruptions of an interval / rate - interval - write", _SEGMENT)
def redone_s_per_interval(
    interruptions_per_interval: Floats,
    interruptions_per_s: Floats,
    checkpoint_interval_s: Floats,
    checkpoint_write_s: Floats,
) -> Floats:
    """Return the work that is lost in an interval and done again."""
    rate = np.where(interruptions_per_s > 0, interruptions_per_s, 1.0)
    lost = interruptions_per_interval / rate - checkpoint_interval_s - checkpoint_write_s
    # At rates near none the difference is of numbers that are alike, and rounds to either side of it.
    return np.where(interruptions_per_s > 0, np.maximum(lost, 0.0), 0.0)


@term("s", "interruptions of an interval x (exp(rate x restart) - 1) / rate", _SEGMENT)
def restarting_s_per_interval(
    interruptions_per_interval: Floats, interruptions_per_s: Floats, restart_s: Floats
) -> Floats:
    """Return the time that restarts take in an interval, those that are interrupted themselves counted."""
    rate = np.where(interruptions_per_s > 0, interruptions_per_s, 1.0)
    each_s = np.expm1(np.minimum(rate * restart_s, _LARGEST_EXPONENT)) / rate
    return np.where(interruptions_per_s > 0, interruptions_per_interval * each_s, 0.0)


@term("1", "interval / (interval + write + work done again + restarts)", _DALY)
def goodput_fraction(
    checkpoint_interval_s: Floats,
    checkpoint_write_s: Floats,
    redone_s_per_interval: Floats,
    restarting_s_per_interval: Floats,
) -> Floats:
    """Return the share of the time that moves training on."""
    whole = checkpoint_interval_s + checkpoint_write_s + redone_s_per_interval + restarting_s_per_interval
    return checkpoint_interval_s / whole


TERMS = (
    interruptions_per_s,
    best_interval_s,
    checkpoint_interval_s,
    interruptions_per_interval,
    redone_s_per_interval,
    restarting_s_per_interval,
    goodput_fraction,
)
