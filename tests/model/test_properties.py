"""Laws that hold for every model."""

import math
from dataclasses import asdict, replace

from hypothesis import given, settings
from hypothesis import strategies as st

from linkwise.model import forward_flop_per_token, make_model, model_columns, parameter_counts


@st.composite
def models(draw):
    """Return a shape drawn over dense models, mixtures, latent attention, windows and linear layers."""
    count, flag = st.integers, draw(st.booleans())
    layers, kv_heads = draw(count(2, 40)), draw(count(1, 8))
    heads = kv_heads * draw(count(1, 8))
    shape = {
        "name": "drawn",
        "layers": layers,
        "heads": heads,
        "hidden": heads * draw(count(1, 64)),
        "ffn": 96,
    }
    shape.update(vocab=draw(count(1, 10**6)), gated_mlp=flag, tied_embeddings=draw(st.booleans()))
    shape.update(mlp_bias=draw(st.booleans()), norm_bias=draw(st.booleans()))
    if draw(st.booleans()):
        experts, width = draw(count(1, 64)), draw(count(1, 512))
        shape.update(experts=experts, experts_per_token=draw(count(1, experts)), expert_ffn=width)
        shape.update(
            dense_layers=draw(count(0, layers - 1)), shared_experts=draw(count(0, 2)), shared_ffn=width
        )
    if draw(st.booleans()):
        shape.update(attention="mla", kv_lora_rank=32, q_lora_rank=draw(count(0, 64)), v_head_dim=16)
        shape.update(qk_nope_head_dim=16, qk_rope_head_dim=8)
    else:
        shape.update(kv_heads=kv_heads, linear_layers=draw(count(0, layers - 1)), linear_head_dim=16)
        shape.update(linear_key_heads=2, linear_value_heads=4, linear_conv=4)
    windowed = draw(count(0, layers - shape.get("linear_layers", 0)))
    return make_model(**shape, sliding_layers=windowed, sliding_window=64)


@given(models())
@settings(max_examples=60, deadline=None)
def test_counts_when_any_model_is_counted(model):
    counts = parameter_counts(model)
    parts = asdict(counts)
    assert sum(value for part, value in parts.items() if part != "experts_inactive") == counts.total
    assert 0 < counts.active_without_embedding <= counts.active <= counts.total
    more = parameter_counts(
        replace(model, layers=model.layers + 1, dense_layers=model.dense_layers + 1, ffn=96)
    )
    assert more.total > counts.total


@given(models(), st.integers(1, 10**6))
@settings(max_examples=60, deadline=None)
def test_flop_when_any_model_is_counted(model, sequence):
    half, whole = (forward_flop_per_token(model, sequence, causal=causal) for causal in (True, False))
    assert half.attention <= whole.attention
    assert math.isclose(sum(asdict(half).values()), half.total, rel_tol=1e-12)
    assert forward_flop_per_token(model, sequence + 1).total >= half.total


@given(models())
@settings(max_examples=60, deadline=None)
def test_columns_when_any_model_is_counted(model):
    c = {name: float(values[0]) for name, values in model_columns([model]).items()}
    counts = parameter_counts(model)
    body = model.layers * (c["layer_parameters"] + c["layer_expert_parameters"])
    assert round(body) == counts.body - round(c["outer_norm_parameters"])
    weights = round(model.layers * sum(c[f"{g}_parameters"] for g in ("dense", "shared", "router")))
    counted = counts.dense_mlp + counts.shared_experts + counts.router
    assert weights < counted if model.mlp_bias and model.dense_layers else weights <= counted
    if not (model.mlp_bias or model.router_bias):
        assert weights == counted
    assert c["max_layer_parameters"] * model.layers >= body * (1 - 1e-12)
