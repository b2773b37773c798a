"""Settings as programs print or store them: `env`, `/etc/nccl.conf`, `.deepspeed_env`.

Values are kept for the variables of communication libraries and launchers alone. An environment holds
secrets too; the values of all other variables are dropped where they are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

__all__ = [
    "Assignment",
    "Reach",
    "assignment",
    "assignments_of_environment",
    "is_judged",
    "parse_environment",
    "parse_nccl_conf",
]

MOST_ASSIGNMENTS = 20_000
"""Settings of one file that are read."""
_LONGEST_VALUE = 4000

_JUDGED = re.compile(
    r"(?:[NR]CCL|TORCH_(?:NCCL|FR|DISTRIBUTED|CPP_LOG)|GLOO|TP_SOCKET|FI|OFI|RDMAV|UCX|NVSHMEM|PET)_\w*|"
    r"MASTER_(?:ADDR|PORT)|RANK|LOCAL_RANK|NODE_RANK|OMP_NUM_THREADS|CUDA_(?:DEVICE_MAX_CONNECTIONS|LAUNCH_BLOCKING|VISIBLE_DEVICES)"
)
_ALMOST_NCCL = re.compile(r"(?:N?C{1,3}L{1,2}|NC?L{1,2}C?|NCLL|NNCCL|NVCCL|NCCL)_[A-Z0-9_]{2,}")
_SECRET = re.compile(r"TOKEN|SECRET|PASSW|CREDENTIAL|(?<!P)KEY", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z_]\w{0,200}")


class Reach(StrEnum):
    """How a setting gets to the processes of a job."""

    ENVIRONMENT = "environment"
    """It stands in an environment."""
    CONF = "conf"
    """NCCL reads it from a file."""
    EXPORTED = "exported"
    """A shell exports it."""
    SHELL = "shell"
    """A shell sets it and does not export it."""
    COMMAND = "command"
    """It stands before one command, or a launcher passes it on."""
    MANIFEST = "manifest"
    """A manifest sets it for a container."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """One variable that is set.

    Attributes
    ----------
    name
        Its name.
    value
        Its value as far as it stands in the file; ``None`` where it was not kept.
    line
        Line counted from one; ``None`` where there is no file.
    reach
        How it gets to the processes.
    scope
        The container it is set for, in a manifest.
    """

    name: str
    value: str | None
    line: int | None
    reach: Reach
    scope: str = ""


def is_judged(name: str) -> bool:
    """Return whether the value of a variable is kept: one of communication, and no secret by its name."""
    return _JUDGED.fullmatch(name) is not None and _SECRET.search(name) is None


def assignment(
    name: str, value: str, *, line: int | None, reach: Reach, scope: str = ""
) -> Assignment | None:
    """Return a setting; ``None`` for a variable that has nothing to do with communication.

    Parameters
    ----------
    name, value
        The variable.
    line
        Line counted from one.
    reach
        How it gets to the processes.
    scope
        The container it is set for.
    """
    if is_judged(name):
        return Assignment(name=name, value=value[:_LONGEST_VALUE], line=line, reach=reach, scope=scope)
    if _ALMOST_NCCL.fullmatch(name) or name.casefold().startswith("nccl_") or _JUDGED.fullmatch(name):
        return Assignment(name=name, value=None, line=line, reach=reach, scope=scope)
    return None


def assignments_of_environment(environment: Mapping[str, str]) -> tuple[Assignment, ...]:
    """Return the settings of a process.

    Parameters
    ----------
    environment
        Its variables.
    """
    found = (
        assignment(name, value, line=None, reach=Reach.ENVIRONMENT)
        for name, value in sorted(environment.items())
    )
    return tuple(each for each in found if each is not None)


def parse_environment(text: str) -> tuple[Assignment, ...]:
    """Return the settings in what `env` prints, or in a file of lines ``NAME=VALUE``.

    Parameters
    ----------
    text
        The lines; those that are none belong to the value before them and are passed over.
    """
    return tuple(_lines(text, Reach.ENVIRONMENT))


def parse_nccl_conf(text: str) -> tuple[Assignment, ...]:
    """Return the settings of a configuration file of NCCL, names and values as NCCL takes them.

    NCCL strips nothing: blanks, quotes and a comment behind a value are part of name or value.

    Parameters
    ----------
    text
        The file.

    References
    ----------
    NVIDIA, NCCL, src/misc/param.cc (setEnvFile).
    """
    found: list[Assignment] = []
    for number, line in enumerate(text.splitlines(), start=1):
        name, separator, value = line.partition("=")
        if line.startswith("#") or not separator or len(found) >= MOST_ASSIGNMENTS:
            continue
        plain = name.removeprefix("export ").strip()
        kept = value[:_LONGEST_VALUE] if is_judged(plain) else None
        found.append(Assignment(name=name[:200], value=kept, line=number, reach=Reach.CONF))
    return tuple(found)


def _lines(text: str, reach: Reach) -> Iterator[Assignment]:
    count = 0
    for number, line in enumerate(text.splitlines(), start=1):
        name, separator, value = line.partition("=")
        if not separator or not _NAME.fullmatch(name) or count >= MOST_ASSIGNMENTS:
            continue
        found = assignment(name, value, line=number, reach=reach)
        if found is not None:
            count += 1
            yield found
