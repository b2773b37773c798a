"""How a job ended, and its reason in words: from what torchrun and the ranks said."""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Ending", "Outcome", "ending_of"]

_TORCHRUN_FAILURE = re.compile(r"failed \(exitcode: (-?\d{1,5})\) local_rank: (\d{1,7}) \(pid: \d{1,10}\)")
_TORCHRUN_SIGNAL = re.compile(r"exitcode\s*:\s*(-\d{1,3})\b")
_TORCHRUN_RANK = re.compile(r"^\s*rank\s*:\s*(\d{1,7})\b")
_TORCHRUN_HOST = re.compile(r"^\s*host\s*:\s*(\S{1,255})")
_LABEL = re.compile(r"(\d{1,6}): (.*)")
"""What srun puts before each line of a task."""
_LOST_NODE = re.compile(r"srun: error: Node failure on (\S{1,255})")
_NO_TORCH = re.compile(r"No module named '?torch\b")
_SECONDARY_SIGNALS = (signal.SIGTERM, signal.SIGABRT)
"""How torchrun stops the other ranks, and how gloo may end after a peer is gone."""
_SECONDARY_WORDS = ("Connection closed by peer", "Connection reset by peer", "remote process exited")
_EXCERPT_LINES = 3


class Outcome(StrEnum):
    """How a job ended."""

    RUNNING = "running"
    """It has not: only in the record of a job that runs, or whose launcher is gone."""
    DONE = "done"
    FAILED = "failed"
    SILENT = "silent"
    """It said nothing for longer than it may, and was stopped."""
    NOT_STARTED = "not started"
    """Its ranks never came together, and it was stopped."""
    CUT = "cut"
    """It left without an error, and without saying that it is done."""
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a job ended.

    Parameters
    ----------
    outcome
        In a word.
    reason
        Why, one sentence without a full stop; empty where it went well.
    exit_code
        Of the job's first process; negative for a signal, ``None`` where it had none.
    """

    outcome: Outcome
    reason: str = ""
    exit_code: int | None = None


def ending_of(
    *, exit_code: int, is_complete: bool, failures: Sequence[Mapping[str, object]], output: Sequence[str]
) -> Ending:
    """Return how a job that left by itself ended.

    Parameters
    ----------
    exit_code
        Of its first process.
    is_complete
        Whether it said that it is done.
    failures
        What ranks said before they left: ``rank`` and ``error``.
    output
        Its last lines of other output.
    """
    if exit_code == 0 and is_complete:
        return Ending(outcome=Outcome.DONE, exit_code=0)
    reason = _reason(failures, output)
    if exit_code == 0:
        return Ending(
            outcome=Outcome.CUT,
            reason=reason or "its output ends in the middle: it never said that it is done",
            exit_code=0,
        )
    return Ending(
        outcome=Outcome.FAILED,
        reason=reason or f"it left with exit code {exit_code}{_excerpt(output)}",
        exit_code=exit_code,
    )


def _reason(failures: Sequence[Mapping[str, object]], output: Sequence[str]) -> str:
    """Return the first cause: a node or rank that is gone, else the first error that echoes no other."""
    lost = next((match[1] for match in map(_LOST_NODE.search, output) if match), None)
    if lost is not None:
        return f"node {lost} does not answer any more: Slurm gave it up, and ended the job"
    killed = _killed(output)
    if killed:
        return killed
    told = [f"rank {each.get('rank')}: {str(each.get('error'))[:600]}" for each in failures]
    own = [text for text in told if not any(word in text for word in _SECONDARY_WORDS)]
    if own or told:
        return (own or told)[0]
    if any(map(_NO_TORCH.search, output)):
        return "this Python has no torch; pip install 'linkwise[torch]', or name one that has with --python"
    return ""


def _killed(output: Sequence[str]) -> str:
    """Return which rank was ended by a signal, by torchrun's word: its report, else the line before it.

    The line has the number of the rank on its node alone.
    """
    by_line = ""
    seen: dict[str, dict[str, str]] = {}
    for line in output:
        label, text = match.groups() if (match := _LABEL.match(line)) else ("", line)
        report = seen.setdefault(label, {})
        for name, pattern in (("host", _TORCHRUN_HOST), ("rank", _TORCHRUN_RANK)):
            if match := pattern.search(text):
                report[name] = match[1]
        if match := _TORCHRUN_FAILURE.search(text):
            where = f"a rank (local rank {match[2]} of {f'node {label}' if label else 'its node'})"
            by_line = by_line or _killed_text(where, int(match[1]))
        elif (match := _TORCHRUN_SIGNAL.search(text)) and "rank" in report:
            host = f" on {report['host']}" if label and "host" in report else ""
            if told := _killed_text(f"rank {report['rank']}", int(match[1]), host):
                return told
    return by_line


def _killed_text(who: str, code: int, host: str = "") -> str:
    """Return that a signal ended a rank; empty where none did, or one that torchrun sends to the others."""
    if code >= 0 or -code in _SECONDARY_SIGNALS:
        return ""
    return f"{who} was killed by signal {-code} ({_signal_name(-code)}){host}{_memory(-code)}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"


def _memory(number: int) -> str:
    return "; the kernel does that when memory runs out" if number == signal.SIGKILL else ""


def _excerpt(output: Sequence[str]) -> str:
    last = [line.strip()[:200] for line in output if line.strip()][-_EXCERPT_LINES:]
    return "; it last said: " + " | ".join(last) if last else ", and said nothing"
