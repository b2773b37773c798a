"""The curves behind the network wall, as a picture; needs matplotlib, the extra `plot`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from linkwise.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes

    from linkwise.report.comparison import CompareResult, WallResult

__all__ = ["SUFFIXES", "check_plot", "plot_walls"]

SUFFIXES = (".svg", ".png", ".pdf")
"""Kinds of pictures, by the end of the name of their file."""

_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
"""Told apart by colour-blind readers (Okabe and Ito, Color Universal Design, 2008)."""

_STROKES = ("-", "--", ":", "-.")
"""The stroke changes when the colours are used up."""


def check_plot(path: Path) -> None:
    """Refuse what cannot be drawn, before anything is computed.

    Parameters
    ----------
    path
        Where the picture would go.

    Raises
    ------
    InputError
        When the end of the name is none of `SUFFIXES`, the folder is missing, or matplotlib is.
    """
    import importlib.util

    if path.suffix.lower() not in SUFFIXES:
        raise InputError(f"--plot: {path} is no picture; end its name with {', '.join(SUFFIXES)}")
    if not path.parent.is_dir():
        raise InputError(f"--plot: {path}: there is no directory {path.parent}")
    if importlib.util.find_spec("matplotlib") is None:
        raise InputError("--plot: needs matplotlib, which is not installed: pip install 'linkwise[plot]'")


def plot_walls(result: CompareResult, path: Path) -> None:
    """Draw throughput per GPU and exposed communication of each cluster as it grows.

    Parameters
    ----------
    result
        The comparison as it is published; `has_curves` is true of it.
    path
        Where to; an older picture is written over. The same comparison gives the same bytes.

    Raises
    ------
    OSError
        When the file cannot be written.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({"svg.hashsalt": "linkwise", "font.size": 9}):
        figure = Figure(figsize=(10, 4.8), layout="constrained")
        speed, share = figure.subplots(1, 2)
        for place, wall in enumerate(result.wall):
            style = {"color": _COLOURS[place % len(_COLOURS)], "linestyle": _stroke(place), "marker": "o"}
            label = _plain(f"{place + 1}  {wall.name}")
            speed.plot(*_points(_speeds(wall)), label=label, markersize=3, **style)
            share.plot(*_points(_shares(wall)), markersize=3, **style)
        batch = "batch grows with the GPUs" if result.scaling == "weak" else "one batch"
        _draw_line_of_the_wall(share, 100 * result.wall_share_fraction)
        _dress(speed, f"GPUs ({batch})", "tokens/s per GPU [% of the first size]")
        _dress(share, f"GPUs ({batch})", "exposed communication [% of the step]")
        figure.suptitle(_plain(f"{result.job.model}, {result.job.precision}, {result.job.framework}"))
        figure.legend(loc="outside lower center", ncols=2, frameon=False)
        kind = path.suffix.lower()
        dated = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(kind)
        figure.savefig(path, dpi=150, metadata=dated)


def _stroke(place: int) -> str:
    return _STROKES[place // len(_COLOURS) % len(_STROKES)]


def _plain(text: str) -> str:
    """Return text that is drawn as it is: matplotlib reads formulas between dollar signs."""
    return text.replace("$", r"\$")


def _speeds(wall: WallResult) -> Iterator[tuple[int, float | None]]:
    found = [each.tokens_per_s_per_gpu for each in wall.points]
    first = next((speed for speed in found if speed is not None), 1.0)
    for point, speed in zip(wall.points, found, strict=True):
        yield point.gpus, None if speed is None else 100 * speed / first


def _shares(wall: WallResult) -> Iterator[tuple[int, float | None]]:
    for point in wall.points:
        yield point.gpus, None if point.exposed_fraction is None else 100 * point.exposed_fraction


def _points(curve: Iterator[tuple[int, float | None]]) -> tuple[list[int], list[float]]:
    known = [(gpus, value) for gpus, value in curve if value is not None]
    return [gpus for gpus, _ in known], [value for _, value in known]


def _draw_line_of_the_wall(axes: Axes, percent: float) -> None:
    axes.axhline(percent, color="0.4", linewidth=0.8, linestyle=(0, (4, 3)))
    axes.annotate(f"wall, {percent:g} %", (0.01, percent), xycoords=("axes fraction", "data"), va="bottom")


def _dress(axes: Axes, below: str, beside: str) -> None:
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.tick_params("x", rotation=30)
    axes.set_xlabel(below)
    axes.set_ylabel(beside)
    axes.set_ylim(0, 1.08 * axes.dataLim.y1)
    axes.grid(color="0.9")
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
