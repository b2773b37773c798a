"""Boxes, lines and words of a drawing as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

__all__ = ["BOX", "COLOURS", "LETTER", "Box", "drawn", "fitting", "line", "printable", "svg", "text"]

BOX = 34
"""Height of a box [px]."""

COLOURS = {"core": "#7c3aed", "spine": "#2563eb", "leaf": "#0d9488", "node": "#475569"}

LETTER = 6.6
"""Width of a letter of a name [px]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """Something drawn: what it is, its middle and its width [px]."""

    tier: str
    name: str
    x: float
    y: float
    width: float


def svg(width: float, height: float, parts: Sequence[str]) -> str:
    """Return a whole picture on white.

    Parameters
    ----------
    width, height
        Of the picture [px].
    parts
        What is in it, the undermost first.
    """
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" font-family="sans-serif" font-size="12">'
    )
    ground = f'<rect width="{width}" height="{height}" fill="white"/>'
    return "\n".join([opening, ground, *parts, "</svg>\n"])


def printable(words: str) -> str:
    """Return words with blanks for what cannot be printed.

    Parameters
    ----------
    words
        Any.
    """
    return "".join(each if each.isprintable() else " " for each in words)


def fitting(names: Sequence[str], width: float) -> str:
    """Return the first name that fits a box, else the last.

    Parameters
    ----------
    names
        From long to short.
    width
        Of the box [px].
    """
    return next((name for name in names if LETTER * len(name) + 6 <= width), names[-1])


def line(below: Box, above: Box) -> str:
    """Return a line from the top of one box to the foot of another.

    Parameters
    ----------
    below, above
        The boxes.
    """
    foot, head = below.y - BOX / 2, above.y + BOX / 2
    return (
        f'<line x1="{below.x:.1f}" y1="{foot:.1f}" x2="{above.x:.1f}" y2="{head:.1f}" stroke="#94a3b8" '
        'stroke-width="1"/>'
    )


def drawn(box: Box) -> str:
    """Return a box with its name.

    Parameters
    ----------
    box
        What to draw.
    """
    left, top = box.x - box.width / 2, box.y - BOX / 2
    return (
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{box.width:.1f}" height="{BOX}" rx="4" '
        f'fill="{COLOURS[box.tier]}"/>'
        + text(box.x, box.y + 4, box.name, fill="white", anchor="middle", size=11)
    )


def text(
    x: float,
    y: float,
    words: str,
    *,
    size: int = 12,
    fill: str = "#0f172a",
    weight: str = "normal",
    anchor: str = "start",
) -> str:
    """Return words at a place.

    Parameters
    ----------
    x, y
        Where [px].
    words
        What is written.
    size, fill, weight, anchor
        As SVG has them.
    """
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{fill}" font-weight="{weight}" '
        f'text-anchor="{anchor}">{escape(words)}</text>'
    )
