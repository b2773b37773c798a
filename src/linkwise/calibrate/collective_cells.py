"""What a cell of the tables of measured collectives may hold, and what is said of one that holds others.

A cell that is wrong in a silent way (a tool that does not exist, half a node) would leave a run out of the
score or put it under another network, so each is checked by its column.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence

from linkwise.errors import UnknownName

__all__ = ["LARGEST_NUMBER", "TOOLS", "row_faults", "run_faults", "variables_of"]

TOOLS = ("nccl-tests", "rccl-tests")
"""Tools whose times are scored."""
LARGEST_NUMBER = 1e8
"""What is larger counts no GPUs, nodes or NICs."""
_WORDS: Mapping[str, Sequence[str]] = {
    "status": ("healthy", "misconfigured", "unknown"),
    "tool": (*TOOLS, "osu"),
    "intra_kind": ("nvswitch", "nvlink-mesh", "nvlink-bridge", "infinity-fabric", "pcie", "unknown"),
    "inter_kind": (
        "none",
        "nvlink",
        "infiniband",
        "roce",
        "efa",
        "tcpx",
        "tcpxo",
        "slingshot",
        "sockets",
        "tcp",
        "unknown",
    ),
}
"""Words of the columns that hold one of few."""
_LEAST: Mapping[str, int] = {
    "n_nodes": 1,
    "n_gpus": 0,
    "nics_per_node": 0,
    "nics_used_per_node": 0,
    "nvlink_domain_gpus": 0,
    "ranks_per_thread": 0,
}
"""Columns that count, and their least number."""
_CHOICES: Mapping[str, Sequence[str]] = {
    "NCCL_ALGO": ("ring", "tree", "collnet", "collnetdirect", "collnetchain", "nvls", "nvlstree", "pat"),
    "NCCL_PROTO": ("ll", "ll128", "simple"),
}
"""Words of NCCL's variables that choose (NVIDIA/nccl: src/graph/tuning.cc)."""
_OPERATIONS = ("broadcast", "reduce", "allgather", "reducescatter", "allreduce")
"""Words before the colon of NCCL's longer form: ``allreduce:tree,ring;broadcast:ring``."""
_VERSION = re.compile(r"v?\d+\.\d{1,3}(\D|$)")
_SHARED = ("n_gpus", "n_nodes", "collective")
"""Columns that both tables may have, of which the scores are made."""


def run_faults(row: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield column and message of each cell of a run that does not hold what it must.

    Parameters
    ----------
    row
        Cells by column.
    """
    for column, words in _WORDS.items():
        if row[column] not in words and not (column == "intra_kind" and "pcie" in row[column]):
            yield column, str(UnknownName.among(words, kind=column, given=row[column]))
    for column, least in _LEAST.items():
        yield from _count_faults(row, column, least)
    yield from _rate_faults(row)
    yield from _version_faults(row["nccl_version"])
    variables = variables_of(row["env"])
    for name, words in _CHOICES.items():
        yield from _choice_faults(name, variables.get(name, ""), words)


def row_faults(row: Mapping[str, str], run: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield column and message of each cell of a size that does not hold what it must.

    Parameters
    ----------
    row
        Cells by column.
    run
        Those of the run it is of.
    """
    for column in ("size_bytes", "time_us"):
        if not _number(row[column]) > 0:
            yield column, f"{row[column]!r} is not a positive number"
    if row["in_place"] not in ("0", "1"):
        yield "in_place", f"{row['in_place']!r} is neither 1 (in place) nor 0 (out of place)"
    for column in _SHARED:
        given = row.get(column, "")
        if given and given != run[column]:
            yield column, f"{given!r} is not that of the run, {run[column]!r} in --runs; correct one of them"


def variables_of(text: str) -> Mapping[str, str]:
    """Return the variables that a text sets as a shell would.

    Parameters
    ----------
    text
        Such as ``NCCL_ALGO=Ring NCCL_NET="AWS Libfabric"``; words that set nothing are left out.
    """
    try:
        words = shlex.split(text)
    except ValueError:
        words = text.split()
    return {name: value for name, _, value in (word.partition("=") for word in words) if value}


def _number(text: str) -> float:
    """Return a cell as a finite number, nan where it is none."""
    try:
        value = float(text)
    except ValueError:
        return math.nan
    return value if math.isfinite(value) else math.nan


def _count_faults(row: Mapping[str, str], column: str, least: int) -> Iterator[tuple[str, str]]:
    text = row.get(column, "")
    value = _number(text)
    if text and not (least <= value <= LARGEST_NUMBER and value.is_integer()):
        yield column, f"{text!r} is not a whole number from {least} to {LARGEST_NUMBER:.0e}"
    elif column == "n_gpus" and row["n_nodes"].isdecimal() and 1 < value < int(row["n_nodes"]):
        yield column, f"{text} GPUs are fewer than the {row['n_nodes']} nodes of n_nodes; count those of all"


def _rate_faults(row: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    text = row["nic_gbit_per_s"]
    value = _number(text)
    if text and value != 0 and not 1 <= value <= LARGEST_NUMBER:
        yield "nic_gbit_per_s", f"{text!r} is not a rate from 1 to {LARGEST_NUMBER:.0e} Gbit/s"


def _version_faults(text: str) -> Iterator[tuple[str, str]]:
    plain = text.lower()
    if plain and not (_VERSION.match(plain) or plain.startswith("n/a") or "rccl" in plain):
        known = (
            "write a release such as 2.27.3, RCCL with or without one, or n/a; empty where it is not known"
        )
        yield "nccl_version", f"{text!r} is no release of NCCL or RCCL; {known}"


def _choice_faults(name: str, value: str, words: Sequence[str]) -> Iterator[tuple[str, str]]:
    for word in re.split(r"[,;:]", value.lower().replace("_", "").replace("^", "")):
        if word.strip() and word.strip() not in (*words, *_OPERATIONS):
            yield "env", str(UnknownName.among(words, kind=f"word of {name}", given=word.strip()))
