"""Every row of a file with its prediction, interval and parts, as a CSV; one that was left out says why."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from linkwise.calibrate.measured import LeftOut
    from linkwise.calibrate.predict import PredictedRuns

__all__ = ["ADDED_COLUMNS", "scored_rows_csv"]

_LAYOUT_COLUMNS = (
    "filled_vpp",
    "filled_zero_stage",
    "filled_micro_batch",
    "filled_recompute",
    "filled_seq_parallel",
)
_BEFORE_PARTS = (
    "predicted_step_time_s",
    "low_s",
    "high_s",
    "error_fraction",
)
_AFTER_PARTS = (
    "predicted_memory_bytes",
    "memory_available_bytes",
    "memory_feasible",
    "assumed",
    "filled",
    *_LAYOUT_COLUMNS,
    "left_out",
)
ADDED_COLUMNS = (*_BEFORE_PARTS, *_AFTER_PARTS)
"""Columns that are added to those of the file, apart from the parts; one of the same name is replaced.

``assumed`` names every cell that was not stated: those the file names, and those that were blank and were
filled (``filled``). ``left_out`` is the reason why a row was not scored.
"""


def scored_rows_csv(predicted: PredictedRuns, left_out: Sequence[LeftOut] = ()) -> str:
    """Return rows as the text of a CSV file, those that were left out last.

    Parameters
    ----------
    predicted
        The scored rows with their predictions.
    left_out
        Rows that were not scored.
    """
    given = [*(run.row for run in predicted.runs), *(one.row for one in left_out)]
    own = dict.fromkeys(column for row in given for column in row)
    added = (*_BEFORE_PARTS, *predicted.parts, *_AFTER_PARTS)
    columns = [*(column for column in own if column not in added), *added]
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n", restval="", extrasaction="raise")
    writer.writeheader()
    writer.writerows(_rows(predicted))
    writer.writerows({**one.row, "left_out": one.reason} for one in left_out)
    return text.getvalue()


def _rows(predicted: PredictedRuns) -> Iterator[dict[str, object]]:
    from linkwise.calibrate.measured import RECOMPUTE_CODES
    from linkwise.calibrate.predict import filled_cells

    words = {code: word for word, code in RECOMPUTE_CODES.items()}
    error, feasible = predicted.error_fraction, predicted.feasible
    for place, (run, layout) in enumerate(zip(predicted.runs, predicted.layouts, strict=True)):
        filled = filled_cells(run)
        named = [name.strip() for name in run.row.get("assumed", "").split(";") if name.strip()]
        yield {
            **run.row,
            "predicted_step_time_s": _written(predicted.step_time_s[place]),
            "low_s": _written(predicted.low_s[place]),
            "high_s": _written(predicted.high_s[place]),
            "error_fraction": _written(error[place]),
            **{name: _written(values[place]) for name, values in predicted.parts.items()},
            "predicted_memory_bytes": _written(predicted.memory_bytes[place]),
            "memory_available_bytes": _written(predicted.memory_available_bytes[place]),
            "memory_feasible": int(feasible[place]),
            "assumed": ";".join(dict.fromkeys([*named, *filled])),
            "filled": ";".join(filled),
            "filled_vpp": layout.virtual_pipeline,
            "filled_zero_stage": layout.zero_stage,
            "filled_micro_batch": layout.micro_batch,
            "filled_recompute": words[layout.recompute or 0],
            "filled_seq_parallel": int(bool(layout.sequence_parallel)),
        }


def _written(value: float) -> str:
    return repr(float(value))
