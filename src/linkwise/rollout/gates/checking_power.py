"""Whether the gates of a rollout can tell a good change from a bad one, with its runs and this noise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from statistics import median

from linkwise.evidence.median import LEAST_SAMPLES
from linkwise.evidence.outliers import robust_sigma
from linkwise.rollout.gates.power import GatePower, Noise, gate_power
from linkwise.rollout.gates.remark import Level, Remark
from linkwise.rollout.gates.run_values import values_of
from linkwise.rollout.measuring.recorded_runs import RecordedRuns
from linkwise.rollout.metrics import Scale, find_metric
from linkwise.rollout.plan import Against, Comparison, Objective, Rollout, Severity
from linkwise.rollout.runs import Side, StepRun

__all__ = [
    "ASSUMED_NOISE_FRACTION",
    "ObjectivePower",
    "StatedNoise",
    "not_simulated",
    "objective_powers",
    "power_remarks",
    "recorded_noise",
]

ASSUMED_NOISE_FRACTION = 0.03
"""Spread between runs where nobody says another: assumed, for times on a fabric that is shared [1]."""
_MOST_TRIALS, _LEAST_TRIALS = 500, 100
_SIMULATED_RUNS = 15_000
"""Runs of all trials of a bar, at most: a check is waited for [1]."""
_SEED = 1
_LEAST_PASSED = 0.8
_MOST_MISSED = 0.02
_MOST_FAILED = 0.03
"""Of healthy changes that pass, bad ones that do, healthy ones that fail; a worse gate is told of [1]."""
_TRIED_REPEATS = (20, 30, 45, 60)
_TRIED_TRIALS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedNoise:
    """Spread between runs of an objective.

    Parameters
    ----------
    fraction
        Standard deviation of a run over its mean [1].
    basis
        ``stated``, ``recorded`` or ``assumed``.
    """

    fraction: float
    basis: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectivePower:
    """How often one bar of an objective says what.

    Parameters
    ----------
    objective
        Its name.
    key
        Of the bar in the document.
    comparison
        The bar.
    severity
        Of the objective.
    noise
        Between runs.
    healthy_truth, bad_truth
        What is simulated: a ratio to what it is compared with, or to the bar for floors and predictions.
    healthy, bad
        How often that passes and fails.
    enough_repeats
        The least of a few numbers of runs with which a healthy change would pass often enough; ``None`` where
        it does already, or with none of them.
    """

    objective: str
    key: str
    comparison: Comparison
    severity: Severity
    noise: StatedNoise
    healthy_truth: float
    bad_truth: float
    healthy: GatePower
    bad: GatePower
    enough_repeats: int | None = None

    @property
    def is_weak(self) -> bool:
        """Return whether a healthy change passes too seldom."""
        return self.healthy.passed < _LEAST_PASSED * self.healthy.trials


def objective_powers(
    rollout: Rollout, *, noise: Mapping[str, StatedNoise], assumed: StatedNoise
) -> tuple[ObjectivePower, ...]:
    """Return how often each bar of a rollout says what.

    Parameters
    ----------
    rollout
        As its document says.
    noise
        By the name of the objective.
    assumed
        Of all others. Plain numbers, such as a loss, have none that could be assumed: they are left out.

    Notes
    -----
    Against a control or a baseline a healthy change is as good as that, and a bad one misses it by twice as
    much as the bar allows. Where a healthy run lies above a floor or a prediction nobody knows before: there
    the two lie on either side of the bar, by twice the noise.
    """
    found = []
    for place, objective in enumerate(rollout.objectives):
        here = noise.get(objective.name, assumed)
        if objective.name not in noise and find_metric(objective.metric).scale is not Scale.QUANTITY:
            continue
        for order, comparison in enumerate(objective.comparisons):
            if comparison.bar > 0:
                key = f"objectives.{place}.compare.{order}"
                found.append(_power(rollout, objective, comparison, here, key))
    return tuple(found)


def _power(
    rollout: Rollout, objective: Objective, comparison: Comparison, noise: StatedNoise, key: str
) -> ObjectivePower:
    healthy, bad = _truths(comparison, noise.fraction)
    at_bar = comparison if _is_to_healthy(comparison) else replace(comparison, bar=1.0)

    most = rollout.sampling.most_repeats
    at_first = max(_LEAST_TRIALS, min(_MOST_TRIALS, _SIMULATED_RUNS // most))

    def simulated(truth: float, plan: Rollout = rollout, trials: int = at_first) -> GatePower:
        spread = Noise(spread_fraction=noise.fraction)
        return gate_power(plan, objective, at_bar, truth=truth, noise=spread, trials=trials, seed=_SEED)

    found = ObjectivePower(
        objective=objective.name,
        key=key,
        comparison=comparison,
        severity=objective.severity,
        noise=noise,
        healthy_truth=healthy,
        bad_truth=bad,
        healthy=simulated(healthy),
        bad=simulated(bad),
    )
    if not found.is_weak:
        return found
    for repeats in _TRIED_REPEATS:
        if repeats > rollout.sampling.most_repeats:
            more = replace(rollout, sampling=replace(rollout.sampling, most_repeats=repeats))
            if simulated(healthy, more, _TRIED_TRIALS).passed >= _LEAST_PASSED * _TRIED_TRIALS:
                return replace(found, enough_repeats=repeats)
    return found


def _is_to_healthy(comparison: Comparison) -> bool:
    return comparison.against in (Against.CONTROL, Against.BASELINE)


def _truths(comparison: Comparison, noise_fraction: float) -> tuple[float, float]:
    """Return the truth of a healthy change and of a bad one."""
    if _is_to_healthy(comparison):
        room = 2 * abs(1 - comparison.bar)
        return 1.0, max(0.01, 1 - room) if comparison.is_least else 1 + room
    room = 2 * noise_fraction
    return (1 + room, max(0.01, 1 - room)) if comparison.is_least else (max(0.01, 1 - room), 1 + room)


def not_simulated(rollout: Rollout, noise: Mapping[str, StatedNoise]) -> Iterator[Remark]:
    """Yield notes on objectives that are left out, for nobody can assume how much their runs differ.

    Parameters
    ----------
    rollout
        As its document says.
    noise
        By the name of the objective, where it is known.
    """
    for place, objective in enumerate(rollout.objectives):
        is_plain = find_metric(objective.metric).scale is not Scale.QUANTITY
        if is_plain and objective.name not in noise and any(each.bar > 0 for each in objective.comparisons):
            text = f"not simulated: say how much its runs differ, such as --noise {objective.name}='0.1 %'"
            yield Remark(level=Level.NOTE, key=f"objectives.{place}", text=text)


def power_remarks(powers: Sequence[ObjectivePower]) -> Iterator[Remark]:
    """Yield what is wrong with the power of gates.

    Parameters
    ----------
    powers
        Of all bars.
    """
    for each in powers:
        if each.is_weak:
            advice = (
                f"most_repeats: {each.enough_repeats} would do"
                if each.enough_repeats
                else "measure longer, so that runs differ less, or ask for less"
            )
            share = _of_100(each.healthy.passed, each.healthy)
            text = f"a healthy change passes in {share} of 100 cases only; {advice}"
            yield Remark(level=Level.WARNING, key=each.key, text=text)
        if each.bad.passed > _MOST_MISSED * each.bad.trials:
            text = (
                f"a bad change passes in {_of_100(each.bad.passed, each.bad)} of 100 cases; plan more repeats"
            )
            yield Remark(level=Level.WARNING, key=each.key, text=text)
        if each.healthy.failed > _MOST_FAILED * each.healthy.trials:
            text = f"a healthy change fails in {_of_100(each.healthy.failed, each.healthy)} of 100 cases"
            yield Remark(level=Level.WARNING, key=each.key, text=text)


def _of_100(count: int, power: GatePower) -> str:
    return f"{100 * count / power.trials:.3g}"


def recorded_noise(rollout: Rollout, records: RecordedRuns) -> dict[str, StatedNoise]:
    """Return the spread between recorded runs of each objective that has five or more of one side in a step.

    Parameters
    ----------
    rollout
        Whose objectives.
    records
        The runs. Where steps or sides differ the widest counts.

    Notes
    -----
    An objective that is compared with the control has the spread of its pairs over the root of two: what
    moves both of a pair is no noise of theirs.
    """
    found: dict[str, StatedNoise] = {}
    for objective in rollout.objectives:
        spreads = [
            spread
            for runs in (*records.by_step.values(), records.baseline)
            for values, per_run in _samples(objective, runs)
            if len(values) >= LEAST_SAMPLES and (spread := _spread_fraction(values, per_run)) is not None
        ]
        if spreads:
            found[objective.name] = StatedNoise(fraction=max(spreads), basis="recorded")
    return found


def _samples(objective: Objective, runs: Sequence[StepRun]) -> Iterator[tuple[list[float], float]]:
    """Yield what is spread, and how much of its spread is that of one run."""
    sides = {side: values_of(objective, runs, side=side) for side in Side}
    if any(each.against is Against.CONTROL for each in objective.comparisons):
        pairs = zip(sides[Side.CANDIDATE], sides[Side.CONTROL], strict=False)
        yield [ours.value / theirs.value for ours, theirs in pairs if ours.value and theirs.value], sqrt(0.5)
    else:
        for values in sides.values():
            yield [each.value for each in values if each.value is not None], 1.0


def _spread_fraction(values: Sequence[float], per_run: float) -> float | None:
    """Return the spread over the median, from the median absolute deviation [1]."""
    middle = median(values)
    if not 0 < middle < float("inf"):
        return None
    return per_run * robust_sigma(values) / middle
