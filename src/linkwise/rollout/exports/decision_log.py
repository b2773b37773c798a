"""The decision log as JSON, `linkwise.rollout-log/1`: with all it rests on, and read back to be verified.

A line holds one entry, run or text, and the whole is written in one way only, so that a changed byte shows
wherever it stands.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from linkwise.errors import InputError
from linkwise.rollout.canonical import canonical_text
from linkwise.rollout.store.decisions import LogHead
from linkwise.rollout.store.verification import LogContents, LogRow

__all__ = ["LARGEST_BYTES", "SCHEMA", "log_json", "parse_log"]

SCHEMA = "linkwise.rollout-log/1"
LARGEST_BYTES = 1 << 30
"""A larger export is none of ours [bytes]."""


def log_json(contents: LogContents) -> str:
    """Return a log with all it rests on.

    Parameters
    ----------
    contents
        As it lies in the store; nothing of it is left out.
    """
    head = {"entries": contents.head.entries, "digest": contents.head.digest}
    entries = [
        canonical_text(
            {"number": row.number, "text": row.text, "digest": row.digest, "signature": row.signature}
        )
        for row in contents.rows
    ]
    return (
        f'{{"schema":{json.dumps(SCHEMA)},"rollout":{json.dumps(contents.rollout)},'
        f'"head":{canonical_text(head)},\n'
        f'"entries":{_lines(entries)},\n'
        f'"runs":{_lines(_pairs(contents.runs))},\n'
        f'"kept":{_lines(_pairs(contents.kept))},\n'
        f'"baselines":{_lines([canonical_text(list(row)) for row in contents.baselines])}}}\n'
    )


def _pairs(texts: Mapping[str, str]) -> list[str]:
    return [canonical_text([name, texts[name]]) for name in sorted(texts)]


def _lines(rows: list[str]) -> str:
    return "[\n" + ",\n".join(rows) + "\n]" if rows else "[]"


def parse_log(data: bytes) -> LogContents:
    """Return the log of an export, not yet believed.

    Parameters
    ----------
    data
        The file.

    Raises
    ------
    InputError
        When it is no such export, or not spelled as it was written.
    """
    try:
        text = data.decode("ascii")
        found = json.loads(text)
        contents = _contents(found)
        is_same = log_json(contents) == text
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise InputError(
            f"it is no {SCHEMA} of 'linkwise rollout log --export json', or was altered"
        ) from None
    if not is_same:
        raise InputError("it is not spelled as it was written: it was altered")
    return contents


def _contents(found: Any) -> LogContents:
    if found["schema"] != SCHEMA:
        raise ValueError(found["schema"])
    return LogContents(
        rollout=_text(found["rollout"]),
        head=LogHead(entries=_whole(found["head"]["entries"]), digest=_text(found["head"]["digest"])),
        rows=tuple(
            LogRow(
                number=_whole(row["number"]),
                text=_text(row["text"]),
                digest=_text(row["digest"]),
                signature=_text(row["signature"]),
            )
            for row in found["entries"]
        ),
        runs={_text(name): _text(text) for name, text in found["runs"]},
        kept={_text(name): _text(text) for name, text in found["kept"]},
        baselines=tuple(tuple(map(_text, row)) for row in found["baselines"]),
    )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(value)
    return value
