"""What happens to a log on its way to a reader, and which answers stay right.

A file may have its ranks interleaved in another order, come with the prefixes of another launcher or with times, from hosts
of other names, be one file for each process, have lines that run into each other, hold one rank only, be cut at any line, or
be compressed.
"""

import gzip
import random
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from tests.job_logs.case import LogCase
from tests.job_logs.script import Line
from tests.job_logs.writing import write_lines

CANNOT_TELL = "cannot tell"
"""The reader says that the log does not show it."""

NO_FINDING = "no finding"
"""The reader finds nothing wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variation:
    """A case in another form.

    Parameters
    ----------
    id : str
        Of the case, and what was done to it.
    case : LogCase
        The case it comes from.
    files : Mapping[str, bytes]
        What the reader gets, by file name.
    allowed : frozenset[str]
        Causes that are right, and CANNOT_TELL and NO_FINDING where they are.
    keeps_facts : bool
        Whether the facts of the case can still be read.
    """

    id: str
    case: LogCase
    files: Mapping[str, bytes]
    allowed: frozenset[str]
    keeps_facts: bool


def answers(case: LogCase) -> frozenset[str]:
    """Return the right answers to a whole log."""
    if case.cause is None:
        return frozenset({NO_FINDING})
    return case.right | ({NO_FINDING} if case.verdict == "harmless" else frozenset())


def _variation(
    case: LogCase,
    what: str,
    log: str,
    *,
    side: Mapping[str, str] | None = None,
    name: str = "job.log",
    allowed: frozenset[str] | None = None,
    keeps_facts: bool = True,
) -> Variation:
    texts = {name: log, **(case.side if side is None else side)}
    return Variation(
        id=f"{case.id}/{what}",
        case=case,
        files={key: text.encode() for key, text in texts.items()},
        allowed=answers(case) if allowed is None else allowed,
        keeps_facts=keeps_facts,
    )


def interleave(case: LogCase, seed: int) -> Variation:
    """Mix the processes anew; what one process prints keeps its order, and causes may stand below their effects."""
    chance = random.Random(seed)
    waiting: dict[int, list[Line]] = {}
    for line in reversed(case.lines):
        waiting.setdefault(line.rank.rank, []).append(line)
    mixed: list[Line] = []
    while waiting:
        rank = chance.choice(sorted(waiting))
        mixed.append(waiting[rank].pop())
        if not waiting[rank]:
            del waiting[rank]
    return _variation(case, f"interleave-{seed}", write_lines(case.script, mixed))


def prefix(case: LogCase, launcher: str) -> Variation:
    """Give every line the prefix of another launcher."""
    return _variation(case, f"prefix-{launcher}", write_lines(case.script, case.lines, launcher))


def stamp(case: LogCase, *, shown: bool) -> Variation:
    """Show NCCL's time on every record, or on none, as NCCL_DEBUG_TIMESTAMP_LEVELS does."""
    log = write_lines(case.script, case.lines, timestamps=shown)
    return _variation(case, "times" if shown else "no-times", log)


def rename_hosts(case: LogCase, seed: int) -> Variation:
    """Give the hosts other names, in the log and beside it; equal names stay equal."""
    names = sorted(set(case.script.job.hosts), key=len, reverse=True)
    fresh = {
        name: f"c{seed % 90 + 10}-{index:04d}-n{index * 7 + 3}" for index, name in enumerate(sorted(names))
    }
    pattern = re.compile(r"(?<![\w-])(" + "|".join(map(re.escape, names)) + r")(?![\w-])")

    def swap(text: str) -> str:
        return pattern.sub(lambda match: fresh[match.group(1)], text)

    side = {swap(name): swap(text) for name, text in case.side.items()}
    return _variation(case, f"rename-{seed}", swap(case.files["job.log"]), side=side)


