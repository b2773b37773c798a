import json
from pathlib import Path

import pytest

from linkwise.calibrate.measured import read_measurements
from linkwise.errors import DocumentError

DATA = Path(__file__).parent.parent / "data"


def test_read_measurements_reads_every_run_of_the_published_set():
    measured = read_measurements(DATA / "training.csv", use=("bench", "core"))
    assert measured.rows == len(measured.runs) + len(measured.left_out)
    assert len(measured.runs) >= 0.97 * measured.rows
    assert len({run.source for run in measured.runs}) == 20


@pytest.mark.parametrize(
    ("identity", "step_time_s"),
    [
        # Narayanan et al. 2021, Table 1: 39.1 B on 512 GPUs, batch 1536, 138 TFLOP/s by equation 3, which gives
        # 96 x 1536 x 2048 x 48 x 8192^2 (1 + 2048 / (6 x 8192) + 51200 / (16 x 48 x 8192)) FLOP
        ("SC21-005", 14.4535),
        # Korthikanti et al. 2022, Table 5: 175 B with selective recomputation
        ("SEQSEL-004", 13.75),
    ],
)
def test_read_measurements_gives_the_time_of_published_runs(identity, step_time_s):
    runs = {run.id: run for run in read_measurements(DATA / "training.csv").runs}
    assert runs[identity].step_time_s == pytest.approx(step_time_s, rel=1e-5)


def test_read_measurements_takes_the_rate_when_no_time_is_given(write_runs, row):
    path = write_runs(row(step_time_s="", tokens_per_s_per_gpu="4096"), row(tokens_per_s_per_gpu="1"))
    first, second = read_measurements(path).runs
    assert first.step_time_s == pytest.approx(16 * 1024 / (4096 * 8))
    assert second.step_time_s == 0.5


def test_read_measurements_leaves_rows_out_with_a_reason_each(write_runs, row):
    path = write_runs(
        row(),
        row(gpu="Abacus 3000"),
        row(gpu="Abacus 3000"),
        row(seq=""),
        row(dp="5"),
        row(step_time_s=""),
        row(precision="int3"),
        row(layers=""),
        row(task="lora"),
        row(use="extra"),
    )
    measured = read_measurements(path, use=("core",))
    assert measured.rows == 8
    assert len(measured.runs) == 1
    assert measured.skipped == {
        "GPU Abacus 3000 is not in the catalogue": 2,
        "seq is empty": 1,
        "degrees do not multiply to the GPUs": 1,
        "no step time, rate or utilization": 1,
        "precision int3": 1,
        "the shape of the model is not stated": 1,
    }


def test_read_measurements_counts_every_row_as_pretraining_without_the_column(write_runs, row):
    assert read_measurements(write_runs(row(), drop=("task", "use"))).rows == 1


def test_read_measurements_takes_a_config_json_in_place_of_the_shape(write_runs, row, tmp_path):
    shape = ("layers", "hidden", "heads", "kv_heads", "ffn", "vocab", "gated_mlp", "moe_experts", "moe_topk")
    (tmp_path / "configs").mkdir()
    llama = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "num_hidden_layers": 32,
        "hidden_size": 4096,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "intermediate_size": 14336,
        "vocab_size": 128256,
        "tie_word_embeddings": False,
    }
    (tmp_path / "configs" / "config.json").write_text(json.dumps(llama), encoding="utf-8")
    path = write_runs(row(config="configs/config.json"), row(config="configs/config.json"), drop=shape)
    first, second = read_measurements(path).runs
    assert (first.model.layers, first.model.kv_heads) == (32, 8)
    assert first.model is second.model


def test_read_measurements_names_the_line_of_a_config_that_cannot_be_read(write_runs, row, tmp_path):
    (tmp_path / "broken.json").write_text('{"num_hidden_layers": ', encoding="utf-8")
    path = write_runs(row(config="none.json"), row(config="broken.json"))
    with pytest.raises(DocumentError) as refused:
        read_measurements(path)
    assert [(fault.line, fault.key) for fault in refused.value.faults] == [(2, "config"), (3, "config")]


@pytest.mark.parametrize(
    ("gpus", "gbit", "expected"),
    [
        ("8", "3200", "one node"),
        ("16", "3200", "at least 800 Gbit/s per node"),
        ("16", "400", "100 to 800 Gbit/s per node"),
        ("16", "25", "under 100 Gbit/s per node"),
        ("16", "", "not stated"),
    ],
)
def test_interconnect_class_goes_by_the_rate_of_a_node(write_runs, row, gpus, gbit, expected):
    data = str(int(gpus) // 2)
    path = write_runs(row(n_gpus=gpus, dp=data, inter_gbps_per_node=gbit))
    assert read_measurements(path).runs[0].interconnect_class == expected
