"""docs/accuracy.md: how far predictions are from published measurements, in and out of the fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from linkwise.report.wording import percent

if TYPE_CHECKING:
    from linkwise.calibrate.accuracy import Accuracy
    from linkwise.calibrate.measured import MeasuredRun
    from linkwise.calibrate.predict import PredictedRuns
    from linkwise.calibrate.regret import RegretGroup, RegretScore

__all__ = ["accuracy_markdown"]

_WORST_GROUPS = 6
_HEAD = """\
# Accuracy

This page is written by `make accuracy`; do not edit it. It scores the shipped model on the published
measurements of `tests/data/training.csv`, rows with task pretrain and use bench or core. `linkwise validate
training FILE.csv` prints the same for measurements of your own ([their columns](measurements.md)).

An error is predicted over measured step time, minus one: positive is too slow. The first figures are of the
shipped model, whose constants are fitted on two thirds of the groups (a publisher's runs of one model on one
GPU; a checksum of the name decides which), every source weighing alike (`make fit`). *Left out* predicts
each row with constants fitted without its publisher, and without the one constant that is held at a value
from a single publisher (`zero3_2021_traffic`, from six runs of SC21: it is what SC21 loses when left out).
The form of the terms, the habits of frameworks and the values that constants are drawn to were chosen with
all rows in sight, so that a new source may fare worse than either. All figures are percent.
"""


def accuracy_markdown(accuracy: Accuracy, figures: Mapping[str, float]) -> str:
    """Return the page.

    Parameters
    ----------
    accuracy
        The runs with their predictions.
    figures
        Figures of the bars, by name.
    """
    from linkwise.calibrate.fit import is_held_out
    from linkwise.calibrate.score import GROUPINGS

    parts = [_HEAD, _bars(figures)]
    parts.append(
        "## Rows the shipped constants were fitted on, and rows held out\n\nWithout VTRAIN-S.\n\n"
        + _groups(
            accuracy, lambda run: "held out" if is_held_out(run) else "fitted", "part", _without_composed
        )
    )
    parts.append("## By source\n\n" + _groups(accuracy, GROUPINGS["source"], "source"))
    parts.append(_by(accuracy, "interconnect", "By interconnect", _without_composed))
    parts.append(_by(accuracy, "family", "By framework family", _without_composed))
    parts.append(_by(accuracy, "framework", "By framework", _without_composed))
    parts.append(_by(accuracy, "gpu", "By GPU", _without_composed))
    parts.append(_by(accuracy, "kind", "Dense models and mixtures", _without_composed))
    parts.append(_by(accuracy, "complete", "Complete rows, and rows with a blank filled", _without_composed))
    parts += [_intervals(accuracy), _regret(accuracy), _memory(accuracy)]
    return "\n".join(parts)


def _table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(heading) + " |", "|---" + "|---:" * (len(heading) - 1) + "|"]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def _signed(fraction: float) -> str:
    words = percent(fraction)
    return words if words == "0" or words.startswith("-") else f"+{words}"


def _bars(figures: Mapping[str, float]) -> str:
    from linkwise.calibrate.accuracy import judged_bars

    rows = []
    for bar, value, met in judged_bars(figures):
        limits = [f"at least {100 * bar.low:g}"] if bar.low is not None else []
        limits += [f"at most {100 * bar.high:g}"] if bar.high is not None else []
        shown = "not known" if value is None else percent(value)
        rows.append((bar.words, ", ".join(limits), shown, "kept" if met else "**missed**"))
    return "## What is held\n\n" + _table(("figure [%]", "bar", "now", ""), rows)


def _without_composed(run: MeasuredRun) -> bool:
    from linkwise.calibrate.accuracy import COMPOSED_SOURCE

    return run.source != COMPOSED_SOURCE


def _by(accuracy: Accuracy, key: str, title: str, keep: Callable[[MeasuredRun], bool]) -> str:
    from linkwise.calibrate.score import GROUPINGS

    return f"## {title}\n\nWithout VTRAIN-S.\n\n" + _groups(accuracy, GROUPINGS[key], key, keep)


def _groups(
    accuracy: Accuracy,
    name_of: Callable[[MeasuredRun], str],
    heading: str,
    keep: Callable[[MeasuredRun], bool] = lambda _: True,
) -> str:
    runs = accuracy.shipped.runs
    names = np.array([name_of(run) if keep(run) else "" for run in runs], dtype=object)
    several = heading != "source"
    titles = [heading, "rows", *(["sources"] if several else []), "median", "MAPE", "bias"]
    titles += ["left out: median", "MAPE", "bias"]
    rows = []
    for name in sorted(set(names) - {""}):
        where = np.flatnonzero(names == name)
        sources = [str(len({runs[row].source for row in where}))] if several else []
        out = ("", "", "") if accuracy.left_out is None else _errors(accuracy.left_out, where)
        rows.append((name, f"{len(where):,}", *sources, *_errors(accuracy.shipped, where), *out))
    return _table(titles, rows)


def _errors(predicted: PredictedRuns, rows: np.ndarray) -> tuple[str, str, str]:
    error = predicted.error_fraction[rows]
    return (
        percent(float(np.median(abs(error)))),
        percent(float(np.mean(abs(error)))),
        _signed(float(np.mean(error))),
    )


def _intervals(accuracy: Accuracy) -> str:
    shipped, left_out = accuracy.shipped, accuracy.left_out
    names = np.array([run.interconnect_class for run in shipped.runs], dtype=object)
    groups = [("all rows", np.arange(len(names)))]
    groups += [(name, np.flatnonzero(names == name)) for name in sorted(set(names))]
    rows = []
    for name, where in groups:
        outside = "" if left_out is None else percent(float(np.mean(left_out.covered[where])))
        width = percent(float(np.median(shipped.width_fraction[where])))
        inside = percent(float(np.mean(shipped.covered[where])))
        rows.append((name, f"{len(where):,}", inside, width, outside))
    return (
        "## Intervals\n\nShare of rows whose measured time lies in the stated 80 % interval, which comes "
        "from the errors of\nrows left out of a fit, by framework family, kind of model and interconnect.\n\n"
        + _table(("interconnect", "rows", "inside", "median width", "left out: inside"), rows)
    )


def _regret(accuracy: Accuracy) -> str:
    text = (
        "## Decision regret\n\nMeasured time of the layout that the model ranks first over the best one "
        "measured, minus one; groups of\nthree layouts or more that differ in nothing else. A layout within "
        "3 % of the best has none.\n\n"
    )
    kinds = (("VTRAIN-S", True), ("all others", False))
    rows = [(name, *_regret_cells(accuracy.regret(composed=composed))) for name, composed in kinds]
    text += _table(("", "groups", "mean", "95th percentile", "worst"), rows)
    for name, composed in kinds:
        groups = accuracy.regret_groups(composed=composed)
        text += f"\nThe worst of {name}:\n\n" + "".join(_worst_lines(groups))
    return text


def _regret_cells(score: RegretScore) -> tuple[str, ...]:
    figures = (score.mean_fraction, score.p95_fraction, score.max_fraction)
    return (str(score.groups), *("-" if each is None else percent(each) for each in figures))


def _worst_lines(groups: Sequence[RegretGroup]) -> Iterator[str]:
    for group in (each for each in groups[:_WORST_GROUPS] if each.regret_fraction > 0):
        share = percent(group.regret_fraction)
        yield f"- {share} %: {group.name}, {group.layouts} layouts; {group.reason}.\n"


def _memory(accuracy: Accuracy) -> str:
    from linkwise.calibrate.peak_memory import peak_errors, score_memory

    shipped = accuracy.shipped
    where, errors = peak_errors(shipped)
    names = np.array([f"{shipped.runs[row].source}, {shipped.runs[row].peak_memory_kind}" for row in where])
    rows = [("all", np.ones(len(where), dtype=bool)), *((name, names == name) for name in sorted(set(names)))]
    cells = [
        (
            str(name),
            str(int(np.sum(chosen))),
            percent(float(np.median(abs(errors[chosen])))),
            _signed(float(np.mean(errors[chosen]))),
        )
        for name, chosen in rows
        if np.any(chosen)
    ]
    score = score_memory(shipped)
    wrong = ", ".join(score.infeasible_ids) or "none"
    return (
        "## Memory\n\nPeak of the fullest GPU, rows with a measured peak and a complete layout; what the "
        "source calls allocated\nis compared with what the allocator hands out, anything else with what it "
        "holds.\n\n"
        + _table(("source, kind of peak", "rows", "median", "bias"), cells)
        + f"\nRuns that happened and are said not to fit: {score.infeasible} ({wrong}).\n"
    )
