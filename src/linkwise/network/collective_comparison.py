"""A measured run of nccl-tests beside what its cluster should give: how far apart, and a verdict."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from linkwise import catalog
from linkwise.catalog import Gpu
from linkwise.cluster import Cluster
from linkwise.errors import InputError
from linkwise.nccl.communicator import NO_LIMITS, Limits, release_of
from linkwise.network.cluster_setting import setting_of
from linkwise.network.collective_causes import LikelyCause, likely_causes
from linkwise.network.collective_interval import interval_factors, reach_of
from linkwise.network.collective_time import CollectiveTimes, collective_times
from linkwise.network.setting import OPERATIONS, Launch, Setting, bus_factor
from linkwise.readers.nccl_tests import NcclTestsRow, NcclTestsRun

__all__ = [
    "CollectiveComparison",
    "Verdict",
    "checked_setting",
    "compare_run",
    "compare_times",
    "run_notes",
    "times_of_run",
]

Floats = NDArray[np.float64]

LEAST_BYTES = float(2**20)
"""Smaller messages differ too much between healthy machines for a verdict [bytes]."""
JUDGED_SPAN = 16.0
"""The verdict rests on sizes down to the largest over this [1]."""
_PROGRAMS = {"alltoall": "all_to_all", "sendrecv": "send_recv"}
_BUS_TOLERANCE = 0.03
_LEAST_PRINTED_BYTES_PER_S = 3e9
"""Bandwidths below have too few printed digits to tell a bus factor by."""


class Verdict(StrEnum):
    """Whether a measured run is what its cluster should give."""

    AS_IT_SHOULD_BE = "as it should be"
    BELOW = "below"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveComparison:
    """A measured run and what was expected.

    Attributes
    ----------
    operation
        The collective.
    setting
        Where it ran as it should.
    expected
        What the model gives for the sizes measured.
    measured_s
        The time measured at each (rows,) [s].
    verdict
        Over the sizes within a factor 16 of the largest, 1 MiB and more; also below where most of all sizes
        are slower than their interval.
    reason
        What the verdict rests on, one sentence.
    causes
        What would explain it, best first; empty where nothing does or nothing needs to.
    notes
        What was chosen or is odd, in sentences.
    """

    operation: str
    setting: Setting
    expected: CollectiveTimes
    measured_s: Floats
    verdict: Verdict
    reason: str
    causes: tuple[LikelyCause, ...]
    notes: tuple[str, ...] = ()

    @property
    def ratio(self) -> Floats:
        """Return measured over expected bandwidth (rows,) [1]."""
        return self.expected.time_s / self.measured_s


def compare_run(
    operation: str,
    cluster: Cluster,
    run: NcclTestsRun,
    *,
    gpus: int | None = None,
    limits: Limits = NO_LIMITS,
) -> CollectiveComparison:
    """Return a measured run beside what a cluster should give.

    Parameters
    ----------
    operation
        One of `linkwise.network.setting.OPERATIONS`.
    cluster
        What it should have run on.
    run
        The run.
    gpus
        GPUs that take part; those of the run by default, or all where it lists none [1].
    limits
        What may be chosen.

    Raises
    ------
    InputError
        If the run is another collective, has another number of GPUs or lies otherwise on nodes than the
        cluster has them, or has only sizes of 0.

    Notes
    -----
    At each size the faster of in place and out of place counts, and the median where a size was measured
    more than once.
    """
    setting = checked_setting(operation, cluster, run, gpus=gpus, limits=limits)
    size_bytes, time_s, _, _ = times_of_run(run)
    span = max(cluster.nvlink_domain_gpus, cluster.gpus_per_node)
    nics = cluster.nics_per_node * span // cluster.gpus_per_node
    found = compare_times(operation, setting, size_bytes, time_s, gpu=cluster.gpu, nics=nics)
    return replace(found, notes=tuple(run_notes(cluster, run)))


def checked_setting(
    operation: str,
    cluster: Cluster,
    run: NcclTestsRun,
    *,
    gpus: int | None = None,
    limits: Limits = NO_LIMITS,
) -> Setting:
    """Return where a run was, after a check that it is of that collective and fits the cluster.

    Parameters
    ----------
    operation, cluster, run, gpus, limits
        As for `compare_run`.

    Raises
    ------
    InputError
        As `compare_run`.
    """
    _check_program(operation, run)
    ranks = _ranks(cluster, run, gpus)
    setting = setting_of(cluster, gpus=ranks, limits=limits)
    release = release_of(f"{run.version}.0") if run.version else None
    if run.gpus_per_thread > 1:
        setting = replace(setting, launch=Launch.ONE_THREAD)
    _check_hosts(cluster, run, ranks)
    _check_bus(operation, run, ranks)
    return replace(setting, group=replace(setting.group, release=release))


def compare_times(
    operation: str, setting: Setting, size_bytes: Floats, time_s: Floats, *, gpu: Gpu, nics: int
) -> CollectiveComparison:
    """Return measured times beside what a setting should give.

    Parameters
    ----------
    operation
        One of `linkwise.network.setting.OPERATIONS`.
    setting
        Where it ran as it should.
    size_bytes, time_s
        Sizes, and the time measured at each (rows,) [bytes], [s].
    gpu
        The GPUs.
    nics
        NICs of a domain [1].
    """
    expected = collective_times(operation, setting, size_bytes)
    low, high = interval_factors(reach_of(setting), size_bytes)
    slower = time_s / expected.time_s
    verdict, reason = _judge(size_bytes, is_slow=slower > high, is_fast=slower < low)
    causes: tuple[LikelyCause, ...] = ()
    if verdict is Verdict.BELOW:
        causes = likely_causes(operation, setting, size_bytes, time_s, gpu=gpu, nics=nics)
    return CollectiveComparison(
        operation=operation,
        setting=setting,
        expected=expected,
        measured_s=time_s,
        verdict=verdict,
        reason=reason,
        causes=causes,
    )


def _judge(
    size_bytes: Floats, *, is_slow: NDArray[np.bool_], is_fast: NDArray[np.bool_]
) -> tuple[Verdict, str]:
    judged = size_bytes >= max(LEAST_BYTES, float(np.max(size_bytes)) / JUDGED_SPAN)
    count = int(np.sum(judged))
    if not count:
        return Verdict.CANNOT_TELL, "no size of 1 MiB or more; smaller ones differ between healthy machines"
    slow, fast = int(np.sum(is_slow & judged)), int(np.sum(is_fast & judged))
    of_them = f"of the {count} largest sizes" if count > 1 else "of the largest size"
    if 2 * slow > count:
        return Verdict.BELOW, f"{slow} {of_them} slower than the interval"
    if 2 * int(np.sum(is_slow)) > len(is_slow):
        return Verdict.BELOW, f"{np.sum(is_slow)} of all {len(is_slow)} sizes slower than the interval"
    if 2 * fast > count:
        return (
            Verdict.CANNOT_TELL,
            f"{fast} {of_them} faster than the interval: is this the cluster that ran?",
        )
    return Verdict.AS_IT_SHOULD_BE, f"{count - slow - fast} {of_them} inside the interval"


def _check_program(operation: str, run: NcclTestsRun) -> None:
    if run.program is None:
        return
    ran = _PROGRAMS.get(run.program, run.program)
    if ran != operation:
        known = f"ask for {ran}" if ran in OPERATIONS else "there is no model of it"
        raise InputError(f"the log is of {run.program}_perf, not of {operation}; {known}")


def _ranks(cluster: Cluster, run: NcclTestsRun, gpus: int | None) -> int:
    if gpus is not None and run.ranks is not None and gpus != run.ranks:
        raise InputError(f"--gpus {gpus}: the log has {run.ranks} GPUs; leave the option out")
    return gpus or run.ranks or cluster.gpus


def _check_hosts(cluster: Cluster, run: NcclTestsRun, ranks: int) -> None:
    """Refuse ranks that lie otherwise on nodes; the first GPUs of a cluster fill one node after another."""
    nodes = -(-ranks // cluster.gpus_per_node)
    if run.hosts and run.ranks is not None and len(run.hosts) != nodes:
        there = f"the log has {run.ranks} GPUs on {len(run.hosts)} hosts"
        raise InputError(
            f"{there}, and {cluster.name} has {ranks} on {nodes}; describe nodes with the GPUs that took part"
        )


def _check_bus(operation: str, run: NcclTestsRun, ranks: int) -> None:
    """Refuse a table whose bus bandwidths are those of another collective or number of GPUs."""
    row = max(run.rows, key=lambda each: each.algbw_bytes_per_s)
    if row.algbw_bytes_per_s < _LEAST_PRINTED_BYTES_PER_S:
        return
    printed, due = row.busbw_bytes_per_s / row.algbw_bytes_per_s, bus_factor(operation, ranks)
    if abs(printed - due) > _BUS_TOLERANCE * due:
        what = f"busbw over algbw is {printed:.3g} in the log and {due:.3g} for {operation} on {ranks} GPUs"
        raise InputError(f"{what}; give the collective and --gpus that ran")


def times_of_run(run: NcclTestsRun) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the sizes in order, the time of the faster place at each, and the shortest and longest.

    Parameters
    ----------
    run
        The run.
    """
    times: dict[int, dict[bool, list[float]]] = {}
    for row in run.rows:
        times.setdefault(row.size_bytes, {}).setdefault(row.in_place, []).append(row.time_s)
    sizes = sorted(times)
    fastest = [min(float(np.median(each)) for each in times[size].values()) for size in sizes]
    every = [[time_s for each in times[size].values() for time_s in each] for size in sizes]
    return (
        np.array(sizes, dtype=np.float64),
        np.array(fastest),
        np.array([min(each) for each in every]),
        np.array([max(each) for each in every]),
    )


