"""Records of a bench beside the model: what is off, and what is not compared."""

import json

import pytest

from linkwise.bench.against import collectives_against, hindrance, training_against
from linkwise.bench.collectives import MeasuredSize
from linkwise.bench.prediction import predict_sizes
from linkwise.cli.main import run
from linkwise.cluster import load_cluster
from linkwise.errors import InputError
from linkwise.network.setting import Launch
from linkwise.readers.bench_record import parse_bench_record, parse_bench_training

CLUSTER = load_cluster("dgx-h100:1")
SIZES = [1 << power for power in range(10, 31, 2)]
SHAPE = {"layers": 8, "hidden": 256, "heads": 8, "sequence_length": 128, "vocabulary": 1024}
INVALID = {"outcome": "done", "valid": False, "checks": [
    {"what": "interface", "planned": "eth0", "seen": "eth1", "is_as_planned": False}]}  # fmt: skip


def predicted_s():
    sizes = [
        MeasuredSize(
            operation="all_reduce", size_bytes=size, calls=1, samples_s=(1.0,) * 5, first_s=(), wrong=0
        )
        for size in SIZES
    ]
    found, _ = predict_sizes(CLUSTER, sizes, ranks=8, launch=Launch.FRAMEWORK)
    return [each.time_s for each in found]


def collectives(slower=lambda time_s: time_s, **changes):
    rows = [
        {
            "collective": "all_reduce",
            "size_bytes": size,
            "time": {"samples_s": [slower(time_s) * (1 + n / 1000) for n in range(9)]},
            "wrong": 0,
        }
        for size, time_s in zip(SIZES, predicted_s(), strict=True)
    ]
    whole = {"schema": "linkwise.bench/1", "kind": "collectives", "backend": "nccl", "ranks": 8}
    return {**whole, "runs": [{"outcome": "done"}], "rows": rows, **changes}


def training(**changes):
    def sampled(time_s):
        return {"samples_s": [time_s] * 9}

    phases = {"forward": sampled(0.002), "backward": sampled(0.004), "optimizer": sampled(0.05)}
    cut = {"cut": "ddp", "step_time": sampled(0.056), "phases": phases}
    whole = {"schema": "linkwise.bench/1", "kind": "training", "backend": "nccl", "ranks": 8}
    return {
        **whole, "runs": [{"outcome": "done"}], "model": SHAPE, "tokens_per_step": 8 * 4 * 128, "cuts": [cut], **changes
    }  # fmt: skip


def against(record):
    return collectives_against(parse_bench_record(json.dumps(record)), CLUSTER)


def test_collectives_as_predicted_have_nothing_off():
    found = against(collectives())
    assert (found.off, found.reason, found.is_slower) == (None, "", False)
    assert len(found.rows) == len(SIZES)


@pytest.mark.parametrize(
    ("slower", "off", "words"),
    [
        (lambda time_s: time_s + 2e-4, "small sizes of all_reduce", "what every call costs"),
        (
            lambda time_s: 3 * time_s if time_s > 1e-3 else time_s,
            "large sizes of all_reduce",
            "sockets instead",
        ),
    ],
)
def test_part_of_the_sizes_that_is_slower_is_named_with_what_would_explain_it(slower, off, words):
    found = against(collectives(slower))
    assert found.off == off
    assert words in found.reason


def test_one_size_of_many_is_no_verdict():
    assert against(collectives(lambda time_s: 2 * time_s if time_s > 3e-3 else time_s)).off is None


@pytest.mark.parametrize(
    ("changes", "verdict", "words"),
    [
        ({"runs": [{"outcome": "failed"}]}, "invalid", "its run ended as failed"),
        ({"runs": []}, "invalid", "names no run"),
        ({"runs": [INVALID]}, "invalid", "interface: eth1, planned: eth0"),
        ({"backend": "gloo"}, "cannot tell", "on CPUs"),
    ],
)
def test_record_that_is_not_compared_says_why(tmp_path, capsys, changes, verdict, words):
    record = collectives(**changes)
    assert hindrance(parse_bench_record(json.dumps(record)))[0] == verdict
    for number, each in enumerate((record, training(**changes))):
        (tmp_path / f"{number}.json").write_text(json.dumps(each))
        code = run(
            ["explain", "dgx-h100:1", "--against", str(tmp_path / f"{number}.json"), "--format", "json"]
        )
        result = json.loads(capsys.readouterr().out)
        assert (result["verdict"], code) == (verdict, 1 if verdict == "invalid" else 3)
        assert words in result["reason"]
        assert result["sizes"] == result["cuts"] == []


def test_phase_of_training_that_is_off_is_named():
    (cut,) = training_against(parse_bench_training(json.dumps(training())), CLUSTER)
    assert [each.name for each in cut.found.phases] == ["forward and backward", "optimizer"]
    assert (cut.cut, cut.found.off, cut.found.is_slower) == ("ddp", "optimizer", True)


def test_every_cut_of_the_bench_has_an_estimate():
    cuts = [{**training()["cuts"][0], "cut": name} for name in ("ddp", "fsdp", "tensor", "pipeline")]
    found = training_against(parse_bench_training(json.dumps(training(cuts=cuts))), CLUSTER)
    assert [each.cut for each in found] == ["ddp", "fsdp", "tensor", "pipeline"]
    assert all(each.found.predicted_s > 0 for each in found)
    with pytest.raises(InputError, match="cut"):
        training_against(parse_bench_training(json.dumps(training(cuts=[{**cuts[0], "cut": "x"}]))), CLUSTER)


def test_wrong_results_are_not_compared():
    record = collectives()
    record["rows"][0]["wrong"] = 3
    with pytest.raises(InputError, match="computed wrongly"):
        against(record)


def test_command_says_what_is_off(tmp_path, capsys):
    (tmp_path / "bench.json").write_text(
        json.dumps(collectives(lambda time_s: 3 * time_s if time_s > 1e-3 else time_s))
    )
    assert run(["explain", "dgx-h100:1", "--against", str(tmp_path / "bench.json")]) == 1
    assert "off most: large sizes of all_reduce" in " ".join(capsys.readouterr().out.split())
    (tmp_path / "training.json").write_text(json.dumps(training()))
    assert run(["explain", "--cluster", "dgx-h100:1", "--against", str(tmp_path / "training.json")]) == 1
    assert "off most: ddp, optimizer" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["examples/llama-8b-run.yaml", "dgx-h100:1"],
        ["dgx-h100:1", "--model", "gpt-2-124m"],
        ["dgx-h100:1", "--layout", "tensor=2"],
    ],
)
def test_record_of_a_bench_is_of_no_job(tmp_path, capsys, words):
    (tmp_path / "bench.json").write_text(json.dumps(collectives()))
    assert run(["explain", *words, "--against", str(tmp_path / "bench.json")]) == 2
    assert "name the CLUSTER alone" in capsys.readouterr().err.replace("\n", " ")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"cuts": []}, "has no cuts"),
        ({"kind": "pairs"}, "is no record of linkwise bench training"),
        ({"model": {}}, "is no count above zero"),
        ({"cuts": [{"cut": "ddp", "step_time": {"samples_s": [-1]}}]}, "no times above zero"),
    ],
)
def test_damaged_record_of_training_is_refused(changes, words):
    with pytest.raises(InputError, match=words):
        parse_bench_training(json.dumps(training(**changes)))
