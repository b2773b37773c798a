"""How many ranks of each group share an NVLink domain: terms that say which links a group pays for.

Not here: what the group sends (`communication`). Symbols: t, c, p, d the tensor, context, pipeline and data
degrees.
"""

from __future__ import annotations

import numpy as np

from linkwise.estimate.term import Floats, term
from linkwise.network.placement import ranks_per_domain

_ORDER = "Megatron rank order tensor-context-data-pipeline, or tensor-context-pipeline-data"


@term("1", "min(t, domain)", _ORDER)
def tensor_local(tensor: Floats, domain_gpus: Floats) -> Floats:
    """Return how many ranks of a tensor group share an NVLink domain."""
    return ranks_per_domain(tensor, np.ones_like(tensor), domain_gpus)


@term("1", "ranks of stride t in a domain", _ORDER)
def context_local(context: Floats, tensor: Floats, domain_gpus: Floats) -> Floats:
    """Return how many ranks of a context group share an NVLink domain."""
    return ranks_per_domain(context, tensor, domain_gpus)


@term("1", "t (1 where experts span the tensor ranks; t c p where stages sit inside)", _ORDER)
def expert_stride(expert_tensor: Floats, data_stride: Floats, rank_order: Floats) -> Floats:
    """Return the distance of neighbouring ranks of an expert group."""
    return np.where(rank_order >= 1, data_stride, expert_tensor)


@term("1", "ranks of that stride in a domain", _ORDER)
def expert_local(expert: Floats, expert_stride: Floats, domain_gpus: Floats) -> Floats:
    """Return how many ranks of an expert group share an NVLink domain."""
    return ranks_per_domain(expert, expert_stride, domain_gpus)


@term("1", "data x context x t / (expert x ranks an expert is cut over)", _ORDER)
def expert_replicas(gradient_ranks: Floats, tensor: Floats, expert: Floats, expert_tensor: Floats) -> Floats:
    """Return the ranks that hold the same experts."""
    return np.maximum(gradient_ranks * tensor / (expert * expert_tensor), 1.0)


@term("1", "expert x cut (x p where stages sit inside)", _ORDER)
def expert_replica_stride(
    expert: Floats, expert_tensor: Floats, pipeline: Floats, rank_order: Floats
) -> Floats:
    """Return the distance of neighbouring ranks that hold the same experts."""
    return expert * expert_tensor * np.where(rank_order >= 1, pipeline, 1.0)


@term("1", "ranks of that stride in a domain", _ORDER)
def expert_replicas_local(
    expert_replicas: Floats, expert_replica_stride: Floats, domain_gpus: Floats
) -> Floats:
    """Return how many of the ranks that hold the same experts share an NVLink domain."""
    return ranks_per_domain(expert_replicas, expert_replica_stride, domain_gpus)


@term("1", "stride of the data ranks: t c, or t c p where the stages sit inside", _ORDER)
def data_stride(tensor: Floats, context: Floats, pipeline: Floats, rank_order: Floats) -> Floats:
    """Return the distance of neighbouring data-parallel ranks."""
    return tensor * context * np.where(rank_order >= 1, pipeline, 1.0)


@term("1", "ranks of a gradient group (data x context) in a domain", _ORDER)
def gradient_local(data: Floats, context_local: Floats, data_stride: Floats, domain_gpus: Floats) -> Floats:
    """Return how many ranks of a gradient group share an NVLink domain."""
    return context_local * ranks_per_domain(data, data_stride, domain_gpus)


@term("1", "t c d, or t c where the stages sit inside", _ORDER)
def stage_stride(tensor: Floats, context: Floats, data: Floats, rank_order: Floats) -> Floats:
    """Return the distance of neighbouring stages of a pipeline."""
    return tensor * context * np.where(rank_order >= 1, 1.0, data)


@term("1", "stages of that stride in a domain", _ORDER)
def stages_per_domain(pipeline: Floats, stage_stride: Floats, domain_gpus: Floats) -> Floats:
    """Return how many stages of one pipeline share an NVLink domain."""
    return ranks_per_domain(pipeline, stage_stride, domain_gpus)


@term("1", "(ceil(p / stages in a domain) - 1) / (p - 1)", _ORDER)
def hop_share_across(pipeline: Floats, stages_per_domain: Floats) -> Floats:
    """Return the share of pipeline hops that leave the NVLink domain."""
    hops = np.maximum(pipeline - 1.0, 1.0)
    return np.where(pipeline > 1.0, (np.ceil(pipeline / stages_per_domain) - 1.0) / hops, 0.0)


@term("1", "data x context", _ORDER)
def gradient_ranks(data: Floats, context: Floats) -> Floats:
    """Return the ranks that hold the same dense parameters of a stage."""
    return data * context


# ------------------------------------------------------------------------------------------------ spans


@term("1", "t c", _ORDER)
def context_span(tensor: Floats, context: Floats) -> Floats:
    """Return the GPUs from the first to the last rank of a context group."""
    return tensor * context


@term("1", "expert x stride", _ORDER)
def expert_span(expert: Floats, expert_stride: Floats) -> Floats:
    """Return the GPUs from the first to the last rank of an expert group."""
    return expert * expert_stride


@term("1", "replicas x stride", _ORDER)
def expert_replica_span(expert_replicas: Floats, expert_replica_stride: Floats) -> Floats:
    """Return the GPUs from the first to the last rank that holds the same experts."""
    return expert_replicas * expert_replica_stride


@term("1", "d x stride; t c where there is one replica", _ORDER)
def gradient_span(data: Floats, data_stride: Floats, context_span: Floats) -> Floats:
    """Return the GPUs from the first to the last rank of a gradient group."""
    return np.where(data > 1.0, data * data_stride, context_span)


@term("1", "p x stride", _ORDER)
def pipeline_span(pipeline: Floats, stage_stride: Floats) -> Floats:
    """Return the GPUs from the first to the last stage of a pipeline."""
    return pipeline * stage_stride


TERMS = (
    tensor_local,
    context_local,
    data_stride,
    gradient_ranks,
    expert_stride,
    expert_local,
    expert_replicas,
    expert_replica_stride,
    expert_replicas_local,
    gradient_local,
    stage_stride,
    stages_per_domain,
    hop_share_across,
    context_span,
    expert_span,
    expert_replica_span,
    gradient_span,
    pipeline_span,
)
