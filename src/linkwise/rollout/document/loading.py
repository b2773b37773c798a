"""A rollout file as it is now: the plan, its text, and how much of the cluster each step touches."""

from __future__ import annotations

from pathlib import Path

from linkwise.cluster import load_cluster
from linkwise.documents import read_text
from linkwise.errors import InputError
from linkwise.rollout.carrying.ground import Loaded, StepSize
from linkwise.rollout.document.reading import parse_rollout
from linkwise.rollout.targets import target_gpus, target_nodes, target_words

__all__ = ["load_rollout", "place_of_store"]


def load_rollout(path: str) -> Loaded:
    """Return a rollout file as it is now.

    Parameters
    ----------
    path
        The file.

    Raises
    ------
    DocumentError
        With all faults of the document.
    InputError
        When a step wants more than the cluster has, or no file was given.
    """
    if path == "-":
        raise InputError(
            "a rollout is carried out over days and read again each time; give the path of a file"
        )
    text = read_text(path)
    rollout = parse_rollout(text, path=path)
    cluster = load_cluster(rollout.scope.cluster)
    return Loaded(
        rollout=rollout,
        text=text,
        path=Path(path),
        scope=f"{cluster.name} on {rollout.scope.place}",
        sizes={
            step.name: StepSize(
                nodes=target_nodes(step.target, cluster),
                gpus=target_gpus(step.target, cluster),
                words=target_words(step.target),
            )
            for step in rollout.steps
        },
    )


def place_of_store(path: str) -> Path:
    """Return where the store of a rollout lies when nobody says otherwise: beside its file.

    Parameters
    ----------
    path
        The rollout file.
    """
    return Path(path).absolute().parent / ".linkwise" / "rollout.sqlite"
