"""Recorded results for tests, in the words of `linkwise bench` and `linkwise launch`."""

import json

RANKS = 8


def collectives(busbw_bytes_per_s, *, size_bytes=2**30, collective="all_reduce", outcome="done", **more):
    moved = size_bytes * 2 * (RANKS - 1) / RANKS
    times = [moved / busbw_bytes_per_s * each for each in (1.0, 1.001, 0.999, 1.002, 0.998)]
    return {
        "schema": "linkwise.bench/1",
        "kind": "collectives",
        "device": "cuda",
        "ranks": RANKS,
        "runs": [_run(outcome)],
        "rows": [
            {"collective": collective, "size_bytes": size_bytes, "wrong": 0, "predicted": None,
             "time": {"samples_s": times}}
        ],
        **more,
    }  # fmt: skip


def training(losses, *, step_time_s=0.1, cut="ddp"):
    return {
        "schema": "linkwise.bench/1",
        "kind": "training",
        "device": "cuda",
        "ranks": RANKS,
        "runs": [_run("done")],
        "tokens_per_step": 4096,
        "cuts": [{"cut": cut, "step_time": {"samples_s": [step_time_s] * len(losses)}, "losses": losses}],
    }


def _run(outcome):
    return {
        "outcome": outcome,
        "reason": "" if outcome == "done" else "exit code 1",
        "hosts": ["n1"],
        "settings": {},
        "versions": {"nccl": "2.30.4"},
        "started": "2026-11-30T08:00:00+00:00",
        "ended": "2026-11-30T08:00:10+00:00",
    }


def record(folder, step, side, results, *, name="{:02}"):
    """Write results as files of one side of a step."""
    where = folder / step / side
    where.mkdir(parents=True, exist_ok=True)
    for place, result in enumerate(results, 1):
        text = result if isinstance(result, str) else json.dumps(result)
        (where / f"{name.format(place)}.json").write_text(text, encoding="utf-8")
