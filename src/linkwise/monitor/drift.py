"""Drift of step times: a level that rises or a spread that grows, told from noise by rank tests.

Notes
-----
The last steps (the window) are compared with those before them (the reference), as logarithms, so that noise
and shifts are relative. Four things must hold at once:

- the shift is larger than a margin that matters in practice;
- it is larger than what this job's windows do anyway: a multiple of the ninth decile of the distances between
  medians of windows that lie as far apart as window and reference;
- a rank test finds it (Mann-Whitney for the level, Mood for the spread), at a chance that is stated;
- it is steady, or it lasts. A job that is alone on its machine keeps its spread when its level moves; where
  the spread is wide or grew, other load is as likely, and such a shift is told once it lasted.

Steps that are no steps (checkpoints, evaluations, compilations, the first ones) are left out by the caller,
by their tag. Nothing is left out for being slow.

References
----------
H. B. Mann, D. R. Whitney, On a test of whether one of two random variables is stochastically larger than the
other, 1947. A. M. Mood, On the asymptotic efficiency of certain nonparametric two-sample tests, 1954. G. J.
Ross, D. K. Tasoulis, N. M. Adams, Nonparametric monitoring of data streams for changes in location and scale,
2011.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice

from linkwise.monitor.moves import Moves, median_of, spread_of

__all__ = ["FALSE_ALARMS", "Drift", "DriftKind", "DriftRule", "DriftWatch", "FalseAlarms"]

_LAG_WINDOWS = 4
"""How far apart windows are whose medians are compared for what moves anyway [1]."""
_SPREAD_SLACK = 0.3
"""How much the median spread of windows may differ from the spread of all of them: it decides only whether
that is computed [1]."""
_LEAST_SPREAD = 0.002
"""Spreads below this fraction are those of the clock that measured [1]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FalseAlarms:
    """How often healthy jobs were called otherwise.

    Parameters
    ----------
    alarms
        That were told of healthy steps [1].
    steps
        Those steps [1].
    """

    alarms: int
    steps: int

    @property
    def per_10_000_steps(self) -> float:
        """Return the rate [1]."""
        return 1e4 * self.alarms / self.steps


FALSE_ALARMS = FalseAlarms(alarms=0, steps=21_480)
"""Measured by ``tools/drift_rates.py`` on the half of the recordings that the settings were not chosen on."""


