"""What is written down of a rollout when it begins, and when another file of it is accepted."""

from __future__ import annotations

from linkwise.errors import InputError
from linkwise.rollout.carrying.ground import Loaded
from linkwise.rollout.store.kept_configuration import kept_configuration
from linkwise.rollout.store.store import Store

__all__ = ["begin_facts", "begin_texts", "check_way_back"]


def begin_facts(loaded: Loaded) -> dict[str, object]:
    """Return what the log says of a file: digests, and what the verbs need that are given no file.

    Parameters
    ----------
    loaded
        The file.
    """
    rollout = loaded.rollout
    return {
        "file": rollout.digest,
        "candidate": rollout.candidate.digest,
        "control": rollout.control.digest,
        "owner": rollout.owner,
        "change": rollout.change.what,
        "kind": rollout.change.kind,
        "reference": rollout.change.reference,
        "scope": loaded.scope,
        "steps": [
            {
                "name": step.name,
                "target": loaded.sizes[step.name].words,
                "nodes": loaded.sizes[step.name].nodes,
                "gpus": loaded.sizes[step.name].gpus,
                "approvals": list(step.approvals),
            }
            for step in rollout.steps
        ],
    }


def begin_texts(loaded: Loaded) -> dict[str, str]:
    """Return what is kept of a file: itself, and both configurations with the files they name.

    Parameters
    ----------
    loaded
        The file.
    """
    return {
        "file": loaded.text,
        "candidate": kept_configuration(loaded.rollout.candidate),
        "control": kept_configuration(loaded.rollout.control),
    }


def check_way_back(loaded: Loaded, store: Store) -> None:
    """Refuse a rollout whose way back leads to what nobody kept.

    Parameters
    ----------
    loaded
        The file.
    store
        Where configurations are kept.

    Raises
    ------
    InputError
        When `rollback.to` is the digest of a configuration that was never promoted here.
    """
    to = loaded.rollout.rollback.to
    known = ("control", loaded.rollout.control.digest)
    if to not in known and store.promoted_in(to) is None:
        raise InputError(
            f"rollback.to is {to[:12]}, and no configuration of that digest was promoted in this store; "
            "write 'control', or give the --store that has it"
        )
