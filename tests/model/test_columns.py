"""Columns for the estimate, against the counts they summarise."""

import numpy as np
import pytest

from linkwise import catalog
from linkwise.errors import InputError
from linkwise.model import (
    COLUMN_MEANINGS,
    forward_flop_per_token,
    load_model,
    model_columns,
    parameter_counts,
)


def _models():
    for name in catalog.names("model"):
        try:
            yield load_model(name)
        except InputError:  # four early models whose shape was never published
            continue


MODELS = list(_models())
COLUMNS = model_columns(MODELS)


def test_model_columns_when_built_for_the_whole_catalogue():
    assert len(MODELS) >= 135
    assert set(COLUMNS) == set(COLUMN_MEANINGS)
    assert all(values.shape == (len(MODELS),) and values.dtype == np.float64 for values in COLUMNS.values())
    assert all(np.isfinite(values).all() and (values >= 0).all() for values in COLUMNS.values())


def test_columns_times_layers_reproduce_the_counts():
    c = COLUMNS
    body = c["layers"] * (c["layer_parameters"] + c["layer_expert_parameters"])
    total = body + c["embedding_parameters"] + c["head_parameters"] + c["outer_norm_parameters"]
    np.testing.assert_allclose(total, c["total_parameters"], rtol=1e-13)
    np.testing.assert_array_equal(c["total_parameters"], [parameter_counts(m).total for m in MODELS])
    np.testing.assert_array_equal(c["active_parameters"], [parameter_counts(m).active for m in MODELS])


def test_product_groups_reproduce_the_linear_flop():
    c = COLUMNS
    weights = sum(c[f"{group}_parameters"] for group in ("projection", "dense", "shared", "router"))
    weights = weights + c["moe_fraction"] * c["experts_per_token"] * c["expert_parameters"]
    flop = 6 * (c["layers"] * weights + c["hidden"] * c["vocab"])
    np.testing.assert_allclose(flop, c["model_flop_per_token_linear"], rtol=1e-13)


def test_attention_widths_reproduce_the_attention_flop():
    s = 8192.0
    window = np.where(COLUMNS["sliding_window"] > 0, COLUMNS["sliding_window"], s)
    window = np.minimum(window, s)
    picked = np.where(COLUMNS["index_topk"] > 0, np.minimum(COLUMNS["index_topk"], s), s)
    per_layer = COLUMNS["full_attention_width"] * (picked - picked**2 / (2 * s))
    per_layer += COLUMNS["sliding_attention_width"] * (window - window**2 / (2 * s))
    per_layer += COLUMNS["index_width"] * s / 2
    expected = [forward_flop_per_token(model, 8192).attention for model in MODELS]
    np.testing.assert_allclose(2 * per_layer * COLUMNS["layers"], expected, rtol=1e-12)
    both = COLUMNS["full_attention_width"] + COLUMNS["sliding_attention_width"]
    np.testing.assert_allclose(both, COLUMNS["attention_heads_width"], rtol=1e-13)


def test_product_columns_when_llama_3_1_70b_is_worked_by_hand():
    c = {name: float(values[0]) for name, values in model_columns([load_model("llama-3.1-70b")]).items()}
    assert (c["projection_in_whole"], c["projection_out_cut"]) == (8192, 8192 + 2 * 1024)
    assert (c["projection_in_cut"], c["projection_out_whole"]) == (8192, 8192)
    assert (c["dense_in_whole"], c["dense_out_cut"], c["dense_in_cut"]) == (8192, 2 * 28672, 28672)
    assert c["max_layer_parameters"] == c["layer_parameters"] == 855_654_400


@pytest.mark.parametrize("name", ["deepseek-v3", "kimi-k2"])
def test_max_layer_is_a_mixture_when_there_are_dense_layers(name):
    c = {key: float(values[0]) for key, values in model_columns([load_model(name)]).items()}
    assert c["max_layer_parameters"] > c["experts"] * c["expert_parameters"]
    assert c["dense_parameters"] < 0.06 * 3 * 7168 * 18432
    assert c["projection_replicated_parameters"] == 7168 * (1536 + 576)
