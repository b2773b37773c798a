"""What `linkwise bench` and `linkwise launch` print, as samples of metrics and what was seen of the run."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

from linkwise.evidence.outliers import robust_sigma
from linkwise.launch.run.launch_record import WARM_UP_STEPS
from linkwise.network.setting import bus_factor
from linkwise.readers.faults import Faults
from linkwise.readers.json_text import parse_json

__all__ = ["MeasuredResult", "read_result"]

_FINGERPRINT = ("gpu", "nccl", "driver", "cuda", "torch", "kernel")
"""What records call as fingerprints do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredResult:
    """One run, as its own result tells of it.

    Parameters
    ----------
    is_done
        Whether it ended well.
    is_as_planned
        Whether the run proved to be what was planned; ``None`` where its kind proves nothing.
    unlike
        By the name of a check, what was planned and seen where it is not as planned, or not shown.
    reason
        Why it did not end well, or what was unlike the plan; empty for a good one.
    samples
        By name of the metric, in its unit, in the order they were taken.
    predictions
        What the model says of each metric; nothing for CPUs, which it does not know.
    noise_fractions
        Spread of the samples of one thing, over their median, by metric [1].
    hosts, ranks
        As seen.
    settings
        Variables that move communication, as ranks had them.
    seen
        Of the cluster, by the names of `plan.Scope.fingerprint`: what ranks and nodes said of themselves.
    duration_s
        From start to end, all runs in it together [s].
    """

    is_done: bool
    is_as_planned: bool | None
    unlike: Mapping[str, str] = field(default_factory=dict)
    reason: str
    samples: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    predictions: Mapping[str, float] = field(default_factory=dict)
    noise_fractions: Mapping[str, float] = field(default_factory=dict)
    hosts: tuple[str, ...] = ()
    ranks: int = 0
    settings: Mapping[str, str] = field(default_factory=dict)
    seen: Mapping[str, str] = field(default_factory=dict)
    duration_s: float = 0.0


def read_result(text: str, *, path: str | None = None) -> MeasuredResult:
    """Return what a result says.

    Parameters
    ----------
    text
        The JSON that ``--format json`` prints.
    path
        Of its file, for messages.

    Raises
    ------
    DocumentError
        If it is no result of a bench or a launch, or is damaged.
    """
    faults = Faults(path=path)
    told = parse_json(text, faults)
    kind = (told.get("schema"), told.get("kind"))
    read = _READERS.get(kind)
    if read is None:
        raise faults.refusal(
            f"is {kind[0]!r} of kind {kind[1]!r}; a bench or a launch was expected", key="schema"
        )
    try:
        return read(told)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise faults.refusal(f"is damaged: {type(error).__name__} {str(error)[:80]}") from None


def _bench(told: Mapping[str, Any], samples: Mapping[str, list[float]], **more: Any) -> MeasuredResult:
    runs = told["runs"]
    proved = [run for run in runs if run.get("checks")]
    bad = next((run for run in runs if run["outcome"] != "done"), None)
    return MeasuredResult(
        is_done=bool(runs) and bad is None,
        is_as_planned=None if not proved else all(run["valid"] for run in proved),
        unlike={name: words for run in proved for name, words in _unlike(run["checks"]).items()},
        reason="" if bad is None else f"{bad['outcome']}: {bad['reason']}",
        samples={name: tuple(values) for name, values in samples.items() if values},
        hosts=tuple(dict.fromkeys(host for run in runs for host in run["hosts"])),
        ranks=int(told["ranks"]),
        settings=dict(runs[0]["settings"]) if runs else {},
        seen=_seen(runs[0]["versions"]) if runs else {},
        duration_s=sum(_duration_s(run) for run in runs),
        **more,
    )


def _collectives(told: Mapping[str, Any]) -> MeasuredResult:
    times: list[float] = []
    bandwidths: list[float] = []
    predicted: list[float] = []
    predicted_s: list[float] = []
    noise: list[float] = []
    wrong = 0
    for row in told["rows"]:
        moved = row["size_bytes"] * bus_factor(row["collective"], told["ranks"])
        samples = row["time"]["samples_s"]
        times += samples
        bandwidths += [moved / each for each in samples]
        noise.append(_noise_fraction(samples))
        wrong += row["wrong"] or 0
        if row.get("predicted"):
            predicted_s.append(row["predicted"]["time_s"])
            predicted.append(moved / row["predicted"]["time_s"])
    found = _bench(
        told,
        {"collective.busbw": bandwidths, "collective.time": times},
        predictions={"collective.busbw": median(predicted), "collective.time": median(predicted_s)}
        if predicted and _is_known(told)
        else {},
        noise_fractions=dict.fromkeys(("collective.busbw", "collective.time"), median(noise)),
    )
    return (
        replace(found, is_done=False, reason=f"{wrong:,} wrong elements in the results") if wrong else found
    )


