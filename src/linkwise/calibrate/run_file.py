"""The CSV file of measured runs as rows of text; all its faults are found before a row is believed."""

from __future__ import annotations

import csv
import io
import math
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from linkwise.documents.text import STANDARD_INPUT
from linkwise.errors import DocumentError, Fault, InputError, nearest_names

__all__ = [
    "CELLS",
    "LARGEST_BYTES",
    "REQUIRED_COLUMNS",
    "SHAPE_COLUMNS",
    "TIME_COLUMNS",
    "Row",
    "cell_faults",
    "read_rows",
    "source_of",
]

REQUIRED_COLUMNS = (
    "id",
    "source_year",
    "framework",
    "seq",
    "gpu",
    "gpus_per_node",
    "n_gpus",
    "inter_link",
    "inter_gbps_per_node",
    "tp",
    "pp",
    "vpp",
    "cp",
    "ep",
    "dp",
    "zero_stage",
    "micro_batch",
    "global_batch",
    "precision",
    "recompute",
)
SHAPE_COLUMNS = (
    "layers",
    "hidden",
    "heads",
    "kv_heads",
    "ffn",
    "vocab",
    "gated_mlp",
    "moe_experts",
    "moe_topk",
)
TIME_COLUMNS = ("step_time_s", "tokens_per_s_per_gpu", "tflops_per_gpu", "mfu_percent")

LARGEST_BYTES = 100_000_000
"""Files larger than this are refused [bytes]."""

_COLUMNS_LOOKED_AT = 500
"""Names are compared with no more columns than that: a line of a wrong file can be very long."""

