"""From a plan to what is launched: settings with reasons, rendered files, environment, needs of a node."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from linkwise.errors import InputError
from linkwise.figures import Basis
from linkwise.launch.render import planned_start, render
from linkwise.launch.render.torchrun import PORT
from linkwise.launch.run.launch_record import Prediction
from linkwise.launch.run.place import RENDEZVOUS_VARIABLES
from linkwise.launch.run.proof import Expected, strangers
from linkwise.nccl.variables import NEWEST, Release
from linkwise.settings.recommended import Setting

if TYPE_CHECKING:
    from linkwise.cluster import Cluster
    from linkwise.estimate import Estimate
    from linkwise.job import Job
    from linkwise.launch.render import Rendered, Start

__all__ = [
    "LaunchChoices",
    "Prepared",
    "given_settings",
    "prepare",
    "prepared_launch",
    "run_settings_of",
    "unplanned",
]

_SHM_BYTES_PER_RANK = 32 << 20
"""Buffers of NCCL between processes of a node; assumed: the 64 MiB of a container are known to be too few."""
_FREE_BYTES = 256 << 20
"""For logs of a day; assumed [bytes]."""
_OWN_PROGRAM = "train_ddp.py"
_NAME = re.compile(r"[A-Z][A-Z0-9_]{1,80}")
_PYTORCH = "PyTorch documentation, torchrun; torch/distributed/rendezvous.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """What is launched.

    Parameters
    ----------
    name
        Of the job.
    files, executable
        Texts by name, and which are commands.
    wanted
        What the agent of a node holds it to.
    expected, prediction
        What the run must be, and what a step should take.
    plan_digest
        SHA-256 of the files.
    """

    name: str
    files: Mapping[str, str]
    executable: frozenset[str]
    wanted: Mapping[str, Any]
    expected: Expected
    prediction: Prediction
    plan_digest: str

    def environment(self, inherited: Mapping[str, str], folder: Path) -> dict[str, str]:
        """Return all variables that the job starts with; its script sets those of the plan.

        Parameters
        ----------
        inherited
            The environment of the launcher.
        folder
            The run folder.
        """
        kept = {name: value for name, value in inherited.items() if name not in RENDEZVOUS_VARIABLES}
        return {**kept, **self.added(inherited, folder)}

    def added(self, inherited: Mapping[str, str], folder: Path) -> dict[str, str]:
        """Return the variables that are set over those of the launcher.

        Parameters
        ----------
        inherited, folder
            As for `environment`.
        """
        return {
            "LINKWISE_RUN_FOLDER": str(folder),
            "PATH": f"{folder / 'agent'}:{inherited.get('PATH', '/usr/bin:/bin')}",
            "PYTHONUNBUFFERED": "1",
        }


def given_settings(words: Sequence[str]) -> tuple[Setting, ...]:
    """Return the settings of ``NAME=VALUE``.

    Parameters
    ----------
    words
        As given.

    Raises
    ------
    InputError
        When one is no setting.
    """
    found = []
    for word in words:
        name, sign, value = word.partition("=")
        if not sign or not _NAME.fullmatch(name) or not value.isprintable() or len(value) > 4096:
            raise InputError(f"--set {word!r}: write NAME=VALUE, such as NCCL_SOCKET_IFNAME=eth0")
        if name in RENDEZVOUS_VARIABLES or name.startswith(("PET_", "LINKWISE_", "LD_")) or name == "PATH":
            raise InputError(f"--set {name}: is set by torchrun or launch itself, or by no job; leave it out")
        found.append(Setting(name=name, value=value, reason="as given", source="--set", basis=Basis.ASSUMED))
    return tuple(found)


def run_settings_of(
    planned: Sequence[Setting],
    given: Sequence[Setting],
    *,
    device: str,
    is_local: bool,
    restarts: int,
    of_place: Sequence[Setting] = (),
) -> tuple[Setting, ...]:
    """Return the settings of a launched job.

    Parameters
    ----------
    planned
        Those that were rendered for the cluster.
    given
        Those of the command line, which win.
    device
        ``cuda`` or ``cpu``.
    is_local
        Whether it runs on this machine alone.
    restarts
        How often torchrun starts all ranks again after one failed [1].
    of_place
        Those that the place has of its own.
    """
    of_run = (*_of_cpus(device, is_local=is_local), *_of_restarts(restarts), *of_place)
    wanted = [*(planned if device == "cuda" else ()), *of_run]
    last = {each.name: each for each in (*wanted, *given)}
    return tuple(last.values())


def _of_cpus(device: str, *, is_local: bool) -> Iterator[Setting]:
    if device == "cpu":
        yield Setting(
            name="CUDA_VISIBLE_DEVICES", value="", reason="a trial on CPUs: programs then take gloo",
            source="CUDA C++ programming guide, environment variables", basis=Basis.DATASHEET,
        )  # fmt: skip
    if device == "cpu" and is_local:
        yield Setting(
            name="GLOO_SOCKET_IFNAME", value="lo", reason="one machine: a host name that does not resolve "
            "harms nothing", source="PyTorch documentation, torch.distributed", basis=Basis.DATASHEET,
        )  # fmt: skip
    if is_local:
        yield Setting(
            name="PET_LOCAL_ADDR", value="127.0.0.1", reason="the option --local-addr of torchrun: ranks of "
            "one machine meet over loopback", source=_PYTORCH, basis=Basis.DATASHEET,
        )  # fmt: skip


def _of_restarts(restarts: int) -> Iterator[Setting]:
    if restarts:
        yield Setting(
            name="PET_MAX_RESTARTS", value=str(restarts), reason="the option --max-restarts of torchrun",
            source=_PYTORCH, basis=Basis.DATASHEET,
        )  # fmt: skip
        yield Setting(
            name="TORCH_DISABLE_SHARE_RDZV_TCP_STORE", value="1", reason="with the shared store, ranks that "
            "start again read the addresses of those that died and cannot connect (gloo)",
            source=_PYTORCH, basis=Basis.DATASHEET,
        )  # fmt: skip


def unplanned(inherited: Mapping[str, str], settings: Sequence[Setting]) -> str:
    """Return what to say of variables of this shell that move data and are not planned; empty without.

    Parameters
    ----------
    inherited
        The environment of the launcher.
    settings
        Those of the plan.
    """
    found = strangers(tuple(inherited), {each.name: each.value for each in settings})
    if not found:
        return ""
    shown = ", ".join(f"{name}={inherited[name]}" for name in found[:4])
    words = " ".join(f"--set {name}={shlex.quote(inherited[name])}" for name in found[:4])
    return f"{shown} in this shell moves data and is not planned: unset it, or plan it with {words}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchChoices:
    """What is chosen of a launch beside job, cluster and place.

    Parameters
    ----------
    device
        ``cuda`` or ``cpu``.
    script
        What to start instead of the framework's usual program, as a path on the nodes.
    given
        Settings that win over those of the plan.
    restarts
        How often torchrun starts all ranks again after one failed [1].
    time_limit_s
        When the job is ended; ``None`` for the usual [s].
    release
        The release of NCCL.
    look_s
        How long nodes wait for one another [s].
    """

    device: str = "cuda"
    script: str | None = None
    given: tuple[Setting, ...] = ()
    restarts: int = 0
    time_limit_s: float | None = None
    release: Release = NEWEST
    look_s: float = 300.0


def prepared_launch(
    job: Job,
    cluster: Cluster,
    estimate: Estimate,
    choices: LaunchChoices,
    *,
    target: str,
    inherited: Mapping[str, str],
    of_place: Sequence[Setting] = (),
    hosts: tuple[str, ...] = (),
    more_files: Mapping[str, str] | None = None,
) -> Prepared:
    """Return what is launched of a planned job.

    Parameters
    ----------
    job, cluster, estimate
        What runs on what, and the layout with its time.
    choices
        What else was chosen.
    target
        ``torchrun`` or ``slurm``.
    inherited
        The environment of the launcher.
    of_place
        Settings that the place has of its own.
    hosts, more_files
        As for `prepare`.

    Raises
    ------
    InputError
        When the environment has variables that move data and are not planned, or no launcher can start it.
    """
    start, _ = planned_start(
        job,
        cluster,
        estimate,
        target=target,
        release=choices.release,
        time_limit_s=choices.time_limit_s,
        script=choices.script,
    )
    is_local = target == "torchrun" and start.nodes == 1
    settings = _settings_of(start.settings, choices, is_local=is_local, of_place=of_place)
    if stray := unplanned(inherited, settings):
        raise InputError(stray)
    return prepare(
        replace(start, settings=settings),
        estimate,
        target=target,
        device=choices.device,
        patience_s=choices.look_s,
        hosts=hosts,
        more_files=more_files,
    )


def _settings_of(
    planned: Sequence[Setting], choices: LaunchChoices, *, is_local: bool, of_place: Sequence[Setting]
) -> tuple[Setting, ...]:
    return run_settings_of(
        planned,
        choices.given,
        device=choices.device,
        is_local=is_local,
        restarts=choices.restarts,
        of_place=of_place,
    )


def prepare(
    start: Start,
    estimate: Estimate,
    *,
    target: str,
    device: str,
    patience_s: float,
    hosts: tuple[str, ...] = (),
    more_files: Mapping[str, str] | None = None,
) -> Prepared:
    """Return what is launched.

    Parameters
    ----------
    start
        What is to be started, with all settings.
    estimate
        What a step should take.
    target
        ``torchrun`` or ``slurm``.
    device
        ``cuda`` or ``cpu``.
    patience_s
        How long nodes wait for one another [s].
    hosts
        Names of the nodes, where they are chosen already.
    more_files
        What the place needs beside the rendered files: commands, by name.
    """
    rendered = render(target, start, estimate=estimate)
    files = {**rendered.files, **(more_files or {})}
    text = json.dumps(files, sort_keys=True)
    return Prepared(
        name=start.name,
        files=files,
        executable=rendered.executable | frozenset(more_files or ()),
        wanted={**_wanted(start, device), "patience_s": patience_s},
        expected=_expected(start, device, hosts),
        prediction=_prediction(start, estimate, rendered),
        plan_digest=hashlib.sha256(text.encode()).hexdigest(),
    )


def _protocol(start: Start) -> str:
    link = start.cluster.fabric.link
    return link.protocol if link is not None and start.nodes > 1 else ""


def _wanted(start: Start, device: str) -> dict[str, Any]:
    settings = {each.name: each.value for each in start.settings}
    names = ("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME")
    is_rdma = _protocol(start) in ("infiniband", "roce", "efa") and device == "cuda"
    return {
        "device": device,
        "nodes": start.nodes,
        "per_node": start.gpus_per_node,
        "gpus": start.gpus_per_node if device == "cuda" else None,
        "shm_bytes": start.gpus_per_node * _SHM_BYTES_PER_RANK if device == "cuda" else None,
        "memlock_bytes": "unlimited" if is_rdma else None,
        "free_bytes": _FREE_BYTES,
        "interfaces": [settings[name] for name in names if name in settings],
        "devices": [settings["NCCL_IB_HCA"]] if "NCCL_IB_HCA" in settings else [],
        "port": PORT if start.nodes > 1 else None,
    }


def _expected(start: Start, device: str, hosts: tuple[str, ...]) -> Expected:
    settings = {each.name: each.value for each in start.settings}
    return Expected(
        nodes=start.nodes,
        ranks_per_node=start.gpus_per_node,
        hosts=hosts,
        device=device,
        settings=settings,
        protocol=_protocol(start),
        has_nvlink=start.cluster.nvlink_domain_gpus > 1,
        interfaces=tuple(filter(None, settings.get("GLOO_SOCKET_IFNAME", "").split(","))),
    )


def _prediction(start: Start, estimate: Estimate, rendered: Rendered) -> Prediction:
    return Prediction(
        step_time_s=estimate.step_time_s,
        step_time_low_s=estimate.step_time_low_s,
        step_time_high_s=estimate.step_time_high_s,
        tokens_per_step=int(start.job.tokens_per_step),
        sequences_per_step=start.job.global_batch,
        steps=start.steps if _OWN_PROGRAM in rendered.files else None,
    )
