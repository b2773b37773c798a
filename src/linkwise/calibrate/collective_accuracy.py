"""How far the shipped model of collectives is from the runs kept with it, in sample and left out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

__all__ = ["collective_accuracy"]


@cache
def collective_accuracy() -> Mapping[str, Any]:
    """Return the figures that tools/fit_collectives.py wrote, under ``in_sample`` and ``left_out``."""
    text = files("linkwise.calibrate").joinpath("collective_accuracy.json").read_text(encoding="utf-8")
    accuracy: Mapping[str, Any] = json.loads(text)
    return accuracy
