"""The shape of a model and its checks."""

import pytest

from linkwise.errors import DocumentError
from linkwise.model import AttentionKind, make_model, with_positions

SMALL = {"name": "small", "layers": 4, "hidden": 64, "heads": 8, "ffn": 256, "vocab": 1000}


def test_make_model_when_defaults_are_left_out():
    model = make_model(**SMALL)
    assert (model.kv_heads, model.head_dim, model.v_head_dim, model.dense_layers) == (8, 8, 8, 4)
    assert model.attention is AttentionKind.MHA
    assert (model.moe_layers, model.softmax_layers, model.full_layers) == (0, 4, 4)


def test_make_model_when_several_fields_are_wrong():
    given = {**SMALL, "layers": -1, "hidden": "64", "heads": True, "vocabulary": 3, "tied_embeddings": 1}
    with pytest.raises(DocumentError) as caught:
        make_model(**given)
    keys = [fault.key for fault in caught.value.faults]
    assert keys == ["vocabulary", "layers", "hidden", "heads", "tied_embeddings"]
    assert "did you mean vocab?" in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"kv_heads": 3}, "kv_heads"),
        ({"heads": 7}, "heads"),
        ({"ffn": 0}, "ffn"),
        ({"dense_layers": 2}, "dense_layers"),
        ({"experts": 8, "experts_per_token": 9, "expert_ffn": 64}, "experts_per_token"),
        ({"experts": 8, "experts_per_token": 2}, "expert_ffn"),
        ({"experts": 8, "experts_per_token": 2, "expert_ffn": 64, "dense_layers": 4}, "dense_layers"),
        ({"sliding_layers": 2}, "sliding_window"),
        ({"sliding_layers": 3, "linear_layers": 2, "sliding_window": 8}, "sliding_layers"),
        ({"linear_layers": 2}, "linear_head_dim"),
        ({"attention": "mla", "qk_nope_head_dim": 6, "qk_rope_head_dim": 2}, "kv_lora_rank"),
        ({"kv_lora_rank": 6, "qk_nope_head_dim": 6, "head_dim": 8}, "head_dim"),
        ({"attention": "sparse"}, "attention"),
        ({"vocab": 10**30}, "vocab"),
        ({"hidden": 10**9}, "hidden"),
        ({"index_heads": 2}, "index_heads"),
    ],
)
def test_make_model_when_fields_contradict(changes, key):
    with pytest.raises(DocumentError) as caught:
        make_model(**{**SMALL, **changes})
    assert key in {fault.key for fault in caught.value.faults}


def test_with_positions_when_model_is_rotary_or_learned():
    rotary, learned = make_model(**SMALL), make_model(**SMALL, learned_positions=1024)
    assert with_positions(rotary, 4096) is rotary
    assert with_positions(learned, 4096).learned_positions == 4096
