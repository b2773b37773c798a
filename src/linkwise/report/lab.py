"""Labs as they are published, `linkwise.lab/1`, and on a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from linkwise.lab.design import rate_text
from linkwise.report.results import PublishedResult
from linkwise.report.tables import Column, print_line, split_table, wrapped
from linkwise.report.wording import counted, duration

if TYPE_CHECKING:
    from rich.console import Console

    from linkwise.lab.design import LabDesign
    from linkwise.lab.life import LabState

__all__ = ["LabResult", "LabsResult", "lab_result", "print_labs"]


class LabResult(PublishedResult):
    """One lab."""

    name: str
    state: Literal["up", "busy", "left over"] = Field(
        description="busy: a process builds it, runs a job in it or takes it down."
    )
    cluster: str | None = Field(description="Name of the cluster; null where it does not stand as a whole.")
    nodes: int | None = None
    ranks: int | None = None
    dilation: float | None = Field(default=None, description="Seconds here for one of the cluster.")
    nic_bytes_per_s: float | None = Field(default=None, description="Emulated rate of a NIC, one direction.")
    nics_per_node: int | None = Field(default=None, description="Emulated NICs of a node.")
    namespaces: list[str]
    processes: int = Field(description="Processes in its namespaces.")
    notes: list[str] = Field(default_factory=list)


class LabsResult(PublishedResult):
    """The labs there are."""

    schema_: Literal["linkwise.lab/1"] = Field(default="linkwise.lab/1", alias="schema")
    labs: list[LabResult]


def lab_result(states: Sequence[LabState]) -> LabsResult:
    """Return labs as they are published.

    Parameters
    ----------
    states
        Those there are.
    """
    return LabsResult(labs=[_published(state) for state in states])


def _published(state: LabState) -> LabResult:
    design = state.design
    return LabResult(
        name=state.name,
        state=_word(state),
        cluster=None if design is None else design.cluster,
        nodes=None if design is None else design.nodes,
        ranks=None if design is None else design.ranks,
        dilation=None if design is None else design.dilation,
        nic_bytes_per_s=None if design is None else design.nic_bytes_per_s,
        nics_per_node=None if design is None else design.nics_per_node,
        namespaces=sorted(state.namespaces),
        processes=state.processes,
        notes=[] if design is None else list(design.notes),
    )


def _word(state: LabState) -> Literal["up", "busy", "left over"]:
    if state.is_busy:
        return "busy"
    return "left over" if state.design is None else "up"


def print_labs(states: Sequence[LabState], console: Console, *, is_explained: bool) -> None:
    """Print labs: each on a line, or with what it emulates.

    Parameters
    ----------
    states
        Those there are.
    console
        Where to.
    is_explained
        Whether rates and dilation are explained.
    """
    if not states:
        print_line(console, "no lab is up; 'linkwise lab up CLUSTER' builds one")
    elif not is_explained:
        _print_list(states, console)
    else:
        for state in states:
            if state.design is not None:
                _print_design(state.name, state.design, console)


def _print_list(states: Sequence[LabState], console: Console) -> None:
    rows = [_published(state) for state in states]
    columns = [
        Column(heading="state", cells=tuple(row.state for row in rows), justify="left"),
        Column(heading="cluster", cells=tuple(_short(row.cluster) for row in rows), justify="left"),
        Column(heading="nodes", cells=tuple(_count(row.nodes) for row in rows)),
        Column(heading="ranks", cells=tuple(_count(row.ranks) for row in rows)),
        Column(heading="dilation", cells=tuple(_factor(row.dilation) for row in rows)),
        Column(heading="NIC", cells=tuple(_rate(row.nic_bytes_per_s) for row in rows)),
        Column(heading="processes", cells=tuple(str(row.processes) for row in rows)),
    ]
    key = Column(heading="lab", cells=tuple(row.name for row in rows), justify="left")
    for table in split_table(columns, key=key, width=console.width, best=None):
        console.print(table)
    if any(row.state == "left over" for row in rows):
        print_line(console, "'linkwise lab down --all' or the next 'lab up' clears what is left over")


def _short(text: str | None) -> str:
    shown = "-" if text is None else "".join(each if each.isprintable() else "?" for each in text)
    return shown if len(shown) <= 20 else f"{shown[:17]}..."


def _count(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _factor(value: float | None) -> str:
    return "-" if value is None else f"{value:,.6g}"


def _rate(value: float | None) -> str:
    return "-" if not value else rate_text(value)


def _print_design(name: str, design: LabDesign, console: Console) -> None:
    nodes = f"{counted(design.nodes, 'node')}, {counted(design.ranks, 'rank')}"
    title = f"{name} is up: {_short(design.cluster)}, {nodes}{_switches(design)}"
    print_line(console, wrapped(title, width=console.width))
    for line in _explained(design):
        print_line(console, wrapped(line, width=console.width))
    print_line(console)
    links = list(_links(design))
    if links:
        key = Column(heading="link, one direction", cells=tuple(row[0] for row in links), justify="left")
        columns = [
            Column(heading=heading, cells=tuple(row[number] for row in links))
            for number, heading in ((1, "count"), (2, "of the cluster"), (3, "here"))
        ]
        for table in split_table(columns, key=key, width=console.width, best=None):
            console.print(table)
        print_line(console)
    for note in design.notes:
        print_line(console, wrapped(note, width=console.width, first="- ", indent="  "), style="dim")


def _switches(design: LabDesign) -> str:
    leaves = len(design.switches) - bool(design.trunks)
    if not leaves:
        return ""
    below = " below one spine" if design.trunks else ""
    return f", {counted(leaves, 'leaf', 'leaves')}{below}"


def _explained(design: LabDesign) -> Iterator[str]:
    if not design.nics:
        return
    yield (
        f"Dilation {design.dilation:,.6g}: one second of the cluster takes {duration(design.dilation)} here, "
        f"and every link is {design.dilation:,.6g} times slower. Links must be slow enough for the cores of "
        "this machine to fill them all; computing is slowed by the same factor, so that the ratio stays."
    )


def _links(design: LabDesign) -> Iterator[tuple[str, str, str, str]]:
    def row(what: str, count: int, here: float) -> tuple[str, str, str, str]:
        return what, str(count), rate_text(here * design.dilation), rate_text(here)

    if design.nics:
        yield row("node to leaf", len(design.nics), design.nic_bytes_per_s)
    for rate in dict.fromkeys(trunk.bytes_per_s for trunk in design.trunks):
        yield row("leaf to spine", sum(trunk.bytes_per_s == rate for trunk in design.trunks), rate)
