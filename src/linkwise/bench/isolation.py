"""One path alone: the settings that force it, and the proof from NCCL's log that it was taken."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from linkwise.errors import InputError
from linkwise.launch.run.transports import transports_of

__all__ = ["ISOLATIONS", "Isolation", "Proof", "checked_isolation", "prove"]

_LOGGED = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,ENV,GRAPH"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Isolation:
    """One path, and what keeps NCCL from every other.

    Parameters
    ----------
    path
        ``network``, ``nvlink`` or ``pcie``.
    settings
        Variables that force it.
    transports
        Beginnings of what the log may show between ranks, such as ``NET``.
    limits
        What it does not isolate, in sentences.
    """

    path: str
    settings: Mapping[str, str]
    transports: tuple[str, ...]
    limits: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """Whether the log shows the path that was to be isolated.

    Parameters
    ----------
    is_shown
        Whether every channel went that way; ``None`` where the log shows no channel.
    seen
        The transports in the log, with how many channels each.
    text
        The same in a sentence.
    """

    is_shown: bool | None
    seen: Mapping[str, int]
    text: str


ISOLATIONS: dict[str, Isolation] = {
    each.path: each
    for each in (
        Isolation(
            path="network",
            settings={
                **_LOGGED,
                "NCCL_P2P_DISABLE": "1",
                "NCCL_SHM_DISABLE": "1",
                "NCCL_NVLS_ENABLE": "0",
                "NCCL_MNNVL_ENABLE": "0",
            },
            transports=("NET",),
            limits=(
                "on one node the NICs talk to each other through the leaf; no path between nodes is measured",
            ),
        ),
        Isolation(
            path="nvlink",
            settings={**_LOGGED, "NCCL_P2P_LEVEL": "NVL", "NCCL_SHM_DISABLE": "1"},
            transports=("P2P",),
            limits=(
                "the log says P2P; that it is NVLink follows from NCCL_P2P_LEVEL=NVL, which allows no other",
            ),
        ),
        Isolation(
            path="pcie",
            settings={
                **_LOGGED,
                "NCCL_P2P_DISABLE": "1",
                "NCCL_NVLS_ENABLE": "0",
                "NCCL_MNNVL_ENABLE": "0",
            },
            transports=("SHM",),
            limits=(
                "peer-to-peer over PCIe cannot be forced beside NVLink; what is measured is by host memory",
            ),
        ),
    )
}
"""Paths that can be isolated, by name."""


def checked_isolation(path: str, *, device: str, ranks: int, environ: Mapping[str, str]) -> Isolation:
    """Return how a path is isolated, after a check that it can be here.

    Parameters
    ----------
    path
        One of `ISOLATIONS`.
    device
        ``cuda`` or ``cpu``.
    ranks
        How many take part [1].
    environ
        Variables of the job.

    Raises
    ------
    InputError
        On CPUs, with one rank, or where a variable of the environment says the opposite or hides the log.
    """
    if device != "cuda":
        raise InputError(
            f"--isolate {path}: ranks on CPUs talk with gloo, which has TCP alone and no path to choose; "
            "it needs GPUs and NCCL"
        )
    if ranks < 2:
        raise InputError(f"--isolate {path}: one rank sends nothing; it needs two at least")
    if "NCCL_DEBUG_FILE" in environ:
        file = environ["NCCL_DEBUG_FILE"]
        raise InputError(
            f"--isolate {path}: its proof, the log, would go to NCCL_DEBUG_FILE={file}; unset it"
        )
    found = ISOLATIONS[path]
    for name, value in found.settings.items():
        if name not in _LOGGED and environ.get(name, value) != value:
            there = f"the environment has {name}={environ[name]}"
            raise InputError(f"--isolate {path} needs {name}={value}, and {there}; unset it")
    return found


def prove(isolation: Isolation, log: Iterable[str]) -> Proof:
    """Return whether a log shows that only the isolated path was taken.

    Parameters
    ----------
    isolation
        What was to be.
    log
        Lines of NCCL at INFO.
    """
    seen = transports_of(log)
    if not seen:
        text = f"cannot tell whether {isolation.path} was isolated: NCCL's log shows no channel between ranks"
        return Proof(is_shown=None, seen=seen, text=text)
    words = ", ".join(f"{count} over {name}" for name, count in seen.items())
    is_shown = all(name.split("/")[0] in isolation.transports for name in seen)
    due = " or ".join(isolation.transports)
    told = f"NCCL's log shows channels: {words}"
    text = (
        f"{isolation.path} alone was used: {told}"
        if is_shown
        else f"{isolation.path} was not isolated, {due} was due: {told}"
    )
    return Proof(is_shown=is_shown, seen=seen, text=text)
