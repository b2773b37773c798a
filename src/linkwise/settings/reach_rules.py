"""Rules on settings that do not get to the processes: not exported, set too late, or not passed on."""

from __future__ import annotations

from collections.abc import Iterator

from linkwise.readers.environment import Assignment, Reach
from linkwise.readers.launch import Launch
from linkwise.readers.settings_file import SettingsFile, SettingsKind
from linkwise.settings.finding import Finding, Severity, Subject
from linkwise.settings.launch_rules import SLURM, number_in

__all__ = ["unreached"]

_DEEPSPEED_EXPORTS = ("NCCL", "PYTHON", "MV2", "UCX", "MLFLOW")
"""Beginnings of names that deepspeed passes on (launcher/runner.py, EXPORT_ENVS)."""
_SHELL = "Shell Command Language, 2.9.1"


def unreached(subject: Subject) -> Iterator[Finding]:
    """Yield settings that do not get to the processes: not exported, set too late, or not passed on."""
    for file in subject.files:
        if file.kind is not SettingsKind.SCRIPT:
            continue
        outer = [each for each in file.launches if not each.parents]
        for each in file.assignments:
            if each.value is None or each.name.startswith("MASTER_") or each.name.endswith("RANK"):
                continue
            found = _unreached(file, outer, each)
            if found is not None:
                what, todo, source = found
                yield subject.finding(
                    file, each, Severity.NO_EFFECT, rule="unreached", what=what, todo=todo, source=source
                )


def _unreached(file: SettingsFile, outer: list[Launch], each: Assignment) -> tuple[str, str, str] | None:
    """Return why a setting does not arrive, what to do and the source; ``None`` where it does."""
    if each.reach is Reach.SHELL:
        return "is set and not exported: no program sees it", f"export {each.name}", _SHELL
    if each.reach is not Reach.EXPORTED or not outer:
        return None
    if each.line is not None and each.line > max(launch.line for launch in file.launches):
        return "is set after the job has been started", "move it above the launch", _SHELL
    if all(launch.launcher == "mpirun" for launch in outer) and each.name not in file.forwarded:
        if any(launch.value("host", "hostfile", "H") is not None for launch in outer):
            what = "mpirun does not pass it on to other nodes"
            return what, f"add -x {each.name} to mpirun", "Open MPI, mpirun(1)"
        return None
    if all(launch.launcher == "deepspeed" and _spans_nodes(launch) for launch in outer):
        if not each.name.startswith(_DEEPSPEED_EXPORTS):
            what = "deepspeed does not pass it on to other nodes"
            return what, "write it into .deepspeed_env", "DeepSpeed, launcher/runner.py (EXPORT_ENVS)"
        return None
    exports = [launch.value("export") for launch in outer if launch.launcher == "srun"]
    closed = [given for given in exports if given is not None and "ALL" not in given.split(",")]
    if closed and each.name not in file.forwarded:
        what = f"srun --export={closed[0][:40]} does not pass it on"
        return what, f"write --export=ALL, or name {each.name} there", SLURM
    return None


def _spans_nodes(launch: Launch) -> bool:
    """Return whether deepspeed starts processes on other nodes."""
    nodes = number_in(launch.value("num-nodes"))
    return launch.value("hostfile", "H") is not None or (nodes is not None and nodes > 1)
