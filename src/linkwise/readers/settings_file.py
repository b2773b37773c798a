"""A file of settings: what `env` prints, nccl.conf, a launch script, or a Kubernetes manifest."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePath

from linkwise.errors import DocumentError, Fault
from linkwise.readers.environment import Assignment, is_judged, parse_environment, parse_nccl_conf
from linkwise.readers.kubernetes import Container, parse_manifest
from linkwise.readers.launch import Launch, Option
from linkwise.readers.launch_script import read_launch_script

__all__ = ["LARGEST_BYTES", "SettingsFile", "SettingsKind", "read_settings"]

LARGEST_BYTES = 1_000_000
"""Larger files are refused: no script or manifest is of that size [bytes]."""

_LINE = re.compile(r"(?:export\s+)?\s*[A-Za-z_]\w{0,200}\s*=")
_SCRIPT = re.compile(
    r"^\s*(?:export\s+\w|declare\s+-x|#SBATCH|(?:srun|mpirun|torchrun|deepspeed)\s|if\s|for\s|source\s|set\s+-)"
    r"|\b(?:torchrun|deepspeed|mpirun|mpiexec|srun)\s|-m\s+torch\.distributed\.",
    re.MULTILINE,
)
_MANIFEST = re.compile(r"^(?:kind|apiVersion):\s", re.MULTILINE)
_OF_A_PROCESS = re.compile(r"^(?:PATH|HOME|PWD|SHELL|USER|HOSTNAME)=", re.MULTILINE)


class SettingsKind(StrEnum):
    """What a file of settings is."""

    ENVIRONMENT = "environment"
    NCCL_CONF = "nccl.conf"
    SCRIPT = "script"
    MANIFEST = "manifest"


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsFile:
    """What a file sets and starts.

    Attributes
    ----------
    path
        The file; ``None`` for the environment of this process.
    kind
        What it is.
    assignments
        Its settings, in order.
    launches
        The launchers it calls, in order.
    directives
        Options of ``#SBATCH`` lines.
    forwarded
        Names that a launcher passes on.
    containers
        Containers of a manifest.
    """

    path: str | None
    kind: SettingsKind
    assignments: tuple[Assignment, ...] = ()
    launches: tuple[Launch, ...] = ()
    directives: tuple[Option, ...] = ()
    forwarded: frozenset[str] = frozenset()
    containers: tuple[Container, ...] = ()

    def directive(self, *names: str) -> str | None:
        """Return the value of the last ``#SBATCH`` option of one of these names, or ``None``."""
        found = [each.value for each in self.directives if each.name in names]
        return found[-1] if found else None


def read_settings(text: str, *, path: str) -> SettingsFile:
    """Return what a file sets and starts; its kind is told by its content.

    Parameters
    ----------
    text
        The file.
    path
        Its name, for messages, and to tell nccl.conf from an environment.

    Raises
    ------
    DocumentError
        If it is none of the kinds, or a manifest that is not YAML.
    """
    kind = _kind(text, path)
    if kind is SettingsKind.MANIFEST:
        manifest = parse_manifest(text, path=path)
        return SettingsFile(
            path=path,
            kind=kind,
            assignments=tuple(manifest.assignments),
            launches=tuple(manifest.launches),
            containers=tuple(manifest.containers),
        )
    if kind is SettingsKind.SCRIPT:
        script = read_launch_script(text)
        return SettingsFile(
            path=path,
            kind=kind,
            assignments=tuple(script.assignments),
            launches=tuple(script.launches),
            directives=tuple(script.directives),
            forwarded=frozenset(script.forwarded),
        )
    parse = parse_nccl_conf if kind is SettingsKind.NCCL_CONF else parse_environment
    return SettingsFile(path=path, kind=kind, assignments=parse(text))


def _kind(text: str, path: str) -> SettingsKind:
    if PurePath(path).name.endswith("nccl.conf"):
        return SettingsKind.NCCL_CONF
    if len(_MANIFEST.findall(text)) > 1:
        return SettingsKind.MANIFEST
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    if text.startswith("#!"):
        return SettingsKind.SCRIPT
    plain = [line for line in lines if _LINE.match(line)]
    if _OF_A_PROCESS.search(text) and 2 * len(plain) >= len(lines) and not text.startswith("export "):
        return SettingsKind.ENVIRONMENT
    if _SCRIPT.search(text):
        return SettingsKind.SCRIPT
    if plain and len(plain) == len(lines):
        names = [line.partition("=")[0].strip() for line in plain]
        is_nccl = all(name.startswith("NCCL_") for name in names)
        return SettingsKind.NCCL_CONF if is_nccl else SettingsKind.ENVIRONMENT
    if any(is_judged(line.partition("=")[0]) for line in plain):
        return SettingsKind.SCRIPT
    what = (
        "is empty"
        if not text.strip()
        else "is no environment, nccl.conf, launch script or Kubernetes manifest"
    )
    todo = "give what 'env' prints, or the file that starts the job"
    raise DocumentError([Fault(path=path, message=f"{what}; {todo}")])