def run_notes(cluster: Cluster, run: NcclTestsRun) -> Iterator[str]:
    """Yield what was chosen of a run or is odd about it, in sentences.

    Parameters
    ----------
    cluster
        Where it should have run.
    run
        The run.
    """
    places = {row.in_place for row in run.rows}
    if len(places) == 2:
        yield "measured: the faster of in place and out of place at each size"
    else:
        yield f"measured: {'in place' if places == {True} else 'out of place'}, the only times of the log"
    if run.ranks is None:
        yield "the log lists no devices; its GPUs are taken to be those asked for"
    if run.program is None:
        yield "the log does not name its collective; it is taken to be the one asked for"
    if run.unfinished_lines:
        yield f"unfinished rows of the log: {run.unfinished_lines}"
    if wrong := sum(map(_is_wrong, run.rows)):
        yield f"rows of the log with wrong results: {wrong}; their times say little"
    yield from _other_gpu(cluster, run)


def _is_wrong(row: NcclTestsRow) -> bool:
    return bool(row.wrong)


def _other_gpu(cluster: Cluster, run: NcclTestsRun) -> Iterator[str]:
    if run.gpu is None:
        return
    try:
        name = catalog.gpu(run.gpu).name
    except InputError:
        name = ""
    if name != cluster.gpu.name:
        yield f"the GPUs of the log are {run.gpu}, those of the cluster {cluster.gpu.name}"
