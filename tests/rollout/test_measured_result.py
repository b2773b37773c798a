import contextlib
import json
import math
from pathlib import Path

import pytest

from linkwise.errors import DocumentError
from linkwise.rollout.measuring.measured_result import read_result

# What `linkwise bench` and `linkwise launch` printed on one machine of two cores, with gloo.
RESULTS = Path(__file__).parents[1] / "data" / "rollout" / "results"


def _told(name: str) -> dict:
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def test_bus_bandwidth_is_size_times_factor_over_each_time():
    told = _told("bench_collectives")
    found = read_result(json.dumps(told))
    assert (found.is_done, found.is_as_planned, found.ranks) == (True, None, 2)
    row = told["rows"][0]  # all-reduce of two ranks: bus factor 2 (n - 1) / n = 1
    assert found.samples["collective.busbw"][0] == pytest.approx(
        row["size_bytes"] / row["time"]["samples_s"][0]
    )
    assert len(found.samples["collective.time"]) == sum(
        len(each["time"]["samples_s"]) for each in told["rows"]
    )


def test_cpus_have_no_prediction_and_gpus_have():
    told = _told("bench_collectives")
    told["rows"] = [{**row, "predicted": {**_PREDICTED, "time_s": 1e-3}} for row in told["rows"]]
    assert not read_result(json.dumps(told)).predictions
    told["device"] = "cuda"
    sizes = [row["size_bytes"] for row in told["rows"]]
    assert read_result(json.dumps(told)).predictions["collective.busbw"] == pytest.approx(
        1e3 * sum(sizes) / len(sizes)
    )


_PREDICTED = {"algorithm": "RING", "protocol": "SIMPLE", "time_low_s": 1, "time_high_s": 1, "ratio": None}


def test_noise_is_that_of_one_size_not_of_all_sizes_together():
    told = _told("bench_collectives")
    for row in told["rows"]:
        row["time"]["samples_s"] = [row["size_bytes"] / 1e9 * each for each in (1.0, 1.01, 0.99, 1.0, 1.02)]
    found = read_result(json.dumps(told))
    assert found.noise_fractions["collective.busbw"] == pytest.approx(1.4826 * 0.01)


def test_wrong_elements_make_a_run_that_failed():
    told = _told("bench_collectives")
    told["rows"][1]["wrong"] = 3
    found = read_result(json.dumps(told))
    assert not found.is_done
    assert "3 wrong elements" in found.reason


def test_training_has_steps_and_losses():
    told = _told("bench_training")
    found = read_result(json.dumps(told))
    times = told["cuts"][0]["step_time"]["samples_s"]
    assert found.samples["train.step_time"] == tuple(times)
    assert found.samples["train.tokens_per_s"][0] == pytest.approx(told["tokens_per_step"] / times[0])
    assert found.samples["train.loss"] == tuple(told["cuts"][0]["losses"])


def test_a_loss_that_is_not_a_number_is_seen():
    told = _told("bench_training")
    told["cuts"][0]["losses"][-1] = None
    assert math.isnan(read_result(json.dumps(told)).samples["train.loss"][-1])


def test_a_launch_leaves_out_its_warm_up():
    told = _told("launch")
    found = read_result(json.dumps(told))
    assert (found.is_done, found.is_as_planned) == (True, True)
    assert found.samples["train.step_time"] == tuple(step["time_s"] for step in told["samples"][2:])


def test_a_launch_tells_the_nccl_that_its_ranks_loaded():
    told = _told("launch")
    assert "nccl" not in read_result(json.dumps(told)).seen
    told["versions"] |= {"nvidia-nccl-cu12": "2.27.5", "driver": "580.65.06"}
    told["transports"] = {"nccl_version": "2.28.3"}  # as LD_LIBRARY_PATH may have it
    assert read_result(json.dumps(told)).seen == {
        "nccl": "2.28.3", "driver": "580.65.06", "torch": told["versions"]["torch"]
    }  # fmt: skip


def test_a_launch_keeps_losses_that_are_no_number():
    told = _told("launch")
    told["samples"] = [{**step, "loss": "NaN"} for step in told["samples"]]
    assert all(map(math.isnan, read_result(json.dumps(told)).samples["train.loss"]))


def test_a_launch_that_was_not_as_planned_says_what():
    told = _told("launch")
    told["valid"] = False
    told["checks"][0] |= {"what": "world size", "planned": "4", "seen": "2", "is_as_planned": False}
    found = read_result(json.dumps(told))
    assert found.is_as_planned is False
    assert "world size: planned 4, seen 2" in found.reason


def test_a_run_that_ended_badly_says_how():
    told = _told("bench_training")
    told["runs"][0] |= {"outcome": "silent", "reason": "rank 1 said nothing for 120 s"}
    found = read_result(json.dumps(told))
    assert not found.is_done
    assert found.reason == "silent: rank 1 said nothing for 120 s"


@pytest.mark.parametrize("name", ["bench_collectives", "bench_training", "launch"])
def test_a_damaged_result_is_refused_by_name(name):
    text = (RESULTS / f"{name}.json").read_text(encoding="utf-8")
    for cut in range(0, len(text) - 2, max(1, len(text) // 40)):
        with pytest.raises(DocumentError):
            read_result(text[:cut], path="result.json")
    told = _told(name)
    for key in told:
        damaged = {each: value for each, value in told.items() if each != key}
        with contextlib.suppress(DocumentError):  # no other error comes of it
            read_result(json.dumps(damaged), path="result.json")


def test_another_document_is_refused():
    with pytest.raises(DocumentError, match="a bench or a launch was expected"):
        read_result('{"schema": "linkwise.plan/1"}')
