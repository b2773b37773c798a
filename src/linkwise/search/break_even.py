"""Break-even: what the faster of two clusters may cost before a token costs as much as on the slower."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from linkwise.estimate.money import cluster_bill

if TYPE_CHECKING:
    from linkwise.estimate.money import ClusterBill
    from linkwise.search.comparison import Contender

__all__ = ["BreakEven", "break_even"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakEven:
    """What the faster of two clusters may cost.

    Parameters
    ----------
    faster, slower
        Which is which, GPU for GPU, time that does not move training on left out where both state failures
        and checkpoints; of equals the second is called faster.
    price_ratio
        How many times the price of a GPU of the slower one of the faster may cost, at least 1 [1].
    slower_usd_per_gpu_s
        What a GPU of the slower one costs, everything included that is priced [USD/s]; ``None`` without its
        prices.
    faster_usd_per_gpu_s
        The same of the faster one.
    faster_fabric_usd
        What the fabric of the faster one costs to buy, as far as nodes in use pay for it [USD]; ``None``
        where it has no price.
    most_fabric_usd
        What it may cost, all else as priced, until tokens cost the same [USD]; below zero where no price of
        the fabric makes up for the rest.
    """

    faster: Contender
    slower: Contender
    price_ratio: float
    slower_usd_per_gpu_s: float | None
    faster_usd_per_gpu_s: float | None
    faster_fabric_usd: float | None = None
    most_fabric_usd: float | None = None

    @property
    def most_usd_per_gpu_s(self) -> float | None:
        """Return the price of a GPU of the faster one at which tokens cost the same [USD/s]."""
        return None if self.slower_usd_per_gpu_s is None else self.price_ratio * self.slower_usd_per_gpu_s


def break_even(first: Contender, second: Contender) -> BreakEven | None:
    """Return what the faster of two clusters may cost; ``None`` where nothing fits one of them.

    Parameters
    ----------
    first, second
        Clusters with their best layouts for the same job.

    Notes
    -----
    A step costs GPUs x price of a GPU-second x step time / goodput and has the same tokens on both, so
    tokens cost the same where the prices are to each other as GPUs x step time / goodput of the slower to
    that of the faster. Each dollar of the price of a fabric costs (1 - residual + spares) / lifetime +
    support in a time.
    """
    if first.gpu_s_per_step is None or second.gpu_s_per_step is None:
        return None
    bills = (cluster_bill(first.cluster), cluster_bill(second.cluster))
    stated = all(each is not None and each.goodput is not None for each in bills)
    one, two = (
        each / (bill.goodput_fraction if stated and bill is not None else 1.0)
        for each, bill in zip((first.gpu_s_per_step, second.gpu_s_per_step), bills, strict=True)
    )
    faster, slower = (first, second) if one < two else (second, first)
    of_faster, of_slower = bills if one < two else bills[::-1]
    ratio = max(one, two) / min(one, two)
    slower_usd, faster_usd = _per_gpu(slower, of_slower), _per_gpu(faster, of_faster)
    fabric = None if of_faster is None or not of_faster.fabric_usd else of_faster.fabric_usd
    most = None if slower_usd is None else ratio * slower_usd * faster.cluster.gpus
    return BreakEven(
        faster=faster,
        slower=slower,
        price_ratio=ratio,
        slower_usd_per_gpu_s=slower_usd,
        faster_usd_per_gpu_s=faster_usd,
        faster_fabric_usd=fabric,
        most_fabric_usd=_most_fabric(of_faster, most),
    )


def _per_gpu(contender: Contender, bill: ClusterBill | None) -> float | None:
    return None if bill is None else bill.usd_per_s / contender.cluster.gpus


def _most_fabric(bill: ClusterBill | None, most_usd_per_s: float | None) -> float | None:
    """Return the price of a fabric at which a cluster costs so much [USD]; ``None`` where it has no price."""
    if bill is None or most_usd_per_s is None or not bill.fabric_usd:
        return None
    return bill.fabric_usd + (most_usd_per_s - bill.usd_per_s) / bill.fabric_usd_per_s_of_usd
