"""Models from the shape columns of measured runs."""

import math

import pytest

from linkwise.errors import DocumentError
from linkwise.model import load_model, model_from_columns, parameter_counts

ROW = {  # the shape columns of a measured run of Llama-3.1-8B, as a CSV gives them
    "model_name": "mine", "layers": "32", "hidden": "4096", "heads": "32", "kv_heads": "8", "ffn": "14336",
    "vocab": "128256", "gated_mlp": "1", "moe_experts": "", "moe_topk": None, "seq": "8192", "tp": "2",
}  # fmt: skip


def test_model_from_columns_when_values_are_text_numbers_or_missing():
    expected = parameter_counts(load_model("llama-3.1-8b"))
    assert parameter_counts(model_from_columns(ROW)) == expected
    numbers = {key: float(value) if (value or "").isdigit() else math.nan for key, value in ROW.items()}
    assert parameter_counts(model_from_columns({**numbers, "model_name": "mine"})) == expected


def test_model_from_columns_when_the_row_is_a_mixture():
    row = {**ROW, "vocab": "32000", "moe_experts": "8", "moe_topk": "2"}
    assert parameter_counts(model_from_columns(row)) == parameter_counts(load_model("mixtral-8x7b"))


def test_model_from_columns_when_the_mlp_has_no_gate():
    row = {**ROW, "kv_heads": "32", "gated_mlp": "0"}
    model = model_from_columns(row)
    assert (model.learned_positions, model.tied_embeddings, model.mlp_bias) == (8192, True, True)


@pytest.mark.parametrize(
    ("published_b", "tied"), [("8.03", False), ("7.5", True), ("unknown", False), ("", False)]
)
def test_model_from_columns_when_the_published_size_tells_of_tied_embeddings(published_b, tied):
    assert model_from_columns({**ROW, "params_b": published_b}).tied_embeddings is tied


@pytest.mark.parametrize(
    ("changes", "columns"),
    [
        ({"layers": "", "hidden": "0"}, {"layers", "hidden"}),
        ({"layers": "many", "vocab": "1.5"}, {"layers", "vocab"}),
        ({"moe_experts": "8", "moe_topk": "9"}, {"moe_topk"}),
        ({"heads": "31"}, {"heads"}),
        ({"gated_mlp": "perhaps"}, {"gated_mlp", "tied_embeddings"}),
        ({"ffn": ""}, {"ffn"}),
        ({"layers": "1e400", "window_pattern": "1 sliding, 1 full"}, {"layers"}),
    ],
)
def test_model_from_columns_when_columns_are_wrong(changes, columns):
    with pytest.raises(DocumentError) as caught:
        model_from_columns({**ROW, **changes})
    assert {fault.key for fault in caught.value.faults} <= columns
    assert caught.value.faults
