"""Which layouts a job and its framework allow: one set of rules for a search's columns and for one layout.

A rule is a sentence, of what is wrong where it does not hold, and a test on columns of degrees.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from linkwise.job.job import Job
    from linkwise.job.offers import Offer
    from linkwise.layout import Layout

__all__ = ["Rule", "batch_rule", "degree_rules", "expert_rule", "layout_misfits", "pipeline_rules"]

Columns = Mapping[str, NDArray[np.int64]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule.

    Attributes
    ----------
    reason
        What is wrong where it does not hold.
    holds
        Takes columns of degrees, gives which rows keep the rule.
    """

    reason: str
    holds: Callable[[Columns], NDArray[np.bool_]]


def degree_rules(job: Job) -> tuple[Rule, ...]:
    """Return the rules on tensor and context degrees."""
    model = job.model
    return (
        Rule(
            reason=f"tensor does not divide {model.heads} heads",
            holds=lambda c: model.heads % c["tensor"] == 0,
        ),
        Rule(
            reason=f"tensor neither divides {model.kv_heads} key-value heads nor is a multiple of them",
            holds=lambda c: (model.kv_heads % c["tensor"] == 0) | (c["tensor"] % model.kv_heads == 0),
        ),
        Rule(
            reason=f"tensor does not divide the MLP width {model.ffn}",
            holds=lambda c: model.ffn * (model.dense_layers > 0) % c["tensor"] == 0,
        ),
        Rule(
            reason=f"2 x context does not divide {job.sequence_length} tokens",
            holds=lambda c: (c["context"] == 1) | (job.sequence_length % (2 * c["context"]) == 0),
        ),
    )


def batch_rule(job: Job) -> Rule:
    """Return the rule on the batch."""
    return Rule(
        reason=f"global batch {job.global_batch} is not a multiple of data x micro-batch",
        holds=lambda c: job.global_batch % (c["data"] * c["micro_batch"]) == 0,
    )


def pipeline_rules(job: Job) -> tuple[Rule, ...]:
    """Return the rules on interleaving.

    Notes
    -----
    Layers need not divide by the stages (frameworks give some stages one less), but chunks of an interleaved
    pipeline do, the embedding and the loss counting as a layer each where that makes them even. Interleaving
    needs micro-batches in multiples of the stages (Narayanan et al., 2021, section 2.2.2).
    """
    layers = job.model.layers

    def even(c: Columns) -> NDArray[np.bool_]:
        counted = np.where(layers % c["pipeline"] == 0, layers, layers + 2)
        whole = counted % (c["virtual_pipeline"] * c["pipeline"]) == 0
        return np.asarray((c["virtual_pipeline"] == 1) | whole)

    def multiple(c: Columns) -> NDArray[np.bool_]:
        micro_batches = job.global_batch // (c["data"] * c["micro_batch"])
        return np.asarray((c["virtual_pipeline"] == 1) | (micro_batches % c["pipeline"] == 0))

    return (
        Rule(reason=f"{layers} layers do not divide into pipeline x virtual-pipeline chunks", holds=even),
        Rule(
            reason="micro-batches are not a multiple of the stages, as interleaving needs",
            holds=multiple,
        ),
    )


def expert_rule(job: Job) -> Rule:
    """Return the rule on the expert degree.

    Notes
    -----
    Ranks of one expert group are some of the replicas (data x context), or all of them and a share of the
    tensor ranks.
    """
    experts = job.model.experts

    def holds(c: Columns) -> NDArray[np.bool_]:
        replicas, spread = c["data"] * c["context"], c["expert"]
        some = replicas % spread == 0
        all_and_more = (spread % replicas == 0) & (replicas * c["tensor"] % spread == 0)
        return np.asarray((max(experts, 1) % spread == 0) & (some | all_and_more))

    reason = f"expert does not divide data x context x tensor and {experts} experts"
    return Rule(reason=reason if experts else "the model has no experts", holds=holds)


def layout_misfits(job: Job, layout: Layout, offer: Offer) -> Iterator[str]:
    """Yield everything that keeps one placed layout from running, in sentences.

    Parameters
    ----------
    job
        The job.
    layout
        With its data degree.
    offer
        What the job's framework has.
    """
    columns = {
        name: np.array([getattr(layout, name)], dtype=np.int64)
        for name in ("tensor", "context", "pipeline", "virtual_pipeline", "expert", "data", "micro_batch")
    }
    for rule in (*degree_rules(job), batch_rule(job), *pipeline_rules(job), expert_rule(job)):
        if not bool(rule.holds(columns)[0]):
            degrees = ", ".join(f"{name} {values[0]}" for name, values in columns.items() if values[0] > 1)
            yield f"{rule.reason} ({degrees})"
    if layout.pipeline > job.model.layers:
        yield f"pipeline {layout.pipeline} is more than the {job.model.layers} layers of {job.model.name}"
    yield from _not_offered(job, layout, offer)
    yield from _without_effect(job, layout)


def _not_offered(job: Job, layout: Layout, offer: Offer) -> Iterator[str]:
    for name in ("tensor", "context", "pipeline", "expert"):
        if getattr(layout, name) > 1 and not getattr(offer, name):
            yield f"{job.framework} has no {name} parallelism"
    if layout.virtual_pipeline > offer.interleaves:
        yield f"{job.framework} does not interleave {layout.virtual_pipeline} chunks per stage"
    if layout.zero_stage not in offer.zero_stages and (layout.data or 1) * layout.context > 1:
        stages = ", ".join(str(stage) for stage in sorted(offer.zero_stages))
        yield f"{job.framework} has no zero_stage {layout.zero_stage}; choose one of: {stages}"
    if layout.zero_stage >= 2 and layout.pipeline > 1 and not offer.sharded_pipeline:
        yield f"{job.framework} cannot shard gradients (zero_stage {layout.zero_stage}) beside a pipeline"
    if layout.recompute not in offer.recompute:
        yield f"{job.framework} has no {layout.recompute.word} recomputation"
    if layout.pipeline > 1 and layout.schedule not in offer.schedules:
        words = ", ".join(choice.word for choice in offer.schedules)
        yield f"{job.framework} has no {layout.schedule.word} schedule; choose one of: {words}"


def _without_effect(job: Job, layout: Layout) -> Iterator[str]:
    heads, ranks = job.model.heads, layout.tensor * layout.context
    if layout.context_exchange.word == "all-to-all" and heads % ranks:
        yield f"all-to-all needs tensor x context = {ranks} to divide the {heads} heads"
    if layout.rank_order.word.endswith("pipeline-data"):
        if layout.pipeline == 1 or (layout.data or 1) == 1:
            yield f"rank_order {layout.rank_order.word} has no effect without pipeline and data ranks"
        elif layout.expert > 1:
            yield f"rank_order {layout.rank_order.word} would pull expert groups apart; leave it out"
