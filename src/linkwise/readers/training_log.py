"""What training programs print of their steps: Megatron-LM, NeMo, torchtitan, DeepSpeed and ours, as values.

Notes
-----
A step is told by the words its framework prints, so that logs of several releases are read alike, and so are
prefixes of launchers and colours. What a framework prints of a step differs: Megatron and NeMo its time,
torchtitan tokens per second of a GPU, DeepSpeed samples per second of all. Times of phases are those of the
timers that Megatron and DeepSpeed print when asked. A line that a progress bar overwrites is one line for
each time it was written. Ranks that print at once may break into one another's lines: every piece of a line
that begins a step is read alone, and a figure counts only with what its framework prints behind it. No
judgement: warm-up and outliers are the caller's.

References
----------
NVIDIA, Megatron-LM, megatron/training/training.py and megatron/core/timers.py. NVIDIA, NeMo,
nemo/utils/exp_manager.py and nemo/lightning/pytorch/callbacks/progress_printer.py. PyTorch, torchtitan,
torchtitan/components/metrics.py. Microsoft, DeepSpeed, deepspeed/utils/timer.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from linkwise.readers.faults import Faults

__all__ = [
    "FRAMEWORKS",
    "MOST_STEPS",
    "LoggedStep",
    "TrainingLog",
    "is_training_log",
    "parse_training_log",
    "steps_of_lines",
]

MOST_STEPS = 200_000
"""Steps of one log that are read."""
FRAMEWORKS = ("megatron", "nemo", "torchtitan", "deepspeed", "ddp")
"""Whose logs are read; ``ddp`` is the program that linkwise writes out. GPT-NeoX prints lines of Megatron
and of DeepSpeed; those of Megatron count."""

_LONGEST_LINE = 4000
_LARGEST = 1e12
_COLOUR = re.compile(r"\x1b\[[0-9;]{0,20}m")
_NUMBER = r"([0-9]{1,15}(?:\.[0-9]{0,20})?(?:[eE][+-]?[0-9]{1,3})?)"
_MEGATRON = re.compile(r"iteration\s{1,20}(\d{1,12})\s{0,5}/\s{0,20}\d{1,12}\s{0,5}\|")
_MEGATRON_TIME = re.compile(r"elapsed time per iteration \(ms\):\s{0,20}" + _NUMBER + r"\s{0,5}\|")
_MEGATRON_BATCH = re.compile(r"global batch size:\s{0,20}(\d{1,12})")
_MEGATRON_PHASE = re.compile(
    r"^\s{0,20}([a-z][a-z-]{2,60})\s?\.{3,}:\s{0,5}\(" + _NUMBER + r",\s{0,5}" + _NUMBER + r"\)"
)
# Behind a colon the time may be the last of its line: there, one that is cut after a figure is read short.
_NEMO_TIME = re.compile(
    r"train_step_timing in s(?:=|(?P<colon>:))\s{0,5}(?P<time>" + _NUMBER + r")(?(colon)(?=\s|$)|(?=[,\]]))"
)
_NEMO_STEP = re.compile(r"global_step[:=]\s{0,5}" + _NUMBER)
_NEMO_BATCH = re.compile(r"global_batch_size[:=]\s{0,5}" + _NUMBER)
_TITAN = re.compile(
    r"step:\s{0,12}(\d{1,12})\s{1,12}loss:.{0,400}?(?:tps|wps):\s{0,12}([0-9][0-9,]{0,20}(?:\.\d{1,9})?)"
    r"\s{1,12}(?:tflops|mfu):"
)
_DEEPSPEED = re.compile(
    r"(?:global_step=|(?<=\s)\d{1,6}/)(\d{1,12}),\s{0,5}(?:RunningAvgSamplesPerSec="
    + _NUMBER
    + r",\s{0,5}Curr)?"
    r"SamplesPerSec=" + _NUMBER + ","
)
_LOSS = r"([-+]?(?:nan|inf|\d{1,15}(?:\.\d{0,20})?(?:[eE][+-]?\d{1,3})?))"
_LOSSES = {
    "megatron": re.compile(r"\blm loss:\s{0,20}" + _LOSS + r"\s{0,5}\|", re.IGNORECASE),
    "nemo": re.compile(r"\breduced_train_loss[:=]\s{0,5}" + _LOSS + r"(?=[\s,\]])", re.IGNORECASE),
    "torchtitan": re.compile(r"\bloss:\s{0,12}" + _LOSS + r"\s", re.IGNORECASE),
    "ddp": re.compile(r"\bloss " + _LOSS + r" time ", re.IGNORECASE),
}
"""How each prints its loss, with what it prints behind it; DeepSpeed prints none beside its rate."""
_OWN = re.compile(r"\bstep (\d{1,9}) loss \S{1,20} time " + _NUMBER + r" s tokens/s \d")
_WORDS = ("elapsed time per iteration", "train_step_timing in s", "loss", "SamplesPerSec=")
"""A line without any of them tells of no step."""
_BEGINS = re.compile(
    r"(?=\biteration\s{1,20}\d{1,12}\s{0,5}/|\bEpoch \d|\bstep:\s{0,12}\d{1,12}\s{1,12}loss:"
    r"|\bstep \d{1,9} loss )"
)
_TIMERS = re.compile(r"time \(ms\) \|(.{1,2000})")
_TIMER = re.compile(r"([a-z][a-z_ -]{1,60}):\s{0,5}" + _NUMBER)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedStep:
    """What a log says of one step, or of the mean of the steps since the one before.

    Attributes
    ----------
    number
        The step, as counted by the framework.
    time_s
        Time of the step [s]; ``None`` where a rate is printed instead.
    tokens_per_s_per_gpu
        Tokens of one GPU [tokens/s].
    samples_per_s
        Sequences of all GPUs [1/s].
    global_batch
        Sequences of the step; ``None`` where it is not printed.
    loss
        As printed, not a number included; ``None`` where it is not printed [1].
    phases_s
        Times of timers by the name the framework gives them [s].
    """

    number: int
    time_s: float | None = None
    tokens_per_s_per_gpu: float | None = None
    samples_per_s: float | None = None
    global_batch: int | None = None
    loss: float | None = None
    phases_s: Mapping[str, float] = field(default_factory=dict, hash=False)

    def seconds(self, *, sequences: float, tokens_per_gpu: float) -> float:
        """Return the time of the step, worked out from a rate where that is printed [s].

        Parameters
        ----------
        sequences
            Of the step, over all GPUs [1].
        tokens_per_gpu
            Of the step [tokens].
        """
        if self.time_s is not None:
            return self.time_s
        if self.samples_per_s is not None:
            return sequences / self.samples_per_s
        return tokens_per_gpu / (self.tokens_per_s_per_gpu or 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingLog:
    """The steps of one log.

    Attributes
    ----------
    framework
        One of `FRAMEWORKS`.
    steps
        In the order of the log, each number once; at least one.
    """

    framework: str
    steps: tuple[LoggedStep, ...]


def is_training_log(text: str) -> bool:
    """Return whether a text has the words of a step of a framework that is read.

    Parameters
    ----------
    text
        The file.
    """
    words = ("elapsed time per iteration (ms)", "train_step_timing in s", "SamplesPerSec=")
    if any(word in text for word in words):
        return True
    start = _COLOUR.sub("", text[:2_000_000])
    return any(each.search(start) is not None for each in (_TITAN, _OWN))


def parse_training_log(text: str, *, path: str | None = None) -> TrainingLog:
    """Return the steps that a training log tells of.

    Parameters
    ----------
    text
        What the framework printed.
    path
        The file it came from, for messages.

    Raises
    ------
    DocumentError
        If no step is found, or too many.
    """
    faults = Faults(path=path)
    found: dict[str, dict[int, LoggedStep]] = {name: {} for name in FRAMEWORKS}
    last: dict[int, LoggedStep] | None = None
    count = 0
    for line in _lines(text):
        for framework, step in _steps_of(line):
            last = found[framework]
            last.setdefault(step.number, step)
            count += 1
            if count > MOST_STEPS * 8:
                raise faults.refusal(
                    f"has more than {MOST_STEPS:,} steps; give the part of it that is steady"
                )
        phases = _phases_of(line)
        if phases and last:
            number, step = next(reversed(last.items()))
            last[number] = _with_phases(step, phases)
    told = [name for name in FRAMEWORKS if found[name]]
    if not told:
        raise faults.refusal(
            "has no step of Megatron-LM, NeMo, torchtitan or DeepSpeed; what is looked for is "
            "'elapsed time per iteration (ms)', 'train_step_timing in s', "
            "'step: 1 loss: ... tps:' or 'SamplesPerSec=', and 'step 1 loss ... time' of the program that "
            "linkwise writes out"
        )
    return TrainingLog(framework=told[0], steps=tuple(found[told[0]].values()))


def steps_of_lines(text: str) -> Iterator[tuple[str, LoggedStep]]:
    """Yield the steps that lines tell of, each with whose words they are; phases are in other lines.

    Parameters
    ----------
    text
        Whole lines; a carriage return ends one too.
    """
    for line in _lines(text):
        yield from _steps_of(line)


def _lines(text: str) -> Iterator[str]:
    for line in text.replace("\r", "\n").split("\n"):
        yield _COLOUR.sub("", line[:_LONGEST_LINE]) if "\x1b" in line else line[:_LONGEST_LINE]


def _steps_of(line: str) -> Iterator[tuple[str, LoggedStep]]:
    if not any(word in line for word in _WORDS):
        return
    for piece in _BEGINS.split(line):
        for framework, step in _steps_of_piece(piece):
            yield framework, _with_loss(step, framework, piece)


def _with_loss(step: LoggedStep, framework: str, piece: str) -> LoggedStep:
    found = _LOSSES[framework].search(piece) if framework in _LOSSES else None
    return step if found is None else replace(step, loss=float(found[1]))


def _steps_of_piece(line: str) -> Iterator[tuple[str, LoggedStep]]:
    if (number := _MEGATRON.search(line)) and (time := _positive(_MEGATRON_TIME, line)):
        batch = _MEGATRON_BATCH.search(line)
        yield (
            "megatron",
            LoggedStep(
                number=int(number[1]), time_s=time * 1e-3, global_batch=int(batch[1]) if batch else None
            ),
        )
    elif (time := _positive(_NEMO_TIME, line)) and (step := _NEMO_STEP.search(line)):
        several = _positive(_NEMO_BATCH, line)
        number_of = min(float(step[1]), _LARGEST)
        yield (
            "nemo",
            LoggedStep(number=int(number_of), time_s=time, global_batch=int(several) if several else None),
        )
    elif titan := _TITAN.search(line):
        rate = float(titan[2].replace(",", ""))
        if 0 < rate < _LARGEST:
            yield "torchtitan", LoggedStep(number=int(titan[1]), tokens_per_s_per_gpu=rate)
    elif (own := _OWN.search(line)) and 0 < float(own[2]) < _LARGEST:
        yield "ddp", LoggedStep(number=int(own[1]), time_s=float(own[2]))
    else:
        for deepspeed in _DEEPSPEED.finditer(line):
            rate = float(deepspeed[3])
            if 0 < rate < _LARGEST:
                yield "deepspeed", LoggedStep(number=int(deepspeed[1]), samples_per_s=rate)


def _positive(pattern: re.Pattern[str], line: str) -> float | None:
    match = pattern.search(line)
    value = float(match.groupdict().get("time") or match[1]) if match else 0.0
    return value if 0 < value < _LARGEST else None


def _phases_of(line: str) -> dict[str, float]:
    """Return the timers of a line; those of single micro-batches are left out."""
    if several := _MEGATRON_PHASE.search(line):
        return {several[1]: float(several[3]) * 1e-3}
    timers = _TIMERS.search(line)
    if timers is None:
        return {}
    return {
        name.strip(): float(value) * 1e-3
        for name, value in _TIMER.findall(timers[1])
        if not name.strip().endswith("microstep") and float(value) < _LARGEST
    }


def _with_phases(step: LoggedStep, phases: Mapping[str, float]) -> LoggedStep:
    return replace(step, phases_s={**phases, **step.phases_s})
