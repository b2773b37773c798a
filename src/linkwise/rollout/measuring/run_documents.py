"""The job and the cluster of one run: the documents of the rollout, cut to the target of the step."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from linkwise.documents.text import read_text
from linkwise.documents.tree import parse_yaml
from linkwise.errors import InputError

__all__ = ["cluster_text", "job_text"]


def cluster_text(cluster: str, gpus: int) -> str:
    """Return the cluster of a run, as the text of a document that may lie anywhere.

    Parameters
    ----------
    cluster
        Path of the document of the whole, or ``SYSTEM:NODES``.
    gpus
        Those that are in use [1].

    Raises
    ------
    InputError
        When the document cannot be read.
    """
    if Path(cluster).is_file():
        told = _told(cluster)
        for key, place in (("prices", told), ("links", told.get("fabric"))):
            if isinstance(place, dict) and isinstance(place.get(key), str):
                place[key] = str((Path(cluster).parent / place[key]).absolute())
    else:
        system, _, nodes = cluster.partition(":")
        told = {"linkwise": "cluster/1", "name": cluster, "nodes": int(nodes), "node": system}
    return json.dumps({**told, "gpus": gpus}, indent=2)


def job_text(path: str, layout: Mapping[str, object], *, steps: int | None) -> str:
    """Return the job of a run, as the text of a document that may lie anywhere.

    Parameters
    ----------
    path
        Of its document.
    layout
        Keys of the layout over those of the document; without any it stays as it is.
    steps
        Training steps of the run, which are its tokens over those of a step; ``None`` for the document's [1].

    Raises
    ------
    InputError
        When the document cannot be read.
    """
    told = _told(path)
    own = told.get("layout")
    if layout:
        told["layout"] = {**(own if isinstance(own, dict) else {}), **layout}
    if steps is not None:
        told["tokens"] = steps * int(told["sequence_length"]) * int(told["global_batch"])
    model = Path(path).parent / str(told.get("model"))
    if model.is_file():
        told["model"] = str(model.absolute())
    return json.dumps(told, indent=2)


def _told(path: str) -> dict[str, Any]:
    tree = parse_yaml(read_text(path), path=path)
    if tree.faults or not isinstance(tree.value, dict):
        raise InputError(f"{path}: is no document of Linkwise any more; it was when the rollout was read")
    return dict(tree.value)
