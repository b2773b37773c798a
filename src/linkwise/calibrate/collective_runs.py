"""Measured collectives: a table of runs and a table of their sizes and times, as values.

Columns are those of docs/measurements.md. A run says where it ran; every row of it is one size, in place or
out of place.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from linkwise import catalog
from linkwise.calibrate.collective_cells import LARGEST_NUMBER, TOOLS, row_faults, run_faults, variables_of
from linkwise.catalog import Gpu
from linkwise.errors import DocumentError, Fault, InputError
from linkwise.nccl.communicator import NO_LIMITS, limits_of, release_of
from linkwise.network.links import is_behind_nic, local_links, network_kind
from linkwise.network.setting import LARGEST_BOX_GPUS, OPERATIONS, Launch, Setting
from linkwise.readers.faults import Faults

__all__ = ["CollectiveRun", "MeasuredCollectives", "read_collectives"]

Floats = NDArray[np.float64]

RUN_COLUMNS = (
    "run_id",
    "source",
    "gpu",
    "n_nodes",
    "n_gpus",
    "nccl_version",
    "collective",
    "dtype",
    "tool",
    "env",
    "status",
    "intra_kind",
    "inter_kind",
    "nics_per_node",
    "nic_gbit_per_s",
    "nvlink_domain_gpus",
)
"""Columns a table of runs must have."""
ROW_COLUMNS = ("run_id", "in_place", "size_bytes", "time_us")
"""Columns a table of sizes must have."""
LEAST_BYTES = float(2**20)
"""Where the headline begins [bytes]."""
_OPERATIONS = {"alltoall": "all_to_all", "sendrecv": "send_recv"}
_BLANK_NIC_GBIT_PER_S = 400.0
"""Taken where a table does not state it: the NIC of most H100 nodes (assumed) [Gbit/s]."""
_BULK = re.compile(r"aiconfigurator", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveRun:
    """One run of nccl-tests: where, what, and a time for each size.

    Attributes
    ----------
    identity, source
        Name of the run, and of who published it.
    operation
        One of `linkwise.network.setting.OPERATIONS`.
    status
        ``healthy``, ``misconfigured`` or ``unknown``, as the table says.
    inter_kind
        The network between nodes in one word; ``none`` inside a node.
    setting
        Where it ran, with its variables applied.
    best
        The same with default variables and the best transport its links have.
    size_bytes, time_s, in_place
        One entry for each row (rows,).
    """

    identity: str
    source: str
    operation: str
    status: str
    inter_kind: str
    setting: Setting
    best: Setting
    size_bytes: Floats
    time_s: Floats
    in_place: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredCollectives:
    """The runs of two tables, and how many rows were left out.

    Attributes
    ----------
    runs
        Runs that can be predicted.
    skipped
        Number of healthy rows of 1 MiB and more that cannot, by reason.
    other_library_rows
        Number of healthy rows of other libraries than NCCL and RCCL.
    assumed
        What was taken for cells that are empty, in sentences with the run.
    """

    runs: tuple[CollectiveRun, ...]
    skipped: Mapping[str, int]
    other_library_rows: int
    assumed: tuple[str, ...] = ()


def read_collectives(rows_path: Path, runs_path: Path) -> MeasuredCollectives:
    """Return the measured runs of two CSV files.

    Parameters
    ----------
    rows_path
        Sizes and times, one row for each size of a run.
    runs_path
        Runs, one row each.

    Raises
    ------
    InputError
        When a file cannot be read, is no CSV, or lacks columns.
    DocumentError
        With every cell that does not hold what it must.
    """
    described, run_problems = _described(runs_path)
    measured, row_problems = _measured(rows_path, described)
    _raise_all(run_problems, row_problems)
    runs: list[CollectiveRun] = []
    skipped: dict[str, int] = {}
    assumed: list[str] = []
    others = 0
    for identity, rows in measured.items():
        line, row = described[identity]
        columns = np.array(rows)
        is_healthy, reason = row["status"] == "healthy", _left_out(row)
        if row["tool"] not in TOOLS:
            others += len(rows) if is_healthy else 0
        elif reason is not None:
            large = int(np.sum(columns[:, 0] >= LEAST_BYTES)) if is_healthy else 0
            skipped[reason] = skipped.get(reason, 0) + large
        else:
            try:
                runs.append(_run(row, columns))
            except InputError as error:
                run_problems.add(str(error), line=line, key="run_id")
                continue
            assumed += _assumed(row, runs[-1].setting)
    run_problems.raise_any()
    return MeasuredCollectives(
        runs=tuple(runs),
        skipped={reason: count for reason, count in skipped.items() if count},
        other_library_rows=others,
        assumed=tuple(assumed),
    )


def _raise_all(*files: Faults) -> None:
    """Raise the faults of all files together, if there are any."""
    found: list[Fault] = []
    for each in files:
        try:
            each.raise_any()
        except DocumentError as error:
            found += error.faults
    if found:
        raise DocumentError(found)


def _assumed(row: Mapping[str, str], setting: Setting) -> list[str]:
    """Return what was taken for the network of a run that crosses one."""
    if setting.group.domains == 1:
        return []
    taken = {
        "nic_gbit_per_s": f"{_BLANK_NIC_GBIT_PER_S:g} Gbit/s",
        "nics_per_node": "a NIC for each GPU",
    }
    if row.get("nics_used_per_node", "") not in ("", "0"):
        del taken["nics_per_node"]
    blank = [(column, words) for column, words in taken.items() if row[column] in ("", "0")]
    return [f"{row['run_id']}: {column} is empty, assumed: {words}" for column, words in blank]


def _table(path: Path, columns: Sequence[str], faults: Faults) -> list[tuple[int, Mapping[str, str]]]:
    """Return line and cells of each row; a row with more cells than columns is a fault."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text, so no CSV file ({error.reason})") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from None
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    rows: list[tuple[int, Mapping[str, str]]] = []
    try:
        missing = [name for name in columns if name not in (reader.fieldnames or ())]
        if missing:
            raise InputError(f"{path}:1: columns are missing: {', '.join(missing)}")
        for row in reader:
            surplus = row.pop(None, None)
            if surplus:
                count = len(reader.fieldnames or ())
                message = (
                    f"{count + len(surplus)} cells, but {count} columns; put quotes around cells with commas"
                )
                faults.add(message, line=reader.line_num)
            rows.append((reader.line_num, {name: (cell or "").strip() for name, cell in row.items()}))
    except csv.Error as error:
        raise InputError(f"{path}:{reader.line_num}: not a CSV file ({error})") from None
    return rows


