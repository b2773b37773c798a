"""Names of the catalogue and paths."""

import shutil
from pathlib import Path

import pytest

from linkwise.errors import InputError, UnknownName
from linkwise.model import load_model, parameter_counts

CONFIGS = Path(__file__).parents[1] / "data" / "hf_configs"


@pytest.mark.parametrize("alias", ["llama-3.1-70b", "Llama-3.1-70B", "meta-llama/Llama-3.1-70B"])
def test_load_model_when_a_catalogue_name_is_given(alias):
    model = load_model(alias)
    assert (model.name, parameter_counts(model).total) == ("llama-3.1-70b", 70_553_706_496)


def test_load_model_when_a_path_is_relative_to_a_folder(tmp_path):
    shutil.copytree(CONFIGS / "gpt2", tmp_path / "gpt2")
    for text in ("gpt2/config.json", "./gpt2", "gpt2"):
        assert load_model(text, folder=tmp_path).source.endswith("config.json")


def test_load_model_when_the_name_is_misspelt():
    with pytest.raises(UnknownName) as caught:
        load_model("lama-3.1-70b")
    assert "llama-3.1-70b" in caught.value.nearest


@pytest.mark.parametrize(
    "text", ["", " ", "a\0b", "x" * 10_000, "none/such", "none.json", "../none/config.json"]
)
def test_load_model_when_nothing_is_there(text):
    with pytest.raises(InputError):
        load_model(text)


def test_load_model_when_the_shape_was_never_published():
    with pytest.raises(InputError, match="not known"):
        load_model("megatron-gpt-8b-2020")
