"""One line of a log: its prefix told from its message, whatever launcher wrote before it."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = [
    "LONGEST_LINE",
    "Prefix",
    "clean_text",
    "line_bounds",
    "line_end",
    "parse_prefix",
    "printable",
    "unescaped",
]

LONGEST_LINE = 4096
"""Bytes of a line that are looked at; NCCL cuts its own at 1023 [bytes]."""

_SHOWN = 500
_ESCAPES = re.compile(
    "\x1b\\[[0-9;:?]*[ -/]*[@-~]|\x1b\\][^\x07\x1b]*(?:\x07|\x1b\\\\)?|\x1b.?|[\x00-\x08\x0b-\x1f\x7f-\x9f]"
    "|[\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]"
)
_PREFIX = re.compile(
    rb"""(<[\w.-]+>|[^\s:<>\[\]()|"',/]+):(\d{1,10}):(\d{1,10})(?:[ ]\[(-?\d+)\])?"""
    rb"""(?:[ ]((?!NCCL[ ])\S[^\r\n]{0,199}?):\d+(?:[ ]\(\w+\))?)?[ ]?(?:NCCL[ ](?:INFO|WARN)[ ])?$"""
)
_BARE_SOURCE = re.compile(rb"([\w./-]+\.(?:cc|cu|c|h)):\d+(?:[ ]\(\w+\))?[ ]?(?:NCCL[ ]WARN[ ])?$")
"""What is left of a prefix where a line was picked out without its process."""

_HTML = ((b"&lt;", b"<"), (b"&gt;", b">"), (b"&#39;", b"'"), (b"&quot;", b'"'), (b"&amp;", b"&"))
_BYTES_ESCAPES = re.compile(rb"\x1b\[[0-9;:?]*[ -/]*[@-~]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefix:
    """What stands before the word NCCL.

    Parameters
    ----------
    host, pid
        The process; ``None`` where the prefix is torn.
    device
        The CUDA device current in the thread; ``None`` where it is not printed.
    source
        The source file or function that a warning names.
    """

    host: str | None = None
    pid: int | None = None
    device: int | None = None
    source: str = ""


def parse_prefix(raw: bytes) -> Prefix:
    """Return the process that a prefix names.

    Parameters
    ----------
    raw
        The line up to the word NCCL, with whatever a launcher wrote before it.
    """
    if b"\x1b" in raw:
        raw = _BYTES_ESCAPES.sub(b"", raw)
    found = _PREFIX.search(raw.rpartition(b"#012")[2])
    if found is None:
        bare = _BARE_SOURCE.search(raw)
        return Prefix(source=bare[1].decode("utf-8", "replace")) if bare else Prefix()
    host, pid, _, device, source = found.groups()
    return Prefix(
        host=printable(host.decode("utf-8", "replace")),
        pid=int(pid),
        device=None if device is None else int(device),
        source="" if source is None else printable(source.decode("utf-8", "replace")),
    )


def printable(text: str) -> str:
    """Return text without what a terminal acts on.

    Parameters
    ----------
    text
        Such as the name of a file.
    """
    return _ESCAPES.sub("", text)


def clean_text(raw: bytes, *, most: int = _SHOWN) -> str:
    """Return a line as text that no terminal acts on, cut to a bounded length.

    Parameters
    ----------
    raw
        Bytes of the line.
    most
        Characters that are kept.
    """
    text = _ESCAPES.sub("", raw[:LONGEST_LINE].decode("utf-8", "replace")).rstrip()
    return text if len(text) <= most else text[: most - 3] + "..."


def unescaped(chunk: bytes) -> bytes:
    """Return a chunk without the escapes of HTML that a web page left in a copied log.

    Parameters
    ----------
    chunk
        Bytes of a log.
    """
    # One byte is found much faster than a word, and few logs have this one.
    if b"&" not in chunk or (b"&lt;" not in chunk and b"-&gt;" not in chunk):
        return chunk
    for escape, character in _HTML:
        chunk = chunk.replace(escape, character)
    return chunk


def line_bounds(chunk: bytes, position: int) -> tuple[int, int]:
    """Return where the line of a position begins and ends, cut where it is too long.

    Parameters
    ----------
    chunk, position
        A position in a chunk.
    """
    low = max(0, position - LONGEST_LINE)
    start = chunk.rfind(b"\n", low, position) + 1
    return max(start, low), line_end(chunk, position)


def line_end(chunk: bytes, position: int) -> int:
    """Return where the line of a position ends, cut where it is too long.

    Parameters
    ----------
    chunk, position
        A position in a chunk.
    """
    end = chunk.find(b"\n", position, position + LONGEST_LINE)
    return end if end >= 0 else min(len(chunk), position + LONGEST_LINE)
