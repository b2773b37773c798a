"""Digests by which plans, configurations and workloads are told apart."""

from __future__ import annotations

import dataclasses
import datetime as dt
import hashlib
import json
from collections.abc import Mapping, Sequence
from enum import Enum
from functools import cache
from typing import Any

from linkwise.rollout.plan import Workload

__all__ = ["digest_of", "digest_of_bytes", "workload_digest"]


def digest_of(value: object) -> str:
    """Return the SHA-256 of a value: equal values have equal ones, in whatever order mappings were written.

    Parameters
    ----------
    value
        Of numbers, text, dates, enumerations, sequences, mappings with text as keys, and dataclasses.

    Notes
    -----
    Over its JSON with sorted keys and no blanks, in UTF-8.
    """
    text = json.dumps(_plain(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return digest_of_bytes(text.encode("utf-8", "surrogatepass"))


def digest_of_bytes(data: bytes) -> str:
    """Return the SHA-256 of bytes, in hexadecimal.

    Parameters
    ----------
    data
        The bytes.
    """
    return hashlib.sha256(data).hexdigest()


@cache
def workload_digest(workload: Workload) -> str:
    """Return what says that objectives share their runs.

    Parameters
    ----------
    workload
        What is run.
    """
    return digest_of(workload)


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return {each.name: _plain(getattr(value, each.name)) for each in dataclasses.fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(each) for each in value]
    return value
