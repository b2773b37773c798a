"""What the model says a measured collective should take, on the cluster that was named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from linkwise.bench.collectives import MeasuredSize
from linkwise.cluster import Cluster
from linkwise.evidence.comparison import Standing, standing
from linkwise.network.cluster_setting import assumptions_of, setting_of
from linkwise.network.collective_interval import interval_factors, reach_of
from linkwise.network.collective_time import collective_times
from linkwise.network.setting import Launch

__all__ = ["Prediction", "predict_sizes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What one size should take.

    Parameters
    ----------
    algorithm, protocol
        What NCCL would choose.
    time_s, low_s, high_s
        Time of a call and its 90 % interval [s].
    standing
        How the interval measured lies to the one predicted: above is slower than all of it. ``None`` where
        samples are too few.
    """

    algorithm: str
    protocol: str
    time_s: float
    low_s: float
    high_s: float
    standing: Standing | None


def predict_sizes(
    cluster: Cluster, measured: Sequence[MeasuredSize], *, ranks: int, launch: Launch
) -> tuple[tuple[Prediction, ...], tuple[str, ...]]:
    """Return the prediction for each size, and what they rest on.

    Parameters
    ----------
    cluster
        Where it should have run.
    measured
        What was measured.
    ranks
        How many took part [1].
    launch
        Who called.

    Raises
    ------
    InputError
        When the cluster has fewer GPUs.
    """
    setting = replace(setting_of(cluster, gpus=ranks), launch=launch)
    found: list[Prediction] = []
    assumptions: dict[str, None] = {}
    for one in measured:
        size = np.array([one.size_bytes], dtype=np.float64)
        times = collective_times(one.operation, setting, size)
        low, high = interval_factors(reach_of(setting), size, operation=one.operation)
        time_s = float(times.time_s[0])
        algorithm, protocol = times.names[int(times.choice[0])]
        ends = time_s * float(low[0]), time_s * float(high[0])
        found.append(
            Prediction(
                algorithm=algorithm,
                protocol=protocol,
                time_s=time_s,
                low_s=ends[0],
                high_s=ends[1],
                standing=_standing(one, *ends),
            )
        )
        assumptions.update(dict.fromkeys(assumptions_of(cluster, setting, one.operation)))
    return tuple(found), tuple(assumptions)


def _standing(measured: MeasuredSize, low_s: float, high_s: float) -> Standing | None:
    if measured.time_s is None:
        return None
    if standing(measured.time_s, high_s) is Standing.ABOVE:
        return Standing.ABOVE
    if standing(measured.time_s, low_s) is Standing.BELOW:
        return Standing.BELOW
    return Standing.ACROSS
