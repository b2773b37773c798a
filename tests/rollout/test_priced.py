"""Which metrics runs give, and what tokens cost in them."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from linkwise.rollout.gates.priced import asked_samples, gpu_usd_per_s
from linkwise.rollout.measuring.measure import RunRequest
from linkwise.rollout.measuring.measured_result import read_result
from linkwise.rollout.metrics import METRICS, PLACES
from linkwise.rollout.plan import Scope, ValidRun, Workload, WorkloadKind
from linkwise.rollout.runs import Side
from tests.rollout.making import rollout

_ROOT = Path(__file__).parents[2]
_RESULTS = _ROOT / "tests/data/rollout/results"
_SCOPE = Scope(
    cluster=str(_ROOT / "examples/h100-256.yaml"), place="slurm", prices=str(_ROOT / "examples/prices.yaml")
)


def request(kind, *metrics, scope=_SCOPE):
    return RunRequest(
        run_id="r", step=rollout().steps[0], workload=Workload(kind=kind), workload_digest="w", metrics=metrics,
        side=Side.CANDIDATE, configuration=rollout().candidate, scope=scope, valid_run=ValidRun(), turn=0,
        is_warmup=False, folder=Path(),
    )  # fmt: skip


def told(name):
    return json.loads((_RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def with_predictions(result):
    rows = [{**row, "predicted": {"time_s": 1e-3}} for row in result["rows"]]
    return {**result, "device": "cuda", "rows": rows}


def as_of_gpus(result):
    steps = [{**step, "loss": 2.0} for step in result["samples"]]
    return {**result, "expected": {**result["expected"], "device": "cuda"}, "samples": steps}


def pairs():
    nodes = [
        {"node": node, "score_bytes_per_s": 4e10, "is_low": False, "confirmed": None} for node in range(8)
    ]
    return {**told("bench_training"), "kind": "pairs", "verdict": "alike", "nodes": nodes}


RESULTS = {
    WorkloadKind.COLLECTIVES: lambda: with_predictions(told("bench_collectives")),
    WorkloadKind.PAIRS: pairs,
    WorkloadKind.TRAINING: lambda: told("bench_training"),
    WorkloadKind.JOB: lambda: as_of_gpus(told("launch")),
}


@pytest.mark.parametrize("kind", sorted(PLACES["slurm"]))
def test_every_metric_is_given_by_the_work_that_is_said_to_give_it(kind):
    wanted = [each.name for each in METRICS.values() if kind in each.measured_by]
    predicted = {each.name for each in METRICS.values() if kind in each.predicted_for}
    found = read_result(json.dumps(RESULTS[kind]()))
    samples, predictions = asked_samples(request(kind, *wanted), found)
    assert set(samples) == set(wanted)
    assert set(predictions) == predicted


def test_price_of_a_token_is_gpu_seconds_over_tokens():
    found = replace(
        read_result(json.dumps(told("bench_training"))),
        ranks=4,
        samples={"train.tokens_per_s": (1000.0, 2000.0)},
    )
    per_gpu = gpu_usd_per_s(_SCOPE)
    assert 1 < 3600 * per_gpu < 10  # an hour of an H100 with its share of fabric and power [USD]
    samples, _ = asked_samples(request(WorkloadKind.TRAINING, "train.cost"), found)
    assert samples == {"train.cost": pytest.approx((4 * per_gpu / 1000, 4 * per_gpu / 2000))}


def test_no_prices_are_no_samples():
    scope = Scope(cluster="dgx-h100:4", place="slurm")
    samples, _ = asked_samples(
        request(WorkloadKind.TRAINING, "train.cost", scope=scope),
        read_result(json.dumps(told("bench_training"))),
    )
    assert (samples, gpu_usd_per_s(scope)) == ({}, None)