class DriftKind(StrEnum):
    """What moved."""

    LEVEL = "level"
    SPREAD = "spread"
    CREEP = "creep"
    """The level, so slowly that the reference moved with it: found against the first steps."""
    RECOVERED = "recovered"
    """The level is back where it was before the drift that was told last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftRule:
    """When a change is told.

    Parameters
    ----------
    window, reference
        Steps that are compared, and those before them [1].
    least_reference
        Steps before the window that will do while there are no more [1].
    margin_fraction
        What a level must rise by [1].
    spread_ratio
        What the spread must grow by, as a ratio [1].
    noise_factor, lasting_factor
        How many times the ninth decile of what moves anyway a change must be that is steady, and one that
        lasts [1].
    chance
        Of the rank test: how often it would find as much in steps that are alike [1].
    steady_fraction, steady_ratio
        A window is steady whose spread is no more than both, of the level and of the reference [1].
    lasting_s, lasting_steps
        How long a change must last that is not steady: both [s], [1].
    stride
        Steps between two looks [1].
    """

    window: int = 24
    reference: int = 192
    least_reference: int = 96
    margin_fraction: float = 0.02
    spread_ratio: float = 1.6
    noise_factor: float = 2.5
    lasting_factor: float = 0.5
    chance: float = 1e-8
    steady_fraction: float = 0.05
    steady_ratio: float = 2.0
    lasting_s: float = 90.0
    lasting_steps: int = 144
    stride: int = 4

    @property
    def least_steps(self) -> int:
        """Return how many steps there must be before anything can be told [1]."""
        return self.window + self.least_reference

    @property
    def most_steps(self) -> int:
        """Return how many steps are kept [1]."""
        return self.window + self.reference


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """One change that is told.

    Parameters
    ----------
    kind
        What moved.
    step
        The step at which it was told, and about where it began.
    since_step
        The first step of the window that showed it first.
    before, after
        The level [s], or the spread as a fraction of it [1].
    chance
        Of the rank test; ``nan`` for a recovery [1].
    is_steady
        Whether it was told for being steady, rather than for lasting.
    """

    kind: DriftKind
    step: int
    since_step: int
    before: float
    after: float
    chance: float
    is_steady: bool

    @property
    def ratio(self) -> float:
        """Return what is now over what was [1]."""
        return self.after / self.before


@dataclass(frozen=True, slots=True, kw_only=True)
class _Suspicion:
    """A change that is seen and not told yet, with what it is compared with: the steps before it began."""

    reference: tuple[float, ...]
    before: float
    bar: float
    steady_bar: float
    since_s: float
    since_count: int
    since_step: int


@dataclass(slots=True)
class DriftWatch:
    """The steps of a job, one after the other, and what is to be told of them.

    Parameters
    ----------
    rule
        When a change is told.
    """

    rule: DriftRule = field(default_factory=DriftRule)
    count: int = 0
    tests: int = 0
    _times: deque[float] = field(default_factory=deque)
    _first: tuple[float, ...] = ()
    _block: list[float] = field(default_factory=list)
    _levels: Moves = field(default_factory=lambda: Moves(lag=_LAG_WINDOWS))
    _spreads: Moves = field(default_factory=lambda: Moves(lag=_LAG_WINDOWS))
    _level: float = math.inf
    _first_level: float = math.inf
    _bar: float = math.inf
    _steady_bar: float = math.inf
    _suspicions: dict[DriftKind, _Suspicion] = field(default_factory=dict)
    _told: list[Drift] = field(default_factory=list)
    _clock_s: float = 0.0

    @property
    def is_ready(self) -> bool:
        """Return whether there were steps enough to tell a change."""
        return self.count >= self.rule.least_steps

    def add(self, step: int, time_s: float) -> Drift | None:
        """Take a step, and return what is to be told.

        Parameters
        ----------
        step
            Its number.
        time_s
            How long it took, above zero [s].
        """
        rule = self.rule
        value = math.log(time_s)
        self.count += 1
        self._clock_s += time_s
        self._times.append(value)
        if len(self._times) > rule.most_steps:
            self._times.popleft()
        self._block.append(value)
        told = None
        if len(self._block) == rule.window:
            told = self._end_block(step)
        if told or self.count % rule.stride or len(self._times) < rule.least_steps:
            return told
        return self._level_drift(step)

    def _level_drift(self, step: int) -> Drift | None:
        rule, found = self.rule, self._suspicions.get(DriftKind.LEVEL)
        # Most windows never rise: they are compared with the reference as it was some steps ago.
        before, bar = (self._level, self._bar) if found is None else (found.before, found.bar)
        window = sorted(islice(reversed(self._times), rule.window))
        after = (window[rule.window // 2 - 1] + window[rule.window // 2]) / 2
        if not after - before >= (0.5 if found is None else 1.0) * bar:
            self._suspicions.pop(DriftKind.LEVEL, None)
            return None
        if found is None:
            reference = list(self._times)[: -rule.window]
            before = median_of(reference)
            if after - before < bar:
                return None
            found = self._suspicion(step, reference, before=before, bar=bar, steps=rule.window)
        spread = max(spread_of(found.reference), _LEAST_SPREAD)
        is_steady = (
            after - found.before >= found.steady_bar
            and self.count - found.since_count <= 2 * rule.window + rule.stride
            and spread_of(window) <= min(rule.steady_fraction, rule.steady_ratio * spread)
        )
        return self._suspect(
            DriftKind.LEVEL,
            step,
            found,
            test=lambda: _rises(window, found.reference),
            before=math.exp(found.before),
            after=math.exp(after),
            is_steady=is_steady,
        )

    def _suspicion(
        self, step: int, reference: Sequence[float], *, before: float, bar: float, steps: int
    ) -> _Suspicion:
        seen_s = sum(math.exp(each) for each in islice(reversed(self._times), steps))
        return _Suspicion(
            reference=tuple(reference),
            before=before,
            bar=bar,
            steady_bar=self._steady_bar,
            since_s=self._clock_s - seen_s,
            since_count=self.count - steps,
            since_step=max(step - steps + 1, 0),
        )

    def _suspect(
        self,
        kind: DriftKind,
        step: int,
        found: _Suspicion,
        *,
        test: Callable[[], float],
        before: float,
        after: float,
        is_steady: bool,
    ) -> Drift | None:
        """Return a change that is steady or lasted, and that the test finds; remember one that may last."""
        self._suspicions[kind] = found
        if not is_steady and (
            self._clock_s - found.since_s < self.rule.lasting_s
            or self.count - found.since_count < self.rule.lasting_steps
        ):
            return None
        self.tests += 1
        if (chance := test()) > self.rule.chance:
            return None
        drift = Drift(
            kind=kind,
            step=step,
            since_step=found.since_step,
            before=before,
            after=after,
            chance=chance,
            is_steady=is_steady,
        )
        self._begin_anew()
        if kind is not DriftKind.SPREAD:
            self._told.append(drift)
        return drift

    def _begin_anew(self) -> None:
        """Forget what was: the state that was told is what later ones are compared with."""
        self._times.clear()
        self._block.clear()
        self._suspicions.clear()
        self._first = ()

    def _end_block(self, step: int) -> Drift | None:
        rule, block = self.rule, self._block
        self._levels.add(median_of(block))
        self._spreads.add(math.log(max(spread_of(block), _LEAST_SPREAD)))
        self._block = []
        margin, moves = math.log1p(rule.margin_fraction), self._levels.ninth_decile
        self._bar = max(margin, rule.lasting_factor * moves)
        self._steady_bar = max(margin, rule.noise_factor * moves)
        if (recovered := self._recovered(step)) is not None:
            return recovered
        if len(self._times) < rule.least_steps:
            return None
        times = list(self._times)
        self._level = median_of(times[: -rule.window])
        if len(times) < rule.most_steps:
            return None
        if not self._first:
            self._first = tuple(times[: rule.reference])
            self._first_level = median_of(self._first)
            return None
        return self._creep(step, times) or self._spread_drift(step, times)

    def _recovered(self, step: int) -> Drift | None:
        """Return that the level fell back to where it was before the last drift, for two windows."""
        latest = list(self._levels.values)[-2:]
        if not self._told or len(latest) < 2:
            return None
        last = self._told[-1]
        bar = math.log(last.before) + 0.5 * math.log(last.ratio)
        if max(latest) >= bar or self.count < 2 * self.rule.window:
            return None
        self._told.pop()
        self._begin_anew()
        return Drift(
            kind=DriftKind.RECOVERED,
            step=step,
            since_step=max(step - 2 * self.rule.window + 1, 0),
            before=last.after,
            after=math.exp(latest[-1]),
            chance=math.nan,
            is_steady=True,
        )

    def _creep(self, step: int, times: Sequence[float]) -> Drift | None:
        rule = self.rule
        bar = 2 * self._bar
        windows = rule.reference // rule.window
        if self._levels.latest_median(windows) - self._first_level < 0.8 * bar:
            self._suspicions.pop(DriftKind.CREEP, None)
            return None
        latest = times[-rule.reference :]
        before, after = self._first_level, median_of(latest)
        if after - before < bar:
            self._suspicions.pop(DriftKind.CREEP, None)
            return None
        found = self._suspicions.get(DriftKind.CREEP) or self._suspicion(
            step, self._first, before=before, bar=bar, steps=rule.reference
        )
        return self._suspect(
            DriftKind.CREEP,
            step,
            found,
            test=lambda: _rises(latest, found.reference),
            before=math.exp(before),
            after=math.exp(after),
            is_steady=False,
        )

    def _spread_drift(self, step: int, times: Sequence[float]) -> Drift | None:
        rule, found = self.rule, self._suspicions.get(DriftKind.SPREAD)
        # Two windows against a reference scatter half as much as two windows that are compared alone.
        bar = max(math.log(rule.spread_ratio), rule.noise_factor / 2 * self._spreads.ninth_decile)
        usual = self._spreads.latest_median(rule.reference // rule.window)
        if found is not None:
            bar, usual = found.bar, found.before
        newest = self._spreads.values[-1]
        if newest - usual < bar / 2 - (_SPREAD_SLACK if found is None else 0.0):
            self._suspicions.pop(DriftKind.SPREAD, None)
            return None
        # A level that moves is no spread: each window is taken about its own middle.
        rests = _rests(times, rule.window)
        window = rests[-2 * rule.window :]
        if found is None:
            reference = rests[: -2 * rule.window]
            usual = math.log(max(spread_of(reference), _LEAST_SPREAD))
        after = math.log(max(spread_of(window), _LEAST_SPREAD))
        if after - usual < bar or newest - usual < bar / 2 or after < math.log(rule.margin_fraction):
            self._suspicions.pop(DriftKind.SPREAD, None)
            return None
        if found is None:
            found = self._suspicion(step, reference, before=usual, bar=bar, steps=2 * rule.window)
        kept = found
        return self._suspect(
            DriftKind.SPREAD,
            step,
            kept,
            test=lambda: _scatters(window, kept.reference),
            before=math.exp(usual),
            after=math.exp(after),
            is_steady=False,
        )


def _rises(window: Sequence[float], reference: Sequence[float]) -> float:
    from scipy.stats import mannwhitneyu

    return float(mannwhitneyu(window, reference, alternative="greater", method="asymptotic").pvalue)


def _scatters(window: Sequence[float], reference: Sequence[float]) -> float:
    from scipy.stats import mood

    return float(mood(window, reference, alternative="greater").pvalue)


def _rests(times: Sequence[float], size: int) -> list[float]:
    """Return each value less the median of its window, windows counted back from the newest value."""
    found: list[float] = []
    for start in range(len(times) % size, len(times), size):
        part = times[start : start + size]
        middle = median_of(part)
        found.extend(each - middle for each in part)
    return found
