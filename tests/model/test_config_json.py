"""Hugging Face configurations: counts of published checkpoints, and refusals."""

import json
from pathlib import Path

import pytest

from linkwise.errors import DocumentError, InputError
from linkwise.model import (
    AttentionKind,
    load_model,
    model_from_config_json,
    parameter_counts,
    read_config_json,
)
from linkwise.model.config_json import FAMILIES
from linkwise.model.published import published_tolerance

CONFIGS = Path(__file__).parents[1] / "data" / "hf_configs"

EXACT = {  # elements in the safetensors or PyTorch files of the checkpoint
    "bloom-7b1": 7_069_016_064,
    "falcon-7b": 6_921_720_704,
    "gemma-2-9b": 9_241_705_984,
    "gemma-2b": 2_506_172_416,
    "gemma-3-1b": 999_885_952,
    "gpt2": 124_439_808,
    "llama-3.1-8b": 8_030_261_248,
    "llama-3.2-1b": 1_235_814_400,
    "llama-4-scout": 107_769_861_120,  # the language model alone
    "mistral-7b-v0.1": 7_241_732_096,
    "mixtral-8x7b-v0.1": 46_702_792_704,
    "mpt-7b": 6_649_286_656,
    "olmo-2-7b": 7_298_617_344,
    "opt-1.3b": 1_315_758_080,
    "phi-2": 2_779_683_840,
    "phi-3-mini": 3_821_079_552,
    "qwen1.5-moe-a2.7b": 14_315_784_192,
    "qwen2.5-0.5b": 494_032_768,
    "qwen2.5-7b": 7_615_616_512,
    "qwen3-30b-a3b": 30_532_122_624,
    "qwen3-8b": 8_190_735_360,
    "starcoder2-3b": 3_030_371_328,
}
ANNOUNCED = {  # billions, model card or report: total, active
    "deepseek-v2-lite": ("15.7", ""),
    "deepseek-v3": ("671", "37"),
    "deepseek-v3.2": ("671", "37"),
    "glm-4.5-air": ("106", "12"),
    "gpt-neox-20b": ("20.6", ""),
    "gpt-oss-20b": ("20.9", "3.6"),
    "kimi-k2.5": ("1026", "32"),  # the checkpoint; 1.04 T is announced
    "llama-4-maverick": ("400", "17"),
    "llama-4-scout": ("108", "17"),
    "minimax-m2": ("229", "10"),  # the checkpoint; 230 B is announced
    "minitron-4b": ("4.19", ""),
    "qwen1.5-moe-a2.7b": ("14.3", "2.7"),
    "qwen3-next-80b-a3b": ("80", "3"),
}
WITHOUT_EMBEDDING = {
    "deepseek-v2-lite",
    "deepseek-v3",
    "deepseek-v3.2",
    "gpt-oss-20b",
    "kimi-k2.5",
    "minimax-m2",
}
LAYERS_ONLY = {"glm-4.5-air", "qwen3-next-80b-a3b"}  # the A3B of Qwen3-Next: 3.25 B without table and head


@pytest.mark.parametrize("name", sorted(EXACT))
def test_config_json_when_the_checkpoint_size_is_known(name):
    assert parameter_counts(load_model(str(CONFIGS / name))).total == EXACT[name]


@pytest.mark.parametrize("name", sorted(ANNOUNCED))
def test_config_json_when_a_count_is_announced(name):
    total, active = ANNOUNCED[name]
    counts = parameter_counts(read_config_json(CONFIGS / name / "config.json"))
    ours = (counts.total, counts.active)
    if name in WITHOUT_EMBEDDING:
        ours = (counts.total, counts.active_without_embedding)
    if name in LAYERS_ONLY:
        ours = (counts.body, counts.body - counts.experts_inactive)
        total = "79" if name.startswith("qwen") else total
    for text, count in zip((total, active), ours, strict=True):
        assert not text or abs(count / 1e9 - float(text)) <= published_tolerance(text)


def test_every_stored_configuration_is_checked():
    assert {path.name for path in CONFIGS.iterdir() if path.is_dir()} == set(EXACT) | set(ANNOUNCED)


@pytest.mark.parametrize("name", ["deepseek-v3", "gpt-oss-20b", "llama-3.1-8b", "qwen3-30b-a3b", "kimi-k2.5"])
def test_config_json_agrees_with_the_catalogue(name):
    ours = parameter_counts(load_model(str(CONFIGS / name)))
    assert ours == parameter_counts(load_model(name))


def test_config_json_when_parts_are_special():
    scout, maverick = (load_model(str(CONFIGS / f"llama-4-{name}")) for name in ("scout", "maverick"))
    assert (scout.moe_layers, scout.shared_experts, scout.sliding_layers, scout.sliding_window) == (
        48,
        1,
        36,
        8192,
    )
    assert (maverick.moe_layers, maverick.dense_layers, maverick.ffn, maverick.expert_ffn) == (
        24,
        24,
        16384,
        8192,
    )
    lite = load_model(str(CONFIGS / "deepseek-v2-lite"))
    assert (lite.attention, lite.q_lora_rank, lite.head_dim) == (AttentionKind.MLA, 0, 192)
    following = load_model(str(CONFIGS / "qwen3-next-80b-a3b"))
    assert (following.linear_layers, following.full_layers, following.output_gate) == (36, 12, True)
    assert load_model(str(CONFIGS / "mpt-7b")).learned_positions == 0