def one_rank(case: LogCase, rank: int) -> Variation:
    """Keep what one process printed: what the other ranks know is gone."""
    lines = [line for line in case.lines if line.rank.rank == rank]
    decisive = {line.rank.rank for line in case.lines if line.decisive}
    unsure = frozenset() if case.cause is None else frozenset({CANNOT_TELL, NO_FINDING})
    if decisive == {rank}:
        unsure = frozenset({CANNOT_TELL})
    allowed = answers(case) | unsure | frozenset({CANNOT_TELL})
    return _variation(
        case, f"rank-{rank}", write_lines(case.script, lines), allowed=allowed, keeps_facts=False
    )


def cut_tail(case: LogCase, keep: int) -> Variation:
    """Keep the first `keep` lines of the file, which may end inside a record."""
    text = case.files["job.log"]
    kept = "".join(text.splitlines(keepends=True)[:keep])
    first = next((index for index, line in enumerate(case.lines) if line.decisive), None)
    seen = write_lines(case.script, case.lines[: first + 1]).count("\n") if first is not None else None
    whole = seen is not None and keep >= seen
    allowed = answers(case) | ({CANNOT_TELL} if whole else {CANNOT_TELL, NO_FINDING})
    return _variation(case, f"cut-{keep}", kept, allowed=frozenset(allowed), keeps_facts=False)


def compress(case: LogCase) -> Variation:
    """Compress the log with gzip."""
    plain = _variation(case, "gzip", case.files["job.log"])
    log = gzip.compress(plain.files["job.log"], compresslevel=1, mtime=0)
    rest = {name: text for name, text in plain.files.items() if name != "job.log"}
    return Variation(
        id=plain.id, case=case, files={"job.log.gz": log, **rest}, allowed=plain.allowed, keeps_facts=True
    )


def split_files(case: LogCase) -> Variation:
    """Give each process a file of its own, as `NCCL_DEBUG_FILE=nccl.%h.%p.log` does; the framework keeps the terminal."""
    chosen: dict[str, list[Line]] = {"job.log": []}
    for line in case.lines:
        own = f"nccl.{line.rank.host}.{line.rank.pid}.log"
        chosen.setdefault("job.log" if line.level in {"FRAMEWORK", "BARE"} else own, []).append(line)
    texts = {
        name: write_lines(case.script, lines, None if name == "job.log" else "plain")
        for name, lines in chosen.items()
    }
    return _variation(case, "split", texts.pop("job.log"), side={**texts, **case.side})


def glue(case: LogCase, seed: int) -> Variation:
    """Lose the newline after some records, so that what another rank prints begins in the middle of a line."""
    chance = random.Random(seed)
    parts = [write_lines(case.script, [line]) for line in case.lines]
    for index, (line, after) in enumerate(zip(case.lines, case.lines[1:], strict=False)):
        fair = not line.decisive and not after.decisive and line.level == after.level == "INFO"
        if fair and line.rank.rank != after.rank.rank and chance.random() < 0.02:
            parts[index] = parts[index].removesuffix("\n")
    return _variation(case, f"glue-{seed}", "".join(parts), keeps_facts=False)


LAUNCHERS = (
    "plain",
    "openmpi",
    "srun",
    "torchrun",
    "torchrun-rank",
    "mpi-operator",
    "ray",
    "kubectl",
    "sagemaker",
    "syslog",
    "ansi",
)
"""Prefixes that `variations` tries in turn."""

TRANSFORMS: Mapping[str, Callable[[LogCase, int], Variation]] = {
    "interleave": interleave,
    "prefix": lambda case, seed: prefix(case, LAUNCHERS[seed % len(LAUNCHERS)]),
    "times": lambda case, _: stamp(case, shown=True),
    "no-times": lambda case, _: stamp(case, shown=False),
    "rename": rename_hosts,
    "rank": lambda case, seed: one_rank(case, seed % max(case.script.job.size, 1)),
    "cut": lambda case, seed: cut_tail(
        case, random.Random(seed).randint(0, case.files["job.log"].count("\n"))
    ),
    "split": lambda case, _: split_files(case),
    "glue": glue,
    "gzip": lambda case, _: compress(case),
}
"""Every transformation with its seed."""


def variations(case: LogCase, seed: int, names: Iterable[str] = tuple(TRANSFORMS)) -> list[Variation]:
    """Return the case once in each form."""
    return [TRANSFORMS[name](case, seed) for name in names]
