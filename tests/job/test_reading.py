import json
from pathlib import Path

import pytest

from linkwise.errors import DocumentError
from linkwise.job import Precision, job_from_options, read_job
from linkwise.job.reading import parse_job
from linkwise.layout import Layout, Recompute

_ROOT = Path(__file__).parents[2]
_BODY = "model: llama-3.1-70b\nsequence_length: 8192\nglobal_batch: 1024\n"


def _faults(body):
    with pytest.raises(DocumentError) as caught:
        parse_job(f"linkwise: job/1\n{body}", path="j.yaml")
    return str(caught.value).splitlines()


def test_example_is_llama_70b_at_8192_tokens():
    job = read_job(_ROOT / "examples/llama-70b.yaml")
    assert (job.model.name, job.model.layers, job.precision) == ("llama-3.1-70b", 80, Precision.BF16)
    assert (job.tokens_per_step, job.layout) == (8_388_608, None)
    assert job.steps == pytest.approx(15e12 / 8_388_608)


def test_template_is_read():
    assert read_job(_ROOT / "src/linkwise/job/template.yaml").global_batch == 1024


def test_layout_is_fixed_when_degrees_are_given():
    degrees = "{tensor: 8, pipeline: 4, data: 8, micro_batch: 1, zero_stage: 1, recompute: selective}"
    job = parse_job(f"linkwise: job/1\n{_BODY}layout: {degrees}\n")
    assert job.layout == Layout(tensor=8, pipeline=4, data=8, zero_stage=1, recompute=Recompute.SELECTIVE)


def test_options_give_the_same_job_as_the_document():
    options = {"model": "llama-3.1-70b", "sequence_length": 8192, "global_batch": 1024, "tokens": None}
    assert job_from_options(options) == parse_job(f"linkwise: job/1\n{_BODY}")


def test_faults_of_options_are_spelled_as_options():
    with pytest.raises(DocumentError) as caught:
        job_from_options({"model": "llama-3.1-7b", "sequence_length": 0})
    assert [fault.split(":")[0] for fault in str(caught.value).splitlines()] == [
        "--model",
        "--sequence-length",
        "--global-batch",
    ]


def test_model_path_is_relative_to_the_document(tmp_path):
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_attention_heads": 32,
        "num_hidden_layers": 32,
        "num_key_value_heads": 8,
        "vocab_size": 128256,
        "tie_word_embeddings": False,
    }
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/config.json").write_text(json.dumps(config))
    document = tmp_path / "job.yaml"
    document.write_text("linkwise: job/1\nmodel: mine/config.json\nsequence_length: 8192\nglobal_batch: 8\n")
    assert read_job(document).model.layers == 32


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (f"kind: serving\n{_BODY}", "j.yaml:2: kind: serving jobs are not in this release"),
        (
            _BODY.replace("70b", "70c"),
            "j.yaml:2: model: unknown model 'llama-3.1-70c'; did you mean llama-3.1-70b",
        ),
        (_BODY.replace("llama-3.1-70b", "x/config.json"), "j.yaml:2: model: "),
        (_BODY.replace("1024", "0"), "j.yaml:4: global_batch: 0"),
        (f"{_BODY}precision: bf32\n", "j.yaml:5: precision: 'bf32'"),
        (
            f"{_BODY}framework: megatronn\n",
            "j.yaml:5: framework: unknown framework 'megatronn'; did you mean megatron",
        ),
        (f"{_BODY}tokens: 15T\n", "j.yaml:5: tokens: '15T'"),
        (f"{_BODY}tokens: .inf\n", "j.yaml:5: tokens: "),
        (f"{_BODY}layout: find\n", "j.yaml:5: layout: 'find'"),
        (f"{_BODY}layout: {{tensr: 8}}\n", "layout.tensr: unknown key; did you mean 'tensor'?"),
        (f"{_BODY}layout: {{zero_stage: 4}}\n", "layout.zero_stage: 4"),
        (f"{_BODY}layout: {{recompute: some}}\n", "choose one of: none, selective, full"),
        (f"{_BODY}layout: {{virtual_pipeline: 2}}\n", "layout.virtual_pipeline: has no effect"),
        (f"{_BODY}layout: {{schedule: gpipe}}\n", "layout.schedule: has no effect"),
        (f"{_BODY}layout: {{hybrid_shard: true}}\n", "write zero_stage: 3"),
        (f"{_BODY}layout: {{sequence_parallel: true}}\n", "layout.sequence_parallel: has no effect"),
        (f"{_BODY}layout: {{data: 7}}\n", "does not divide the 1024 sequences"),
        (f"{_BODY}layout: {{expert: 2}}\n", "is a dense model"),
        (f"{_BODY}layout: {{pipeline: 83}}\n", "more chunks than llama-3.1-70b has layers (80)"),
    ],
)
def test_document_is_refused_when_a_value_cannot_be(body, says):
    assert any(says in fault for fault in _faults(body)), _faults(body)
