"""A batch script for Slurm: one task a node, which runs torchrun.

References
----------
SchedMD, sbatch(1), srun(1) and scontrol(1), 2025. PyTorch, documentation of torchrun.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from linkwise.launch.render.start import NotExpressed, Rendered
from linkwise.launch.render.torchrun import PORT, log_options, node_gaps
from linkwise.launch.render.words import comment_lines, export_lines, printable, program_lines

if TYPE_CHECKING:
    from linkwise.launch.render.start import Program, Start

__all__ = ["FILE", "slurm_files"]

FILE = "job.sbatch"


def slurm_files(start: Start, program: Program) -> Rendered:
    """Return the batch script with the files of the program.

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
        purposes={FILE: "batch script for Slurm", **program.purposes},
        not_expressed=(*program.not_expressed, *_gaps(start), *node_gaps(start)),
        assumed=program.assumed,
        how_to_start=(
            "In this folder, which all nodes must see at the same path; partition and account are yours to "
            f"add:\n\n    sbatch --partition=PARTITION {FILE} [ARGUMENT OF THE PROGRAM]...\n"
        ),
        logs="logs-JOB/",
    )


def _lines(start: Start, program: Program) -> Iterator[str]:
    what = f"{printable(start.job.model.name)} on {printable(start.cluster.name)}"
    yield "#!/bin/bash"
    yield from (f"#SBATCH --{option}" for option in _directives(start))
    yield from comment_lines(f"Starts {what}. Written by Linkwise; README.md says how to use it.")
    yield "set -euo pipefail"
    yield "export folder=${SLURM_SUBMIT_DIR:?is not set: submit this script with sbatch}"
    yield from _presence(program)
    yield "export logs=$folder/logs-$SLURM_JOB_ID"
    yield 'mkdir -p "$logs"'
    if start.nodes > 1:
        yield from _head()
    yield ""
    yield from export_lines(start.settings, logs="$logs")
    yield ""
    yield from comment_lines(
        "One task a node with all of its CPUs; the shell of each node puts in its own number."
    )
    yield "# shellcheck disable=SC2016"
    yield "srun --kill-on-bad-exit=1 --label --ntasks-per-node=1 \\"
    yield '    --cpus-per-task="$SLURM_CPUS_ON_NODE" --cpu-bind=none bash -c \''
    yield from _of_a_node(start, program)
    yield '\' start "$@"'


def _presence(program: Program) -> Iterator[str]:
    """Yield what stops a job that was submitted in another folder than that of its files."""
    for name in program.files:
        yield f"if [[ ! -r $folder/{name} ]]; then"
        yield f'    echo "$folder/{name} is missing: submit this script in the folder it was written to" >&2'
        yield "    exit 2"
        yield "fi"


def _directives(start: Start) -> Iterator[str]:
    yield f"job-name={start.name}"
    yield f"nodes={start.nodes}"
    yield "ntasks-per-node=1"
    yield f"gpus-per-node={start.gpus_per_node}"
    yield "exclusive"
    yield "mem=0"
    minutes = -(-start.time_limit_s // 60)
    yield f"time={minutes // 1440}-{minutes % 1440 // 60:02}:{minutes % 60:02}:00"
    yield "output=%x-%j.out"
    yield "open-mode=append"
    yield "no-requeue"


def _head() -> Iterator[str]:
    yield 'nodes=$(scontrol show hostnames "$SLURM_JOB_NODELIST")'
    yield "export head=${nodes%%$'\\n'*}"
    yield 'case "$head" in'
    yield '    "" | localhost | localhost.* | 127.*)'
    yield "        echo \"the first node of $SLURM_JOB_NODELIST is '$head', which others do not reach\" >&2"
    yield "        exit 2"
    yield "        ;;"
    yield "esac"


def _of_a_node(start: Start, program: Program) -> Iterator[str]:
    rendezvous = (
        f'--node-rank="$SLURM_NODEID" --master-addr="$head" --master-port="${{MASTER_PORT:-{PORT}}}"'
        if start.nodes > 1
        else "--standalone"
    )
    launcher = (
        f"exec torchrun --nnodes={start.nodes} --nproc-per-node={start.gpus_per_node}",
        rendezvous,
        log_options(start, "$logs", node="$SLURM_NODEID"),
    )
    # The whole stands in single quotes: one in a word is closed, escaped and opened again.
    for line in program_lines(program, launcher=launcher, folder="$folder"):
        yield line.replace("'", "'\\''")


def _gaps(start: Start) -> Iterator[NotExpressed]:
    if start.nodes > 1:
        yield NotExpressed(
            name="NICs",
            value=f"{start.cluster.nics_per_node} per node",
            reason="Slurm has no common request for NICs: --exclusive gives the node with all of them, "
            "and NCCL "
            "takes the active ones",
        )
    yield NotExpressed(
        name="partition",
        value="",
        reason="no document names partition, account or container: append them to sbatch",
    )
