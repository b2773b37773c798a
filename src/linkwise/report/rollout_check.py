"""What a check of a rollout says, as it is published, `linkwise.rollout-check/1`, and on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from linkwise.errors import InputError
from linkwise.report.results import PublishedResult
from linkwise.report.tables import print_line, wrapped
from linkwise.report.wording import counted
from linkwise.rollout.remark import Level, Remark
from linkwise.rollout.targets import target_gpus, target_nodes, target_words

if TYPE_CHECKING:
    from rich.console import Console

    from linkwise.cluster import Cluster
    from linkwise.rollout.plan import Rollout, Target

__all__ = ["RolloutCheckResult", "print_rollout_check", "rollout_check_result"]


class RemarkResult(PublishedResult):
    """One thing that the check says."""

    level: Level
    key: str = Field(description="Of the document.")
    text: str


class StepResult(PublishedResult):
    """One step, and how much it touches."""

    name: str
    target: str = Field(description="In words.")
    nodes: int | None = Field(description="null where the cluster cannot say.")
    gpus: int | None
    objectives: list[str]


class RolloutCheckResult(PublishedResult):
    """What a check of a rollout says."""

    published: Literal["linkwise.rollout-check/1"] = Field(default="linkwise.rollout-check/1", alias="schema")
    name: str
    digest: str = Field(description="SHA-256 of the document and of the files it names.")
    candidate: str = Field(description="Digest of the configuration.")
    control: str
    steps: list[StepResult]
    remarks: list[RemarkResult]


def rollout_check_result(rollout: Rollout, cluster: Cluster, remarks: Sequence[Remark]) -> RolloutCheckResult:
    """Return a check as it is published.

    Parameters
    ----------
    rollout
        What was checked.
    cluster
        That of its scope.
    remarks
        What the check says.
    """
    return RolloutCheckResult(
        name=rollout.name,
        digest=rollout.digest,
        candidate=rollout.candidate.digest,
        control=rollout.control.digest,
        steps=[
            StepResult(
                name=step.name,
                target=target_words(step.target),
                nodes=_or_none(target_nodes, step.target, cluster),
                gpus=_or_none(target_gpus, step.target, cluster),
                objectives=list(step.objectives),
            )
            for step in rollout.steps
        ],
        remarks=[RemarkResult(level=each.level, key=each.key, text=each.text) for each in remarks],
    )


def _or_none(count: Callable[[Target, Cluster], int], target: Target, cluster: Cluster) -> int | None:
    try:
        return count(target, cluster)
    except InputError:
        return None


def print_rollout_check(result: RolloutCheckResult, console: Console) -> None:
    """Print a check.

    Parameters
    ----------
    result
        The check.
    console
        Where to.
    """
    print_line(console, f"{result.name}: {counted(len(result.steps), 'step')}, digest {result.digest[:12]}")
    for step in result.steps:
        size = "" if step.nodes is None else f", {counted(step.nodes, 'node')}"
        line = f"{step.name}: {step.target}{size}; {', '.join(step.objectives)}"
        print_line(console, wrapped(line, width=console.width, indent="    ", first="  "))
    print_line(console)
    for level in Level:
        for remark in (each for each in result.remarks if each.level is level):
            line = f"{level}: {remark.key}: {remark.text}"
            print_line(console, wrapped(line, width=console.width, indent="  ", first=""))
    faults = sum(each.level is Level.FAULT for each in result.remarks)
    print_line(console, f"{counted(faults, 'fault')}" if faults else "no fault")