def _described(path: Path) -> tuple[dict[str, tuple[int, Mapping[str, str]]], Faults]:
    """Return the runs by name, each with its line, and what is wrong with them."""
    described: dict[str, tuple[int, Mapping[str, str]]] = {}
    faults = Faults(path=str(path))
    for line, row in _table(path, RUN_COLUMNS, faults):
        if row["run_id"] in described:
            message = f"{row['run_id']!r} stands twice; give each run a name of its own"
            faults.add(message, line=line, key="run_id")
        for column, message in run_faults(row):
            faults.add(message, line=line, key=column)
        described[row["run_id"]] = (line, row)
    return described, faults


def _measured(
    path: Path, described: Mapping[str, tuple[int, Mapping[str, str]]]
) -> tuple[dict[str, list[tuple[float, float, float]]], Faults]:
    """Return size, time and place of the rows of each run, and what is wrong with rows."""
    measured: dict[str, list[tuple[float, float, float]]] = {}
    faults = Faults(path=str(path))
    strangers: dict[str, list[int]] = {}
    for line, row in _table(path, ROW_COLUMNS, faults):
        identity = row["run_id"]
        if identity not in described:
            strangers.setdefault(identity, []).append(line)
            continue
        wrong = [*row_faults(row, described[identity][1])]
        for column, message in wrong:
            faults.add(message, line=line, key=column)
        if not wrong:
            cells = float(row["size_bytes"]), float(row["time_us"]) * 1e-6, float(row["in_place"])
            measured.setdefault(identity, []).append(cells)
    for identity, lines in strangers.items():
        rows = "" if len(lines) == 1 else f" ({len(lines):,} rows, the first here)"
        faults.add(f"{identity!r} is in no row of --runs{rows}", line=lines[0], key="run_id")
    return measured, faults


def _left_out(row: Mapping[str, str]) -> str | None:
    """Return why a run cannot be predicted; ``None`` where it can."""
    if row["n_gpus"] in ("", "0", "1"):
        return "fewer than two GPUs"
    if _operation(row) not in OPERATIONS:
        return f"no model of the collective {row['collective']}"
    return "GPU not in the catalogue" if _gpu(row) is None else None


def _operation(row: Mapping[str, str]) -> str:
    return _OPERATIONS.get(row["collective"], row["collective"])


