"""Dumps of PyTorch's Flight Recorder as its version 2.5 writes them, of jobs that never ran."""

import json
import pickle


def call(
    sequence,
    operation="all_reduce",
    *,
    sizes=((3, 4),),
    state="completed",
    retired=None,
    group="0",
    description="default_pg",
):
    """Return one entry."""
    shapes = [list(each) for each in sizes]
    return {
        "frames": [{"name": "step", "filename": "train.py", "line": 44}],
        "record_id": sequence - 1,
        "pg_id": 0,
        "process_group": (group, description),
        "collective_seq_id": sequence,
        "p2p_seq_id": 0,
        "op_id": sequence,
        "profiling_name": f"nccl:{operation}",
        "time_created_ns": 1_724_779_239_936_775_119,
        "input_sizes": shapes,
        "input_dtypes": ["Float"],
        "output_sizes": shapes,
        "output_dtypes": ["Float"],
        "state": state,
        "time_discovered_started_ns": None,
        "time_discovered_completed_ns": 1_724_779_239_975_811_724 if state == "completed" else None,
        "retired": state == "completed" if retired is None else retired,
        "timeout_ms": 600_000,
        "is_p2p": False,
    }


def dump(calls, *, ranks=(0, 1, 2, 3), group="0", description="default_pg"):
    """Return the dump of one rank with these calls."""
    last = max((each["collective_seq_id"] for each in calls), default=-1)
    return {
        "version": "2.5",
        "pg_config": {group: {"name": group, "desc": description, "ranks": str(list(ranks))}},
        "pg_status": {
            "0": {
                "last_enqueued_collective": last,
                "last_started_collective": -1,
                "last_completed_collective": max(
                    (each["collective_seq_id"] for each in calls if each["state"] == "completed"), default=-1
                ),
            }
        },
        "entries": calls,
    }


def as_pickle(value):
    """Return the dump as PyTorch writes it to a file."""
    return pickle.dumps(value, protocol=2)


def as_json(value):
    """Return the dump as PyTorch's control plane gives it: keys sorted, status as texts."""
    status = {
        group: {key: str(number) for key, number in each.items()}
        for group, each in value["pg_status"].items()
    }
    return json.dumps({**value, "pg_status": status}, sort_keys=True).encode()
