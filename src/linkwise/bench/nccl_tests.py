"""nccl-tests in place of torch: its programs started, several times, and what they print read."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

from linkwise.bench.collectives import CollectivesPlan, MeasuredSize
from linkwise.bench.torch_run import TorchBench, run_folder
from linkwise.errors import DocumentError, InputError
from linkwise.launch.run.ending import Outcome
from linkwise.launch.run.job import FinishedRun, Patience, run_program
from linkwise.launch.run.place import Command
from linkwise.launch.run.record import RunFolder
from linkwise.readers.nccl_tests import NcclTestsRun, parse_nccl_tests

__all__ = ["nccl_tests_sizes", "program_of", "run_nccl_tests"]

_PROGRAMS = {"all_to_all": "alltoall", "send_recv": "sendrecv"}
_DEFAULT_CALLS = 20


def program_of(directory: Path, operation: str) -> Path:
    """Return the program of nccl-tests for a collective.

    Parameters
    ----------
    directory
        Where nccl-tests was built.
    operation
        One of `linkwise.network.setting.OPERATIONS`.

    Raises
    ------
    InputError
        When there is no such program, or it may not be started.
    """
    name = f"{_PROGRAMS.get(operation, operation)}_perf"
    if not directory.is_dir():
        raise InputError(f"--nccl-tests {directory}: there is no such directory; give the one with {name}")
    program = directory / name
    if not program.is_file() or not os.access(program, os.X_OK):
        raise InputError(
            f"--nccl-tests {directory}: has no program {name}; build nccl-tests, and give its build"
        )
    return program


def nccl_tests_sizes(sizes_bytes: Sequence[int]) -> tuple[int, int]:
    """Return the first and last size, after a check that each is twice the one before.

    Parameters
    ----------
    sizes_bytes
        Sizes asked for [bytes].

    Raises
    ------
    InputError
        When they do not double.
    """
    if any(two != 2 * one for one, two in pairwise(sizes_bytes)):
        raise InputError("--nccl-tests runs over sizes that double; give --sizes as FROM:TO")
    return sizes_bytes[0], sizes_bytes[-1]


def run_nccl_tests(
    directory: Path,
    plan: CollectivesPlan,
    bench: TorchBench,
    *,
    on_run: Callable[[str, int], None] = lambda _operation, _number: None,
) -> tuple[tuple[FinishedRun, ...], tuple[MeasuredSize, ...]]:
    """Return the runs of nccl-tests and what they measured; it stops at the first that fails.

    Parameters
    ----------
    directory
        Where nccl-tests was built.
    plan
        What is measured; each repeat is a run of the program, out of place.
    bench
        Ranks, settings, patience and run folder; its Python is not used.
    on_run
        Called before each run with the collective and its number, from 1.

    Raises
    ------
    InputError
        When a program is missing, or what it prints is not readable.
    """
    programs = {operation: program_of(directory, operation) for operation in plan.operations}
    low, high = nccl_tests_sizes(plan.sizes_bytes)
    calls = plan.sampling.calls or _DEFAULT_CALLS
    runs: list[FinishedRun] = []
    measured: list[MeasuredSize] = []
    for operation, program in programs.items():
        sweep = (
            "-b",
            str(low),
            "-e",
            str(high),
            "-f",
            "2",
            "-n",
            str(calls),
            "-w",
            str(plan.sampling.warmup),
        )
        command = Command(
            argv=(str(program), "-t", str(bench.ranks), "-g", "1", *sweep, "-c", "1"), settings=bench.settings
        )
        read: list[NcclTestsRun] = []
        for number in range(1, plan.sampling.repeats + 1):
            on_run(operation, number)
            runs.append(_once(command, bench, part=f"{operation}-{number}"))
            if (found := _read(program, runs[-1], ranks=bench.ranks)) is not None:
                read.append(found)
            if not _is_done(runs[-1]):
                break
        measured += _sizes(operation, read, calls)
        if not _is_done(runs[-1]):
            break
    return tuple(runs), tuple(measured)


def _once(command: Command, bench: TorchBench, *, part: str) -> FinishedRun:
    with run_folder(bench.folder, part) as path, RunFolder(path) as folder:
        return run_program(
            command,
            what="bench collectives",
            place=bench.place.name,
            ranks=bench.ranks,
            folder=folder,
            patience=Patience(start_s=bench.patience_s, silence_s=bench.patience_s),
        )


def _is_done(run: FinishedRun) -> bool:
    return run.record.ending.outcome is Outcome.DONE


def _read(program: Path, run: FinishedRun, *, ranks: int) -> NcclTestsRun | None:
    """Return what a run printed; ``None`` where it ended badly before its table."""
    try:
        found = parse_nccl_tests("\n".join(run.log), path=program.name)
    except DocumentError as error:
        if not _is_done(run):
            return None
        raise InputError(f"{program} ran, but what it printed cannot be read:\n{error}") from None
    if found.ranks is not None and found.ranks != ranks:
        raise InputError(f"{program} ran on {found.ranks} GPUs, and {ranks} were asked for (--ranks)")
    return found


def _sizes(operation: str, runs: Sequence[NcclTestsRun], calls: int) -> list[MeasuredSize]:
    """Return each size with a sample from every run."""
    found: dict[int, tuple[list[float], list[float]]] = {}
    for run in runs:
        for row in run.rows:
            if not row.in_place:
                times, wrong = found.setdefault(row.size_bytes, ([], []))
                times.append(row.time_s)
                wrong += [] if row.wrong is None else [row.wrong]
    return [
        MeasuredSize(
            operation=operation,
            size_bytes=size,
            calls=calls,
            samples_s=tuple(times),
            first_s=(),
            wrong=int(sum(wrong)) if wrong else None,
        )
        for size, (times, wrong) in found.items()
    ]
