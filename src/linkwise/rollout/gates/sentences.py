"""Verdicts in words, for whoever reads them at three in the morning."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from linkwise.rollout.gates.comparing import Compared
from linkwise.rollout.gates.run_values import RunValue, counting
from linkwise.rollout.metrics import Metric, find_metric, format_metric
from linkwise.rollout.plan import Against, Objective
from linkwise.rollout.verdicts import ObjectiveVerdict, Outcome

__all__ = ["Standings", "objective_sentence", "step_sentence"]

_OF = {
    Against.FLOOR: "",
    Against.BASELINE: "of the stored baseline's",
    Against.CONTROL: "of the control's",
    Against.PREDICTION: "of what the model predicts",
}
_SHOWN_REASONS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Standings:
    """What a sentence is made of, beside the verdict.

    Parameters
    ----------
    decisive
        The comparison that decided.
    obstacle
        What stands in the way of a verdict; empty for nothing.
    ours, control
        Runs of both sides.
    """

    decisive: Compared
    obstacle: str
    ours: tuple[RunValue, ...]
    control: tuple[RunValue, ...]


def objective_sentence(objective: Objective, verdict: ObjectiveVerdict, standings: Standings) -> str:
    """Return the verdict of an objective in a sentence or two.

    Parameters
    ----------
    objective
        What was judged.
    verdict
        What was found.
    standings
        What it rests on.
    """
    metric = find_metric(objective.metric)
    decisive = standings.decisive
    said = _measured(metric, decisive) if decisive.value is not None else ""
    parts = [f"{said}; {_asked(metric, decisive)}." if said else ""]
    parts.append(_consequence(verdict, standings))
    bad = counting((*standings.ours, *standings.control))
    if bad:
        more = f", and {len(bad) - _SHOWN_REASONS} other reasons" if len(bad) > _SHOWN_REASONS else ""
        parts.append(f"Runs that do not count: {'; '.join(bad[:_SHOWN_REASONS])}{more}.")
    return " ".join(part for part in parts if part)


def _measured(metric: Metric, compared: Compared) -> str:
    against = compared.comparison.against
    what = metric.words[:1].upper() + metric.words[1:]
    unit = "pairs of runs" if against is Against.CONTROL else "runs"
    if compared.value is None or not math.isfinite(compared.value):
        return f"{what} is no number in half of {compared.count} {unit} or more"
    value, low, high = (
        _shown(each, metric, against) for each in (compared.value, compared.low, compared.high)
    )
    of = f" {_OF[against]}" if _OF[against] else ""
    return f"{what} is {value}{of} (interval {low} to {high}, {compared.count} {unit})"


def _asked(metric: Metric, compared: Compared) -> str:
    comparison = compared.comparison
    word = "at least" if comparison.is_least else "at most"
    return f"asked is {word} {_shown(comparison.bar, metric, comparison.against)}"


def _shown(value: float | None, metric: Metric, against: Against) -> str:
    if value is None or not math.isfinite(value):
        return "no number"
    return format_metric(value, metric) if against is Against.FLOOR else f"{100 * value:.4g} %"


def _consequence(verdict: ObjectiveVerdict, standings: Standings) -> str:
    """Return what follows, in words."""
    if standings.obstacle:
        return f"It cannot be judged: {standings.obstacle}."
    if verdict.outcome is Outcome.PASS:
        return "All of the interval clears the bar."
    if verdict.outcome is Outcome.FAIL:
        return "All of the interval misses the bar."
    if not verdict.executed:
        return "Nothing was measured."
    missing = standings.decisive.lack
    why = f"There are {missing}." if missing else "The bar lies inside the interval: it cannot be told yet."
    if verdict.can_decide_later:
        return f"{why} More runs may decide."
    return why.replace(" yet", "") + " No more runs are planned."


def step_sentence(
    step: str, outcome: Outcome, must: Sequence[ObjectiveVerdict], to_approve: Sequence[str]
) -> str:
    """Return the verdict of a step in a sentence.

    Parameters
    ----------
    step
        Its name.
    outcome
        What was found.
    must
        Verdicts of what must hold.
    to_approve
        Names of what should hold and does not pass.
    """
    if not must:
        return f"{step}: no data, for nothing in it must hold."
    open_names = [each.objective for each in must if each.outcome is not Outcome.PASS]
    if outcome is Outcome.PASS:
        every = f"all {len(must)} objectives that must hold do"
        count = "the one objective that must hold does" if len(must) == 1 else every
        text = f"{step}: pass, {count}."
    else:
        because = ", ".join(each.objective for each in must if each.outcome is outcome)
        rest = [name for name in open_names if name not in because.split(", ")]
        text = f"{step}: {outcome}, because of {because}" + (
            f"; open too: {', '.join(rest)}." if rest else "."
        )
    if to_approve:
        text += f" Somebody must approve {', '.join(to_approve)}."
    return text
