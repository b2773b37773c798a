"""Steps that a training program prints, read from its output as it grows.

References
----------
NVIDIA, Megatron-LM, megatron/training/training.py. PyTorch, torchtitan, torchtitan/components/metrics.py.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["MOST_STEPS", "StepLog", "TrainedStep", "steps_in"]

MOST_STEPS = 100_000
"""Steps that are kept; later ones are counted only."""
_LONGEST_LINE = 8_192
_TURN_BYTES = 4 << 20
_MOST_FILES = 4_096

_NUMBER = rb"(\d{1,12}(?:\.\d{1,12})?(?:[eE][+-]?\d{1,3})?)"
_OWN = re.compile(rb"\bstep (\d{1,9}) loss \S{1,20} time " + _NUMBER + rb" s tokens/s \d")
_MEGATRON = re.compile(
    rb"\biteration\s{1,20}(\d{1,9})/\s{0,20}\d{1,9} \|[^\n]{0,400}?elapsed time per iteration \(ms\):\s{0,5}"
    + _NUMBER
)
_TITAN = re.compile(rb"\bstep:\s{0,12}(\d{1,9})\s{1,12}loss:[^\n]{0,300}?\btps:\s{0,12}([\d,]{1,20})")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainedStep:
    """One step, as its program tells of it.

    Parameters
    ----------
    number
        By the count of the program.
    time_s
        How long it took [s].
    """

    number: int
    time_s: float


def steps_in(data: bytes, *, tokens_per_step_per_gpu: float) -> Iterator[TrainedStep]:
    """Yield the steps that lines tell of.

    Parameters
    ----------
    data
        Whole lines.
    tokens_per_step_per_gpu
        What turns a rate per GPU into a time [tokens].
    """
    if b"tep" not in data and b"iteration" not in data:
        return
    for match in _OWN.finditer(data):
        yield from _step(match[1], float(match[2]))
    for match in _MEGATRON.finditer(data):
        yield from _step(match[1], float(match[2]) * 1e-3)
    for match in _TITAN.finditer(data):
        rate = float(match[2].replace(b",", b"") or b"0")
        yield from _step(match[1], tokens_per_step_per_gpu / rate if rate else 0.0)


def _step(number: bytes, time_s: float) -> Iterator[TrainedStep]:
    if 0 < time_s < float("inf"):
        yield TrainedStep(number=int(number), time_s=time_s)


@dataclass(slots=True)
class StepLog:
    """The steps of a job, from its output and from the logs of its ranks.

    Parameters
    ----------
    folder
        The run folder.
    tokens_per_step_per_gpu
        As for `steps_in`.

    Notes
    -----
    Which rank prints is the habit of the program: Megatron's last, others' first. A step that several files
    tell of counts once; after an elastic restart the later telling counts.
    """

    folder: Path
    tokens_per_step_per_gpu: float
    steps: dict[int, TrainedStep] = field(default_factory=dict)
    dropped: int = 0
    _read_bytes: dict[Path, int] = field(default_factory=dict)
    _files: tuple[Path, ...] = ()

    def look(self) -> None:
        """Look for files that are new."""
        found = [self.folder / "output.log"]
        for logs in sorted(self.folder.glob("logs*")):
            found += [path for _, path in zip(range(_MOST_FILES), logs.rglob("stdout.log"), strict=False)]
        self._files = tuple(found)

    def read(self) -> int:
        """Read what was added, and return how many steps that told of."""
        before = len(self.steps) + self.dropped
        for path in self._files:
            with contextlib.suppress(OSError):
                self._read_file(path)
        return len(self.steps) + self.dropped - before

    def _read_file(self, path: Path) -> None:
        at = self._read_bytes.get(path, 0)
        if path.stat().st_size <= at:
            return
        with path.open("rb") as file:
            file.seek(at)
            data = file.read(_TURN_BYTES)
        whole = data.rfind(b"\n") + 1
        if not whole and len(data) > _LONGEST_LINE:
            whole = len(data)  # no line of a step is so long
        self._read_bytes[path] = at + whole
        for each in steps_in(data[:whole], tokens_per_step_per_gpu=self.tokens_per_step_per_gpu):
            if len(self.steps) < MOST_STEPS or each.number in self.steps:
                self.steps[each.number] = each
            else:
                self.dropped += 1
