"""Break-even: what the faster of two clusters may cost before a token costs as much as on the slower."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from linkwise.estimate.money import bills

if TYPE_CHECKING:
    from linkwise.job import Job
    from linkwise.search.comparison import Contender

__all__ = ["BreakEven", "break_even", "gpu_usd_per_s"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakEven:
    """What the faster of two clusters may cost.

    Parameters
    ----------
    faster, slower
        Which is which, GPU for GPU; of equals the second is called faster.
    price_ratio
        How many times the price of a GPU of the slower one of the faster may cost, at least 1 [1].
    slower_usd_per_gpu_s
        What a GPU of the slower one costs, electricity included [USD/s]; ``None`` without its prices.
    faster_usd_per_gpu_s
        The same of the faster one.
    """

    faster: Contender
    slower: Contender
    price_ratio: float
    slower_usd_per_gpu_s: float | None
    faster_usd_per_gpu_s: float | None

    @property
    def most_usd_per_gpu_s(self) -> float | None:
        """Return the price of a GPU of the faster one at which tokens cost the same [USD/s]."""
        return None if self.slower_usd_per_gpu_s is None else self.price_ratio * self.slower_usd_per_gpu_s


def break_even(job: Job, first: Contender, second: Contender) -> BreakEven | None:
    """Return what the faster of two clusters may cost; ``None`` where nothing fits one of them.

    Parameters
    ----------
    job
        What both run.
    first, second
        Clusters with their best layouts.

    Notes
    -----
    A step costs GPUs x price of a GPU-second x step time and has the same tokens on both, so tokens cost the
    same where the prices are to each other as GPUs x step time of the slower to that of the faster.
    """
    one, two = first.gpu_s_per_step, second.gpu_s_per_step
    if one is None or two is None:
        return None
    faster, slower = (first, second) if one < two else (second, first)
    return BreakEven(
        faster=faster,
        slower=slower,
        price_ratio=max(one, two) / min(one, two),
        slower_usd_per_gpu_s=gpu_usd_per_s(job, slower),
        faster_usd_per_gpu_s=gpu_usd_per_s(job, faster),
    )


def gpu_usd_per_s(job: Job, contender: Contender) -> float | None:
    """Return what a GPU of a cluster costs, electricity included [USD/s]; ``None`` without prices or layout.

    Parameters
    ----------
    job
        What is run.
    contender
        The cluster with its best layout.
    """
    best, gpu_s = contender.best, contender.gpu_s_per_step
    found = None if best is None else bills(job, contender.cluster, [best.step_time_s])
    if found is None or gpu_s is None:
        return None
    return found[0].cost_usd_per_step / gpu_s
