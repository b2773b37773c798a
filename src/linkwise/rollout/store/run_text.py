"""A run as the text that is stored, and back."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

from linkwise.errors import InputError
from linkwise.rollout.canonical import canonical_text, number_of, number_word, parse_object, texts_of
from linkwise.rollout.runs import RunState, Side, StepRun

__all__ = ["run_of", "run_of_text", "run_text"]


def run_text(run: StepRun) -> str:
    """Return a run as one line of JSON, in its one spelling, with every sample.

    Parameters
    ----------
    run
        The run.
    """
    return canonical_text(
        {
            "run_id": run.run_id,
            "step": run.step,
            "workload": run.workload,
            "side": run.side.value,
            "configuration": run.configuration,
            "turn": run.turn,
            "is_warmup": run.is_warmup,
            "state": run.state.value,
            "reason": run.reason,
            "samples": {name: [number_word(each) for each in taken] for name, taken in run.samples.items()},
            "predictions": {name: number_word(each) for name, each in run.predictions.items()},
            "started": run.started.isoformat(),
            "ended": None if run.ended is None else run.ended.isoformat(),
            "gpu_s": run.gpu_s,
            "gpus": run.gpus,
            "nodes": list(run.nodes),
            "record": run.record,
            "record_digest": run.record_digest,
            "seen": dict(run.seen),
        }
    )


def run_of_text(text: str) -> StepRun:
    """Return the run of a stored text.

    Parameters
    ----------
    text
        As `run_text` wrote it.

    Raises
    ------
    InputError
        When it is not.
    """
    return run_of(parse_object(text, what="a stored run"))


def run_of(found: Mapping[str, Any]) -> StepRun:
    """Return the run of a JSON object.

    Parameters
    ----------
    found
        As `run_text` wrote it.

    Raises
    ------
    InputError
        When it is not.
    """
    try:
        return StepRun(
            run_id=str(found["run_id"]),
            step=str(found["step"]),
            workload=str(found["workload"]),
            side=Side(found["side"]),
            configuration=str(found["configuration"]),
            turn=int(found["turn"]),
            is_warmup=found["is_warmup"] is True,
            state=RunState(found["state"]),
            reason=str(found["reason"]),
            samples={name: tuple(map(number_of, taken)) for name, taken in found["samples"].items()},
            predictions={name: number_of(each) for name, each in found["predictions"].items()},
            started=dt.datetime.fromisoformat(found["started"]),
            ended=None if found["ended"] is None else dt.datetime.fromisoformat(found["ended"]),
            gpu_s=number_of(found["gpu_s"]),
            gpus=int(found["gpus"]),
            nodes=tuple(map(str, found["nodes"])),
            record=str(found["record"]),
            record_digest=str(found["record_digest"]),
            seen=texts_of(found["seen"], what="what was seen of the cluster"),
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise InputError(f"a stored run is none of ours, or was altered ({error})") from None
