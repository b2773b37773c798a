"""What a running job prints of its steps, read from pieces of its log: times, losses, and what is no step.

Notes
-----
Bytes in, values out, in the order of the log. A piece is searched for the few words that frameworks print,
so that the rest of a log costs little. A step is told by the words its framework prints, so that logs of
several releases are read alike, and so are prefixes of launchers. Ranks that print at once may break into one
another's lines: a line ends for a step where the next one begins, and a figure counts only with what its
framework prints behind it. Whatever stands between two steps and takes time of its own (a checkpoint, an
evaluation, a compilation) is a `Mark`; which steps are left out for it is the caller's.

References
----------
NVIDIA, Megatron-LM, megatron/training/training.py and checkpointing.py, megatron/core/timers.py. NVIDIA,
NeMo, nemo/utils/exp_manager.py and nemo/lightning/pytorch/callbacks/progress_printer.py. PyTorch, torchtitan,
torchtitan/components/metrics.py, checkpoint.py and validate.py. Microsoft, DeepSpeed,
deepspeed/utils/timer.py and runtime/engine.py.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import NamedTuple

__all__ = [
    "FRAMEWORKS",
    "Mark",
    "MarkKind",
    "PhaseTimes",
    "StepLine",
    "XidLine",
    "clock_of",
    "events_in",
    "plain_lines",
]

FRAMEWORKS = ("megatron", "nemo", "torchtitan", "deepspeed", "ddp")
"""Whose lines are read; ``ddp`` is the program that linkwise writes out. GPT-NeoX prints lines of Megatron
and of DeepSpeed; those of Megatron count."""

_LONGEST_LINE = 4000
_LARGEST = 1e12
_NUMBER = rb"(\d{1,15}(?:\.\d{0,20})?(?:[eE][+-]?\d{1,3})?)"
_VALUE = rb"([-+]?(?:(?i:nan|inf)|\d{1,15}(?:\.\d{0,20})?(?:[eE][+-]?\d{1,3})?))"
_COLOUR = re.compile(rb"\x1b\[[0-9;]{0,20}m")

_OWN = re.compile(
    rb"\bstep (\d{1,12}) loss " + _VALUE + rb" time " + _NUMBER + rb" s tokens/s " + _NUMBER
    + rb"(?: grad_norm " + _VALUE + rb")?"
)  # fmt: skip
_BEGINS = re.compile(
    rb"iteration {1,20}\d{1,12} {0,5}/|Epoch \d|step: {0,12}\d{1,12} {1,12}loss:|step \d{1,12} loss "
)
_MEGATRON = re.compile(rb"\biteration {1,20}(\d{1,12}) {0,5}/ {0,20}\d{1,12} {0,5}\|")
_ELAPSED = re.compile(rb"elapsed time per iteration \(ms\): {0,20}" + _NUMBER + rb" {0,5}\|")
_BATCH = re.compile(rb"global batch size: {0,20}(\d{1,12}) {0,5}\|")
_LM_LOSS = re.compile(rb"(?i)\blm loss: {0,20}" + _VALUE + rb" {0,5}\|")
_GRAD_NORM = re.compile(rb"grad[ _]norm: {0,20}" + _VALUE + rb"[\s|]")
_NAN_STEPS = re.compile(rb"nan iterations: {0,20}(\d{1,9}) {0,5}\|")
_TITAN = re.compile(rb"\bstep: {0,12}(\d{1,12}) {1,12}loss: {0,12}" + _VALUE + rb"(?=\s)")
_TITAN_RATE = re.compile(rb"(?:tps|wps): {0,12}(\d[\d,]{0,20}(?:\.\d{1,9})?) {1,12}(?:tflops|mfu):")
_DEEPSPEED = re.compile(
    rb"(?:global_step=|\s\d{1,6}/)(\d{1,12}), {0,5}(?:RunningAvgSamplesPerSec=" + _NUMBER
    + rb", {0,5}Curr)?SamplesPerSec=" + _NUMBER + rb","
)  # fmt: skip
# Behind a colon the time may be the last of its line: there, one that is cut after a figure is read short.
_NEMO = re.compile(
    rb"train_step_timing in s(?:=|(?P<colon>:)) {0,5}" + _NUMBER + rb"(?(colon)(?=\s|$)|(?=[,\]]))"
)
_NEMO_STEP = re.compile(rb"global_step[:=] {0,5}" + _NUMBER + rb"(?=[\s,|\]])")
_NEMO_BATCH = re.compile(rb"global_batch_size[:=] {0,5}" + _NUMBER + rb"(?=[\s,|\]])")
_NEMO_LOSS = re.compile(rb"(?i)\breduced_train_loss[:=] {0,5}" + _VALUE + rb"(?=[\s,\]])")

_CLOCK = re.compile(rb"(\d{4})-(\d\d)-(\d\d)[ T](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,6}))?(Z|[+-]\d\d:?\d\d)?")
_CLOCK_LOOKS = 160
_RANK = re.compile(rb"\s{0,4}(?:\[(?:rank|default|Rank )?(\d{1,6})\]:?|(\d{1,6}):(?=\s))")

_CHECKPOINT = re.compile(
    rb"(?i)\b(?:sav(?:ed|ing)|writ(?:ing|ten)|wrote|stag(?:ed|ing))\b[^\r\n]{0,60}check-?point"
    rb"|check-?point\b[^\r\n]{0,60}\b(?:sav(?:ed|ing)|written)|\[Torch\] Saving "
)
_EVALUATION = re.compile(
    rb"(?i)\bvalidation (?:loss|loop|started)|\bvalidate step|\bevaluating\b|\brunning evaluation"
    rb"|\beval(?:uation)?[ _](?:loss|step|at)\b"
)
_COMPILATION = re.compile(
    rb"(?i)\b(?:torch\.compile|compiling|recompil(?:ing|ed)|cuda graphs? captur|capturing)"
)
_XID = re.compile(rb"Xid \(PCI:([0-9A-Fa-f:.]{4,20})\): (\d{1,4})")
_PHASES = re.compile(rb"time \(ms\) \|([^\r\n]{1,2000})")
_PHASE = re.compile(rb"([a-z][a-z_ -]{1,60}): {0,5}" + _NUMBER)
_PHASE_LINE = re.compile(
    rb"^ {0,20}([a-z][a-z-]{2,60}) ?\.{3,}: {0,5}\(" + _NUMBER + rb", {0,5}" + _NUMBER + rb"\)"
)


class MarkKind(StrEnum):
    """What takes time beside the steps."""

    CHECKPOINT = "checkpoint"
    EVALUATION = "evaluation"
    COMPILATION = "compilation"


class StepLine(NamedTuple):
    """What a line says of one step; a plain tuple, as there are millions.

    Attributes
    ----------
    position
        Of the line in its piece [bytes].
    number
        By the count of the program.
    time_s
        How long it took [s]; ``None`` where a rate is printed instead.
    rate_per_s
        Tokens (or samples) in a second, as printed; ``None`` where there is none.
    loss, grad_norm
        As printed, not a number included; ``None`` where not printed.
    nan_steps
        Steps that had no number for a loss, where the framework counts them [1].
    rank
        Whose line it is, where a launcher wrote that before it; empty elsewhere.
    framework
        Whose words it is in, one of `FRAMEWORKS`.
    global_batch
        Sequences of the step; ``None`` where it is not printed [1].
    """

    position: int
    number: int
    time_s: float | None
    rate_per_s: float | None
    loss: float | None
    grad_norm: float | None
    nan_steps: int
    rank: str
    framework: str
    global_batch: int | None = None


class Mark(NamedTuple):
    """A line that says what took time beside the steps.

    Attributes
    ----------
    position
        Of the line in its piece [bytes].
    kind
        What it was.
    """

    position: int
    kind: MarkKind


class XidLine(NamedTuple):
    """A line of the kernel log that tells of an error of a GPU.

    Attributes
    ----------
    position
        Of the line in its piece [bytes].
    bus
        Its PCI address.
    number
        Of the Xid.
    """

    position: int
    bus: str
    number: int


class PhaseTimes(NamedTuple):
    """Timers of a step, as Megatron and DeepSpeed print them when asked.

    Attributes
    ----------
    position
        Of the line in its piece [bytes].
    times_s
        By the name the framework gives them [s].
    """

    position: int
    times_s: dict[str, float]


def plain_lines(data: bytes) -> bytes:
    """Return lines without colours, and a line for each time that a progress bar overwrote one.

    Parameters
    ----------
    data
        Whole lines.
    """
    if b"\r" in data:
        data = data.replace(b"\r", b"\n")
    return _COLOUR.sub(b"", data) if b"\x1b[" in data else data


def events_in(data: bytes) -> list[StepLine | Mark | XidLine | PhaseTimes]:
    """Return what the lines of a piece tell of, in their order.

    Parameters
    ----------
    data
        Whole lines, as `plain_lines` gives them.
    """
    found: list[StepLine | Mark | XidLine | PhaseTimes] = []
    for word, reader in _STEP_READERS.items():
        if word in data:
            found.extend(reader(data))
    steps = len(found)
    found.extend(_marks(data))
    if b"Xid (PCI:" in data:
        found.extend(XidLine(each.start(), each[1].decode(), int(each[2])) for each in _XID.finditer(data))
    found.extend(_phases(data))
    if len(found) > steps:
        found.sort(key=_position)
    return found


def clock_of(data: bytes, position: int) -> float | None:
    """Return the time of day that a line begins with, as seconds since 1970; ``None`` without one.

    Parameters
    ----------
    data
        The piece.
    position
        Of something in the line [bytes].

    Notes
    -----
    A time without a zone is taken as UTC: only differences are used.
    """
    start = data.rfind(b"\n", max(0, position - _LONGEST_LINE), position) + 1
    end = data.find(b"\n", position)
    found = _CLOCK.search(data, start, min(start + _CLOCK_LOOKS, end if end >= 0 else len(data)))
    if found is None:
        return None
    year, month, day, hour, minute, second, fraction, zone = found.groups()
    try:
        moment = dt.datetime(
            int(year), int(month), int(day), int(hour), int(minute), int(second), tzinfo=dt.UTC
        )
    except ValueError:
        return None
    return moment.timestamp() + (float(b"0." + fraction) if fraction else 0.0) - _offset_s(zone)


def _offset_s(zone: bytes | None) -> float:
    if not zone or zone == b"Z":
        return 0.0
    digits = zone[1:].replace(b":", b"")
    seconds = int(digits[:2]) * 3600.0 + int(digits[2:]) * 60.0
    return -seconds if zone[:1] == b"-" else seconds


def _position(event: StepLine | Mark | XidLine | PhaseTimes) -> int:
    return event.position


def _rank(data: bytes, position: int) -> str:
    start = data.rfind(b"\n", max(0, position - _LONGEST_LINE), position) + 1
    found = _RANK.match(data, start, position)
    return (found[1] or found[2]).decode() if found else ""


def _own(data: bytes) -> Iterator[StepLine]:
    for each in _OWN.finditer(data):
        number, loss, time, rate, norm = each.groups()
        at = each.start()
        yield StepLine(
            at,
            int(number),
            float(time) or None,
            float(rate) or None,
            float(loss),
            float(norm) if norm else None,
            0,
            _rank(data, at),
            "ddp",
        )


def _megatron(data: bytes) -> Iterator[StepLine]:
    for each in _MEGATRON.finditer(data):
        rest = data[each.end() : _end_of_step(data, each.end())]
        if (time := _ELAPSED.search(rest)) is None:
            continue
        nan, batch = _NAN_STEPS.search(rest), _BATCH.search(rest)
        yield StepLine(
            each.start(),
            int(each[1]),
            float(time[1]) * 1e-3 or None,
            None,
            _value(_LM_LOSS, rest),
            _value(_GRAD_NORM, rest),
            int(nan[1]) if nan else 0,
            _rank(data, each.start()),
            "megatron",
            int(batch[1]) if batch else None,
        )


def _titan(data: bytes) -> Iterator[StepLine]:
    for each in _TITAN.finditer(data):
        at = each.start()
        if data[max(0, at - 9) : at] == b"validate ":
            continue
        rest = data[each.end() : _end_of_step(data, each.end())]
        found = _TITAN_RATE.search(rest)
        rate = float(found[1].replace(b",", b"")) if found else 0.0
        if rate > 0:
            norm = _value(_GRAD_NORM, rest)
            yield StepLine(
                at, int(each[1]), None, rate, float(each[2]), norm, 0, _rank(data, at), "torchtitan"
            )


def _deepspeed(data: bytes) -> Iterator[StepLine]:
    for each in _DEEPSPEED.finditer(data):
        at, rate = each.start(), float(each[3])
        if rate > 0:
            yield StepLine(at, int(each[1]), None, rate, None, None, 0, _rank(data, at), "deepspeed")


def _nemo(data: bytes) -> Iterator[StepLine]:
    for each in _NEMO.finditer(data):
        piece = data[_start_of_step(data, each.start()) : _end_of_step(data, each.end())]
        number, batch = _value(_NEMO_STEP, piece), _value(_NEMO_BATCH, piece)
        if number is None or number > _LARGEST:
            continue
        yield StepLine(
            each.start(),
            int(number),
            float(each[2]) or None,
            None,
            _value(_NEMO_LOSS, piece),
            None,
            0,
            "",
            "nemo",
            int(batch) if batch and batch < _LARGEST else None,
        )


def _start_of_step(data: bytes, at: int) -> int:
    """Return where the step begins that something in a line is of [bytes]."""
    start = data.rfind(b"\n", max(0, at - _LONGEST_LINE), at) + 1
    start = max(start, at - _LONGEST_LINE)
    for each in _BEGINS.finditer(data, start, at):
        start = each.start()
    return start


def _end_of_step(data: bytes, at: int) -> int:
    """Return where the line ends, or the next step begins that broke into it [bytes]."""
    end = data.find(b"\n", at, at + _LONGEST_LINE)
    end = min(at + _LONGEST_LINE, len(data)) if end < 0 else end
    broken = _BEGINS.search(data, at, end)
    return broken.start() if broken else end


def _value(pattern: re.Pattern[bytes], data: bytes) -> float | None:
    found = pattern.search(data)
    return float(found[1]) if found else None


_STEP_READERS: dict[bytes, Callable[[bytes], Iterator[StepLine]]] = {
    b" s tokens/s ": _own,
    b"elapsed time per iteration": _megatron,
    b"ps: ": _titan,
    b"SamplesPerSec=": _deepspeed,
    b"train_step_timing in s": _nemo,
}
"""By the word that a piece must have for its reader to be tried."""

_MARKS: tuple[tuple[tuple[bytes, ...], re.Pattern[bytes], MarkKind], ...] = (
    ((b"heckpoint", b"[Torch] Saving"), _CHECKPOINT, MarkKind.CHECKPOINT),
    ((b"alidat", b"valuat", b"eval_", b"eval loss"), _EVALUATION, MarkKind.EVALUATION),
    ((b"ompil", b"apturing"), _COMPILATION, MarkKind.COMPILATION),
)


def _marks(data: bytes) -> Iterator[Mark]:
    for words, pattern, kind in _MARKS:
        seen = -1
        for word in words:
            at = data.find(word)
            while at >= 0:
                start, end = _bounds(data, at)
                if start != seen and (found := pattern.search(data, start, end)):
                    seen = start
                    yield Mark(found.start(), kind)
                at = data.find(word, end)


def _bounds(data: bytes, at: int) -> tuple[int, int]:
    start, end = data.rfind(b"\n", 0, at) + 1, data.find(b"\n", at)
    end = len(data) if end < 0 else end
    return max(start, at - _LONGEST_LINE), min(max(end, at + 1), at + _LONGEST_LINE)


def _phases(data: bytes) -> Iterator[PhaseTimes]:
    if b"time (ms) |" in data:
        for each in _PHASES.finditer(data):
            times = {
                name.decode().strip(): float(value) * 1e-3
                for name, value in _PHASE.findall(each[1])
                if not name.strip().endswith(b"microstep")
            }
            yield PhaseTimes(each.start(), times)
    if b"(min, max) time across ranks" in data or b"....: (" in data:
        at = data.find(b"....: (")
        while at >= 0:
            start, end = _bounds(data, at)
            if found := _PHASE_LINE.match(data[start:end]):
                yield PhaseTimes(start, {found[1].decode(): float(found[3]) * 1e-3})
            at = data.find(b"....: (", end)
