"""Collectives that `linkwise bench` measured, from its published result `linkwise.bench/1`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from linkwise.readers.faults import Faults, excerpt
from linkwise.readers.json_text import looks_like_json, parse_json
from linkwise.readers.launch_record import unlike_planned

__all__ = [
    "BenchCut",
    "BenchRecord",
    "BenchRow",
    "BenchTraining",
    "bench_kind",
    "is_bench_record",
    "parse_bench_record",
    "parse_bench_training",
]

SCHEMA = "linkwise.bench/1"
MOST_ROWS = 100_000
"""Sizes of one record that are read."""
MOST_SAMPLES = 1_000_000
"""Samples of one size that are read."""
_MOST_RANKS = 10_000_000
_LARGEST = 1e15


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchRow:
    """One collective at one size.

    Attributes
    ----------
    operation
        The collective, in the words of the record.
    size_bytes
        Bytes of the full buffer [bytes].
    samples_s
        Times of a call, in the order they were taken; at least one [s].
    wrong
        Elements with a wrong value; ``None`` where they were not checked.
    """

    operation: str
    size_bytes: float
    samples_s: tuple[float, ...]
    wrong: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchRecord:
    """Collectives over sizes, as one bench measured them.

    Attributes
    ----------
    backend
        ``nccl``, ``gloo`` or ``nccl-tests``.
    ranks
        How many took part [1].
    outcomes
        How each of its runs ended; ``done`` where it ended well.
    rows
        What was measured, at least one.
    unlike
        What its runs were seen to be other than planned, in words; empty where that was not looked at.
    """

    backend: str
    ranks: int
    outcomes: tuple[str, ...]
    rows: tuple[BenchRow, ...]
    unlike: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchCut:
    """One way to cut the model of a training bench.

    Attributes
    ----------
    cut
        ``ddp``, ``fsdp``, ``tensor`` or ``pipeline``.
    step_times_s
        Times of the steps; at least one [s].
    phases_s
        Times of each phase, by its name [s].
    """

    cut: str
    step_times_s: tuple[float, ...]
    phases_s: Mapping[str, tuple[float, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchTraining:
    """A small model trained under several cuts.

    Attributes
    ----------
    backend, ranks, outcomes, unlike
        As for `BenchRecord`.
    model
        Its ``layers``, ``hidden``, ``heads``, ``sequence_length`` and ``vocabulary`` [1].
    tokens_per_step
        Over all ranks [tokens].
    cuts
        At least one.
    """

    backend: str
    ranks: int
    outcomes: tuple[str, ...]
    unlike: tuple[str, ...]
    model: Mapping[str, int]
    tokens_per_step: int
    cuts: tuple[BenchCut, ...]


_SHAPE = ("layers", "hidden", "heads", "sequence_length", "vocabulary")


def is_bench_record(text: str) -> bool:
    """Return whether a text is the result of a bench, or starts as one.

    Parameters
    ----------
    text
        The file.
    """
    return looks_like_json(text, SCHEMA)


def bench_kind(text: str, *, path: str | None = None) -> str:
    """Return what a bench measured: ``collectives``, ``pairs``, ``training``, or what else the record says.

    Parameters
    ----------
    text, path
        As for `parse_bench_record`.
    """
    return str(parse_json(text, Faults(path=path)).get("kind"))[:40]


def parse_bench_training(text: str, *, path: str | None = None) -> BenchTraining:
    """Return the steps of a record of training.

    Parameters
    ----------
    text
        The JSON that ``linkwise bench training --format json`` prints.
    path
        The file it came from, for messages.

    Raises
    ------
    DocumentError
        If it is another kind of record, or a value cannot be, with all such values.
    """
    faults = Faults(path=path)
    record = parse_json(text, faults)
    if record.get("schema") != SCHEMA or record.get("kind") != "training":
        raise faults.refusal("is no record of linkwise bench training", key="kind")
    cuts = record.get("cuts")
    if not isinstance(cuts, list) or not 0 < len(cuts) <= MOST_ROWS:
        raise faults.refusal("has no cuts; give a bench that measured something", key="cuts")
    model = record.get("model")
    shape: Mapping[str, Any] = model if isinstance(model, dict) else {}
    read = [_cut(cut, faults, place) for place, cut in enumerate(cuts)]
    found = BenchTraining(
        backend=str(record.get("backend"))[:40],
        ranks=_whole(record.get("ranks"), faults, "ranks"),
        outcomes=tuple(_outcomes(record.get("runs"))),
        unlike=tuple(_unlike(record.get("runs"))),
        model={name: _whole(shape.get(name), faults, f"model.{name}") for name in _SHAPE},
        tokens_per_step=_whole(record.get("tokens_per_step"), faults, "tokens_per_step"),
        cuts=tuple(cut for cut in read if cut is not None),
    )
    faults.raise_any()
    return found


def _cut(cut: Any, faults: Faults, place: int) -> BenchCut | None:
    cells: Mapping[str, Any] = cut if isinstance(cut, dict) else {}
    steps = _samples(cells.get("step_time"), faults, f"cuts.{place}.step_time")
    phases = cells.get("phases")
    told = {
        str(name)[:40]: _samples(each, faults, f"cuts.{place}.phases")
        for name, each in (phases.items() if isinstance(phases, dict) else ())
    }
    if not steps:
        return None
    return BenchCut(cut=str(cells.get("cut"))[:40], step_times_s=steps, phases_s=told)


def _samples(sampled: Any, faults: Faults, key: str) -> tuple[float, ...]:
    samples = sampled.get("samples_s") if isinstance(sampled, dict) else None
    times = [_number(each) for each in samples] if isinstance(samples, list) else []
    if not 0 < len(times) <= MOST_SAMPLES or None in times:
        faults.add("holds no times above zero", key=f"{key}.samples_s")
        return ()
    return tuple(each for each in times if each is not None)


def _whole(value: Any, faults: Faults, key: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value < _LARGEST:
        return value
    faults.add(f"{_shown(value)} is no count above zero", key=key)
    return 1


def parse_bench_record(text: str, *, path: str | None = None) -> BenchRecord:
    """Return the collectives of a record.

    Parameters
    ----------
    text
        The JSON that ``linkwise bench collectives --format json`` prints.
    path
        The file it came from, for messages.

    Raises
    ------
    DocumentError
        If it is another kind of record, or a value cannot be, with all such values.
    """
    faults = Faults(path=path)
    record = parse_json(text, faults)
    if record.get("schema") != SCHEMA:
        raise faults.refusal(f"schema is {_shown(record.get('schema'))}, not {SCHEMA}", key="schema")
    if record.get("kind") != "collectives":
        raise faults.refusal(
            f"is of kind {_shown(record.get('kind'))}, which no prediction stands beside; "
            "give one of linkwise bench collectives",
            key="kind",
        )
    rows = record.get("rows")
    if not isinstance(rows, list) or not 0 < len(rows) <= MOST_ROWS:
        raise faults.refusal("has no rows; give a bench that measured something", key="rows")
    ranks = record.get("ranks")
    if not isinstance(ranks, int) or isinstance(ranks, bool) or not 0 < ranks < _MOST_RANKS:
        faults.add(f"{_shown(ranks)} is no number of ranks", key="ranks")
    read = [_row(row, faults, place) for place, row in enumerate(rows)]
    faults.raise_any()
    return BenchRecord(
        backend=str(record.get("backend"))[:40],
        ranks=int(ranks) if isinstance(ranks, int) else 0,
        outcomes=tuple(_outcomes(record.get("runs"))),
        unlike=tuple(_unlike(record.get("runs"))),
        rows=tuple(row for row in read if row is not None),
    )


def _row(row: Any, faults: Faults, place: int) -> BenchRow | None:
    cells: Mapping[str, Any] = row if isinstance(row, dict) else {}
    time = cells.get("time")
    samples = time.get("samples_s") if isinstance(time, dict) else None
    key = f"rows.{place}"
    size = _number(cells.get("size_bytes"))
    if not isinstance(samples, list) or not 0 < len(samples) <= MOST_SAMPLES:
        faults.add("has no samples; a time without them is not used", key=f"{key}.time.samples_s")
        return None
    times = [_number(each) for each in samples]
    if None in times:
        faults.add("holds what is no time above zero", key=f"{key}.time.samples_s")
    if size is None:
        faults.add(f"{_shown(cells.get('size_bytes'))} is no size above zero", key=f"{key}.size_bytes")
    if size is None or None in times:
        return None
    return BenchRow(
        operation=str(cells.get("collective"))[:40],
        size_bytes=size,
        samples_s=tuple(each for each in times if each is not None),
        wrong=_number(cells.get("wrong")),
    )


def _outcomes(runs: Any) -> list[str]:
    many = runs if isinstance(runs, list) else []
    return [str(run.get("outcome"))[:40] for run in many if isinstance(run, dict)]


def _unlike(runs: Any) -> list[str]:
    many = [run for run in (runs if isinstance(runs, list) else []) if isinstance(run, dict)]
    return [each for run in many if run.get("valid") is False for each in unlike_planned(run.get("checks"))]


def _number(value: Any) -> float | None:
    """Return a finite number above zero, else ``None``."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) and 0 < value < _LARGEST else None


def _shown(value: Any) -> str:
    return excerpt(value) if isinstance(value, str) else excerpt(repr(value)).strip("'\"")
