"""A look at the nodes of a launch before anything starts, where that can be done from here."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from linkwise.errors import InputError

__all__ = ["look_at", "look_command"]

_PROBE_S = 120.0


def look_command(folder: Path, python: str) -> tuple[str, ...]:
    """Return the command that says what the node it runs on has and lacks.

    Parameters
    ----------
    folder
        The run folder, filled.
    python
        The Python that has torch.
    """
    return (python, str(folder / "agent" / "node_agent.py"), "--facts")


def look_at(words: Sequence[str], environment: Mapping[str, str], *, python: str) -> None:
    """Refuse a node that lacks what the job needs, with all it lacks.

    Parameters
    ----------
    words
        `look_command`, with what carries it to the node before it.
    environment
        All variables of the job.
    python
        The Python that has torch, for messages.

    Raises
    ------
    InputError
        When it lacks something, or its Python cannot say.
    """
    try:
        done = subprocess.run(  # noqa: S603 (the user's own Python)
            list(words), env=dict(environment), check=False, capture_output=True, text=True, timeout=_PROBE_S
        )
        found: dict[str, Any] = json.loads(done.stdout)
    except OSError as error:
        raise InputError(f"--python {python}: cannot be started ({error.strerror})") from None
    except subprocess.TimeoutExpired:
        raise InputError(f"--python {python}: gives no answer in {_PROBE_S:.0f} s") from None
    except ValueError:
        raise InputError(
            f"--python {python}: is no Python 3.8 or newer: {done.stderr[-300:].strip()}"
        ) from None
    if found["lacking"]:
        raise InputError(f"{found['host']} cannot run this job: " + "; ".join(found["lacking"]))
