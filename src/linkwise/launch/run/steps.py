"""Steps that a training program prints, read from its output and the logs of its ranks as they grow."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from pathlib import Path

from linkwise.readers.step_lines import FRAMEWORKS
from linkwise.readers.training_log import steps_of_lines

__all__ = ["MOST_STEPS", "StepLog", "TrainedStep"]

MOST_STEPS = 100_000
"""Steps that are kept; later ones are counted only."""
_LONGEST_LINE = 8_192
_TURN_BYTES = 4 << 20
_MOST_FILES = 4_096
_WORDS = (b"step", b"Step", b"iteration", b"SamplesPerSec")
"""What is read without any of them tells of no step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainedStep:
    """One step, as its program tells of it.

    Parameters
    ----------
    number
        By the count of the program.
    time_s
        How long it took [s].
    loss
        As it says, not a number included; ``None`` where it says none [1].
    """

    number: int
    time_s: float
    loss: float | None = None


@dataclass(slots=True)
class StepLog:
    """The steps of a job, from its output and from the logs of its ranks.

    Parameters
    ----------
    folder
        The run folder.
    tokens_per_step_per_gpu, sequences_per_step
        What turns a rate into a time [tokens] [1].

    Notes
    -----
    Which rank prints is the habit of the program: Megatron's last, others' first. A step that several files
    tell of counts once; after an elastic restart the later telling counts. Programs that print in the words
    of two frameworks are read by those of the first of `FRAMEWORKS`.
    """

    folder: Path
    tokens_per_step_per_gpu: float
    sequences_per_step: float = 1.0
    dropped: int = 0
    _told: dict[str, dict[int, TrainedStep]] = field(default_factory=dict)
    _read_bytes: dict[Path, int] = field(default_factory=dict)
    _files: tuple[Path, ...] = ()

    @property
    def steps(self) -> dict[int, TrainedStep]:
        """Return the steps by their numbers, in the order they were first told."""
        return next((self._told[name] for name in FRAMEWORKS if name in self._told), {})

    def look(self) -> None:
        """Look for files that are new."""
        found = [self.folder / "output.log"]
        for logs in sorted(self.folder.glob("logs*")):
            found += [path for _, path in zip(range(_MOST_FILES), logs.rglob("std*.log"), strict=False)]
        self._files = tuple(found)

    def read(self) -> int:
        """Read what was added, and return how many steps that told of."""
        before = self._count()
        for path in self._files:
            with contextlib.suppress(OSError):
                self._read_file(path)
        return self._count() - before

    def _count(self) -> int:
        return len(self.steps) + self.dropped

    def _read_file(self, path: Path) -> None:
        at = self._read_bytes.get(path, 0)
        if path.stat().st_size <= at:
            return
        with path.open("rb") as file:
            file.seek(at)
            data = file.read(_TURN_BYTES)
        # A progress bar ends its lines with a carriage return; what ends with neither is not whole yet.
        whole = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        if not whole and len(data) > _LONGEST_LINE:
            whole = len(data)  # no line of a step is so long
        self._read_bytes[path] = at + whole
        if any(word in data for word in _WORDS):
            self._take(data[:whole])

    def _take(self, data: bytes) -> None:
        for framework, each in steps_of_lines(data):
            time_s = each.seconds(
                sequences=self.sequences_per_step, tokens_per_gpu=self.tokens_per_step_per_gpu
            )
            known = self._told.setdefault(framework, {})
            if len(known) < MOST_STEPS or each.number in known:
                known[each.number] = TrainedStep(number=each.number, time_s=time_s, loss=each.loss)
            else:
                self.dropped += 1
