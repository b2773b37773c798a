"""From lines to text: the grammar of NCCL's records and the prefixes of launchers."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta

from tests.job_logs.formats import BARE, INFO, WARN
from tests.job_logs.job import release_at
from tests.job_logs.script import Line, Script

_BEGINS = datetime(2025, 11, 4, 8, 15, 30, tzinfo=UTC)


def _stamp(line: Line, pattern: str) -> str:
    return (_BEGINS + timedelta(seconds=line.at_s)).strftime(pattern)


PREFIXES: dict[str, Callable[[Line], str]] = {
    "plain": lambda _: "",
    "openmpi": lambda line: f"[1,{line.rank.rank}]<stdout>:",
    "srun": lambda line: f"{line.rank.rank}: ",
    "torchrun": lambda line: f"[default{line.rank.device}]:",
    "torchrun-rank": lambda line: f"[rank{line.rank.rank}]:",
    "mpi-operator": lambda line: f"{line.rank.host}: ",
    "ray": lambda line: f"\x1b[36m(RayTrainWorker pid={line.rank.pid}, ip={line.rank.address})\x1b[0m ",
    "kubectl": lambda line: _stamp(line, "%Y-%m-%dT%H:%M:%S.%fZ "),
    "sagemaker": lambda line: _stamp(line, "%Y-%m-%dT%H:%M:%S.%fZ|"),
    "syslog": lambda line: _stamp(line, "%b %e %H:%M:%S ") + f"{line.rank.host} train[{line.rank.pid}]: ",
    "ansi": lambda _: "\x1b[0;32m",
}
"""What a launcher puts in front of every line of the output it gathers."""

_ENDS = {"ansi": "\x1b[0m"}


def write_lines(
    script: Script, lines: Iterable[Line], launcher: str | None = None, *, timestamps: bool | None = None
) -> str:
    """Return the text of these lines.

    Parameters
    ----------
    script : Script
        Whose lines they are; its job says release and launcher.
    lines : Iterable[Line]
        In the order in which they reach the file.
    launcher : str, optional
        Another launcher than the job's.
    timestamps : bool, optional
        Whether every record, or none, has NCCL's time; by default only WARN of 2.26 and newer has it.

    Returns
    -------
    str
        The text, each line with its newline.
    """
    chosen = launcher or script.job.launcher
    prefix, end = PREFIXES[chosen], _ENDS.get(chosen, "")
    parts: list[str] = []
    for line in lines:
        record = record_of(script, line, timestamps=timestamps)
        if chosen == "syslog":
            parts.append(prefix(line) + record.replace("\n", "#012") + "\n")
        else:
            parts.extend(f"{prefix(line)}{row}{end}\n" for row in record.split("\n"))
    return "".join(parts)


def record_of(script: Script, line: Line, *, timestamps: bool | None = None) -> str:
    """Return one record as NCCL or the framework writes it, without the prefix of a launcher."""
    release = release_at(script.job, line.rank.host)
    if line.level not in {INFO, WARN}:
        return line.text
    head = f"{line.rank.host}:{line.rank.pid}:{line.tid} [{line.device}] "
    stamped = release.is_from("2.26.5") and line.level == WARN if timestamps is None else timestamps
    stamp = _stamp(line, "[%Y-%m-%d %H:%M:%S] ") if stamped else ""
    if line.level == INFO:
        return (stamp + head + "NCCL INFO " + line.text)[:1023]
    function = f" ({line.function})" if release.is_from("2.30.7") and line.function else ""
    return "\n" + (stamp + head + f"{line.source}{function} NCCL WARN " + line.text)[:1022]


__all__ = ["BARE", "PREFIXES", "record_of", "write_lines"]
