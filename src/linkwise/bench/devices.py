"""What a bench can run on, told without torch."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from linkwise.errors import InputError

__all__ = ["DEFAULT_RANKS", "MOST_RANKS", "chosen_device", "chosen_ranks", "visible_gpus"]

DEFAULT_RANKS = 2
"""Ranks where there is no GPU to count [1]."""
MOST_RANKS = 1024
"""More processes on one machine are a mistake [1]."""

_DEVICE = re.compile(r"nvidia\d{1,3}")


def visible_gpus(environ: Mapping[str, str], *, devices: Path = Path("/dev")) -> int:
    """Return how many GPUs a job of this environment sees [1].

    Parameters
    ----------
    environ
        Variables; ``CUDA_VISIBLE_DEVICES`` names some of the GPUs, or with an empty value none.
    devices
        Where the driver puts its device files.
    """
    there = sum(1 for each in devices.iterdir() if _DEVICE.fullmatch(each.name)) if devices.is_dir() else 0
    stated = environ.get("CUDA_VISIBLE_DEVICES")
    if stated is None:
        return there
    named = 0
    for word in filter(None, (word.strip() for word in stated.split(","))):
        if word.startswith("-"):  # CUDA takes none from the first that is invalid on
            break
        named += 1
    return min(named, there)


def chosen_device(asked: str | None, *, gpus: int) -> str:
    """Return ``cuda`` or ``cpu``.

    Parameters
    ----------
    asked
        What was asked for; where there are GPUs, those by default.
    gpus
        How many a job sees [1].

    Raises
    ------
    InputError
        When GPUs are asked for and there are none.
    """
    if asked == "cuda" and not gpus:
        raise InputError("--device cuda: a job sees no GPU here (/dev/nvidia0..., CUDA_VISIBLE_DEVICES)")
    return asked or ("cuda" if gpus else "cpu")


def chosen_ranks(asked: int | None, *, device: str, gpus: int) -> int:
    """Return how many ranks take part [1].

    Parameters
    ----------
    asked
        What was asked for; a rank for each GPU by default, or two on CPUs.
    device
        ``cuda`` or ``cpu``.
    gpus
        How many GPUs a job sees [1].

    Raises
    ------
    InputError
        When there are more ranks than GPUs, or absurdly many.
    """
    if asked is None:
        return gpus if device == "cuda" else DEFAULT_RANKS
    if device == "cuda" and asked > gpus:
        raise InputError(
            f"--ranks {asked}: a job sees {gpus} GPU{'s' if gpus > 1 else ''}; NCCL wants one for each rank"
        )
    if not 1 <= asked <= MOST_RANKS:
        raise InputError(f"--ranks {asked}: 1 to {MOST_RANKS:,} ranks can run on one machine")
    return asked
