"""A generated log with what a reader should make of it."""

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.job_logs.healthy import facts_of, write
from tests.job_logs.job import Facts, Job
from tests.job_logs.releases import release
from tests.job_logs.script import Line, Script
from tests.job_logs.writing import write_lines

_HOSTS = (
    ("gpu-01", "gpu-02", "gpu-03", "gpu-04"),
    ("node-a17", "node-a18", "node-a19", "node-b01"),
    ("worker-0", "worker-1", "worker-2", "worker-3"),
    ("hgx3", "hgx4", "hgx7", "hgx9"),
    ("ip-10-20-0-11", "ip-10-20-0-12", "ip-10-20-0-13", "ip-10-20-0-14"),
)
_FRAMEWORKS = ("pytorch", "nccl-tests", "pytorch", "", "pytorch")
_LAUNCHERS = ("plain", "plain", "srun", "openmpi", "plain", "torchrun", "mpi-operator")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogCase:
    """One log, or several files of one job, and the answer.

    Parameters
    ----------
    id : str
        Its name: cause, `near` for a near miss, a number.
    cause : str or None
        What must be named; `harmless` for alarming text without effect; None where there is nothing to find.
    also : tuple[str, ...]
        Causes that are right too.
    verdict : str
        healthy, harmless, slow, or broken.
    script : Script
        The job, before it is text.
    side : Mapping[str, str]
        Output of commands on the hosts, by file name.
    facts : Facts or None
        What can be read of transports, versions and size; None where the start failed before they are shown.
    near_miss_of : str or None
        The cause whose texts are here though it does not hold.
    basis : str
        `source`: the decisive texts are NCCL's or another program's own; `assumed`: part of what is printed, or of what
        goes with it, is our belief.
    """

    id: str
    cause: str | None
    also: tuple[str, ...] = ()
    verdict: str = "broken"
    script: Script
    side: Mapping[str, str] = field(default_factory=dict)
    facts: Facts | None = None
    near_miss_of: str | None = None
    basis: str = "source"

    @property
    def release(self) -> str:
        return str(self.script.job.release)

    @property
    def is_near_miss(self) -> bool:
        return self.near_miss_of is not None

    @property
    def right(self) -> frozenset[str]:
        """Every cause that is a right answer."""
        return frozenset(self.also) | ({self.cause} if self.cause else frozenset())

    @property
    def lines(self) -> tuple[Line, ...]:
        return self.script.in_order()

    @property
    def files(self) -> dict[str, str]:
        """The log and the files beside it, by name."""
        return {"job.log": write_lines(self.script, self.lines), **self.side}


def job(case_id: str, version: str, **fields) -> Job:
    """Return a job whose names, launcher and seed follow from the id of its case."""
    seed = zlib.crc32(case_id.encode()) % 9000 + 7
    nodes = fields.pop("nodes", 2)
    defaults = {
        "hosts": _HOSTS[seed % len(_HOSTS)][:nodes],
        "launcher": _LAUNCHERS[seed % len(_LAUNCHERS)],
        "subnet": f"10.{seed % 40 + 10}.{seed % 7}",
        "framework": _FRAMEWORKS[seed % len(_FRAMEWORKS)],
        "seed": seed,
    }
    return Job(release=release(version), **{**defaults, **fields})


def script_of(case_id: str, version: str, **fields) -> Script:
    """Return the healthy lines of `job(...)`."""
    return write(job(case_id, version, **fields))


def runs(script: Script) -> Facts:
    """Return the facts of a job that came as far as its connections."""
    return facts_of(script.job)


def stopped(script: Script) -> Facts:
    """Return the facts of a job that stopped before its connections: versions, and the size where it is shown."""
    shown = {line.name for line in script.lines}
    job_ = script.job
    nodes = f"nNodes {job_.nodes} "
    return Facts(
        versions=facts_of(job_).versions if "version" in shown else (),
        ranks=job_.size if shown & {"init_start", "size", "init_complete"} else None,
        nodes=job_.nodes
        if any(line.name == "size" and nodes in line.text for line in script.lines)
        else None,
    )


def healthy_case(case_id: str, script: Script, near_miss_of: str | None = None, **fields) -> LogCase:
    """Return a case with nothing to find."""
    values = {"cause": None, "verdict": "healthy", "facts": runs(script), **fields}
    return LogCase(id=case_id, script=script, near_miss_of=near_miss_of, **values)
