"""`render`: a target's launcher and the program of a job, put together, with a page, and read back.

A launcher starts processes (torchrun, Slurm, Kubernetes); a program is what they run (Megatron-LM,
torchtitan...). A target names one of either: a launcher starts the program of the job's framework,
a program is started with torchrun.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

from linkwise.errors import InputError, UnknownName
from linkwise.job.framework import FRAMEWORKS
from linkwise.launch.render import (
    ddp,
    deepspeed,
    kubernetes,
    megatron,
    own_program,
    readme,
    slurm,
    torchrun,
    torchtitan,
)
from linkwise.launch.render.start import NotExpressed, Program, Rendered, Start
from linkwise.readers.settings_file import read_settings

if TYPE_CHECKING:
    from linkwise.estimate import Estimate

__all__ = ["TARGETS", "Target", "read_back", "render"]

Reader = Callable[..., dict[str, object]]


class _Launcher(Protocol):
    def __call__(self, start: Start, program: Program, /) -> Rendered: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Framework:
    """How a program is written and read."""

    program: Callable[[Start], Program]
    read: Reader


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One thing that files are rendered for.

    Attributes
    ----------
    meaning
        What it is, in a few words.
    launcher
        What starts the processes.
    program
        The program, a key of the programs; ``None``: that of the job's framework.
    """

    meaning: str
    launcher: _Launcher
    program: str | None = None


_PROGRAMS: Mapping[str, _Framework] = MappingProxyType(
    {
        "megatron": _Framework(program=megatron.megatron_program, read=megatron.read_megatron),
        "torchtitan": _Framework(program=torchtitan.torchtitan_program, read=torchtitan.read_torchtitan),
        "deepspeed": _Framework(program=deepspeed.deepspeed_program, read=deepspeed.read_deepspeed),
        "ddp": _Framework(program=ddp.ddp_program, read=ddp.read_ddp),
        "own": _Framework(program=own_program.own_program, read=own_program.read_own),
    }
)

TARGETS: Mapping[str, Target] = MappingProxyType(
    {
        "torchrun": Target(meaning="a script for every node", launcher=torchrun.torchrun_files),
        "slurm": Target(meaning="a batch script", launcher=slurm.slurm_files),
        "kubernetes": Target(meaning="JobSet, TrainJob and PyTorchJob", launcher=kubernetes.kubernetes_files),
        "megatron": Target(
            meaning="arguments of Megatron-LM", launcher=torchrun.torchrun_files, program="megatron"
        ),
        "torchtitan": Target(
            meaning="TOML of torchtitan 0.2", launcher=torchrun.torchrun_files, program="torchtitan"
        ),
        "deepspeed": Target(
            meaning="JSON of DeepSpeed", launcher=torchrun.torchrun_files, program="deepspeed"
        ),
        "ddp": Target(meaning="a program with DDP", launcher=torchrun.torchrun_files, program="ddp"),
    }
)
"""What files are rendered for, by the name on the command line."""

_PROGRAM_OF_FRAMEWORK = {"torchtitan": "torchtitan", "nanotron": "own"}
_PROGRAM_OF_FAMILY = {"megatron": "megatron", "deepspeed": "deepspeed", "ddp": "ddp"}


def render(
    target: str, start: Start, *, notes: Sequence[str] = (), estimate: Estimate | None = None
) -> Rendered:
    """Return the files of a target, with a page on them.

    Parameters
    ----------
    target
        A key of `TARGETS`.
    start
        What is to be started.
    notes
        What hangs on facts that no document holds, for the page.
    estimate
        What a step should take, for the page.

    Raises
    ------
    UnknownName
        When there is no such target.
    InputError
        When the files read back do not say the layout: a fault of ours, not of the input.
    """
    if target not in TARGETS:
        raise UnknownName.among(TARGETS, kind="target", given=target)
    name = _program_name(target, start)
    rendered = TARGETS[target].launcher(start, _PROGRAMS[name].program(start))
    rendered = replace(rendered, not_expressed=(*_other_framework(name, start), *rendered.not_expressed))
    _check(target, start, rendered)
    page = readme.readme_text(start, rendered, target=target, notes=notes, estimate=estimate)
    return replace(
        rendered,
        files={readme.FILE: page, **rendered.files},
        purposes={readme.FILE: "this page", **rendered.purposes},
    )


def _program_name(target: str, start: Start) -> str:
    framework = FRAMEWORKS[start.job.framework]
    usual = _PROGRAM_OF_FRAMEWORK.get(framework.name) or _PROGRAM_OF_FAMILY.get(framework.family, "own")
    return TARGETS[target].program or usual


def _other_framework(program: str, start: Start) -> Iterator[NotExpressed]:
    framework = FRAMEWORKS[start.job.framework]
    usual = _PROGRAM_OF_FRAMEWORK.get(framework.name) or _PROGRAM_OF_FAMILY.get(framework.family, "own")
    if program not in (usual, "own"):
        yield NotExpressed(
            name="framework",
            value=framework.name,
            reason=f"the layout was chosen for its habits, and {program} has others: plan with "
            f"framework {program}",
        )


def read_back(target: str, files: Mapping[str, str], *, framework: str) -> dict[str, object]:
    """Return what rendered files say of the layout, and `global_batch`.

    Parameters
    ----------
    target
        What they were rendered for.
    files
        Texts by name.
    framework
        The framework of the job.

    Raises
    ------
    InputError
        When they contradict one another.
    """
    known = FRAMEWORKS[framework]
    usual = _PROGRAM_OF_FRAMEWORK.get(known.name) or _PROGRAM_OF_FAMILY.get(known.family, "own")
    read = _PROGRAMS[TARGETS[target].program or usual].read
    said = [read({**files, **own}, gpus=ranks) for ranks, own in _launches(target, files)]
    if any(each != said[0] for each in said):
        raise InputError(f"the files of {target} do not say the same layout; render them again")
    return said[0]


def _launches(target: str, files: Mapping[str, str]) -> Iterator[tuple[int, Mapping[str, str]]]:
    """Yield the processes that each of the start files starts, and the files of the program it carries."""
    if target == "kubernetes":
        for name in kubernetes.FILES:
            yield kubernetes.read_manifest(files[name])
        return
    name = slurm.FILE if target == "slurm" else torchrun.FILE
    found = read_settings(files[name], path=name).launches
    launch = next((each for each in found if each.launcher == "torchrun"), None)
    if launch is None:
        raise InputError(f"{name} starts nothing with torchrun; render it again")
    yield int(launch.value("nnodes") or 0) * int(launch.value("nproc-per-node") or 0), {}


def _check(target: str, start: Start, rendered: Rendered) -> None:
    said = read_back(target, rendered.files, framework=start.job.framework)
    missing = {each.name for each in rendered.not_expressed}
    planned = {**own_program.layout_values(start), "global_batch": start.job.global_batch}
    for name, value in planned.items():
        if name not in missing and said[name] != value:
            raise InputError(
                f"internal error: the files of {target} say {name} {said[name]}, the plan {value}; "
                "please report it"
            )
