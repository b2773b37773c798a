"""Where a job runs: a value that turns a job for torch into the command that starts it there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from linkwise.launch.run.checks import Expected
from linkwise.launch.run.record import recorded_settings

__all__ = ["RENDEZVOUS_VARIABLES", "Command", "LocalPlace", "Place", "Queue", "TorchJob"]

RENDEZVOUS_VARIABLES = (
    "MASTER_ADDR",
    "MASTER_PORT",
    "RANK",
    "WORLD_SIZE",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "GROUP_RANK",
)
"""What another launcher may have left in the environment; torchrun sets its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchJob:
    """A script that torchrun starts on every rank.

    Parameters
    ----------
    script
        Path of the script.
    arguments
        Its arguments.
    ranks
        Processes in all [1].
    settings
        Variables that the job needs, over those of the environment.
    python
        The Python that has torch.
    device
        ``cuda`` or ``cpu``.
    """

    script: str
    arguments: tuple[str, ...] = ()
    ranks: int
    settings: Mapping[str, str] = field(default_factory=dict)
    python: str
    device: str = "cpu"


class Queue(Protocol):
    """Where a job may wait before it starts."""

    @property
    def patience_s(self) -> float:
        """Return how long it may wait there [s]."""
        ...

    def heard(self, line: str) -> str | None:
        """Return what a line of output says: the name of a job that waits, nothing where it goes on.

        Parameters
        ----------
        line
            Of the output; ``None`` is returned where it says neither.
        """
        ...

    def reason(self, job: str) -> str:
        """Return why a job waits; may be empty.

        Parameters
        ----------
        job
            Its name.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What is started.

    Parameters
    ----------
    argv
        Program and arguments.
    settings
        Variables set over those of the environment.
    unset
        Variables of the environment that the job must not see.
    expected
        What its ranks must be seen to be; ``None`` where they are of no torch.
    seen_in
        The run folder in which agents of nodes write what ranks they see; ``None`` where the processes that
        the kernel shows here are those of the job.
    queue
        Where the job may wait first; ``None`` where it starts at once.
    stop
        What is run once a job ended that did not end well, to be sure that nothing of it goes on.
    """

    argv: tuple[str, ...]
    settings: Mapping[str, str]
    unset: tuple[str, ...] = ()
    expected: Expected | None = None
    seen_in: Path | None = None
    queue: Queue | None = None
    stop: tuple[str, ...] = ()

    def environment(self, inherited: Mapping[str, str]) -> dict[str, str]:
        """Return all variables of the job.

        Parameters
        ----------
        inherited
            The environment of the launcher.
        """
        kept = {name: value for name, value in inherited.items() if name not in self.unset}
        return {**kept, **self.settings}


class Place(Protocol):
    """Where a job runs."""

    @property
    def name(self) -> str:
        """Return its name on the command line."""
        ...

    def command(self, job: TorchJob, *, run_id: str, inherited: Mapping[str, str]) -> Command:
        """Return what starts a job there.

        Parameters
        ----------
        job
            The job.
        run_id
            Unlike that of any other run.
        inherited
            The environment of the launcher.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalPlace:
    """The machine itself: one torchrun, which meets its ranks on a port that the kernel picks."""

    name: str = "local"

    def command(self, job: TorchJob, *, run_id: str, inherited: Mapping[str, str]) -> Command:
        """Return the command of torchrun.

        Parameters
        ----------
        job, run_id, inherited
            As for `Place`.

        Notes
        -----
        Port 0 lets the kernel choose while it binds, so that no two runs on a machine can want the same. All
        addresses are those of the loopback interface: a host name that does not resolve harms nothing.
        """
        torchrun = (job.python, "-m", "torch.distributed.run", "--nnodes", "1")
        ranks = ("--nproc-per-node", str(job.ranks), "--max-restarts", "0")
        meeting = ("--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0", "--rdzv-id", run_id)
        address = ("--local-addr", "127.0.0.1")
        defaults = {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
        own = {name: value for name, value in defaults.items() if name not in inherited}
        command = Command(
            argv=(*torchrun, *ranks, *meeting, *address, job.script, *job.arguments),
            settings={**own, **job.settings},
            unset=RENDEZVOUS_VARIABLES,
        )
        return replace(command, expected=_expected_here(job, command.environment(inherited)))


def _expected_here(job: TorchJob, environment: Mapping[str, str]) -> Expected:
    interfaces = environment.get("GLOO_SOCKET_IFNAME", "").split(",")
    return Expected(
        nodes=1,
        ranks_per_node=job.ranks,
        hosts=(),
        device=job.device,
        settings=recorded_settings(environment),
        protocol="",
        has_nvlink=False,
        interfaces=tuple(filter(None, interfaces)),
    )
