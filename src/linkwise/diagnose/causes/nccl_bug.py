"""A fault of NCCL itself that another release mends, with no wrong setting."""

from __future__ import annotations

import re

from linkwise.diagnose.facts import Facts
from linkwise.diagnose.finding import Confidence, Finding, Severity, finding
from linkwise.readers.job_log.values import Evidence, Sighting

__all__ = ["nccl_bug"]

_IMPORTING = ("ImportShareableBuffer", "GetFdBlocking", "CallBlocking")
_DEBUGGERS = ("gdb", "py-spy", "pstack", "eu-stack", "cuda-gdb")
_FRAME = re.compile(r"\bnccl[A-Z]\w+ ?\(")
_CUMEM_DEADLOCK = ((2, 18), (2, 20))


def nccl_bug(facts: Facts) -> Finding | None:
    """Return the finding when a stack of a process that stands still, or crashed, ends in NCCL.

    Parameters
    ----------
    facts
        What is known of the job.

    Notes
    -----
    A deadlock prints nothing; only a stack shows it. Waiting in NCCL is also what every rank does whose peer
    is
    missing, so that the finding is weak unless the stack is that of a known deadlock.

    References
    ----------
    NVIDIA, NCCL release notes, 2.19 and 2.20: deadlock while connecting with cuMem.
    """
    frames: list[Sighting | Evidence] = [*facts.seen("nccl_frame"), *_stack_lines(facts)]
    if not frames:
        return _name_taken(facts)
    version = facts.version
    importing = any(word in _text(each) for each in frames for word in _IMPORTING)
    is_known = importing and version is not None and _CUMEM_DEADLOCK[0] <= version[:2] <= _CUMEM_DEADLOCK[1]
    crashed = facts.seen("crashed")
    return finding(
        "nccl_bug",
        Severity.BROKEN,
        Confidence.MEDIUM if is_known or crashed else Confidence.LOW,
        proof=[*frames, *crashed],
        explanation=(
            "The process "
            + ("crashed in NCCL." if crashed else "stands still in NCCL while it connects to a peer.")
            + " Releases 2.18 to 2.20 can deadlock so when they exchange cuMem handles." * is_known
        ),
        fix=(
            "use another release of NCCL",
            *(("NCCL_CUMEM_ENABLE=0 avoids it",) if importing else ()),
        ),
        next_check="py-spy dump --native on every rank: one that is elsewhere, or all in NCCL",
    )


def _name_taken(facts: Facts) -> Finding | None:
    """Find two communicators of a process that ask for one name of a local socket, as in 2.20.3."""
    lines = [each for each in facts.warned("uds_failed") if "already in use" in each.fields["text"]]
    if not lines or facts.version not in {None, (2, 20, 3)}:
        return None
    return finding(
        "nccl_bug",
        Severity.BROKEN,
        Confidence.MEDIUM if facts.version else Confidence.LOW,
        proof=lines,
        explanation=(
            "Two communicators of a process ask for one name of a local socket. NCCL 2.20.3 does so after"
            " ncclCommSplit, and 2.20.5 mends it; containers that share /tmp, and not their process"
            " numbers, can collide likewise."
        ),
        fix=("use NCCL 2.20.5 or later",),
        next_check="NCCL_DEBUG=VERSION; whether containers of the host mount one /tmp",
    )


def _stack_lines(facts: Facts) -> list[Evidence]:
    return [
        output.evidence_at(number)
        for name in _DEBUGGERS
        for output in facts.commands(name)
        for number, line in enumerate(output.lines)
        if _FRAME.search(line)
    ]


def _text(each: Sighting | Evidence) -> str:
    return each.evidence.text if isinstance(each, Sighting) else each.text
