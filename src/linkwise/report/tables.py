"""Tables that never cut a number: columns that do not fit beside one another go into a further table."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TextIO, cast

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = ["Column", "console_for", "print_line", "split_table", "stated_width", "wrapped"]

PIPED_WIDTH = 100
"""Columns of text when the output is no terminal and COLUMNS is not set."""

_WIDEST = 10_000
_TRAILING_BLANKS = re.compile(r"[ ]+(?=\n)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of a table.

    Parameters
    ----------
    heading
        What stands above it.
    cells
        One text per row.
    justify
        To which side the cells are set.
    group
        Columns of one group are kept in one table where that is possible.
    """

    heading: str
    cells: tuple[str, ...]
    justify: Literal["left", "right"] = "right"
    group: str = ""

    @property
    def width(self) -> int:
        """Return the characters it needs, heading or cell, whichever is longer."""
        return max(len(line) for text in (self.heading, *self.cells) for line in text.split("\n"))


def console_for(file: TextIO | None = None, *, width: int | None = None) -> Console:
    """Return where tables are printed: in colour on a terminal unless NO_COLOR is set, plain elsewhere.

    Parameters
    ----------
    file
        Standard output, if absent.
    width
        Characters of a line; those of the terminal if absent.
    """
    from rich.console import Console

    target = file or sys.stdout
    width = width or stated_width() or (_terminal_width(target) if target.isatty() else PIPED_WIDTH)
    # Without a height rich would look at COLUMNS again, and at a worse reading of it.
    return Console(
        file=cast("TextIO", _WithoutTrailingBlanks(target)),
        width=width,
        height=100,
        highlight=False,
        markup=False,
        emoji=False,
        soft_wrap=False,
    )


class _WithoutTrailingBlanks:
    """A text stream on which no line ends in blanks: rich fills the last column of a table with them.

    Lines with styles, as on a terminal, end in an escape and stay as they are.
    """

    def __init__(self, target: TextIO) -> None:
        self._target = target

    def write(self, text: str) -> int:
        self._target.write(_TRAILING_BLANKS.sub("", text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._target, name)


def stated_width() -> int | None:
    """Return the characters of a line that COLUMNS states; ``None`` where it states no width above zero."""
    text = os.environ.get("COLUMNS", "")
    return min(int(text), _WIDEST) or None if text.isascii() and text.isdigit() else None


def _terminal_width(target: TextIO) -> int:
    try:
        return os.get_terminal_size(target.fileno()).columns or PIPED_WIDTH
    except (OSError, ValueError):  # looks like a terminal, and is none of the system's
        return PIPED_WIDTH


def print_line(console: Console, text: str = "", *, style: str | None = None) -> None:
    """Print text as it is, however long its lines.

    Parameters
    ----------
    console
        Where to.
    text
        Lines that were wrapped already.
    style
        A style of rich.
    """
    console.print(text, style=style, soft_wrap=True)


def split_table(
    columns: Sequence[Column], *, key: Column, width: int, best: int | None = 0
) -> Iterator[Table]:
    """Yield the tables that hold `columns` in order, each no wider than `width` where its columns allow it.

    Parameters
    ----------
    columns
        All columns but the key.
    key
        The first column of each of the tables.
    width
        Characters of a line.
    best
        The row that is set off from the others, from 0; ``None`` where none is.
    """
    for part in _parts(columns, width - key.width - _GAP):
        yield _table((key, *part), best=best)


_GAP = 2


def _parts(columns: Sequence[Column], room: int) -> Iterator[list[Column]]:
    part: list[Column] = []
    for group in _groups(columns):
        if _width([*part, *group]) > room and part:
            yield part
            part = []
        for column in group:
            if _width([*part, column]) > room and part:
                yield part
                part = []
            part.append(column)
    if part:
        yield part


def _groups(columns: Sequence[Column]) -> Iterator[list[Column]]:
    names = dict.fromkeys(column.group for column in columns)
    for name in names:
        yield [column for column in columns if column.group == name]


def _width(columns: Sequence[Column]) -> int:
    return sum(column.width + _GAP for column in columns) - _GAP


def _table(columns: Sequence[Column], *, best: int | None) -> Table:
    from rich.table import Table

    # With its own width the table is printed whole, were the terminal even narrower than its numbers.
    width = _width(columns)
    table = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False, header_style="bold", width=width)
    for column in columns:
        table.add_column(column.heading, justify=column.justify, no_wrap=True)
    for number, row in enumerate(zip(*(column.cells for column in columns), strict=True)):
        table.add_row(*row, style="green" if number == best and len(columns[0].cells) > 1 else None)
    return table


def wrapped(text: str, *, width: int, indent: str = "", first: str | None = None) -> str:
    """Return `text` in lines of at most `width` characters; words longer than that stay whole.

    Parameters
    ----------
    text
        Words.
    width
        Characters of a line.
    indent
        What every line starts with.
    first
        What the first line starts with instead.
    """
    import textwrap

    return textwrap.fill(
        text,
        width=max(width, 20),
        initial_indent=indent if first is None else first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
