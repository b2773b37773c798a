"""Where each rank of a layout sits: its node, its GPU, and its place in every group."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from linkwise.layout.layout import Layout, RankOrder

__all__ = ["rank_places"]

Integers = NDArray[np.int64]


def rank_places(layout: Layout, gpus_per_node: int) -> Mapping[str, Integers]:
    """Return the place of each rank, ranks counted node by node as launchers do.

    Parameters
    ----------
    layout
        A layout whose data degree is known.
    gpus_per_node
        GPUs in use of each node.

    Returns
    -------
    Mapping
        ``rank``, ``node`` and ``gpu`` (of the node), then ``tensor``, ``context``, ``expert``, ``data`` and
        ``pipeline``: the rank's number in its group of the kind, each of shape (ranks,), counted from 0.
        The ranks of an expert group follow one another among the ranks of a stage, in steps of the tensor
        degree, or of one where the experts are spread over the tensor ranks too.

    Notes
    -----
    The order of groups is Megatron's: ``tp-cp-ep-dp-pp``, or ``tp-cp-pp-dp`` with its option
    ``--use-tp-pp-dp-mapping`` (Narayanan et al., Efficient Large-Scale Language Model Training, 2021).
    """
    data = layout.data or 1
    rank = np.arange(layout.model_parallel * data)
    tensor, rest = rank % layout.tensor, rank // layout.tensor
    context, rest = rest % layout.context, rest // layout.context
    if layout.rank_order is RankOrder.TENSOR_CONTEXT_PIPELINE_DATA:
        pipeline, replica = rest % layout.pipeline, rest // layout.pipeline
    else:
        replica, pipeline = rest % data, rest // data
    in_stage = (replica * layout.context + context) * layout.tensor + tensor
    cut = layout.tensor if layout.expert <= data * layout.context else 1
    return {
        "rank": rank,
        "node": rank // gpus_per_node,
        "gpu": rank % gpus_per_node,
        "tensor": tensor,
        "context": context,
        "expert": in_stage // cut % layout.expert,
        "data": replica,
        "pipeline": pipeline,
    }
