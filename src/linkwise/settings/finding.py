"""What is wrong with a setting, and what the settings were judged by."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from linkwise.nccl.variables import Release
from linkwise.readers.environment import Assignment
from linkwise.readers.settings_file import SettingsFile

if TYPE_CHECKING:
    from linkwise.cluster import Cluster
    from linkwise.settings.node import NodeFacts

__all__ = ["GUIDE", "Finding", "Severity", "Subject", "guide"]

GUIDE = "NCCL user guide, env.html"
"""NVIDIA, NCCL user guide, "Environment Variables"."""


class Severity(StrEnum):
    """How bad a finding is, the worst first."""

    HARMFUL = "harmful"
    """It breaks a job, slows it, or may make it wrong."""
    NO_EFFECT = "no effect"
    """It does nothing, which is not what it was written for."""
    ADVICE = "advice"
    """It may stay; something else is better."""
    CHECK = "check"
    """No setting shows it; look there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing found.

    Attributes
    ----------
    severity
        How bad it is.
    rule
        The rule that found it: a stable name.
    path
        The file; ``None`` for the environment of this process.
    line
        Line counted from one, where it is known.
    name
        The variable or option.
    value
        Its value where it is short and no secret; empty otherwise.
    scope
        The container, in a manifest.
    what
        What is wrong.
    todo
        What to do.
    source
        Where that can be read.
    """

    severity: Severity
    rule: str
    path: str | None
    line: int | None
    name: str
    value: str = ""
    scope: str = ""
    what: str
    todo: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The settings that are judged, and what is known of where they apply.

    Attributes
    ----------
    files
        What was read.
    release
        The release of NCCL.
    cluster
        The cluster, where it is known.
    node
        Interfaces and RDMA devices of a node, where they are known.
    """

    files: tuple[SettingsFile, ...]
    release: Release
    cluster: Cluster | None = None
    node: NodeFacts | None = None

    @property
    def protocol(self) -> str | None:
        """Return what the links of the fabric speak, or ``None`` where it is not known.

        Without a cluster the RDMA devices of the node say it, where all have one link layer.
        """
        if self.cluster is not None:
            return None if self.cluster.fabric.link is None else self.cluster.fabric.link.protocol
        layers = set() if self.node is None or self.node.devices is None else set(self.node.devices.values())
        return (
            {"Ethernet": "roce", "InfiniBand": "infiniband"}.get(layers.pop()) if len(layers) == 1 else None
        )

    def settings(self) -> Iterator[tuple[SettingsFile, Assignment, str]]:
        """Yield every setting that has a value, with its file."""
        for file in self.files:
            for each in file.assignments:
                if each.value is not None:
                    yield file, each, each.value

    def scopes(self) -> Iterator[tuple[SettingsFile, Mapping[str, Assignment]]]:
        """Yield what holds at the end of each file, and of each container of a manifest."""
        for file in self.files:
            for scope in dict.fromkeys(each.scope for each in file.assignments):
                yield file, _last(file.assignments, scope)

    def finding(
        self,
        file: SettingsFile,
        at: Assignment,
        severity: Severity,
        *,
        rule: str,
        what: str,
        todo: str,
        source: str,
    ) -> Finding:
        """Return a finding on one setting.

        Parameters
        ----------
        file, at
            The setting and its file.
        severity
            How bad it is.
        rule, what, todo, source
            As in `Finding`.
        """
        return Finding(
            severity=severity,
            rule=rule,
            path=file.path,
            line=at.line,
            name=at.name.strip(),
            value=(at.value or "")[:100],
            scope=at.scope,
            what=what,
            todo=todo,
            source=source,
        )


def guide(name: str) -> str:
    """Return the place of a variable in the user guide of NCCL."""
    return f"{GUIDE}#{name.lower().replace('_', '-')}"


def _last(assignments: Sequence[Assignment], scope: str) -> Mapping[str, Assignment]:
    return {each.name: each for each in assignments if each.scope == scope and each.value is not None}
