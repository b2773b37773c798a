"""The command of one run: the same `linkwise bench` or `linkwise launch` that a person would type."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from linkwise.errors import InputError
from linkwise.rollout.measuring.measure import RunRequest
from linkwise.rollout.plan import WorkloadKind

__all__ = ["run_command"]

_REPEATS = 5
"""Samples of each size within one run: the run is the unit that is judged, so few are enough [1]."""


def run_command(
    request: RunRequest, *, gpus: int, nodes: int, documents: Path, output: Path
) -> tuple[str, ...]:
    """Return the arguments of `linkwise` that measure what is wanted.

    Parameters
    ----------
    request
        What is wanted.
    gpus, nodes
        Of the step [1].
    documents
        The folder with ``job.json`` and ``cluster.json``.
    output
        The run folder it makes.

    Raises
    ------
    InputError
        When such work is not run by a command.
    """
    work = request.workload
    if work.kind is WorkloadKind.ENDPOINT:
        raise InputError(f"{work.endpoint}: a server is read, no command runs there")
    is_job = work.kind is WorkloadKind.JOB  # its GPUs and nodes are those of the cluster
    return (
        *(
            _launched(request, documents)
            if is_job
            else _benched(request, gpus=gpus, nodes=nodes, documents=documents)
        ),
        *(("--on", request.scope.place) if request.scope.place != "local" else ()),
        *(("--device", "cpu") if request.scope.device == "cpu" else ()),
        *(("--python", request.configuration.python) if request.configuration.python else ()),
        "-o",
        str(output),
        "--format",
        "json",
    )


def _launched(request: RunRequest, documents: Path) -> Iterator[str]:
    yield from ("launch", str(documents / "job.json"), str(documents / "cluster.json"))
    for name, value in sorted(request.configuration.settings.items()):
        yield from ("--set", f"{name}={value}")
    if request.configuration.script:
        yield from ("--script", request.configuration.script)


def _benched(request: RunRequest, *, gpus: int, nodes: int, documents: Path) -> Iterator[str]:
    work = request.workload
    yield from ("bench", str(work.kind))
    if work.kind is WorkloadKind.TRAINING:
        yield work.cut
        yield from ("--steps", str(work.steps)) if work.steps is not None else ()
    else:
        if work.kind is WorkloadKind.COLLECTIVES:
            yield from work.operations
            yield from ("--sizes", ",".join(f"{size} B" for size in work.sizes_bytes))
            yield from ("--cluster", str(documents / "cluster.json"))
        else:
            yield from ("--size", f"{work.sizes_bytes[0]} B")
            yield from ("--rounds", str(work.rounds)) if work.rounds is not None else ()
        yield from ("--repeats", str(_REPEATS))
    yield from ("--ranks", str(gpus))
    if request.scope.place == "slurm":
        yield from ("--nodes", str(nodes))