def _pairs(told: Mapping[str, Any]) -> MeasuredResult:
    scores = [node["score_bytes_per_s"] for node in told["nodes"]]
    slow = sum(bool(node["is_low"]) and node["confirmed"] is not False for node in told["nodes"])
    return _bench(
        told,
        {
            "pairs.bandwidth": [min(scores)] if scores else [],
            "pairs.slow_nodes": [float(slow)] if told["verdict"] != "cannot tell" else [],
        },
    )


def _training(told: Mapping[str, Any]) -> MeasuredResult:
    times: list[float] = []
    losses: list[float] = []
    for cut in told["cuts"]:
        times += cut["step_time"]["samples_s"]
        losses += [math.nan if each is None else each for each in cut["losses"]]  # JSON has no NaN
    noise = dict.fromkeys(("train.step_time", "train.tokens_per_s"), _noise_fraction(times))
    found = _of_steps(times, tokens=told["tokens_per_step"], losses=losses)
    return _bench(told, found, noise_fractions=noise)


def _launch(told: Mapping[str, Any]) -> MeasuredResult:
    expected, predicted = told["expected"], told["predicted"]
    gpus = expected["nodes"] * expected["ranks_per_node"]
    steps = told["samples"][WARM_UP_STEPS:]
    times_s = [step["time_s"] for step in steps]
    tokens = predicted["tokens_per_step"]
    losses = [float(step["loss"]) for step in steps if step.get("loss") is not None]
    found = _of_steps(times_s, tokens=tokens, losses=losses)
    known = _of_steps([predicted["step_time_s"]], tokens=tokens, losses=[]) if _is_known(expected) else {}
    is_done = told["outcome"] == "done"
    unlike = _unlike(told["checks"])
    return MeasuredResult(
        is_done=is_done,
        is_as_planned=bool(told["valid"]),
        unlike=unlike,
        reason="; ".join(unlike.values()) if is_done else f"{told['outcome']}: {told['reason']}",
        samples={name: tuple(values) for name, values in found.items() if values},
        predictions={name: values[0] for name, values in known.items() if values},
        noise_fractions=dict.fromkeys(("train.step_time", "train.tokens_per_s"), _noise_fraction(times_s)),
        hosts=tuple(told["hosts"]),
        ranks=gpus,
        settings=dict(expected["settings"]),
        # Nodes tell what is installed; which NCCL the ranks loaded, its own lines say.
        seen=_seen({**told["versions"], "nccl": told["transports"].get("nccl_version", "")}),
        duration_s=_duration_s(told),
    )


def _unlike(checks: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    return {
        str(each["what"]): f"{each['what']}: planned {each['planned']}, seen {each['seen']}"
        for each in checks
        if not each["is_as_planned"]
    }


def _of_steps(times_s: list[float], *, tokens: int, losses: list[float]) -> dict[str, list[float]]:
    return {
        "train.step_time": times_s,
        "train.tokens_per_s": [tokens / each for each in times_s],
        "train.loss": losses,
    }


def _seen(versions: Mapping[str, str]) -> dict[str, str]:
    return {name: str(versions[name]) for name in _FINGERPRINT if versions.get(name)}


def _is_known(told: Mapping[str, Any]) -> bool:
    return bool(told["device"] == "cuda")


def _noise_fraction(samples: Sequence[float]) -> float:
    """Return the spread as a standard deviation, from the median deviation, over the median [1]."""
    if len(samples) < 2:
        return 0.0
    middle = median(samples)
    return robust_sigma(samples) / middle


def _duration_s(run: Mapping[str, Any]) -> float:
    if not run["started"] or not run["ended"]:
        return 0.0
    ended, started = (dt.datetime.fromisoformat(run[name]) for name in ("ended", "started"))
    spent_s = (ended - started).total_seconds()
    return spent_s if math.isfinite(spent_s) and spent_s > 0 else 0.0


_READERS: Mapping[tuple[object, object], Callable[[Mapping[str, Any]], MeasuredResult]] = {
    ("linkwise.bench/1", "collectives"): _collectives,
    ("linkwise.bench/1", "pairs"): _pairs,
    ("linkwise.bench/1", "training"): _training,
    ("linkwise.launch/1", None): _launch,
}
