"""The page of a rendered folder: what it starts, how, how to check it, and what it does not say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from linkwise.launch.render.own_program import layout_values
from linkwise.launch.render.words import paragraph, printable

if TYPE_CHECKING:
    from linkwise.estimate import Estimate
    from linkwise.launch.render.start import Rendered, Start

__all__ = ["FILE", "readme_text"]

FILE = "README.md"
_NETWORKS: Mapping[str, str] = {
    "infiniband": "`Using network IB` (`IBext...` with the plugin of HPC-X)",
    "roce": "`Using network IB` (`IBext...` with the plugin of HPC-X)",
    "efa": "`Using network Libfabric` (`AWS Libfabric` with older plugins)",
    "slingshot": "`Using network Libfabric` (`AWS Libfabric` with older plugins)",
    "tcp": "`Using network Socket`",
    "tcpx": "`Using network GPUDirectTCPX...`",
    "tcpxo": "`Using network FasTrak`",
}
"""What the log of NCCL says of the network between nodes, by protocol of the links."""


def readme_text(
    start: Start, rendered: Rendered, *, target: str, notes: Sequence[str], estimate: Estimate | None
) -> str:
    """Return the page.

    Parameters
    ----------
    start
        What is to be started.
    rendered
        The files.
    target
        Name of the target.
    notes
        What hangs on facts that no document holds.
    estimate
        What a step should take, where it was estimated.
    """
    job, model, cluster = start.job, _name(start.job.model.name), _name(start.cluster.name)
    parts = [
        f"# {model} on {cluster}: {target}",
        paragraph(
            f"{start.nodes} nodes with {start.gpus_per_node} GPUs each, sequences of "
            f"{job.sequence_length} tokens, "
            f"{job.global_batch} of them a step, {job.precision}, framework {job.framework}. Written by "
            "Linkwise. "
            "Rendering again replaces these files, but not those that were edited since."
        ),
        _table(("file", "what it is"), [(f"`{name}`", what) for name, what in rendered.purposes.items()]),
        f"## Start\n\n{rendered.how_to_start.rstrip()}",
        _items(
            [
                f"The job ends after {start.time_limit_s / 3600:.3g} h: {start.time_limit_reason}.",
                f"It takes {start.steps} steps: {start.steps_reason}.",
                *(f"Assumed: {each}." for each in rendered.assumed),
            ]
        ),
        "## Check\n\n" + _items(_checks(start, rendered, estimate)),
        "## Layout\n\n"
        + _table(
            ("key", "value"), [(name, str(value).lower()) for name, value in layout_values(start).items()]
        ),
        "## What these files do not say\n\n"
        + _items(
            [f"{each.name} {each.value}: {each.reason}".replace(" :", ":") for each in rendered.not_expressed]
        ),
        "## Settings\n\n" + _items(_settings(start, notes)),
    ]
    return "\n\n".join(parts) + "\n"


def _name(text: str) -> str:
    """Return a name that is no markup."""
    return "".join(f"\\{each}" if each in "\\`*_[]<>#|!" else each for each in printable(text))


def _items(texts: Sequence[str]) -> str:
    return "\n".join(paragraph(each, first="- ", indent="  ") for each in texts) or "Nothing."


def _table(heading: tuple[str, str], rows: Sequence[tuple[str, str]]) -> str:
    lines = [heading, ("---", "---"), *rows]
    return "\n".join(f"| {left} | {right} |" for left, right in lines)


def _settings(start: Start, notes: Sequence[str]) -> list[str]:
    settings = [
        f"`{each.name}={each.value}`: {each.reason} ({each.basis}; {each.source})" for each in start.settings
    ]
    return [*settings, *notes]


def _checks(start: Start, rendered: Rendered, estimate: Estimate | None) -> list[str]:
    return list(_check_lines(start, rendered, estimate))


def _check_lines(start: Start, rendered: Rendered, estimate: Estimate | None) -> Iterator[str]:
    scripts = [
        name for name in rendered.files if name.endswith((".sh", ".sbatch", "job.yaml", "jobset.yaml"))
    ]
    for name in scripts:
        yield f"Before the start: `linkwise env --check {name}` finds nothing harmful."
    ranks = start.nodes * start.gpus_per_node
    logs = f"The logs of NCCL, in {rendered.logs}, one for each process: `nranks {ranks}` stands in each"
    if start.nodes > 1:
        logs += f" (`nranks {start.gpus_per_node}` at most: each node formed a world of its own)"
    link = start.cluster.fabric.link
    if start.nodes > 1 and link is not None and link.protocol in _NETWORKS:
        logs += f", and {_NETWORKS[link.protocol]}"
        if link.protocol != "tcp":
            logs += "; `Using network Socket` means that it fell back to TCP"
    yield f"{logs}."
    yield "After the start: `linkwise doctor` on these logs says what the job runs on, and what is wrong."
    if estimate is not None:
        yield (
            f"A step should take {estimate.step_time_s:.3g} s, four times in five between "
            f"{estimate.step_time_low_s:.3g} and {estimate.step_time_high_s:.3g} s."
        )
