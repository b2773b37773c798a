"""The bill of a cluster line by line, as it is published in `plan`, `explain` and `compare`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field

if TYPE_CHECKING:
    from linkwise.cluster import Cluster
    from linkwise.estimate.money import Goodput
    from linkwise.job import Job

__all__ = ["LOST", "CostLineResult", "CostResult", "GoodputResult", "cost_result"]

_HOUR_S = 3600.0
_DAY_S = 86400.0
_MILLION = 1e6

LOST = "lost time"
"""The line of what goodput costs: time that is paid and does not move training on."""


class _Result(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class CostLineResult(_Result):
    """One line of a bill."""

    name: str
    usd_per_hour: float | None = Field(
        description="Of all GPUs in use; null for lost time, which is paid in the other lines."
    )
    usd_per_gpu_hour: float | None
    usd_per_million_tokens: float | None = Field(
        description="Of the first layout, tokens that count; null where no layout fits."
    )
    arithmetic: str = Field(description="How it came about.")


class GoodputResult(_Result):
    """Where the time of a run goes; the four shares sum to 1."""

    fraction: float = Field(description="Moves training on.")
    writing_fraction: float = Field(description="Checkpoints.")
    redone_fraction: float = Field(description="Work that was lost, done again.")
    restarting_fraction: float
    interruptions_per_day: float
    checkpoint_interval_s: float
    best_interval_s: float | None = Field(description="Wastes least; null where nothing interrupts.")


class CostResult(_Result):
    """What a cluster costs while it trains; the lines sum to the totals."""

    lines: list[CostLineResult]
    usd_per_hour: float
    usd_per_gpu_hour: float
    usd_per_million_tokens: float | None = Field(description="Null where no layout fits.")
    not_priced: list[str] = Field(description="What costs something that is not known: the bill lacks it.")
    goodput: GoodputResult | None = Field(description="Null where checkpoints are not stated.")


def cost_result(job: Job, cluster: Cluster, step_time_s: float | None) -> CostResult | None:
    """Return the bill of a cluster as it is published; ``None`` where no prices are given.

    Parameters
    ----------
    job, cluster
        What is run on what.
    step_time_s
        Of the layout whose tokens are priced [s]; ``None`` where none fits.
    """
    from linkwise.estimate.money import cluster_bill

    bill = cluster_bill(cluster)
    if bill is None:
        return None
    s_per_million = None if step_time_s is None else step_time_s * _MILLION / job.tokens_per_step
    lines = [
        CostLineResult(
            name=line.name,
            usd_per_hour=line.usd_per_s * _HOUR_S,
            usd_per_gpu_hour=line.usd_per_s * _HOUR_S / cluster.gpus,
            usd_per_million_tokens=None if s_per_million is None else line.usd_per_s * s_per_million,
            arithmetic=line.arithmetic,
        )
        for line in bill.lines
    ]
    whole = None if s_per_million is None else bill.usd_per_s * s_per_million / bill.goodput_fraction
    if bill.goodput is not None:
        lines.append(_lost(bill.goodput, whole))
    return CostResult(
        lines=lines,
        usd_per_hour=bill.usd_per_s * _HOUR_S,
        usd_per_gpu_hour=bill.usd_per_s * _HOUR_S / cluster.gpus,
        usd_per_million_tokens=whole,
        not_priced=list(bill.not_priced),
        goodput=None if bill.goodput is None else _goodput(bill.goodput),
    )


def _lost(goodput: Goodput, whole: float | None) -> CostLineResult:
    lost = 1.0 - goodput.fraction
    share = f"{100 * lost:.3g} % of the time"
    return CostLineResult(
        name=LOST,
        usd_per_hour=None,
        usd_per_gpu_hour=None,
        usd_per_million_tokens=None if whole is None else whole * lost,
        arithmetic=f"{share} writes checkpoints, does lost work again or restarts; the lines above / "
        f"{goodput.fraction:.4g} - the lines above",
    )


def _goodput(goodput: Goodput) -> GoodputResult:
    return GoodputResult(
        fraction=goodput.fraction,
        writing_fraction=goodput.writing_fraction,
        redone_fraction=goodput.redone_fraction,
        restarting_fraction=goodput.restarting_fraction,
        interruptions_per_day=goodput.interruptions_per_s * _DAY_S,
        checkpoint_interval_s=goodput.interval_s,
        best_interval_s=goodput.best_interval_s,
    )
