"""The table of messages, and the two indexes by which a line finds its own."""

from __future__ import annotations

import re
from collections.abc import Iterator

from linkwise.readers.job_log.error_messages import ERROR_MESSAGES
from linkwise.readers.job_log.host_messages import HOST_MESSAGES as _OF_HOSTS
from linkwise.readers.job_log.message import Message
from linkwise.readers.job_log.start_messages import START_MESSAGES
from linkwise.readers.job_log.warning_messages import WARNING_MESSAGES

__all__ = ["BORING_HEADS", "HOST_MESSAGES", "INFO_MESSAGES", "NCCL_MESSAGES", "matches", "unprefixed"]

INFO_MESSAGES: tuple[Message, ...] = START_MESSAGES + ERROR_MESSAGES
"""What is looked for in lines of information, most of a log: faults too, which some releases say so."""

NCCL_MESSAGES: tuple[Message, ...] = INFO_MESSAGES + WARNING_MESSAGES
"""What is looked for in lines of NCCL and RCCL; one line may be several."""

_BARE = {"Duplicate GPU detected", "GPU Direct RDMA", "NET/OFI", "any optimal provider"}

HOST_MESSAGES: tuple[Message, ...] = _OF_HOSTS + tuple(
    each for each in NCCL_MESSAGES if each.literal in _BARE
)
"""What is looked for in all other lines: those of hosts, and NCCL's that are known without their prefix.

A line that was picked out, quoted, or printed by a plug-in outside of a job has lost it.
"""

BORING_HEADS: frozenset[bytes] = frozenset(
    {
        b"Trees [0", b"Trees [1", b"Tree 0 :", b"Setting ", b"P2P Chun", b"threadTh", b"AllReduc", b"AllGathe",
        b"ReduceSc", b"Broadcas", b"SendRecv", b"Send: op", b"Recv: op", b"Connecte", b"[Proxy S", b"Reduce: ",
    }
)  # fmt: skip
"""First eight bytes of information lines that come by the million; the first few hundred are looked at.

Warnings are never skipped by these.
"""

_CCL_INSIDE = re.compile(r"NCCL (?:INFO|WARN)")


def matches(text: str, messages: tuple[Message, ...]) -> Iterator[tuple[Message, dict[str, str]]]:
    """Yield the messages a line is, with their fields.

    Parameters
    ----------
    text
        The line, or the part of it after its prefix.
    messages
        The table to look in.
    """
    for each in messages:
        if each.literal in text and (found := each.pattern.search(text)):
            yield each, {name: value for name, value in found.groupdict().items() if value}


def unprefixed(text: str) -> Iterator[tuple[Message, dict[str, str]]]:
    """Yield the messages of NCCL that a framework repeats without NCCL's prefix, as under *Last error*.

    Parameters
    ----------
    text
        The line.
    """
    if _CCL_INSIDE.search(text):
        return
    yield from matches(text, ERROR_MESSAGES + WARNING_MESSAGES)
