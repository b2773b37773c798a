"""Slurm as the place of a bench: srun, which lives as long as who started it, runs torchrun on every node.

The first thing on each node is the agent of a launched job: it waits for all nodes, compares their versions,
and finds the port at which ranks meet.

References
----------
SchedMD, srun(1), scancel(1) and squeue(1), release 22.05.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from linkwise.errors import InputError
from linkwise.launch.run.checks import Expected
from linkwise.launch.run.node_agent import FOLDER_VARIABLE
from linkwise.launch.run.node_files import agent_texts
from linkwise.launch.run.place import RENDEZVOUS_VARIABLES, Command, Queue, TorchJob
from linkwise.launch.run.record import recorded_settings
from linkwise.launch.run.slurm_queue import ask_slurm

__all__ = ["SlurmPlace", "SlurmQueue"]

_WAITS = re.compile(r"\bjob (\d{1,12}) queued and waiting for resources")
_GRANTED = re.compile(r"\bjob \d{1,12} has been allocated resources")
_END = (
    'scancel --name="$1"; n=0; while [ "$n" -lt 60 ] && [ -n "$(squeue -h --name="$1")" ]; '
    "do n=$((n + 1)); sleep 0.5; done"
)
"""Cancels the job, wherever it is, and waits until it is gone: srun may have been killed."""
_FREE_BYTES = 64 << 20
"""For samples and output of a bench; assumed [bytes]."""
_SHM_BYTES_PER_RANK = 32 << 20
"""As for a launched job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmQueue(Queue):
    """The queue of Slurm, by what srun prints.

    Parameters
    ----------
    patience_s
        How long a job may wait there [s].
    ask
        Runs a command of Slurm and returns what it prints.
    """

    patience_s: float
    ask: Callable[[tuple[str, ...]], str] = ask_slurm

    def heard(self, line: str) -> str | None:
        """Return the number of a job that a line says waits, nothing where it says that one goes on.

        Parameters
        ----------
        line
            What srun printed.
        """
        if match := _WAITS.search(line):
            return match[1]
        return "" if _GRANTED.search(line) else None

    def reason(self, job: str) -> str:
        """Return why a job waits, in Slurm's word.

        Parameters
        ----------
        job
            Its number.
        """
        return self.ask(("squeue", "-h", "-j", job, "-o", "%r")).strip().replace("None", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmPlace:
    """Nodes that Slurm gives to a bench, whole.

    Parameters
    ----------
    nodes, ranks_per_node
        How many [1].
    queue_s
        How long the job may wait in the queue [s].
    patience_s
        How long nodes wait for one another [s].
    options
        Options of sbatch that srun has as well: partition, account.
    """

    nodes: int
    ranks_per_node: int
    queue_s: float
    patience_s: float
    options: tuple[str, ...] = ()
    name: str = "slurm"

    def stage(self, job: TorchJob, folder: Path) -> TorchJob:
        """Return a job whose programs lie in the run folder, which all nodes see, having put them there.

        Parameters
        ----------
        job
            With its programs where Linkwise is installed.
        folder
            The run folder.

        Raises
        ------
        InputError
            When it cannot be written.
        """
        script, program = Path(job.script), folder / "program"
        try:
            shutil.copytree(
                script.parent, program / script.parent.name, ignore=shutil.ignore_patterns("__pycache__")
            )
            (folder / "agent").mkdir()
            for name, text in agent_texts(self._wanted(job)).items():
                (folder / name).write_text(text, encoding="utf-8")
        except OSError as error:
            raise InputError(f"{folder}: cannot be written ({error.strerror})") from None
        staged = str(program / script.parent.name / script.name)
        return replace(job, script=staged, settings={**job.settings, FOLDER_VARIABLE: str(folder.absolute())})

    def _wanted(self, job: TorchJob) -> dict[str, object]:
        is_cuda = job.device == "cuda"
        return {
            "device": job.device,
            "nodes": self.nodes,
            "per_node": self.ranks_per_node,
            "gpus": self.ranks_per_node if is_cuda else None,
            "shm_bytes": self.ranks_per_node * _SHM_BYTES_PER_RANK if is_cuda else None,
            "free_bytes": _FREE_BYTES,
            "patience_s": self.patience_s,
            "meets": True,
        }

    def command(self, job: TorchJob, *, run_id: str, inherited: Mapping[str, str]) -> Command:
        """Return the command of srun.

        Parameters
        ----------
        job
            As `stage` gave it.
        run_id, inherited
            As for `linkwise.launch.run.place.Place`.

        Notes
        -----
        srun hands its standard input to all tasks, by whose end ranks see that who started them is gone.
        """
        name = f"linkwise-{run_id}"
        folder = Path(job.settings[FOLDER_VARIABLE])
        gpus = (f"--gpus-per-node={self.ranks_per_node}",) if job.device == "cuda" else ()
        shape = (f"--nodes={self.nodes}", "--ntasks-per-node=1", "--exclusive", "--mem=0", *gpus)
        ending = ("--kill-on-bad-exit=1", "--export=ALL", f"--job-name={name}")
        agent = (job.python, str(folder / "agent" / "node_agent.py"), job.script, *job.arguments)
        defaults = {"OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
        own = {key: value for key, value in defaults.items() if key not in inherited}
        command = Command(
            argv=("srun", *shape, *ending, *self.options, *agent),
            settings={**own, **job.settings},
            unset=RENDEZVOUS_VARIABLES,
            queue=SlurmQueue(patience_s=self.queue_s),
            stop=("sh", "-c", _END, "sh", name),
            seen_in=folder,
        )
        settings = recorded_settings(command.environment(inherited))
        return replace(command, expected=self._expected(job, settings))

    def _expected(self, job: TorchJob, settings: Mapping[str, str]) -> Expected:
        planned = {**settings, "CUDA_VISIBLE_DEVICES": ""} if job.device == "cpu" else dict(settings)
        if job.device == "cuda":
            planned.pop("CUDA_VISIBLE_DEVICES", None)  # Slurm says which
        return Expected(
            nodes=self.nodes,
            ranks_per_node=self.ranks_per_node,
            hosts=(),
            device=job.device,
            settings=planned,
            protocol="",
            has_nvlink=False,
            interfaces=tuple(filter(None, planned.get("GLOO_SOCKET_IFNAME", "").split(","))),
        )
