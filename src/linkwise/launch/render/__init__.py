"""The files that start a job, as texts by name: values in, values out.

Not here: writing them (`cli`). Read first: `start.py` (the values), `rendering.py` (what is made of them),
then one program (`megatron.py`) and one launcher (`slurm.py`). `TARGETS` names them all.
"""

from linkwise.launch.render.own_program import layout_values
from linkwise.launch.render.planned_start import planned_start
from linkwise.launch.render.rendering import TARGETS, read_back, render
from linkwise.launch.render.start import NotExpressed, Rendered, Start

__all__ = [
    "TARGETS",
    "NotExpressed",
    "Rendered",
    "Start",
    "layout_values",
    "planned_start",
    "read_back",
    "render",
]
