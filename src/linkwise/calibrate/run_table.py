"""Measured runs as a table of columns; blanks become candidates, and one rule chooses among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from linkwise.calibrate.measured import MeasuredLayout, MeasuredRun
from linkwise.estimate.calibrated import NO_LATENCY_FACTORS
from linkwise.estimate.columns import Evaluation, Floats, Integers, Table
from linkwise.estimate.constants import BoundColumns, bind_columns
from linkwise.estimate.crossing import tier_columns
from linkwise.estimate.inputs import model_inputs
from linkwise.estimate.job_inputs import stack_columns
from linkwise.estimate.terms import TERMS
from linkwise.job.framework import Habit
from linkwise.layout import Schedule
from linkwise.model import model_columns
from linkwise.network.group_times import NETWORKS

OFFLOADED_FRACTION = 0.5
"""Share of activations that "partial" offload takes off the GPU; the sources do not say which."""
TCP_BY_GPUS = ("network_fraction_tcp_single", "network_fraction_tcp_many")


@dataclass(frozen=True, slots=True)
class Candidates:
    """Filled-in layouts of runs, several where a source left a cell blank.

    Attributes
    ----------
    run : (rows,)
        Position of the run each candidate belongs to.
    layouts
        The filled layout of each candidate.
    columns
        Everything an estimate reads, constants by name.
    models
        Columns of the models, (rows,) each.
    """

    run: Integers
    layouts: tuple[MeasuredLayout, ...]
    columns: BoundColumns
    models: Mapping[str, Floats]

    def evaluate(self, constants: Mapping[str, float]) -> Evaluation:
        """Return the estimate of every candidate under these constants."""
        varying = {**self.models, **self.columns.resolve(constants)}
        return Evaluation(Table(rows=len(self.run), fixed={}, varying=varying), TERMS)

    def take(self, rows: Integers) -> Candidates:
        """Return only the given candidates."""
        columns = BoundColumns(
            {name: values[rows] for name, values in self.columns.numbers.items()},
            {name: (cells, index[rows]) for name, (cells, index) in self.columns.names.items()},
        )
        models = {name: values[rows] for name, values in self.models.items()}
        return Candidates(self.run[rows], tuple(self.layouts[i] for i in rows), columns, models)


def candidates_of(runs: Sequence[MeasuredRun]) -> Candidates:
    """Return every way the blanks of the runs can be filled."""
    pairs = [(index, layout) for index, run in enumerate(runs) for layout in filled_layouts(run)]
    rows = [run_columns(runs[index], layout) for index, layout in pairs]
    distinct = list({id(run.model): run.model for run in runs}.values())
    position = {id(model): place for place, model in enumerate(distinct)}
    index = np.array([i for i, _ in pairs], dtype=np.intp)
    of_run = np.array([position[id(run.model)] for run in runs], dtype=np.intp)
    models = {name: values[of_run[index]] for name, values in model_inputs(model_columns(distinct)).items()}
    return Candidates(index, tuple(layout for _, layout in pairs), bind_columns(rows), models)


def choose(candidates: Candidates, constants: Mapping[str, float], runs: int) -> Integers:
    """Return one candidate per run: least recomputation that fits, then the fastest micro-batch that fits.

    Notes
    -----
    Where nothing fits the candidate with the least memory is taken.
    """
    evaluated = candidates.evaluate(constants)
    fits = evaluated["memory_bytes"] <= evaluated["memory_available_bytes"]
    recompute = np.array([float(layout.recompute or 0) for layout in candidates.layouts])
    key = np.where(fits, recompute * 1e6 + evaluated["step_time_s"], 1e12 + evaluated["memory_bytes"])
    best = np.full(runs, -1, dtype=np.intp)
    order = np.argsort(key, kind="stable")[::-1]
    best[candidates.run[order]] = order
    return best


def filled_layouts(run: MeasuredRun) -> list[MeasuredLayout]:
    """Return the layouts a run may have had, by the habits of its framework."""
    layout = run.layout
    framework = run.framework
    filled = replace(
        layout,
        zero_stage=framework.zero_stage if layout.zero_stage is None else layout.zero_stage,
        sequence_parallel=(
            layout.tensor > 1 and framework.sequence_parallel
            if layout.sequence_parallel is None
            else layout.sequence_parallel
        ),
        virtual_pipeline=layout.virtual_pipeline or usual_interleaving(run),
    )
    recomputes = (0, 1, 2) if layout.recompute is None else (layout.recompute,)
    batches = usual_micro_batches(run) if layout.micro_batch is None else (layout.micro_batch,)
    return [replace(filled, recompute=mode, micro_batch=batch) for mode in recomputes for batch in batches]


def usual_interleaving(run: MeasuredRun) -> int:
    """Return the deepest virtual pipeline the framework's recipes take that divides the layers."""
    layout, layers = run.layout, run.model.layers
    if layout.pipeline == 1:
        return 1
    for depth in range(run.framework.interleaves, 1, -1):
        chunks = layout.pipeline * depth
        if layers % chunks == 0 or (layers + 2) % chunks == 0:
            return depth
    return 1


def usual_micro_batches(run: MeasuredRun) -> tuple[int, ...]:
    """Return the micro-batches a run may have used: powers of two that divide the replica's batch."""
    share = max(run.global_batch // run.layout.data, 1)
    return tuple(size for size in (1, 2, 4, 8, 16) if share % size == 0)


def run_columns(run: MeasuredRun, layout: MeasuredLayout) -> dict[str, Habit]:
    """Return every column of one candidate, except the model's."""
    stack = stack_columns(model=run.model, gpu=run.gpu, precision=run.precision, framework=run.framework)
    if run.data_parallel == "parameter_server":
        stack["gradient_element_bytes"] = 4.0
    tcp = run.network.kind == "tcp"
    fraction = TCP_BY_GPUS[run.domain_gpus > 1] if tcp else run.network.achieved_fraction
    gpipe = run.framework.schedule == "gpipe"
    return {
        **stack,
        "offloaded_activation_fraction": OFFLOADED_FRACTION if "activations" in run.offload else 0.0,
        "nic_bytes_per_s": run.network.share_bytes_per_s,
        "network_latency_s": run.network.latency_s,
        "network_fraction": fraction,
        "collective_network": float(NETWORKS.index(run.network.transport)),
        "network_contention": 1.0 if tcp else "network_contention_rdma",
        "hop_network_fraction": TCP_BY_GPUS[0] if tcp else fraction,
        **NO_LATENCY_FACTORS,
        **tier_columns(None, gpus=run.gpus, domain_gpus=run.domain_gpus),
        "domain_gpus": float(run.domain_gpus),
        "gpus": float(run.gpus),
        "sequence_length": float(run.sequence_length),
        "global_batch": float(run.global_batch),
        "tensor": float(layout.tensor),
        "context": float(layout.context),
        "pipeline": float(layout.pipeline),
        "virtual_pipeline": float(layout.virtual_pipeline or 1),
        "expert": float(layout.expert),
        "data": float(layout.data),
        "micro_batch": float(layout.micro_batch or 1),
        "zero_stage": float(layout.zero_stage or 0),
        "recompute": float(layout.recompute or 0),
        "sequence_parallel": float(bool(layout.sequence_parallel)),
        "hybrid_shard": float(layout.hybrid_shard),
        "schedule": float(Schedule.GPIPE if gpipe else Schedule.ONE_F_1F1B),
        "rank_order": 0.0,
        "context_exchange": 0.0,
    }
