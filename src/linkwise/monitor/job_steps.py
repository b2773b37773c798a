"""The steps of a watched job, from all its logs: each counted once, with restarts, losses and ranks.

Notes
-----
The same step may be told by several ranks, and by several files of one rank; the first telling counts. A
count that goes back in one of them is a restart, once for all that show it. A step is left out of the step
times when a checkpoint, an evaluation or a compilation stands between it and the one before, and so are the
first ones.
"""

from __future__ import annotations

import math
import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from linkwise.monitor.window import Window
from linkwise.readers.step_lines import (
    Mark,
    MarkKind,
    PhaseTimes,
    StepLine,
    XidLine,
    clock_of,
    events_in,
    plain_lines,
)

__all__ = ["Gap", "JobSteps", "Rank", "StepSink"]

_WARM_UP_STEPS = 10
"""Left out after a start: compilation, caches and the first looks at files (assumed) [1]."""
_LONGEST_REST = 1 << 16
_SCALE_STEPS = 8
"""By whose clock a printed rate becomes a time: the median of so many intervals [1]."""
_RANK_STEPS = 32
_MOST_RANKS = 4_096
_MOST_XIDS = 1_000
_MOST_GAPS = 1_000
_TURN_BYTES = 1 << 16
_CLOCK_LOOKS = 8
_ATTEMPT = re.compile(r"/attempt_(\d{1,6})/(\d{1,6})/")
_COMMUNICATION = (
    "all-grads-sync",
    "params-all-gather",
    "grads-reduce-scatter",
    "grads-all-reduce",
    "backward-params-all-reduce",
    "backward-embedding-all-reduce",
    "backward_allreduce",
    "bwd_allreduce",
    "forward-recv",
    "forward-send",
    "backward-recv",
    "backward-send",
    "forward-send-backward-recv",
    "backward-send-forward-recv",
)
"""Timers of Megatron and DeepSpeed in which a rank communicates, or waits for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """A time without a step, by the clock of the log.

    Parameters
    ----------
    start_s, end_s
        Since 1970 [s].
    step
        The one that ended it.
    """

    start_s: float
    end_s: float
    step: int


@dataclass(slots=True)
class Rank:
    """What one rank, or one file of one, told.

    Parameters
    ----------
    name
        As the log names it.
    last_step
        The step it told last.
    at_s
        When [s].
    times_s
        Of its last steps [s].
    restarts
        How often its count went back [1].
    """

    name: str
    last_step: int = -1
    at_s: float = 0.0
    times_s: deque[float] = field(default_factory=lambda: deque(maxlen=_RANK_STEPS))
    restarts: int = 0


@dataclass(slots=True)
class _Stream:
    """One input: the line that is not whole yet, and what stands since the last step."""

    rest: bytes = b""
    mark: MarkKind | None = None
    attempt: int = 0
    rank: str = ""


StepSink = Callable[[int, float], None]
"""Takes a step that counts as a step time: its number and how long it took [s]."""


@dataclass(slots=True)
class JobSteps:
    """The steps of a job as far as its logs go.

    Parameters
    ----------
    sink
        Takes the steps that are neither warm-up nor tagged.
    tokens_per_step
        Of the whole job; ``None`` where nobody said [tokens].
    tokens_per_step_per_gpu
        What turns a rate per GPU into a time; ``None`` to find it by the clock of the log [tokens].
    """

    sink: StepSink = field(default=lambda _number, _time_s: None)
    tokens_per_step: float | None = None
    tokens_per_step_per_gpu: float | None = None
    count: int = 0
    last_step: int | None = None
    first_clock_s: float | None = None
    first_step_s: float | None = None
    last_clock_s: float | None = None
    has_log_clock: bool = False
    step_clock_s: float | None = None
    heard_s: float | None = None
    gap_s: float = 30.0
    gaps: list[Gap] = field(default_factory=list)
    restarts: int = 0
    lost_steps: int = 0
    nan_steps: int = 0
    nan_at: int | None = None
    in_steps_s: float = 0.0
    tagged: Counter[str] = field(default_factory=Counter)
    xids: Counter[tuple[str, int]] = field(default_factory=Counter)
    ranks: dict[str, Rank] = field(default_factory=dict)
    times: Window = field(default_factory=Window)
    losses: Window = field(default_factory=lambda: Window(size=64))
    grad_norms: Window = field(default_factory=lambda: Window(size=64))
    tokens_rates: Window = field(default_factory=lambda: Window(size=64))
    communication: Window = field(default_factory=lambda: Window(size=64))
    lines: int = 0
    mark: MarkKind | None = None
    _since_start: int = 0
    _streams: dict[str, _Stream] = field(default_factory=dict)
    _unscaled: list[tuple[StepLine, float | None]] = field(default_factory=list)
    _phases: dict[str, float] = field(default_factory=dict)
    _time_s: float | None = None

    def feed(self, name: str, data: bytes, *, now_s: float) -> None:
        """Take the next piece of an input.

        Parameters
        ----------
        name
            The input.
        data
            What was added to it, cut anywhere.
        now_s
            The time of day, for logs without a clock [s].
        """
        stream = self._streams.get(name)
        if stream is None:
            stream = self._streams[name] = _stream_of(name)
        data = stream.rest + data
        end = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        stream.rest = data[end:] if len(data) - end <= _LONGEST_REST else b""
        if end:
            self._take(name, stream, plain_lines(data[:end]), now_s)

    def restart(self, name: str) -> None:
        """Begin an input anew, as its file was rotated or truncated.

        Parameters
        ----------
        name
            The input.
        """
        if name in self._streams:
            self._streams[name].rest = b""

    def finish(self, *, now_s: float) -> None:
        """Take the lines that have no end, as nothing more will come.

        Parameters
        ----------
        now_s
            The time of day [s].
        """
        for name, stream in self._streams.items():
            rest, stream.rest = stream.rest, b""
            if rest:
                self._take(name, stream, plain_lines(rest), now_s)
        self._flush_unscaled()

    def _take(self, name: str, stream: _Stream, data: bytes, now_s: float) -> None:
        start = 0
        while start < len(data):
            end = data.rfind(b"\n", start, start + _TURN_BYTES) + 1 or len(data)
            self._take_turn(name, stream, data[start:end] if start or end < len(data) else data, now_s)
            start = end

    def _take_turn(self, name: str, stream: _Stream, data: bytes, now_s: float) -> None:
        self.lines += data.count(b"\n")
        events = events_in(data)
        self._move_clock(data, 0, now_s)
        before_s, number = self.step_clock_s, self.last_step
        for event in events:
            if isinstance(event, StepLine):
                self._take_step(name, stream, event, data, now_s)
            elif isinstance(event, Mark):
                stream.mark = self.mark = event.kind
            elif isinstance(event, PhaseTimes):
                self._take_phases(event)
            elif len(self.xids) < _MOST_XIDS:
                self.xids[event.bus, event.number] += 1
        self._move_clock(data, len(data) - 1, now_s)
        if self.last_step != number and self.has_log_clock:
            self._look_for_gaps(events, data, before_s)

    def _look_for_gaps(
        self, events: Sequence[StepLine | Mark | XidLine | PhaseTimes], data: bytes, before_s: float | None
    ) -> None:
        """Remember silences between steps, by the clock of the log; lines are read only where one can be."""
        steps = [each for each in events if isinstance(each, StepLine)]
        last_s = _first_clock(data, reversed(steps[-_CLOCK_LOOKS:]))
        first_s = before_s if before_s is not None else _first_clock(data, steps[:_CLOCK_LOOKS])
        if last_s is not None:
            self.last_clock_s = max(last_s, self.last_clock_s or last_s)
        if last_s is None or first_s is None or last_s - first_s < self.gap_s:
            self.step_clock_s = last_s if last_s is not None else before_s
            return
        at_s = first_s
        for each in steps:
            now_s = clock_of(data, each.position)
            if now_s is None:
                continue
            if now_s - at_s >= self.gap_s and len(self.gaps) < _MOST_GAPS:
                self.gaps.append(Gap(start_s=at_s, end_s=now_s, step=each.number))
            at_s = now_s
        self.step_clock_s = at_s

    def _move_clock(self, data: bytes, at: int, now_s: float) -> None:
        """Remember how far the clock of the log is; without one, the time of day."""
        clock_s = clock_of(data, at)
        if clock_s is None:
            if self.has_log_clock:
                return
            clock_s = now_s
        elif not self.has_log_clock:
            self.has_log_clock, self.first_clock_s, self.last_clock_s = True, None, None
        if self.first_clock_s is None:
            self.first_clock_s = clock_s
        if self.last_clock_s is None or clock_s > self.last_clock_s:
            self.last_clock_s = clock_s

    def _take_step(self, name: str, stream: _Stream, line: StepLine, data: bytes, now_s: float) -> None:
        number = line.number
        key = stream.rank or line.rank or name
        rank = self.ranks.get(key)
        if rank is None:
            if len(self.ranks) >= _MOST_RANKS:
                return
            rank = self.ranks[key] = Rank(name=key, restarts=stream.attempt)
        if number < rank.last_step:
            rank.restarts += 1
        if number != rank.last_step and line.time_s is not None:
            rank.times_s.append(line.time_s)
        rank.last_step, rank.at_s = number, now_s
        if rank.restarts > self.restarts:
            self._went_back(rank, number)
        if self.last_step is not None and number <= self.last_step:
            return
        self.heard_s = now_s
        if self.first_step_s is None:
            clock_s = clock_of(data, line.position)
            self.first_step_s = now_s if clock_s is None else clock_s
        if line.time_s is None and self._needs_scale(line, data):
            return
        self._count(line, stream)

    def _went_back(self, rank: Rank, number: int) -> None:
        self.restarts = rank.restarts
        if self.last_step is not None and number <= self.last_step:
            self.lost_steps += self.last_step - number + 1
            self.in_steps_s -= (self.last_step - number + 1) * (self.times.median or 0.0)
            self.last_step = number - 1
        self._since_start = 0

    def _needs_scale(self, line: StepLine, data: bytes) -> bool:
        """Keep the first steps of a log that prints rates, until the clock shows what a step takes."""
        if self.tokens_per_step_per_gpu is not None:
            return False
        self._unscaled.append((line, clock_of(data, line.position)))
        if len(self._unscaled) > _SCALE_STEPS:
            self._flush_unscaled()
        return True

    def _flush_unscaled(self) -> None:
        waiting, self._unscaled = self._unscaled, []
        if not waiting:
            return
        found = [
            (now - before) / (line.number - last.number) * (line.rate_per_s or 0.0)
            for (last, before), (line, now) in pairwise(waiting)
            if now is not None and before is not None and line.number > last.number and now > before
        ]
        # Without a clock a rate alone is known: times are then in units of one token, and only their ratios
        # mean something.
        self.tokens_per_step_per_gpu = sorted(found)[len(found) // 2] if found else 1.0
        for line, _ in waiting:
            if self.last_step is None or line.number > self.last_step:
                self._count(line, _Stream())

    def _count(self, line: StepLine, stream: _Stream) -> None:
        """Take a step that is new to the job."""
        number, time_s = line.number, line.time_s
        if time_s is None:
            time_s = (self.tokens_per_step_per_gpu or 1.0) / (line.rate_per_s or math.inf)
        steps = 1 if self.last_step is None else number - self.last_step
        self.last_step, self.mark = number, None
        self.count += 1
        self._since_start += 1
        if stream.mark is not None:
            self.tagged[stream.mark.value] += 1
            stream.mark = None
            self.in_steps_s += steps * min(time_s, self.times.median or time_s)
        elif self._since_start <= _WARM_UP_STEPS:
            self.tagged["warm-up"] += 1
            self.in_steps_s += steps * time_s
        elif time_s > 0:
            self.in_steps_s += steps * time_s
            self.times.add(time_s)
            self.sink(number, time_s)
        self._time_s = time_s
        self._take_values(line, time_s)

    def _take_values(self, line: StepLine, time_s: float) -> None:
        loss, norm = line.loss, line.grad_norm
        is_nan = line.nan_steps > 0
        if loss is not None:
            if math.isfinite(loss):
                self.losses.add(loss)
            else:
                is_nan = True
        if norm is not None:
            if math.isfinite(norm):
                self.grad_norms.add(norm)
            else:
                is_nan = True
        if is_nan:
            self.nan_steps += max(line.nan_steps, 1)
            self.nan_at = line.number if self.nan_at is None else self.nan_at
        if line.time_s is not None and line.rate_per_s is not None:
            self.tokens_rates.add(line.rate_per_s)
        elif self.tokens_per_step is not None and time_s > 0:
            self.tokens_rates.add(self.tokens_per_step / time_s)
        elif line.rate_per_s is not None:
            self.tokens_rates.add(line.rate_per_s)

    def _take_phases(self, phases: PhaseTimes) -> None:
        """Sum what timers say of communication; Megatron prints one a line, all after their step."""
        here = sum(phases.times_s.get(name, 0.0) for name in _COMMUNICATION)
        if here <= 0 or not self._time_s:
            return
        number = self.last_step
        before = self._phases.get("step")
        total = here + (self._phases.get("total", 0.0) if before == number else 0.0)
        if before == number:
            self.communication.replace_last(total / self._time_s)
        else:
            self.communication.add(total / self._time_s)
        self._phases = {"step": float(number or 0), "total": total}

    @property
    def goodput_fraction(self) -> float | None:
        """Return the time in steps that count, of all time since the first line [1]."""
        if self.first_clock_s is None or self.last_clock_s is None or not self.has_log_clock:
            return None
        elapsed_s = self.last_clock_s - self.first_clock_s
        return min(max(self.in_steps_s, 0.0) / elapsed_s, 1.0) if elapsed_s > 0 else None

    @property
    def time_to_start_s(self) -> float | None:
        """Return the time from the first line to the first step [s]."""
        if self.first_step_s is None or self.first_clock_s is None:
            return None
        return max(self.first_step_s - self.first_clock_s, 0.0)


def _first_clock(data: bytes, steps: Iterable[StepLine]) -> float | None:
    found = (clock_of(data, each.position) for each in steps)
    return next((each for each in found if each is not None), None)


def _stream_of(name: str) -> _Stream:
    found = _ATTEMPT.search(name)
    return _Stream(attempt=int(found[1]), rank=found[2]) if found else _Stream()
