"""What training programs print of their steps: Megatron-LM, NeMo, torchtitan, DeepSpeed and ours, as values.

Notes
-----
The lines are read by `step_lines`; here they become whole logs. What a framework prints of a step differs:
Megatron and NeMo its time, torchtitan tokens per second of a GPU, DeepSpeed samples per second of all. Times
of phases are those of the timers that Megatron and DeepSpeed print when asked. A line that a progress bar
overwrites is one line for each time it was written. No judgement: warm-up and outliers are the caller's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from linkwise.readers.faults import Faults
from linkwise.readers.step_lines import FRAMEWORKS, PhaseTimes, StepLine, events_in, plain_lines

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
_LARGEST = 1e12
_WORDS = ("elapsed time per iteration (ms)", "train_step_timing in s", "SamplesPerSec=")
"""A text with one of them is a log; others are looked into."""
_LOOKS = 2_000_000
"""Characters of a text that are looked into, for one that is no log is not read to its end."""


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
    if any(word in text for word in _WORDS):
        return True
    start = text[:_LOOKS].encode("utf-8", errors="replace")
    return any(isinstance(each, StepLine) for each in events_in(plain_lines(start)))


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
    for event in events_in(plain_lines(text.encode("utf-8", errors="replace"))):
        if isinstance(event, StepLine) and (step := _logged(event)):
            last = found[event.framework]
            last.setdefault(step.number, step)
            count += 1
            if count > MOST_STEPS * 8:
                raise faults.refusal(
                    f"has more than {MOST_STEPS:,} steps; give the part of it that is steady"
                )
        elif isinstance(event, PhaseTimes) and last:
            number, step = next(reversed(last.items()))
            last[number] = _with_phases(step, event.times_s)
    told = [name for name in FRAMEWORKS if found[name]]
    if not told:
        raise faults.refusal(
            "has no step of Megatron-LM, NeMo, torchtitan or DeepSpeed; what is looked for is "
            "'elapsed time per iteration (ms)', 'train_step_timing in s', "
            "'step: 1 loss: ... tps:' or 'SamplesPerSec=', and 'step 1 loss ... time' of the program that "
            "linkwise writes out"
        )
    return TrainingLog(framework=told[0], steps=tuple(found[told[0]].values()))


def steps_of_lines(data: bytes) -> Iterator[tuple[str, LoggedStep]]:
    """Yield the steps that lines tell of, each with whose words they are; phases are in other lines.

    Parameters
    ----------
    data
        Whole lines; a carriage return ends one too.
    """
    for event in events_in(plain_lines(data)):
        if isinstance(event, StepLine) and (step := _logged(event)):
            yield event.framework, step


def _logged(line: StepLine) -> LoggedStep | None:
    """Return a line as a step, where what it says can be of one."""
    told = line.rate_per_s if line.framework in ("torchtitan", "deepspeed") else line.time_s
    if told is None or not 0 < told < _LARGEST:
        return None
    return LoggedStep(
        number=line.number,
        time_s=line.time_s,
        tokens_per_s_per_gpu=told if line.framework == "torchtitan" else None,
        samples_per_s=told if line.framework == "deepspeed" else None,
        global_batch=line.global_batch or None,
        loss=line.loss,
    )


def _with_phases(step: LoggedStep, phases: Mapping[str, float]) -> LoggedStep:
    """Return the step with timers that were told of it; the first telling counts."""
    known = {name: time_s for name, time_s in phases.items() if time_s < _LARGEST}
    return replace(step, phases_s={**known, **step.phases_s})
