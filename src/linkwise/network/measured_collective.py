"""Measured times of a collective in place of modelled ones: the layer of figures above the model.

Not here: whether a run is as it should be (`collective_comparison`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from linkwise.cluster import Cluster
from linkwise.errors import InputError
from linkwise.network.collective_comparison import checked_setting, run_notes, times_of_run
from linkwise.network.collective_interval import interval_factors, reach_of
from linkwise.network.collective_time import CollectiveTimes, collective_times
from linkwise.network.setting import Setting
from linkwise.readers.nccl_tests import NcclTestsRun

__all__ = ["MeasuredCollective", "OverriddenTimes", "TimeBasis", "measured_collective", "override_times"]

Floats = NDArray[np.float64]


class TimeBasis(StrEnum):
    """How the time of one size is known."""

    MODEL = "model"
    """As NCCL chooses and the model prices."""
    MEASURED = "measured"
    """This size was measured."""
    INTERPOLATED = "interpolated"
    """The model times the ratio of measured to modelled time, between two sizes that were measured."""
    SCALED = "scaled"
    """The model times that ratio at the nearest size, outside of what was measured."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MeasuredCollective:
    """What one collective took on so many GPUs.

    Attributes
    ----------
    operation
        One of `linkwise.network.setting.OPERATIONS`.
    setting
        Where it ran.
    size_bytes
        Bytes of the full buffer, ascending (sizes,) [bytes].
    time_s, low_s, high_s
        Time of a call at each size, and the shortest and longest that were measured (sizes,) [s].
    notes
        How it was measured and what is odd, in sentences.
    """

    operation: str
    setting: Setting
    size_bytes: Floats
    time_s: Floats
    low_s: Floats
    high_s: Floats
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OverriddenTimes:
    """Times of a collective with what was measured laid over the model.

    Attributes
    ----------
    times
        The times; algorithm and protocol are those of the model.
    low_s, high_s
        Where measured or interpolated the shortest and longest time measured, else the 90 % interval of the
        model, scaled (rows,) [s].
    basis
        How each time is known (rows,).
    """

    times: CollectiveTimes
    low_s: Floats
    high_s: Floats
    basis: tuple[TimeBasis, ...]


def measured_collective(
    operation: str, cluster: Cluster, run: NcclTestsRun, *, gpus: int | None = None
) -> MeasuredCollective:
    """Return what a run of nccl-tests measured, for the cluster it ran on.

    Parameters
    ----------
    operation
        One of `linkwise.network.setting.OPERATIONS`.
    cluster
        Where it ran.
    run
        The run.
    gpus
        GPUs that take part; those of the run by default, or all where it lists none [1].

    Raises
    ------
    InputError
        If the run is another collective, has another number of GPUs or lies otherwise on nodes than the
        cluster has them, or has wrong results.
    """
    if any(row.wrong for row in run.rows):
        raise InputError(
            "the log has wrong results; times of a collective that computes wrongly are not used"
        )
    size_bytes, time_s, low_s, high_s = times_of_run(run)
    return MeasuredCollective(
        operation=operation,
        setting=checked_setting(operation, cluster, run, gpus=gpus),
        size_bytes=size_bytes,
        time_s=time_s,
        low_s=low_s,
        high_s=high_s,
        notes=tuple(_notes(cluster, run, size_bytes)),
    )


def override_times(measured: MeasuredCollective, size_bytes: Floats) -> OverriddenTimes:
    """Return the times for some sizes, measured ones where there are such.

    Parameters
    ----------
    measured
        What was measured, on the ranks that are asked for.
    size_bytes
        Bytes of the full buffer (rows,) [bytes].

    Notes
    -----
    The ratio of measured to modelled time is interpolated linearly in the logarithms of size and ratio, so
    that the steps of the model between protocols stay. Outside of the sizes measured it is that of the
    nearest one, and the interval is that of the model.
    """
    operation, setting = measured.operation, measured.setting
    modelled = collective_times(operation, setting, size_bytes)
    at_measured = collective_times(operation, setting, measured.size_bytes).time_s

    def laid_over(time_s: Floats) -> Floats:
        ratio = np.log(time_s / at_measured)
        laid = np.exp(np.interp(np.log(size_bytes), np.log(measured.size_bytes), ratio)) * modelled.time_s
        return np.asarray(laid, dtype=np.float64)

    time_s = laid_over(measured.time_s)
    low, high = interval_factors(reach_of(setting), size_bytes, operation=operation)
    inside = (size_bytes >= measured.size_bytes[0]) & (size_bytes <= measured.size_bytes[-1])
    exact = np.isin(size_bytes, measured.size_bytes)
    return OverriddenTimes(
        times=replace(modelled, time_s=time_s),
        low_s=np.where(inside, laid_over(measured.low_s), time_s * low),
        high_s=np.where(inside, laid_over(measured.high_s), time_s * high),
        basis=tuple(map(_basis, exact.tolist(), inside.tolist())),
    )


def _basis(exact: bool, inside: bool) -> TimeBasis:  # noqa: FBT001 (two columns of one table)
    if exact:
        return TimeBasis.MEASURED
    return TimeBasis.INTERPOLATED if inside else TimeBasis.SCALED


def _notes(cluster: Cluster, run: NcclTestsRun, size_bytes: Floats) -> Iterator[str]:
    low, high = (int(each) for each in (size_bytes[0], size_bytes[-1]))
    count = f"{len(size_bytes)} sizes from {low:,} to {high:,} bytes" if high > low else f"{low:,} bytes"
    yield f"measured: {count}; their interval is the shortest to the longest time of the log, not one of 90 %"
    yield (
        "between sizes measured the model is scaled by the ratio of measured to modelled time, interpolated; "
        "outside of them by that of the nearest size, with the interval of the model"
    )
    yield "algorithm and protocol are those the model expects; a log does not name them"
    yield from run_notes(cluster, run)
