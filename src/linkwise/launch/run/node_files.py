"""The agent of nodes in a run folder: its program, what it holds a node to, and what it wrote there."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from importlib.resources import files as package_files
from pathlib import Path
from typing import Any

from linkwise.launch.run.checks import SeenRank
from linkwise.launch.run.proof import seen_rank

__all__ = ["addresses_in", "agent_texts", "nodes_in", "ranks_in", "refusal_in"]

_MOST_SEEN_BYTES = 64 << 20
_PACKAGE = "from linkwise.launch.run."


def agent_texts(wanted: Mapping[str, Any]) -> dict[str, str]:
    """Return the files of the agent by their name in the run folder.

    Parameters
    ----------
    wanted
        What it holds a node to.
    """
    package = package_files("linkwise.launch.run")
    texts = {
        # Beside one another they are modules of no package: the job's Python need not have Linkwise.
        f"agent/{name}": package.joinpath(name).read_text(encoding="utf-8").replace(_PACKAGE, "from ")
        for name in ("node_agent.py", "node_sight.py")
    }
    return {**texts, "agent/wanted.json": json.dumps(dict(wanted))}


def ranks_in(folder: Path) -> tuple[SeenRank, ...]:
    """Return the ranks that were seen so far.

    Parameters
    ----------
    folder
        The run folder.
    """
    told = [each for name in _seen(folder, "ranks") for each in (name if isinstance(name, list) else ())]
    return tuple(each for each in map(seen_rank, told) if each is not None)


def nodes_in(folder: Path) -> tuple[dict[str, Any], ...]:
    """Return what nodes said they have.

    Parameters
    ----------
    folder
        The run folder.
    """
    return tuple(each for each in _seen(folder, "node") if isinstance(each, dict))


def addresses_in(folder: Path) -> dict[str, dict[str, str]]:
    """Return the interfaces of nodes by host and address.

    Parameters
    ----------
    folder
        The run folder.
    """
    return {
        str(each.get("host")): each["addresses"]
        for each in nodes_in(folder)
        if isinstance(each.get("addresses"), dict)
    }


def refusal_in(folder: Path) -> tuple[str, ...]:
    """Return why a node did not let the job start; empty where none refused.

    Parameters
    ----------
    folder
        The run folder.
    """
    for each in _seen(folder, "refused"):
        return tuple(map(str, each)) if isinstance(each, list) else ("a node refused",)
    return ()


def _seen(folder: Path, kind: str) -> Iterator[object]:
    for path in sorted((folder / "seen").glob(f"{kind}-*.json")):
        with contextlib.suppress(OSError, ValueError):
            if path.stat().st_size <= _MOST_SEEN_BYTES:
                yield json.loads(path.read_text(encoding="utf-8"))