def _gpu(row: Mapping[str, str]) -> Gpu | None:
    """Return the GPU of the catalogue; words in brackets behind a name are tried without."""
    for name in (row["gpu"], re.sub(r"\s*\(.*\)$", "", row["gpu"])):
        try:
            return catalog.gpu(name)
        except InputError:
            continue
    return None


def _run(row: Mapping[str, str], rows: Floats) -> CollectiveRun:
    setting = _setting(row)
    variables = variables_of(row["env"])
    if variables.get("NCCL_IB_DISABLE") == "1" and setting.network in ("infiniband", "roce"):
        used = replace(setting, network="sockets")
    else:
        used = setting
    return CollectiveRun(
        identity=row["run_id"],
        source=_source(row),
        operation=_operation(row),
        status=row["status"],
        inter_kind=row["inter_kind"],
        setting=replace(used, limits=limits_of(variables)),
        best=replace(
            _setting({**row, "nics_used_per_node": ""}),
            limits=NO_LIMITS,
            through_host=False,
            network=_best_network(setting, row),
        ),
        size_bytes=rows[:, 0],
        time_s=rows[:, 1],
        in_place=rows[:, 2] > 0,
    )


def _source(row: Mapping[str, str]) -> str:
    """Return who published a run; a table of many GPUs counts as one source for each."""
    source = row["source"].split(":")[0].strip()
    return f"{source} {row['gpu']}" if _BULK.search(source) else source


def _setting(row: Mapping[str, str]) -> Setting:
    gpu = _gpu(row)
    if gpu is None:
        raise InputError(f"GPU {row['gpu']!r} is not in the catalogue")
    nodes, ranks = _count(row, "n_nodes", 1), _count(row, "n_gpus", 0)
    per_node = -(-ranks // nodes)
    domain = _domain_gpus(row, ranks, per_node)
    domains = -(-ranks // domain)
    used = _count(row, "nics_used_per_node", 0)
    nics = used or _count(row, "nics_per_node", per_node)
    rate = _number(row, "nic_gbit_per_s", _BLANK_NIC_GBIT_PER_S) * 1.25e8
    links = local_links(gpu, ranks_per_domain=-(-ranks // domains), joined_by=row["intra_kind"])
    return Setting(
        group=links.communicator(
            ranks=ranks,
            domains=domains,
            network_bytes_per_s=nics * rate * domain / per_node if domains > 1 else 0.0,
            release=release_of(row["nccl_version"]),
        ),
        network=network_kind(row["inter_kind"], rate, nics) if domains > 1 else "nvlink",
        pair_bytes_per_s=links.pair_bytes_per_s,
        bridged=links.bridged,
        through_host=links.through_host,
        nic_on_switch=domains > 1 and is_behind_nic(links, rate),
        launch=_launch(row),
    )


def _domain_gpus(row: Mapping[str, str], ranks: int, per_node: int) -> int:
    """Return the GPUs that reach each other without the network: those of a node, or of a rack.

    A rack is said to be one, or has more GPUs in its NVLink domain than any box.
    """
    is_rack = row["inter_kind"] == "nvlink"
    machine = _count(row, "nvlink_domain_gpus", ranks if is_rack else 1)
    return max(per_node, min(machine, ranks)) if is_rack or machine > LARGEST_BOX_GPUS else per_node


def _count(row: Mapping[str, str], column: str, blank: int) -> int:
    return int(_number(row, column, float(blank)))


def _number(row: Mapping[str, str], column: str, blank: float) -> float:
    """Return a cell as a number; `blank` where it is empty, not there, or 0 (a node without NICs).

    Raises
    ------
    InputError
        When it is no number, or none that counts something.
    """
    text = row.get(column, "")
    try:
        value = float(text or "0")
    except ValueError:
        raise InputError(f"{column} {text!r} is not a number") from None
    if value == 0.0:
        return blank
    if not 1.0 <= value <= LARGEST_NUMBER:
        raise InputError(f"{column} {text!r} is not between 1 and {LARGEST_NUMBER:.0e}")
    return value


def _launch(row: Mapping[str, str]) -> Launch:
    if "torch" in f"{row['dtype']} {row.get('notes', '')}".lower():
        return Launch.FRAMEWORK
    return Launch.ONE_THREAD if row.get("ranks_per_thread", "") not in ("", "1") else Launch.OWN_THREADS


def _best_network(setting: Setting, row: Mapping[str, str]) -> str:
    """Return the transport that the NICs allow: those of 100 Gbit/s and more speak RDMA."""
    fast = _number(row, "nic_gbit_per_s", 0.0) >= 100.0
    return "infiniband" if setting.network == "sockets" and fast else setting.network
