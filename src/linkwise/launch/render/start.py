"""The values that rendering takes and gives: `Start`, `Program`, `Rendered`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from linkwise.errors import InputError

if TYPE_CHECKING:
    from linkwise.cluster import Cluster
    from linkwise.job import Job
    from linkwise.layout import Layout
    from linkwise.settings.recommended import Setting

__all__ = ["FOLDER", "NotExpressed", "Program", "Rendered", "Start"]

FOLDER = "{folder}"
"""Stands in the words of a program for the folder of its files: scripts and manifests know where that is."""

_LONGEST_NAME = 40
"""Names of pods are at most 63 characters, and have the name of the job with indices behind it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotExpressed:
    """Something of the plan that files of a target do not say.

    Attributes
    ----------
    name
        A key of the layout, or what it is about: ``NICs``, ``data``.
    value
        What was planned.
    reason
        Why the target does not say it, and what to do.
    """

    name: str
    value: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """What is to be started, and how.

    Attributes
    ----------
    job, cluster
        What runs on what.
    layout
        How it is cut; `data` and `sequence_parallel` are known.
    settings
        Variables of the environment, with reasons.
    time_limit_s
        After this time the job is ended [s].
    time_limit_reason
        Where the limit comes from.
    steps
        Optimizer steps to run.
    steps_reason
        Where their number comes from.
    script
        What to start instead of the usual program of the framework.
    image
        Container image, for manifests.
    nic_resource
        Name by which pods ask for NICs; ``None`` for that of the protocol.
    """

    job: Job
    cluster: Cluster
    layout: Layout
    settings: tuple[Setting, ...]
    time_limit_s: int
    time_limit_reason: str
    steps: int
    steps_reason: str
    script: str | None = None
    image: str | None = None
    nic_resource: str | None = None

    def __post_init__(self) -> None:
        """Refuse what no launcher can start."""
        gpus, per_node = self.cluster.gpus, self.cluster.gpus_per_node
        if gpus % per_node:
            whole = gpus // per_node * per_node
            use = f"{whole} or {whole + per_node}" if whole else f"{per_node}"
            raise InputError(
                f"{gpus} GPUs are not whole nodes of {per_node}: launchers start the same number of "
                "processes "
                f"on every node; set the GPUs of the cluster to {use}, or gpus_per_node to a divisor"
            )

    @property
    def nodes(self) -> int:
        """Return the number of nodes."""
        return self.cluster.nodes_in_use

    @property
    def gpus_per_node(self) -> int:
        """Return the GPUs of a node, and so its processes."""
        return self.cluster.gpus_per_node

    @property
    def accumulation(self) -> int:
        """Return the micro-batches of one replica in a step."""
        layout = self.layout
        return self.job.global_batch // ((layout.data or 1) * layout.micro_batch)

    def layers_of_parts(self, parts: int) -> tuple[int, ...]:
        """Return the layers of each part of the model, dealt as the estimate deals them.

        Parameters
        ----------
        parts
            Pipeline stages, or chunks of them [1].

        Notes
        -----
        Evenly; else with the embedding and the loss as a layer each where that is even; else the last parts
        get one layer less.
        """
        layers = self.job.model.layers
        if layers % parts and (layers + 2) % parts == 0:
            each = (layers + 2) // parts
            return (each - 1, *(each,) * (parts - 2), each - 1)
        each, fewer = -(-layers // parts), -layers % parts
        return tuple(each - (number >= parts - fewer) for number in range(parts))

    @property
    def name(self) -> str:
        """Return a name for the job that schedulers take: lower case letters, digits and hyphens."""
        words = re.sub(r"[^a-z0-9]+", "-", f"{self.job.model.name}-{self.cluster.name}".lower())
        return re.sub(r"^[^a-z]+", "", words)[:_LONGEST_NAME].strip("-") or "training"


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What every process runs.

    Attributes
    ----------
    words
        The program and its arguments, as torchrun takes them; `FOLDER` stands for where its files are.
    arguments_file
        A file of `files` that has further arguments, one on each line; empty for none.
    files
        Its files by name.
    not_expressed
        What it does not say.
    assumed
        Values nobody gave, in sentences.
    purposes
        What each file is, by name.
    """

    words: tuple[str, ...]
    arguments_file: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    not_expressed: tuple[NotExpressed, ...] = ()
    assumed: tuple[str, ...] = ()
    purposes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """The files of one target.

    Attributes
    ----------
    files
        Texts by name.
    purposes
        What each file is, by name.
    executable
        Names of files that are commands.
    not_expressed
        What the files do not say.
    assumed
        Values nobody gave, in sentences.
    how_to_start
        Lines of Markdown.
    logs
        Where the logs of NCCL are, for a reader.
    """

    files: Mapping[str, str]
    purposes: Mapping[str, str]
    not_expressed: tuple[NotExpressed, ...]
    assumed: tuple[str, ...]
    how_to_start: str
    logs: str
    executable: frozenset[str] = frozenset()
