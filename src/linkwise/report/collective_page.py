"""The page docs/collectives.md: how far predicted times of collectives are from measured ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from linkwise.report.wording import percent

if TYPE_CHECKING:
    from linkwise.calibrate.collective_score import CollectiveErrors, CollectiveScore

__all__ = ["accuracy_entry", "collective_page"]

_HEAD = """\
# Accuracy of collectives

This page is written by `python tools/fit_collectives.py --write`; do not edit it. It scores `linkwise
collective` on the published runs of `tests/data/collectives.csv`; `linkwise validate collectives ROWS.csv
--runs RUNS.csv` prints the same for runs of your own.

An error is predicted over measured time, minus one: positive is too slow. *In sample* is the shipped model,
whose constants are fitted on these very runs. *Left out* predicts each run with constants fitted without its
source. Constants that were read off the curves, the form of the terms and the ratio from which a run is
flagged were chosen with all runs in sight, so that a new source may fare worse than either. The 90 %
interval is made of the errors left out. The largest runs have 128 GPUs; nothing is known of larger ones. All
figures are percent.
"""
_TITLES = {
    "size_class": "By size",
    "reach": "By reach and size",
    "collective": "By collective, from 1 MiB",
    "inter_kind": "By network, from 1 MiB",
}
_FIGURES = ("median_abs_error_fraction", "mape_fraction", "bias_fraction", "within_25_fraction")


def accuracy_entry(score: CollectiveScore) -> dict[str, Any]:
    """Return the figures of a score that the page and `validate collectives` quote.

    Parameters
    ----------
    score
        The score; it has rows.
    """
    if score.errors is None:
        raise ValueError("no row could be scored")
    groups = [
        {"key": group.key, "name": group.name, **_figures(group.errors)}
        for group in score.by
        if group.key in _TITLES
    ]
    return {
        "run_median_fraction": _rounded(score.run_median_fraction),
        "multi_node_run_median_fraction": _rounded(score.multi_node_run_median_fraction),
        "groups": groups,
    }


def collective_page(accuracy: Mapping[str, Any]) -> str:
    """Return the page.

    Parameters
    ----------
    accuracy
        Entries ``in_sample`` and ``left_out`` as `accuracy_entry` gives them.
    """
    return "\n".join([_HEAD, *_runs(accuracy), *_groups(accuracy)]) + "\n"


def _runs(accuracy: Mapping[str, Any]) -> Iterator[str]:
    yield "| median over runs of a run's median, from 1 MiB | in sample | left out |"
    yield "|---|---:|---:|"
    for name, words in (("run_median_fraction", "all"), ("multi_node_run_median_fraction", "several nodes")):
        yield f"| {words} | {' | '.join(_text(accuracy[part][name]) for part in ('in_sample', 'left_out'))} |"


def _groups(accuracy: Mapping[str, Any]) -> Iterator[str]:
    left = {(one["key"], one["name"]): one for one in accuracy["left_out"]["groups"]}
    for key, title in _TITLES.items():
        yield f"\n## {title}\n"
        yield "|  | rows | median | MAPE | bias | in 25 % | left out: median | MAPE | bias | in 25 % |"
        yield "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
        for one in accuracy["in_sample"]["groups"]:
            if one["key"] == key:
                cells = [*_cells(one), *_cells(left[key, one["name"]])]
                yield f"| {one['name']} | {one['scored']:,} | {' | '.join(cells)} |"


def _cells(figures: Mapping[str, Any]) -> list[str]:
    texts = {name: _text(figures[name]) for name in _FIGURES}
    if figures["bias_fraction"] > 0:
        texts["bias_fraction"] = "+" + texts["bias_fraction"]
    return list(texts.values())


def _text(fraction: float | None) -> str:
    return "-" if fraction is None else percent(fraction)


def _figures(errors: CollectiveErrors) -> dict[str, Any]:
    return {"scored": errors.scored, **{name: _rounded(getattr(errors, name)) for name in _FIGURES}}


def _rounded(fraction: float | None) -> float | None:
    return None if fraction is None else round(fraction, 4)
