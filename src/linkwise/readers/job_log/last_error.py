"""What a framework repeats of NCCL's last warning, beside or below the words *Last error*.

Notes
-----
PyTorch prints the words on a line of their own and NCCL's text on the next. Loggers put both on one line,
with the break written out as a backslash and an n; ranks that fail together print their lines in between; and
what comes after NCCL's text, such as *Traceback*, is often glued to it.

References
----------
PyTorch, torch/csrc/distributed/c10d/NCCLUtils.hpp (getNcclErrorDetailStr), https://github.com/pytorch/pytorch.
"""

from __future__ import annotations

import re

__all__ = ["WORDS", "line_below", "text_beside", "without_tail"]

WORDS = "Last error:"
_LINES = 24
_LONGEST = 4096
_TAIL = re.compile(r",? *(?:Traceback \(most recent call last\)|Exception raised from |terminate called ).*$")
_BREAK = "\\n"


def text_beside(text: str) -> str:
    """Return what stands behind the words on their own line; empty where nothing does.

    Parameters
    ----------
    text
        The line with the words.
    """
    rest = text.partition(WORDS)[2].strip()
    while rest.startswith(_BREAK):
        rest = rest[len(_BREAK) :].lstrip()
    return without_tail(rest.split(_BREAK)[0]).strip(" \"')")


def without_tail(text: str) -> str:
    """Return NCCL's text without what another program printed behind it.

    Parameters
    ----------
    text
        The line that repeats it.
    """
    return _TAIL.sub("", text).rstrip()


def line_below(chunk: bytes, start: int, mark: bytes) -> tuple[int, int] | None:
    """Return where the line is that belongs to the words; ``None`` where the chunk ends before it.

    Parameters
    ----------
    chunk
        Part of a log.
    start
        Where the line below the words begins.
    mark
        What stands before the words: the next line that begins so is of the same rank.
    """
    first: tuple[int, int] | None = None
    for _ in range(_LINES):
        if start >= len(chunk):
            break
        end = chunk.find(b"\n", start, start + _LONGEST)
        end = end if end >= 0 else min(len(chunk), start + _LONGEST)
        line = chunk[start:end]
        is_head = WORDS.encode() in line
        if not is_head and (not mark.strip() or line.startswith(mark)):
            return start, end
        if first is None and not is_head:
            first = start, end
        start = end + 1
    return first
