"""Small files of measured runs, made by hand."""

import csv
import io

import pytest

_ROW = {
    # VTRAIN-S, ground_truth_single.csv of VIA-Research/vTrain, 2024: one node of A100, full recomputation, fp16
    "id": "MINE-001",
    "source_year": "2024",
    "framework": "Megatron-DeepSpeed",
    "framework_family": "megatron",
    "model_name": "GPT h2048 L24",
    "layers": "24",
    "hidden": "2048",
    "heads": "16",
    "kv_heads": "16",
    "ffn": "8192",
    "vocab": "51200",
    "gated_mlp": "0",
    "moe_experts": "",
    "moe_topk": "",
    "seq": "1024",
    "gpu": "A100-SXM-80GB",
    "gpus_per_node": "8",
    "n_gpus": "8",
    "inter_link": "",
    "inter_gbps_per_node": "",
    "tp": "2",
    "pp": "1",
    "vpp": "",
    "cp": "1",
    "ep": "1",
    "dp": "4",
    "zero_stage": "0",
    "micro_batch": "1",
    "global_batch": "16",
    "precision": "fp16",
    "recompute": "full",
    "seq_parallel": "0",
    "step_time_s": "0.5",
    "use": "core",
    "task": "pretrain",
}


@pytest.fixture
def row():
    """Return a function that gives the row of one run, some of its cells changed."""
    return lambda **cells: {**_ROW, **cells}


@pytest.fixture
def write_runs(tmp_path):
    """Return a function that writes rows to a CSV file and gives its path."""

    def write(*rows, name="runs.csv", drop=()):
        text = io.StringIO()
        columns = [
            column for column in dict.fromkeys(key for each in rows for key in each) if column not in drop
        ]
        writer = csv.DictWriter(text, columns, lineterminator="\n", extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
        path = tmp_path / name
        path.write_text(text.getvalue(), encoding="utf-8")
        return path

    return write


@pytest.fixture
def one_row():
    """Return the cells of one run."""
    return dict(_ROW)
