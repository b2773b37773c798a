"""The measurement is not what it seems: several runs of one node each instead of one job."""

from __future__ import annotations

import re

from linkwise.diagnose.facts import Facts
from linkwise.diagnose.finding import Confidence, Finding, Severity, finding
from linkwise.readers.job_log.values import Evidence, Sighting

__all__ = ["test_setup"]

_PERF = re.compile(r"_perf\b")
_PROCESSES = re.compile(r"\b(?:mpirun|mpiexec|srun)\b.* (?:-np|-n|--ntasks)[ =](\d+)")


def test_setup(facts: Facts) -> Finding | None:
    """Return the finding when runs of nccl-tests that started together each have a rank 0.

    Parameters
    ----------
    facts
        What is known of the job.

    Notes
    -----
    Runs one after the other, as a loop over nodes prints them, are apart: one ends before the next begins.
    """
    together = _started_together(facts)
    started = _started_as_one(facts)
    zeros = [
        each
        for each in facts.seen("tests_rank")
        if each.rank == 0 and (started or each.evidence.file in together)
    ]
    hosts = sorted({each.fields["host"] for each in zeros})
    if len(zeros) < 2 or len({each.evidence.file for each in zeros}) == len(zeros):
        return None
    return finding(
        "test_setup",
        Severity.BROKEN,
        Confidence.HIGH,
        proof=[*zeros, *together.values(), *started],
        where=hosts,
        explanation=(
            f"This is no job over {len(zeros)} nodes but {len(zeros)} runs side by side, each with its own"
            " rank 0. The bandwidth is that of one node; the network was not measured."
        ),
        fix=(
            "build nccl-tests with MPI: make clean; make MPI=1 MPI_HOME=...",
            "start it with the MPI it was built against (srun --mpi=pmix, or its own mpirun)",
        ),
        next_check="one table with the ranks of all hosts under '# Using devices'",
    )


def _started_as_one(facts: Facts) -> list[Evidence]:
    """Return the command that starts a run over several processes."""
    return [
        output.evidence
        for output in facts.log.commands
        if _PERF.search(output.command) and (found := _PROCESSES.search(output.command)) and int(found[1]) > 1
    ]


def _started_together(facts: Facts) -> dict[str, Sighting]:
    """Return the files in which a run starts before the one before it ends, with the line of the start."""
    found: dict[str, Sighting] = {}
    running: dict[str, int] = {}
    for each in facts.seen("tests_start", "tests_end"):
        name = each.evidence.file
        if each.what == "tests_end":
            running[name] = max(running.get(name, 0) - 1, 0)
            continue
        running[name] = running.get(name, 0) + 1
        if running[name] > 1:
            found.setdefault(name, each)
    return found
