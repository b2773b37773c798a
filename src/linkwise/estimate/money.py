"""What a cluster costs while it trains, and what its steps, tokens and runs cost with it.

Not here: the terms (`cost_terms`, `goodput`, `energy`), the columns they read (`cost_inputs`), the words of a
line (`cost_lines`), and which layout is cheapest (`search`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from linkwise.errors import InputError
from linkwise.estimate import cost_terms, energy, goodput
from linkwise.estimate.columns import Evaluation, Table
from linkwise.estimate.cost_inputs import CostInputs, cost_inputs, fabric_family, fabric_inputs
from linkwise.estimate.cost_lines import CostLine, cost_lines, fabric_lines, price_words
from linkwise.estimate.goodput import LEAST_GOODPUT
from linkwise.estimate.term import Term, term_table
from linkwise.units import format_quantity

if TYPE_CHECKING:
    from linkwise.cluster import Cluster
    from linkwise.cluster.prices import Prices
    from linkwise.job import Job
    from linkwise.network.built_fabric import BuiltFabric

__all__ = [
    "BILL_TERMS",
    "Bill",
    "ClusterBill",
    "Goodput",
    "bill_assumptions",
    "bill_evaluation",
    "bill_targets",
    "bills",
    "cluster_bill",
    "whole_fabric_lines",
]

BILL_TERMS: Mapping[str, Term] = term_table(energy.TERMS, goodput.TERMS, cost_terms.TERMS)
"""Every term of a bill by name; the step time is a column."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """Energy and money of one layout.

    Parameters
    ----------
    energy_j_per_step
        Energy of the machines for one optimizer step, without cooling [J]; ``None`` where their power is not
        known.
    energy_j_per_token
        The same for one token [J/token].
    cost_usd_per_step
        What a step costs that nothing interrupts [USD].
    cost_usd_per_token
        What a token costs that counts [USD/token]: work done again is paid as well.
    cost_usd_per_run
        What the whole training costs [USD]; ``None`` where its length is not stated.
    """

    energy_j_per_step: float | None
    energy_j_per_token: float | None
    cost_usd_per_step: float
    cost_usd_per_token: float
    cost_usd_per_run: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Goodput:
    """Where the time of a run goes beside training.

    Parameters
    ----------
    fraction
        Share of the time that moves training on [1].
    writing_fraction, redone_fraction, restarting_fraction
        Shares that go into checkpoints, into work that is done again, and into restarts [1].
    interruptions_per_s
        How often training is interrupted [1/s].
    interval_s
        Training time from one checkpoint to the next [s].
    best_interval_s
        That which wastes least [s]; ``None`` where nothing interrupts.
    """

    fraction: float
    writing_fraction: float
    redone_fraction: float
    restarting_fraction: float
    interruptions_per_s: float
    interval_s: float
    best_interval_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterBill:
    """What a cluster in use costs, line by line; the same for every layout.

    Parameters
    ----------
    lines
        What is paid; they sum to `usd_per_s`.
    usd_per_s
        For all GPUs in use [USD/s].
    not_priced
        What costs something that is not known, in a few words each; the bill is too low by it.
    goodput
        Where the time goes; ``None`` where checkpoints are not stated.
    fabric_usd
        What the fabric costs to buy, as far as nodes in use pay for it [USD]; 0 where it is not bought.
    fabric_usd_per_s_of_usd
        What each dollar of that costs: loss in value, spares and support [1/s].
    """

    lines: tuple[CostLine, ...]
    usd_per_s: float
    not_priced: tuple[str, ...]
    goodput: Goodput | None
    fabric_usd: float
    fabric_usd_per_s_of_usd: float

    @property
    def goodput_fraction(self) -> float:
        """Return the share of the time that moves training on; 1 where checkpoints are not stated."""
        return 1.0 if self.goodput is None else self.goodput.fraction


def bills(job: Job, cluster: Cluster, step_times_s: Sequence[float]) -> tuple[Bill, ...] | None:
    """Return the bill of each layout, in the same order; ``None`` where no prices are given.

    Parameters
    ----------
    job, cluster
        What is run on what; the cluster has the prices.
    step_times_s
        Step time of each layout [s].

    Raises
    ------
    InputError
        If training is interrupted so often that no run ends.
    """
    if cluster.prices is None:
        return None
    inputs = cost_inputs(cluster, cluster.prices)
    evaluation = bill_evaluation(job, inputs, step_times_s)
    _check_goodput(cluster.prices, evaluation)
    found = {name: evaluation[name] for name in bill_targets(job, inputs)}

    def value(name: str, row: int) -> float | None:
        return float(found[name][row]) if name in found else None

    return tuple(
        Bill(
            energy_j_per_step=value("energy_j_per_step", row),
            energy_j_per_token=value("energy_j_per_token", row),
            cost_usd_per_step=float(found["cost_usd_per_step"][row]),
            cost_usd_per_token=float(found["cost_usd_per_token"][row]),
            cost_usd_per_run=value("cost_usd_per_run", row),
        )
        for row in range(len(step_times_s))
    )


def cluster_bill(cluster: Cluster) -> ClusterBill | None:
    """Return what a cluster in use costs, line by line; ``None`` where no prices are given.

    Parameters
    ----------
    cluster
        What there is, with its prices.

    Raises
    ------
    InputError
        If training is interrupted so often that no run ends.
    """
    prices = cluster.prices
    if prices is None:
        return None
    inputs = cost_inputs(cluster, prices)
    evaluation = _evaluated(inputs.columns)
    _check_goodput(prices, evaluation)
    columns = inputs.columns
    written_off = (1.0 - columns["residual_fraction"] + columns["spares_fraction"]) / columns["lifetime_s"]
    return ClusterBill(
        lines=cost_lines(inputs, evaluation),
        usd_per_s=evaluation.fixed("cost_usd_per_s"),
        not_priced=inputs.not_priced,
        goodput=None if prices.checkpoints is None else _goodput(evaluation),
        fabric_usd=columns["fabric_usd"],
        fabric_usd_per_s_of_usd=written_off + columns["support_fraction_per_s"],
    )


def whole_fabric_lines(cluster: Cluster, built: BuiltFabric, *, gpus: int) -> tuple[CostLine, ...]:
    """Return what a fabric costs, line by line, all its nodes wired; empty where no prices are given.

    Parameters
    ----------
    cluster, built
        What there is, with its prices, and its fabric.
    gpus
        GPUs of all nodes on the fabric.
    """
    prices = cluster.prices
    if prices is None:
        return ()
    columns = fabric_inputs(cluster, prices, built, gpus=gpus)
    return fabric_lines(columns, fabric_family(cluster, prices), _evaluated(columns))


def bill_assumptions(cluster: Cluster) -> tuple[str, ...]:
    """Return what bills take for granted, in sentences for a reader; none where no prices are given.

    Parameters
    ----------
    cluster
        The cluster with its prices.
    """
    prices = cluster.prices
    if prices is None:
        return ()
    words = [f"prices of {prices.date}: {price_words(prices)}"]
    missing = cost_inputs(cluster, prices).not_priced
    if missing:
        words.append(f"money: not priced, and so not counted: {'; '.join(missing)}")
    if prices.hardware is not None or prices.staff is not None:
        words.append("money: the cluster trains all the time; hours in which it idles are on no bill")
    if prices.checkpoints is not None:
        words.append(
            "goodput: parts fail at constant rates; the first failure interrupts training (Daly 2006)"
        )
    return (*words, energy.energy_assumption(cluster))


def bill_targets(job: Job, inputs: CostInputs) -> tuple[str, ...]:
    """Return the terms that a bill shows, as far as they are known.

    Parameters
    ----------
    job
        What is run.
    inputs
        What the bill is computed from.
    """
    known = ("energy_j_per_step", "energy_j_per_token") if inputs.draw is not None else ()
    run = ("cost_usd_per_run",) if job.steps is not None else ()
    return (*known, "cost_usd_per_step", "cost_usd_per_token", *run)


def bill_evaluation(job: Job, inputs: CostInputs, step_times_s: Sequence[float]) -> Evaluation:
    """Return the terms of the bills of layouts, one row for each.

    Parameters
    ----------
    job
        What is run.
    inputs
        What the bill is computed from.
    step_times_s
        Step time of each layout [s].
    """
    steps = {} if job.steps is None else {"steps": job.steps}
    return _evaluated({**inputs.columns, "tokens_per_step": job.tokens_per_step, **steps}, step_times_s)


def _evaluated(fixed: Mapping[str, float], step_times_s: Sequence[float] = (1.0,)) -> Evaluation:
    table = Table(
        rows=len(step_times_s),
        fixed={name: np.array([value], dtype=np.float64) for name, value in fixed.items()},
        varying={"step_time_s": np.array(step_times_s, dtype=np.float64)},
    )
    return Evaluation(table, BILL_TERMS)


def _goodput(evaluation: Evaluation) -> Goodput:
    interval, fraction = evaluation.fixed("checkpoint_interval_s"), evaluation.fixed("goodput_fraction")

    def share(name: str) -> float:
        return fraction * evaluation.fixed(name) / interval

    return Goodput(
        fraction=fraction,
        writing_fraction=share("checkpoint_write_s"),
        redone_fraction=share("redone_s_per_interval"),
        restarting_fraction=share("restarting_s_per_interval"),
        interruptions_per_s=evaluation.fixed("interruptions_per_s"),
        interval_s=interval,
        best_interval_s=evaluation.fixed("best_interval_s") or None,
    )


def _check_goodput(prices: Prices, evaluation: Evaluation) -> None:
    """Refuse failures that no run survives: a price of a token would be a number without meaning."""
    if evaluation.fixed("goodput_fraction") >= LEAST_GOODPUT:
        return
    rate = evaluation.fixed("interruptions_per_s")
    often = f"interrupted every {format_quantity(1.0 / rate, 's')} and " if rate else ""
    interval = format_quantity(evaluation.fixed("checkpoint_interval_s"), "s")
    write = format_quantity(evaluation.fixed("checkpoint_write_s"), "s")
    raise InputError(
        f"{prices.path or 'prices'}: training is {often}saved every {interval} in {write}, so that no run "
        "ends; check failures.mtbf (of one part), failures.restart and checkpoint"
    )
