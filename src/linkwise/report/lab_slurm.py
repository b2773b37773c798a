"""A Slurm in a lab as it is published, `linkwise.lab.slurm/1`, and on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from linkwise.report.results import PublishedResult
from linkwise.report.tables import print_line, wrapped
from linkwise.report.wording import counted

if TYPE_CHECKING:
    from rich.console import Console

    from linkwise.lab.slurm import SlurmState

__all__ = ["LabSlurmResult", "lab_slurm_result", "print_lab_slurm"]


class LabSlurmResult(PublishedResult):
    """The Slurm of one lab."""

    schema_: Literal["linkwise.lab.slurm/1"] = Field(default="linkwise.lab.slurm/1", alias="schema")
    lab: str
    is_up: bool = Field(description="Whether all of it stood once and its controller runs.")
    conf: str | None = Field(description="Its slurm.conf; null where there is none.")
    nodes: dict[str, str] = Field(description="State of each node, in Slurm's word.")
    missing: list[str] = Field(description="Daemons that do not run.")
    running: int = Field(description="Jobs that run.")
    waiting: int = Field(description="Jobs in the queue.")


def lab_slurm_result(state: SlurmState) -> LabSlurmResult:
    """Return a Slurm as it is published.

    Parameters
    ----------
    state
        As it is.
    """
    conf = state.home / "slurm.conf"
    return LabSlurmResult(
        lab=state.lab,
        is_up=state.is_up,
        conf=str(conf) if conf.exists() else None,
        nodes={each.name: each.state for each in state.nodes},
        missing=list(state.missing),
        running=state.running,
        waiting=state.waiting,
    )


def print_lab_slurm(state: SlurmState, console: Console) -> None:
    """Print a Slurm: its nodes, its jobs, what is missing, and how to come to it.

    Parameters
    ----------
    state
        As it is.
    console
        Where to.
    """
    result = lab_slurm_result(state)

    def line(text: str) -> None:
        print_line(console, wrapped(text, width=console.width))

    if result.missing or not result.is_up:
        missing = f" ({', '.join(result.missing)} not running)" if result.missing and result.conf else ""
        what = "has gaps" if result.is_up else "is not up"
        line(f"Slurm in lab {result.lab} {what}{missing}; 'linkwise lab slurm up {result.lab}' starts it")
    if not result.is_up:
        return
    by_state: dict[str, list[str]] = {}
    for name, word in result.nodes.items():
        by_state.setdefault(word, []).append(name)
    nodes = "; ".join(f"{' '.join(names)} {word}" for word, names in by_state.items())
    jobs = f"{counted(result.running, 'job')} running, {result.waiting} waiting"
    line(f"Slurm in lab {result.lab}: {nodes or 'its controller gives no answer'}; {jobs}")
    line(f"  linkwise lab slurm shell --name {result.lab} [COMMAND]...  # on its head node")