Row = Mapping[str, str]
"""Cells by column; an empty text is a blank."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellRange:
    """What a column of numbers may hold, ends included."""

    low: float
    high: float
    whole: bool = True


def _counts(names: str, low: int, high: int) -> dict[str, CellRange]:
    return dict.fromkeys(names.split(), CellRange(low=low, high=high))


def _numbers(names: str, low: float, high: float) -> dict[str, CellRange]:
    return dict.fromkeys(names.split(), CellRange(low=low, high=high, whole=False))


CELLS: Mapping[str, CellRange] = {
    **_counts("source_year", 1990, 2100),
    **_counts("n_gpus tp pp vpp cp ep dp micro_batch global_batch grad_accum", 1, 10**8),
    **_counts("seq", 1, 10**10),
    **_counts("gpus_per_node", 1, 10**4),
    **_counts("zero_stage", 0, 3),
    **_counts("layers", 1, 10**5),
    **_counts("hidden heads kv_heads ffn vocab", 1, 10**8),
    **_counts("gated_mlp", 0, 1),
    **_counts("moe_experts moe_topk", 0, 10**6),
    **_numbers("params_b", 1e-6, 1e9),
    **_numbers("inter_gbps_per_node", 1e-3, 1e6),
    **_numbers("inter_latency_ms", 0, 1e5),
    **_numbers("step_time_s", 1e-9, 1e9),
    **_numbers("tokens_per_s_per_gpu", 1e-9, 1e12),
    **_numbers("tflops_per_gpu", 1e-9, 1e6),
    **_numbers("mfu_percent", 1e-6, 200),
    **_numbers("peak_mem_gb", 1e-3, 1e5),
}
"""Columns that hold numbers; a cell may be blank."""


def read_rows(path: Path) -> list[tuple[int, Row]]:
    """Return the rows of a CSV file with the line each begins on, cells without spaces around them.

    Parameters
    ----------
    path
        The file, UTF-8 with or without a byte order mark; any usual line ends; ``-`` is standard input.

    Raises
    ------
    InputError
        When the file cannot be read, is no CSV, or lacks columns.
    DocumentError
        Listing every row with more or fewer cells than the heading.
    """
    reader = csv.reader(io.StringIO(_text(path), newline=""), strict=True)
    try:
        heading = [name.strip() for name in next(reader, [])]
        _check_heading(path, heading)
        rows: list[tuple[int, Row]] = []
        faults: list[Fault] = []
        line = reader.line_num + 1
        for cells in reader:
            if len(cells) == len(heading):
                rows.append((line, {name: cell.strip() for name, cell in zip(heading, cells, strict=True)}))
            elif any(cell.strip() for cell in cells):
                message = f"{len(cells)} cells where the heading has {len(heading)}"
                faults.append(Fault(path=str(path), line=line, message=message))
            line = reader.line_num + 1
    except csv.Error as error:
        raise InputError(f"{path}:{reader.line_num}: not a CSV file ({error})") from None
    if faults:
        raise DocumentError(faults)
    return rows


def _text(path: Path) -> str:
    try:
        data = _bytes(path)
        if len(data) > LARGEST_BYTES:
            raise InputError(f"{path}: is larger than {LARGEST_BYTES // 1_000_000} MB; score it in parts")
        return data.decode("utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except UnicodeDecodeError as error:
        where = f"{error.reason} at byte {error.start}"
        raise InputError(f"{path}: not UTF-8 text, so no CSV file ({where})") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from None


def _bytes(path: Path) -> bytes:
    if str(path) == STANDARD_INPUT:
        return sys.stdin.buffer.read(LARGEST_BYTES + 1)
    with path.open("rb") as file:
        return file.read(LARGEST_BYTES + 1)


def _check_heading(path: Path, heading: list[str]) -> None:
    if not any(heading):
        raise InputError(f"{path}: the file is empty; its first line must name the columns")
    twice = sorted(name for name, times in Counter(heading).items() if name and times > 1)
    if twice:
        raise InputError(f"{path}:1: columns are named twice: {', '.join(twice)}; keep one of each")
    missing = [name for name in REQUIRED_COLUMNS if name not in heading]
    if "config" not in heading:
        missing += [name for name in SHAPE_COLUMNS if name not in heading]
    if not set(heading) & set(TIME_COLUMNS):
        missing.append(" or ".join(TIME_COLUMNS))
    if missing:
        raise InputError(f"{path}:1: columns are missing: {', '.join(missing)}{_hint(heading, missing)}")


def _hint(heading: list[str], missing: list[str]) -> str:
    if len(heading) == 1 and re.search(r"[;\t|]", heading[0]):
        return "; cells must be separated by commas"
    known = (*REQUIRED_COLUMNS, *SHAPE_COLUMNS, *TIME_COLUMNS)
    spare = [name for name in heading[:_COLUMNS_LOOKED_AT] if name not in known]
    near = [f"{given[0]} for {name}" for name in missing if (given := nearest_names(name, spare, count=1))]
    hint = f"; did you write {', '.join(near)}?" if near else ""
    if any(name in SHAPE_COLUMNS for name in missing):
        hint += f"; a column config (path of a config.json) can stand in place of {', '.join(SHAPE_COLUMNS)}"
    return hint


def cell_faults(path: Path, line: int, row: Row) -> Iterator[Fault]:
    """Yield every cell of a row that does not hold what its column must.

    Parameters
    ----------
    path, line
        Where the row stands.
    row
        Its cells.
    """
    for column, allowed in CELLS.items():
        message = _cell_fault(row.get(column, ""), allowed)
        if message:
            yield Fault(path=str(path), line=line, key=column, message=message)


def _cell_fault(text: str, allowed: CellRange) -> str | None:
    if not text:
        return None
    shown = repr(text if len(text) <= 60 else text[:57] + "...")
    try:
        value = float(text)
    except ValueError:
        return f"{shown} is not a number; leave the cell empty where nothing is known"
    if math.isfinite(value) and allowed.whole and not value.is_integer():
        return f"{shown} is not a whole number"
    if not allowed.low <= value <= allowed.high:
        return f"{shown} is not between {allowed.low:.10g} and {allowed.high:.10g}"
    return None


def source_of(identity: str) -> str:
    """Return the source of a run: its id without the number at the end (``SC21-007`` is of ``SC21``)."""
    return re.sub(r"[-_ .]?\d+$", "", identity) or "unnamed"
