"""Where a command runs, by the word behind --on: this machine, Slurm, or the nodes of a lab."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from linkwise.errors import InputError, UnknownName

if TYPE_CHECKING:
    from linkwise.cluster import Cluster
    from linkwise.lab.design import LabDesign
    from linkwise.launch.run.launch_place import LaunchPlace
    from linkwise.launch.run.place import Place, TorchJob
    from linkwise.settings.recommended import Setting

__all__ = [
    "BenchAsked",
    "BenchPlace",
    "LaunchGround",
    "bench_place",
    "lab_named",
    "launch_ground",
    "place_again",
]

_LAB_NOTE = (
    "the lab computes on CPUs over links that are slower than the cluster's by its dilation: its step times "
    "are not those that are predicted for the GPUs"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchGround:
    """What a launch must know of where it runs.

    Parameters
    ----------
    place
        The place.
    target
        What files are rendered for.
    device
        What its ranks compute on unless told otherwise.
    settings
        Variables that it has of its own.
    hosts
        Names of its nodes, where they are known before.
    files
        What it needs beside the rendered files.
    looks
        Commands that look at its nodes before anything starts, by run folder and Python.
    notes
        What a reader of the record must know.
    """

    place: LaunchPlace
    target: str
    device: str = "cuda"
    settings: tuple[Setting, ...] = ()
    hosts: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    looks: Callable[[Path, str], Sequence[Sequence[str]]] = lambda _folder, _python: ()
    notes: tuple[str, ...] = ()


@contextmanager
def launch_ground(word: str, cluster: Cluster, *, options: tuple[str, ...]) -> Iterator[LaunchGround]:
    """Give where a launch runs; a lab is held as long.

    Parameters
    ----------
    word
        ``local``, ``slurm``, ``lab`` or ``lab:NAME``.
    cluster
        What is planned for.
    options
        Those of sbatch.

    Raises
    ------
    InputError
        When there is no such place, or the lab is busy or another cluster.
    """
    from linkwise.launch.render import slurm, torchrun
    from linkwise.launch.run.launch_place import LocalLaunch, SlurmLaunch
    from linkwise.launch.run.preflight import look_command

    if word == "local":
        yield LaunchGround(
            place=LocalLaunch(script=torchrun.FILE),
            target="torchrun",
            looks=lambda folder, python: (look_command(folder, python),),
        )
    elif word == "slurm":
        yield LaunchGround(place=SlurmLaunch(script=slurm.FILE, options=options), target="slurm")
    else:
        with _lab_ground(word, cluster) as ground:
            yield ground


@contextmanager
def _lab_ground(word: str, cluster: Cluster) -> Iterator[LaunchGround]:
    from linkwise.lab.life import Ground, lab_locked
    from linkwise.lab.place import (
        SCRIPT,
        hosts_of,
        lab_launch,
        lab_settings,
        launch_script,
        look_commands,
    )
    from linkwise.launch.render import torchrun

    with lab_locked(lab_named(word), ground=Ground()) as (name, whole, lock):
        design = _part(name, whole, cluster)
        yield LaunchGround(
            place=lab_launch(lock),
            target="torchrun",
            device="cpu",
            settings=lab_settings(design),
            hosts=hosts_of(name, design),
            files={SCRIPT: launch_script(name, design, torchrun.FILE)},
            looks=lambda folder, python: look_commands(name, design, folder, python),
            notes=(_LAB_NOTE,),
        )


def _part(name: str, design: LabDesign, cluster: Cluster) -> LabDesign:
    """Return the nodes of a lab that a cluster has in use; refuse a cluster that the lab does not emulate."""
    from linkwise.lab.design import design_of

    whole = replace(cluster, gpus=cluster.nodes * cluster.gpus_per_node)
    shape = (whole.nodes_in_use, whole.gpus_per_node)
    if shape == (design.nodes, design.ranks_per_node):
        wanted = design_of(whole, dilation=design.dilation)
        if replace(wanted, source=design.source) == design:
            return design.first(cluster.gpus)
    built = f", {design.source}," if design.source else ""
    raise InputError(
        f"lab {name} emulates {design.cluster} ({design.nodes} nodes of {design.ranks_per_node}), not "
        f"{cluster.name} ({shape[0]} of {shape[1]}) as it is described: name the cluster it was built "
        f"from{built} or build a lab of this one"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchAsked:
    """What is asked of the place of a bench.

    Parameters
    ----------
    ranks, nodes
        How many; ``None`` where it was not said [1].
    device
        ``cuda`` or ``cpu``; ``None`` where it was not said.
    options
        Those of sbatch.
    queue_s
        How long it may wait in a queue; ``None`` where it was not said [s].
    patience_s
        How long nodes may wait for one another [s].
    """

    ranks: int | None = None
    nodes: int | None = None
    device: str | None = None
    options: tuple[str, ...] = ()
    queue_s: float | None = None
    patience_s: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchPlace:
    """Where a bench runs that does not run on this machine alone.

    Parameters
    ----------
    place
        The place.
    ranks, nodes
        All that take part [1].
    device
        What they compute on.
    stage
        As for `linkwise.bench.torch_run.TorchBench`.
    """

    place: Place
    ranks: int
    nodes: int
    device: str
    stage: Callable[[TorchJob, Path], TorchJob] | None = None


@contextmanager
def bench_place(word: str, asked: BenchAsked) -> Iterator[BenchPlace | None]:
    """Give where a bench runs, ``None`` for this machine; a lab is held as long.

    Parameters
    ----------
    word
        ``local``, ``slurm``, ``lab`` or ``lab:NAME``.
    asked
        What is asked of it.

    Raises
    ------
    InputError
        When there is no such place, it is busy, or has other ranks.
    """
    if word == "slurm":
        yield _slurm_bench(asked)
        return
    for value, option in (
        (asked.nodes, "--nodes"),
        (asked.options, "--sbatch"),
        (asked.queue_s, "--queue-within"),
    ):
        if value:
            raise InputError(f"{option} has no effect without --on slurm; leave it out")
    if word == "local":
        yield None
        return
    from linkwise.lab.life import Ground, lab_locked
    from linkwise.lab.place import LabPlace

    if asked.device == "cuda":
        raise InputError(f"--device cuda: nodes of --on {word} have no GPUs; leave the option out")
    with lab_locked(lab_named(word), ground=Ground()) as (name, design, _):
        part = design if asked.ranks is None else design.first(asked.ranks)
        place = LabPlace(lab=name, design=part)
        yield BenchPlace(place=place, ranks=part.ranks, nodes=part.nodes, device="cpu")


_QUEUE_S = 86_400.0
"""In the queue of Slurm, as for a launched job; assumed [s]."""


def _slurm_bench(asked: BenchAsked) -> BenchPlace:
    from linkwise.launch.run.slurm_place import SlurmPlace

    if asked.nodes is None or asked.ranks is None:
        raise InputError(
            "--on slurm: say how many nodes and ranks take part, such as --nodes 8 --ranks 64 for eight "
            "nodes of eight GPUs; this node cannot know"
        )
    if asked.ranks % asked.nodes or not 1 <= asked.ranks <= _MOST_RANKS:
        raise InputError(
            f"--ranks {asked.ranks}: give a multiple of --nodes {asked.nodes}, {_MOST_RANKS:,} at most; "
            "every node has as many"
        )
    for each in asked.options:
        if not each.startswith("-") or not each.isprintable():
            raise InputError(f"--sbatch {each!r}: write an option of sbatch, such as --partition=train")
    if shutil.which("srun") is None:
        raise InputError("srun is not here: --on slurm runs on a node that can submit")
    place = SlurmPlace(
        nodes=asked.nodes,
        ranks_per_node=asked.ranks // asked.nodes,
        queue_s=_QUEUE_S if asked.queue_s is None else asked.queue_s,
        patience_s=asked.patience_s,
        options=asked.options,
    )
    device = asked.device or "cuda"
    return BenchPlace(place=place, ranks=asked.ranks, nodes=asked.nodes, device=device, stage=place.stage)


_MOST_RANKS = 65_536
"""More are a mistake [1]."""


def lab_named(word: str) -> str | None:
    """Return the name of the lab of ``lab:NAME``; ``None`` of ``lab``, which is the only one.

    Parameters
    ----------
    word
        What stands behind --on.

    Raises
    ------
    UnknownName
        When it is no place.
    """
    kind, colon, name = word.partition(":")
    if kind != "lab" or (colon and not name):
        raise UnknownName.among(("local", "slurm", "lab", "lab:NAME"), kind="place", given=word)
    return name or None


def place_again(name: str) -> LaunchPlace:
    """Return the place of a launch that goes on.

    Parameters
    ----------
    name
        As the record has it.
    """
    from linkwise.lab.place import lab_launch
    from linkwise.launch.render import slurm, torchrun
    from linkwise.launch.run.launch_place import LocalLaunch, SlurmLaunch

    if name == "slurm":
        return SlurmLaunch(script=slurm.FILE)
    return lab_launch(None) if name == "lab" else LocalLaunch(script=torchrun.FILE)
