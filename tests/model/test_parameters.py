"""Parameter counts by part, against hand-worked and published values."""

import pytest

from linkwise.model import load_model, mtp_parameters, parameter_counts, with_positions


def test_parameter_counts_when_llama_3_1_8b_is_worked_by_hand():
    counts = parameter_counts(load_model("llama-3.1-8b"))
    assert counts.attention == 32 * (4096 * (4096 + 2 * 1024) + 4096 * 4096)
    assert counts.dense_mlp == 32 * 3 * 4096 * 14336
    assert counts.norms == (2 * 32 + 1) * 4096
    assert counts.embedding == counts.output_head == 128256 * 4096
    assert counts.total == counts.active == 8_030_261_248  # safetensors header of the checkpoint


def test_parameter_counts_when_gpt_3_is_worked_by_hand():
    # 12 L h^2 (1 + 13 / (12 h)) + (V + s) h: Narayanan et al. 2021, eq. 2, and the final norm
    layers, hidden, vocab, positions = 96, 12288, 51200, 2048
    expected = layers * (12 * hidden**2 + 13 * hidden) + (vocab + positions) * hidden + 2 * hidden
    assert parameter_counts(load_model("gpt-3-175b")).total == expected


def test_parameter_counts_when_attention_is_latent():
    # One layer of DeepSeek-V3, from its config.json: q 7168>1536>128*192, kv 7168>512+64, 512>128*256, o
    layer = 7168 * 1536 + 1536 * 128 * 192 + 7168 * 576 + 512 * 128 * 256 + 128 * 128 * 7168
    assert parameter_counts(load_model("deepseek-v3")).attention == 61 * layer


def test_parameter_counts_when_layers_are_gated_delta_nets():
    counts = parameter_counts(load_model("qwen3.5-397b-a17b"))
    keys, values = 16 * 128, 64 * 128
    linear = 4096 * (2 * keys + 2 * values + 2 * 64) + values * 4096 + 4 * (2 * keys + values) + 2 * 64
    full = 4096 * (2 * 32 * 256 + 2 * 2 * 256) + 32 * 256 * 4096
    assert counts.attention == 45 * linear + 15 * full


@pytest.mark.parametrize(
    ("name", "sequence", "published_b"),
    [  # mosaicml/llm-foundry, scripts/train/benchmarking/README.md, column params
        ("mpt-125m", 512, 0.1241),
        ("mpt-125m", 1024, 0.1245),
        ("mpt-125m", 2048, 0.1253),
        ("mpt-125m", 4096, 0.1269),
        ("mpt-125m", 16384, 0.1363),
        ("mpt-13b", 2048, 12.854),
    ],
)
def test_parameter_counts_when_positions_grow_with_the_sequence(name, sequence, published_b):
    total = parameter_counts(with_positions(load_model(name), sequence)).total / 1e9
    assert round(total, 4 if published_b < 1 else 3) == published_b


def test_mtp_parameters_when_deepseek_v3_has_one_module():
    # DeepSeek-V3, README_WEIGHTS: 11.5 B of its own, embedding and head shared
    assert mtp_parameters(load_model("deepseek-v3")) == pytest.approx(11.5e9, rel=0.01)
    assert mtp_parameters(load_model("llama-3.1-8b")) == 0


def test_active_when_experts_are_not_chosen():
    counts = parameter_counts(load_model("mixtral-8x7b"))
    assert counts.total - counts.active == 32 * 6 * 3 * 4096 * 14336
