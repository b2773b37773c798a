"""Simulated gates and the bars they are held to: the objective is 95 % of what the candidate is compared with."""

from dataclasses import dataclass

from linkwise.rollout.gates.power import GatePower, Noise, gate_power
from linkwise.rollout.plan import Against
from tests.rollout.making import at_least, objective, rollout

BAR, HEALTHY, DEGRADED = 0.95, 1.0, 0.92
QUIET, NOISY = Noise(spread_fraction=0.01), Noise(spread_fraction=0.03)
QUIET_SLOW = Noise(spread_fraction=0.01, slow_fraction=0.1, slow_loss_fraction=0.12)
NOISY_SLOW = Noise(spread_fraction=0.03, slow_fraction=0.1, slow_loss_fraction=0.12)
SHIFTED = Noise(spread_fraction=0.03, shift_fraction=0.03)
SHIFTED_SLOW = Noise(spread_fraction=0.03, slow_fraction=0.1, slow_loss_fraction=0.12, shift_fraction=0.03)
TRIALS = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerCase:
    """One simulated gate: what is true, and how often it may or must be said to pass or fail."""

    against: Against
    noise: Noise
    words: str
    truth: float
    most_passed: float | None = None
    least_passed: float | None = None
    most_failed: float | None = None
    stored: int = 15


def _pair(against, noise, words, *, least_passed, most_passed=0.02):
    yield PowerCase(
        against=against, noise=noise, words=words, truth=HEALTHY, least_passed=least_passed, most_failed=0.03
    )
    yield PowerCase(against=against, noise=noise, words=words, truth=DEGRADED, most_passed=most_passed)


CASES = tuple(
    case
    for against in (Against.FLOOR, Against.BASELINE, Against.CONTROL)
    for noise, words, least in (
        (QUIET, "noise 1 %", 0.90),
        (QUIET_SLOW, "noise 1 %, slow runs", 0.80),
        (NOISY, "noise 3 %", 0.80),
        (NOISY_SLOW, "noise 3 %, slow runs", 0.80),
    )
    for case in _pair(against, noise, words, least_passed=least)
) + tuple(
    case
    for noise, words in ((SHIFTED, "noise 3 %, days shift 3 %"), (SHIFTED_SLOW, "the same, slow runs"))
    for case in _pair(Against.CONTROL, noise, words, least_passed=0.80, most_passed=0.01)
)


def simulated(case, *, trials, seed=20, repeats=5) -> GatePower:
    bar = at_least(BAR, case.against)
    goal = objective(bar)
    plan = rollout(goal, repeats=repeats, most_repeats=15)
    return gate_power(
        plan, goal, bar, truth=case.truth, noise=case.noise, trials=trials, seed=seed, stored=case.stored
    )
