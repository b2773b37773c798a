"""The text of a file or of standard input, within bounds."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from linkwise.errors import DocumentError, Fault, nearest_names

if TYPE_CHECKING:
    from os import PathLike

__all__ = ["LARGEST_BYTES", "STANDARD_INPUT", "nearest_file", "read_text"]

LARGEST_BYTES = 10_000_000
"""Files larger than this are refused [bytes]."""

STANDARD_INPUT = "-"
"""The path that stands for standard input."""


def read_text(
    path: str | PathLike[str], *, stdin: BinaryIO | None = None, largest_bytes: int = LARGEST_BYTES
) -> str:
    """Return the text of a file in UTF-8.

    Parameters
    ----------
    path
        The file, or ``-`` for standard input.
    stdin
        What to read for ``-``; the standard input of the process if absent.
    largest_bytes
        A larger file is refused [bytes].

    Raises
    ------
    DocumentError
        If the file is missing, unreadable, larger than `largest_bytes`, or not UTF-8.
    """
    name = str(path)
    if name == STANDARD_INPUT:
        data = (stdin or sys.stdin.buffer).read(largest_bytes + 1)
        name = "<stdin>"
    else:
        data = _read_file(Path(path), largest_bytes)
    if len(data) > largest_bytes:
        raise _refused(name, f"is larger than {largest_bytes // 1_000_000} MB; no document needs that")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _refused(name, "is not UTF-8 text; save it as UTF-8", line=line) from None


def _read_file(path: Path, largest_bytes: int) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(largest_bytes + 1)
    except FileNotFoundError:
        raise _refused(str(path), f"no such file{nearest_file(path)}") from None
    except IsADirectoryError:
        raise _refused(str(path), "is a directory; give the file in it") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise _refused(str(path), f"cannot be read: {reason}") from None


def nearest_file(path: Path) -> str:
    """Return what to say of a file that is not there: the one beside it that was likely meant, or nothing.

    Parameters
    ----------
    path
        The file.
    """
    try:
        siblings = [each.name for each, _ in zip(path.parent.iterdir(), range(1000), strict=False)]
    except OSError:
        return f"; the folder {str(path.parent)!r} cannot be read either"
    for name in nearest_names(path.name, siblings):
        # An ending in common makes short names look alike that are not.
        if nearest_names(path.stem, [Path(name).stem]):
            return f"; did you mean {str(path.with_name(name))!r}?"
    return ""


def _refused(name: str, message: str, *, line: int | None = None) -> DocumentError:
    return DocumentError([Fault(path=name, line=line, message=message)])
