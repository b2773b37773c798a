"""The published result `linkwise.render/1`: files that start a job, and what they do not say."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from linkwise.report.env_result import SettingResult
from linkwise.report.results import ClusterResult, JobResult, PublishedResult, cluster_result, job_result
from linkwise.report.tables import print_line, wrapped
from linkwise.report.wording import counted

if TYPE_CHECKING:
    from rich.console import Console

    from linkwise.estimate import Estimate
    from linkwise.launch.render import Rendered, Start

__all__ = [
    "RENDER_FILE",
    "NotExpressedResult",
    "RenderResult",
    "RenderedLayout",
    "digest_of",
    "digests_in",
    "print_not_expressed",
    "print_render",
    "render_result",
]

RENDER_FILE = "linkwise-render.json"
"""The result itself, beside the files: it tells what was rendered from what was edited since."""


class RenderedLayout(PublishedResult):
    """The layout that the files start, as `job/1` spells it."""

    tensor: int
    context: int
    pipeline: int
    virtual_pipeline: int
    expert: int
    data: int
    micro_batch: int
    zero_stage: int
    hybrid_shard: bool
    recompute: str
    sequence_parallel: bool
    schedule: str
    rank_order: str
    context_exchange: str


class NotExpressedResult(PublishedResult):
    """Something of the plan that the files do not say."""

    name: str = Field(description="A key of the layout, or what it is about.")
    value: str = Field(description="What was planned.")
    reason: str = Field(description="Why the target does not say it, and what to do.")


class RenderResult(PublishedResult):
    """The files of one target."""

    published: Literal["linkwise.render/1"] = Field(default="linkwise.render/1", alias="schema")
    target: str
    job: JobResult
    cluster: ClusterResult
    layout: RenderedLayout
    nodes: int
    gpus_per_node: int
    steps: int
    time_limit_s: int
    step_time_s: float = Field(description="What a step should take.")
    files: list[str] = Field(description="Names in the folder.")
    digests: dict[str, str] = Field(description="SHA-256 of each file but this result.")
    purposes: dict[str, str] = Field(description="What each file is.")
    not_expressed: list[NotExpressedResult]
    assumed: list[str] = Field(description="Values in the files that nobody gave.")
    settings: list[SettingResult]
    notes: list[str] = Field(description="Settings that hang on facts no document holds.")


def digest_of(content: bytes) -> str:
    """Return the SHA-256 of the content of a file.

    Parameters
    ----------
    content
        Its bytes.
    """
    return hashlib.sha256(content).hexdigest()


def render_result(
    rendered: Rendered, start: Start, estimate: Estimate, *, target: str, notes: Sequence[str]
) -> RenderResult:
    """Return rendered files as they are published.

    Parameters
    ----------
    rendered
        The files.
    start
        What they start.
    estimate
        What a step should take.
    target
        What they are for.
    notes
        What hangs on facts that no document holds.
    """
    from linkwise.launch.render import layout_values

    purposes = {**rendered.purposes, RENDER_FILE: "this result: what was rendered, with digests"}
    return RenderResult(
        target=target,
        job=job_result(start.job),
        cluster=cluster_result(start.cluster),
        layout=RenderedLayout(**layout_values(start)),
        nodes=start.nodes,
        gpus_per_node=start.gpus_per_node,
        steps=start.steps,
        time_limit_s=start.time_limit_s,
        step_time_s=estimate.step_time_s,
        files=list(purposes),
        digests={name: digest_of(text.encode()) for name, text in rendered.files.items()},
        purposes=purposes,
        not_expressed=[
            NotExpressedResult(name=each.name, value=each.value, reason=each.reason)
            for each in rendered.not_expressed
        ],
        assumed=list(rendered.assumed),
        settings=[
            SettingResult(
                name=each.name, value=each.value, reason=each.reason, source=each.source, basis=each.basis
            )
            for each in start.settings
        ],
        notes=list(notes),
    )


def print_render(result: RenderResult, folder: str, console: Console) -> None:
    """Print what was written.

    Parameters
    ----------
    result
        The result.
    folder
        Where the files are.
    console
        Where to.
    """
    print_line(
        console,
        wrapped(f"{counted(len(result.files), 'file')} for {result.target} in {folder}", width=console.width),
        style="bold",
    )
    widest = max(map(len, result.files))
    for name, purpose in result.purposes.items():
        line = wrapped(purpose, width=console.width, first=f"  {name:{widest}}  ", indent=" " * (widest + 4))
        print_line(console, line)
    print_line(console)
    print_line(console, wrapped(_facts(result), width=console.width))
    for each in result.assumed:
        print_line(console, wrapped(f"Assumed: {each}", width=console.width, first="- ", indent="  "))
    print_line(console)
    print_line(console, "README.md says how to start it, and how to check that it runs as planned.")


def _facts(result: RenderResult) -> str:
    layout = result.layout
    usual = {"context": 1, "virtual_pipeline": 1, "expert": 1, "zero_stage": 0}
    names = (
        "tensor",
        "context",
        "pipeline",
        "virtual_pipeline",
        "expert",
        "data",
        "micro_batch",
        "zero_stage",
    )
    degrees = [f"{name} {value}" for name in names if (value := getattr(layout, name)) != usual.get(name)]
    return (
        f"{counted(result.nodes, 'node')} with {counted(result.gpus_per_node, 'GPU')} each, "
        f"{counted(result.steps, 'step')} of {result.step_time_s:.3g} s, ended after "
        f"{result.time_limit_s / 3600:.3g} h: {', '.join(degrees)}"
    )


def print_not_expressed(result: RenderResult, console: Console) -> None:
    """Print what the files do not say, for a person who starts them.

    Parameters
    ----------
    result
        The result.
    console
        Where to.
    """
    if result.not_expressed:
        print_line(console, f"Not said by the files for {result.target}:")
    for each in result.not_expressed:
        text = f"{each.name} {each.value}: {each.reason}".replace(" :", ":")
        print_line(console, wrapped(text, width=console.width, first="- ", indent="  "))


def digests_in(text: str) -> Mapping[str, str]:
    """Return the digests of a result that stands beside rendered files.

    Parameters
    ----------
    text
        What stands in its file.

    Raises
    ------
    ValueError
        When it is none.
    """
    return RenderResult.model_validate_json(text).digests
