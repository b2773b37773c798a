"""What a bench measured beside what the model says of it: collectives by size, training by phase.

The records are published results, so that those of other machines and of last month are compared alike. What
ran on CPUs, and what is invalid, is not compared: the reason is said instead.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from linkwise.bench.collectives import MeasuredSize
from linkwise.bench.prediction import Prediction, predict_sizes
from linkwise.calibrate.against import Against, against
from linkwise.calibrate.site_run import SiteRun
from linkwise.errors import InputError, UnknownName
from linkwise.evidence.comparison import Standing
from linkwise.network.setting import OPERATIONS, Launch

if TYPE_CHECKING:
    from linkwise.cluster import Cluster
    from linkwise.job import Job
    from linkwise.layout import Layout
    from linkwise.readers.bench_record import BenchCut, BenchRecord, BenchTraining

__all__ = ["CollectivesAgainst", "CutAgainst", "collectives_against", "hindrance", "training_against"]

_ON_GPUS = ("nccl", "nccl-tests")
_LEAST_SLOWER = 2
"""Sizes that must be slower before a cause is named [1]."""
_FLAT = 2.0
"""Up to so many times the time of the smallest size, starts and hops rule a time, beyond it bytes do [1]."""
_SLOWER: Mapping[str, str] = MappingProxyType(
    {
        "small sizes": "what every call costs is more: a slow or busy core per rank, launches that no graph "
        "captures, NCCL_PROTO without LL, or more hops than planned",
        "large sizes": "fewer bytes a second than the links have: fewer NICs or rails, sockets instead of "
        "RDMA, no GPUDirect, a link that is down or slow, or neighbours on the fabric; run it with "
        "NCCL_DEBUG=INFO and give the log to linkwise doctor",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectivesAgainst:
    """Collectives beside the model.

    Parameters
    ----------
    rows
        What was measured, each with what it should take.
    off
        ``small sizes`` or ``large sizes``, where two of them are slower than the model's interval, and of
        which collective; ``None`` where neither is.
    reason
        What would explain it; empty where nothing is off.
    assumptions
        What the predictions rest on.
    """

    rows: tuple[tuple[MeasuredSize, Prediction], ...]
    off: str | None
    reason: str
    assumptions: tuple[str, ...]

    @property
    def is_slower(self) -> bool:
        """Return whether something is slower than it should be."""
        return self.off is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class CutAgainst:
    """The training under one cut beside its estimate.

    Parameters
    ----------
    cut
        In the words of the bench.
    found
        The comparison.
    """

    cut: str
    found: Against


def hindrance(record: BenchRecord | BenchTraining) -> tuple[str, str]:
    """Return ``invalid`` or ``cannot tell`` and why, where a record is not compared; else empty texts.

    Parameters
    ----------
    record
        What was measured.
    """
    bad = [outcome for outcome in record.outcomes if outcome != "done"]
    if bad or not record.outcomes:
        return "invalid", f"its run ended as {bad[0]}" if bad else "it names no run"
    if record.unlike:
        return "invalid", f"its run was not what was planned ({'; '.join(record.unlike[:3])})"
    if record.backend not in _ON_GPUS:
        return "cannot tell", (
            f"it is of {record.backend} on CPUs, of which the model of the cluster's GPUs says nothing; "
            "linkwise lab bench and linkwise lab run predict what CPUs and emulated links do"
        )
    return "", ""


def collectives_against(record: BenchRecord, cluster: Cluster) -> CollectivesAgainst:
    """Return collectives beside what they should take on a cluster.

    Parameters
    ----------
    record
        What was measured, with `hindrance` empty.
    cluster
        Where.

    Raises
    ------
    InputError
        When the cluster has fewer GPUs, or the record names a collective that is not known.
    """
    for row in record.rows:
        if row.operation not in OPERATIONS:
            raise UnknownName.among(OPERATIONS, kind="collective", given=row.operation)
        if row.wrong:
            raise InputError(f"{row.operation} computed wrongly; times of such a machine are not compared")
    measured = [
        MeasuredSize(
            operation=row.operation,
            size_bytes=int(row.size_bytes),
            calls=1,
            samples_s=row.samples_s,
            first_s=(),
            wrong=None,
        )
        for row in record.rows
    ]
    launch = Launch.FRAMEWORK if record.backend == "nccl" else Launch.OWN_THREADS
    predicted, assumptions = predict_sizes(cluster, measured, ranks=record.ranks, launch=launch)
    rows = tuple(zip(measured, predicted, strict=True))
    off = _off(rows)
    return CollectivesAgainst(
        rows=rows,
        off=None if off is None else f"{off[0]} of {off[1]}",
        reason="" if off is None else _SLOWER[off[0]],
        assumptions=assumptions,
    )


def _off(rows: Sequence[tuple[MeasuredSize, Prediction]]) -> tuple[str, str] | None:
    """Return the part of the sizes of a collective that is most over its prediction, if one is slower."""
    parts: dict[tuple[str, str], list[tuple[bool, float]]] = {}
    for operation in dict.fromkeys(one.operation for one, _ in rows):
        own = [(one, model) for one, model in rows if one.operation == operation and one.time_s is not None]
        least_s = min((model.time_s for _, model in own), default=0.0)
        for one, model in own:
            name = "small sizes" if model.time_s <= _FLAT * least_s else "large sizes"
            is_slower = model.standing is Standing.ABOVE
            ratio = statistics.median(one.samples_s) / model.time_s
            parts.setdefault((name, operation), []).append((is_slower, ratio))
    slower = {
        key: statistics.median(ratio for is_slower, ratio in found if is_slower)
        for key, found in parts.items()
        # One size of several may lie outside by chance: the model's interval holds nine of ten.
        if sum(is_slower for is_slower, _ in found) >= min(_LEAST_SLOWER, len(found))
    }
    return max(slower, key=slower.__getitem__, default=None)


def training_against(record: BenchTraining, cluster: Cluster) -> tuple[CutAgainst, ...]:
    """Return every cut of a training beside its estimate.

    Parameters
    ----------
    record
        What was measured, with `hindrance` empty.
    cluster
        Where.

    Raises
    ------
    InputError
        When the cluster has fewer GPUs, or the record names a cut that is not known.
    """
    from linkwise.cluster.growth import first_gpus
    from linkwise.estimate import estimate_layout

    used = first_gpus(cluster, record.ranks)
    found = []
    for cut in record.cuts:
        job, layout = _job_of(record, cut)
        phases = tuple(
            (name, statistics.median(times)) for name, times in cut.phases_s.items() if len(times) > 0
        )
        run = SiteRun(source="linkwise bench", step_times_s=cut.step_times_s, left_out=0, phases_s=phases)
        found.append(CutAgainst(cut=cut.cut, found=against(estimate_layout(job, used, layout), run)))
    return tuple(found)


def _job_of(record: BenchTraining, cut: BenchCut) -> tuple[Job, Layout]:
    """Return what the ranks of a bench trained, and how it was cut."""
    from linkwise.job import Job, Precision
    from linkwise.layout import Layout
    from linkwise.model import make_model

    shape, ranks = record.model, record.ranks
    sequences = max(1, record.tokens_per_step // shape["sequence_length"])
    own = max(1, sequences // ranks)
    layouts = {
        "ddp": ("ddp", Layout(data=ranks, micro_batch=own)),
        "fsdp": ("torchtitan", Layout(data=ranks, micro_batch=own, zero_stage=3)),
        "tensor": ("torchtitan", Layout(tensor=ranks, micro_batch=sequences, sequence_parallel=False)),
        "pipeline": ("torchtitan", Layout(pipeline=ranks, micro_batch=1)),
    }
    if cut.cut not in layouts:
        raise UnknownName.among(layouts, kind="cut", given=cut.cut)
    framework, layout = layouts[cut.cut]
    model = make_model(
        name="bench-transformer",
        layers=shape["layers"],
        hidden=shape["hidden"],
        heads=shape["heads"],
        vocab=shape["vocabulary"],
        ffn=4 * shape["hidden"],
        gated_mlp=False,
        learned_positions=shape["sequence_length"],
    )
    job = Job(
        model=model,
        sequence_length=shape["sequence_length"],
        global_batch=sequences,
        precision=Precision.TF32,
        framework=framework,
        layout=layout,
    )
    return job, layout
