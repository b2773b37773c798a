"""What the same layout takes with its ranks in another order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from linkwise.estimate import estimate_layouts
from linkwise.job.framework import FRAMEWORKS
from linkwise.job.legality import layout_misfits
from linkwise.job.offers import offer_of

if TYPE_CHECKING:
    from linkwise.cluster import Cluster
    from linkwise.job import Job
    from linkwise.layout import Layout, RankOrder

__all__ = ["rank_order_times_s"]


def rank_order_times_s(job: Job, cluster: Cluster, layout: Layout) -> Mapping[RankOrder, float]:
    """Return the step time of a layout under each rank order that is legal and makes a difference [s].

    Parameters
    ----------
    job, cluster
        What is run on what.
    layout
        The layout, its data degree known; its own order is among the answers, unless there is no other.

    Returns
    -------
    Mapping
        Rank order to step time [s]; empty where all orders are the same.
    """
    offer = offer_of(FRAMEWORKS[job.framework])
    each_order = [replace(layout, rank_order=order) for order in offer.rank_orders]
    legal = [each for each in each_order if not any(layout_misfits(job, each, offer))]
    if len(legal) < 2:
        return {}
    estimates = estimate_layouts(job, cluster, legal)
    return {each.layout.rank_order: each.step_time_s for each in estimates}
