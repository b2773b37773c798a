"""A script that starts the processes of one node with torchrun, to be run on every node.

References
----------
PyTorch, documentation of torchrun (elastic/run), 2025. GNU coreutils, timeout(1).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from linkwise.launch.render.start import NotExpressed, Rendered
from linkwise.launch.render.words import comment_lines, export_lines, paragraph, printable, program_lines

if TYPE_CHECKING:
    from linkwise.launch.render.start import Program, Start

__all__ = ["FILE", "PORT", "log_options", "node_gaps", "torchrun_files"]

FILE = "start.sh"
PORT = 29500
"""The port that PyTorch takes unless told otherwise."""
_GRACE_S = 60
"""Between the signal that ends a job and the one that kills it [s]."""


def torchrun_files(start: Start, program: Program) -> Rendered:
    """Return the script with the files of the program.

    Parameters
    ----------
    start
        What is to be started.
    program
        What every process runs.
    """
    text = "\n".join(_lines(start, program)) + "\n"
    return Rendered(
        files={FILE: text, **program.files},
        purposes={FILE: "starts the processes of one node with torchrun", **program.purposes},
        not_expressed=(*program.not_expressed, *_gaps(start), *node_gaps(start)),
        assumed=program.assumed,
        how_to_start=_how(start),
        logs="logs/",
        executable=frozenset([FILE]),
    )


def _lines(start: Start, program: Program) -> Iterator[str]:
    what = f"{printable(start.job.model.name)} on {printable(start.cluster.name)}"
    yield "#!/bin/bash"
    yield from comment_lines(f"Starts one node of {what}. Written by Linkwise; README.md says how to use it.")
    yield "set -euo pipefail"
    yield 'folder=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)'
    if start.nodes > 1:
        yield from _places(start)
    yield "logs=$folder/logs"
    yield 'mkdir -p "$logs"'
    yield ""
    yield from export_lines(start.settings, logs="$logs")
    yield ""
    yield from program_lines(program, launcher=_launcher(start), folder="$folder")


def _places(start: Start) -> Iterator[str]:
    last = start.nodes - 1
    yield from (
        "if [[ $# -lt 2 ]]; then",
        f'    echo "usage: $0 NODE_RANK HEAD [ARGUMENT]...: node 0 to {last}, and the name of node 0" >&2',
        "    exit 2",
        "fi",
        "node_rank=$1 head=$2",
        "shift 2",
        f"if ! [[ $node_rank =~ ^[0-9]+$ ]] || ((10#$node_rank > {last})); then",
        f'    echo "$0: NODE_RANK $node_rank is none of 0 to {last}" >&2',
        "    exit 2",
        "fi",
        'case "$head" in',
        "    localhost | localhost.* | 127.* | ::1 | 0.0.0.0)",
        '        echo "$0: HEAD $head is this node itself on every node; give the name of node 0" >&2',
        "        exit 2",
        "        ;;",
        "esac",
    )


def _launcher(start: Start) -> tuple[str, ...]:
    rendezvous = (
        f'--node-rank="$node_rank" --master-addr="$head" --master-port="${{MASTER_PORT:-{PORT}}}"'
        if start.nodes > 1
        else "--standalone"
    )
    return (
        f"exec timeout --foreground --kill-after={_GRACE_S} {start.time_limit_s}",
        f"torchrun --nnodes={start.nodes} --nproc-per-node={start.gpus_per_node}",
        rendezvous,
        log_options(start, "$logs", node="$node_rank" if start.nodes > 1 else "0"),
    )


def log_options(start: Start, folder: str, *, node: str) -> str:
    """Return the options of torchrun that give each rank a log, and the first of each node the console too.

    Parameters
    ----------
    start
        What is to be started.
    folder
        Where the logs go, as the shell says it.
    node
        The number of the node, as the shell says it.
    """
    return f'--rdzv-id={start.name} --log-dir="{folder}/node-{node}" --redirects=3 --tee=0:3'


def _gaps(start: Start) -> Iterator[NotExpressed]:
    if start.nodes > 1:
        yield NotExpressed(
            name="nodes",
            value=str(start.nodes),
            reason="torchrun starts on one node: you, or a tool of yours, run the script on each with "
            "its number",
        )
        yield NotExpressed(
            name="NICs",
            value=f"{start.cluster.nics_per_node} per node",
            reason="torchrun requests nothing: the node must be yours, and NCCL takes its active NICs",
        )


def node_gaps(start: Start) -> Iterator[NotExpressed]:
    """Yield what scripts cannot say about the order of nodes.

    Parameters
    ----------
    start
        What is to be started.
    """
    domain, per_node = start.cluster.nvlink_domain_gpus, start.gpus_per_node
    if domain > per_node:
        yield NotExpressed(
            name="NVLink domains",
            value=f"{domain} GPUs, {domain // per_node} nodes each",
            reason="nodes of a domain must have neighbouring numbers: order them so, or let the "
            "scheduler place "
            "jobs by blocks",
        )


def _how(start: Start) -> str:
    if start.nodes == 1:
        return f"    ./{FILE} [ARGUMENT OF THE PROGRAM]...\n"
    order = paragraph(
        f"On each of the {start.nodes} nodes, with this folder at the same path, NODE_RANK from 0 to "
        f"{start.nodes - 1} and HEAD the name of node 0 as the others reach it. Rank r of the layout is "
        "process r mod "
        f"{start.gpus_per_node} of node r / {start.gpus_per_node}: the order of the nodes is the order "
        "of the ranks."
    )
    return f"{order}\n\n    ./{FILE} NODE_RANK HEAD [ARGUMENT OF THE PROGRAM]...\n"
