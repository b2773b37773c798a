"""Operations per token, against published formulas."""

import pytest

from linkwise.model import forward_flop_per_token, load_model, make_model, model_flop_per_token
from linkwise.model.flop import attention_keys


def test_model_flop_when_gpt_3_counts_the_whole_square():
    # Narayanan et al. 2021, eq. 3 without recomputation: 72 s L h^2 (1 + s / (6 h) + V / (12 L h)) per sequence
    layers, hidden, vocab, s = 96, 12288, 51200, 2048
    expected = 72 * layers * hidden**2 * (1 + s / (6 * hidden) + vocab / (12 * layers * hidden))
    flop = model_flop_per_token(load_model("gpt-3-175b"), s, causal=False)
    assert flop == pytest.approx(expected, rel=1e-12)


def test_model_flop_when_attention_is_causal():
    # Half the square: 6 L h s instead of 12 L h s (Chowdhery et al. 2022, appendix B, has 12 L H Q T)
    model, s = load_model("llama-3.1-70b"), 8192
    whole, half = (model_flop_per_token(model, s, causal=causal) for causal in (False, True))
    assert whole - half == pytest.approx(6 * 80 * 8192 * s)


def test_attention_keys_when_window_is_shorter_than_the_sequence():
    exact = sum(min(position, 128) for position in range(1, 4097)) / 4096
    assert attention_keys(4096, 128, causal=True) == pytest.approx(exact, rel=0.005)
    assert attention_keys(4096, 0, causal=True) == attention_keys(4096, 8192, causal=True) == 2048
    assert attention_keys(4096, 128, causal=False) == 128


def test_forward_flop_when_half_the_layers_are_windowed():
    model, s = load_model("gpt-oss-20b"), 8192
    keys = 12 * s / 2 + 12 * (128 - 128**2 / (2 * s))
    assert forward_flop_per_token(model, s).attention == pytest.approx(2 * keys * 64 * 128)


def test_forward_flop_when_layers_are_linear():
    model = load_model("qwen3.5-397b-a17b")
    near, far = (forward_flop_per_token(model, s) for s in (4096, 8192))
    assert near.linear_attention == far.linear_attention == 6 * 45 * 64 * 128**2
    assert far.attention == pytest.approx(2 * near.attention)


def test_forward_flop_when_a_sparse_index_picks_keys():
    sparse, dense = load_model("deepseek-v3.2"), load_model("deepseek-v3")
    s = 65536
    picked = 2 * 61 * (2048 - 2048**2 / (2 * s)) * 128 * 320
    scored = 2 * 61 * s / 2 * 64 * 128
    assert forward_flop_per_token(sparse, s).attention == pytest.approx(picked + scored)
    assert forward_flop_per_token(dense, s).attention == pytest.approx(2 * 61 * s / 2 * 128 * 320)


def test_forward_flop_when_embeddings_are_tied_still_has_the_head():
    shape = {"layers": 2, "hidden": 64, "heads": 4, "ffn": 128, "vocab": 512}
    tied, untied = (make_model(name="x", tied_embeddings=tied, **shape) for tied in (True, False))
    assert forward_flop_per_token(tied, 16).output_head == forward_flop_per_token(untied, 16).output_head