def _llama(**changes: object):
    config = json.loads((CONFIGS / "llama-3.1-8b" / "config.json").read_text())
    return {key: value for key, value in {**config, **changes}.items() if value != "absent"}


def _qwen(**changes: object):
    return {**json.loads((CONFIGS / "qwen2.5-7b" / "config.json").read_text()), **changes}


@pytest.mark.parametrize(
    ("changes", "windowed"),
    [
        ({}, 0),
        ({"use_sliding_window": True, "max_window_layers": 8, "sliding_window": 4096}, 20),
        ({"use_sliding_window": True, "layer_types": ["sliding_attention", "full_attention"] * 14}, 14),
        ({"use_sliding_window": True, "sliding_window": None, "max_window_layers": 0}, 0),
    ],
)
def test_config_json_when_windows_are_set_in_several_ways(changes, windowed):
    assert model_from_config_json(json.dumps(_qwen(**changes))).sliding_layers == windowed


def test_config_json_when_model_type_is_missing_but_the_class_is_known():
    model = model_from_config_json(json.dumps(_llama(model_type="absent")))
    assert parameter_counts(model).total == EXACT["llama-3.1-8b"]


@pytest.mark.parametrize(
    ("changes", "count"),
    [
        ({"num_hidden_layers": -3, "hidden_size": "4096", "vocab_size": 0}, 3),
        ({"num_attention_heads": 0, "intermediate_size": 10**30}, 2),
        ({"num_attention_heads": 33}, 1),
        ({"num_key_value_heads": 5, "tie_word_embeddings": "yes"}, 2),
        ({"num_key_value_heads": 5.5, "num_hidden_layers": True}, 2),
        ({"hidden_size": "absent", "vocab_size": None}, 2),
        ({"num_hidden_layers": 10**9, "head_dim": [1]}, 2),
        ({"hidden_size": 10**30, "num_attention_heads": 10**25}, 2),
    ],
)
def test_config_json_when_values_are_absurd(tmp_path, changes, count):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(_llama(**changes), indent=1))
    with pytest.raises(DocumentError) as caught:
        read_config_json(path)
    assert len(caught.value.faults) == count
    for fault in caught.value.faults:
        assert fault.path == str(path)
        assert fault.key in changes or fault.key in str(caught.value)
        if changes.get(fault.key, "absent") != "absent":
            assert json.dumps(fault.key) in path.read_text().splitlines()[fault.line - 1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"model_type": "llama", "hidden_size": 40', "cut off"),
        ("", "cut off"),
        ("[1, 2]", "not a list"),
        ('"llama"', "not a text"),
        ("null", "not null"),
        ("linkwise: cluster/1", "not JSON"),
        ("{}", "model_type, num_hidden_layers"),
        ('{"tokenizer_class": "X", "bos_token": "<s>"}', "tokenizer"),
        ("[" * 200_000, "nested too deeply"),
        ('{"a":' * 200_000, "nested too deeply"),
        ('{"hidden_size": ' + "9" * 6000 + "}", "number too long"),
        ('{"hidden_size": 1, "hidden_size": 2}', "twice"),
        ('{"model_type": "mamba2", "hidden_size": 2}', "num_hidden_layers, num_attention_heads"),
        ('{"model_type": ["llama"]}', "model_type"),
        ('{"model_type": "qwen4_moe"}', "qwen3_moe"),
        ('{"model_type": "mpt", "attn_config": [1]}', "must be an object"),
        ('{"model_type": "llama", "text_config": {"hidden_size": -1}}', "text_config.hidden_size"),
    ],
)
def test_config_json_when_the_text_is_foreign(text, expected):
    with pytest.raises(InputError, match=expected):
        model_from_config_json(text, path="some/config.json")


@pytest.mark.parametrize("model_type", sorted(FAMILIES))
@pytest.mark.parametrize("value", [-1, 0, None, "x", 10**30, [], {}, True, 1.5])
def test_config_json_when_every_key_is_absurd(model_type, value):
    keys = {key for path in CONFIGS.glob("*/config.json") for key in _keys(json.loads(path.read_text()))}
    config = {**dict.fromkeys(keys, value), "model_type": model_type}
    with pytest.raises(DocumentError) as caught:
        model_from_config_json(json.dumps(config))
    assert len(caught.value.faults) >= 3


def _keys(config):
    part = config.get("text_config", config)
    return set(part) - {"architectures", "model_type"}


def test_config_json_when_the_file_is_unreadable(tmp_path):
    huge, binary = tmp_path / "huge.json", tmp_path / "binary.json"
    huge.write_bytes(b" " * (5 * 1024**2))
    binary.write_bytes(b"\xff\xfe\x00")
    for path, expected in (
        (huge, "MiB"),
        (binary, "UTF-8"),
        (tmp_path, "folder"),
        (tmp_path / "no", "no such"),
    ):
        with pytest.raises(InputError, match=expected) as caught:
            read_config_json(path)
        assert str(path) in str(caught.value)
