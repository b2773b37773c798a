"""A program of the user's, whose framework has no file or arguments that say how the work is cut."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from linkwise.launch.render.start import FOLDER, NotExpressed, Program

if TYPE_CHECKING:
    from linkwise.launch.render.start import Start

__all__ = ["FILE", "layout_values", "own_program", "read_own"]

FILE = "layout.json"
_SCRIPT = "train.py"


def own_program(start: Start) -> Program:
    """Return a program that gets the layout as a file.

    Parameters
    ----------
    start
        What is to be started.
    """
    values = {**layout_values(start), "global_batch": start.job.global_batch, "steps": start.steps}
    return Program(
        words=(start.script or _SCRIPT, f"--layout={FOLDER}/{FILE}"),
        files={FILE: json.dumps(values, indent=2) + "\n"},
        purposes={FILE: "the layout, for your program to read"},
        not_expressed=(
            NotExpressed(
                name="framework",
                value=start.job.framework,
                reason=f"has no arguments of its own for a layout: {start.script or _SCRIPT} is yours "
                "and must take "
                f"--layout={FILE}",
            ),
        ),
    )


def layout_values(start: Start) -> dict[str, Any]:
    """Return the keys of a layout as `job/1` spells them.

    Parameters
    ----------
    start
        What is to be started.
    """
    layout = start.layout
    numbers = (
        "tensor",
        "context",
        "pipeline",
        "virtual_pipeline",
        "expert",
        "data",
        "micro_batch",
        "zero_stage",
    )
    words = ("recompute", "schedule", "rank_order", "context_exchange")
    return {
        **{name: getattr(layout, name) for name in numbers},
        "hybrid_shard": layout.hybrid_shard,
        "sequence_parallel": bool(layout.sequence_parallel),
        **{name: getattr(layout, name).word for name in words},
    }


def read_own(files: Mapping[str, str], *, gpus: int) -> dict[str, object]:  # noqa: ARG001 (as all programs)
    """Return the layout of the file.

    Parameters
    ----------
    files
        Texts by name.
    gpus
        Ranks of the job.
    """
    values: dict[str, object] = json.loads(files[FILE])
    del values["steps"]
    return values
