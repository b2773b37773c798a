import inspect
import re

from ruamel.yaml import YAML

from linkwise.monitor import endpoints, metrics
from linkwise.rollout.exports import openslo as openslo_export
from linkwise.rollout.exports.openslo import openslo
from linkwise.rollout.plan import Against, Aggregate, Workload, WorkloadKind
from tests.rollout.making import JOB, at_least, at_most, objective, rollout

SERVER = Workload(kind=WorkloadKind.ENDPOINT, endpoint="http://s/metrics")


def documents(*objectives):
    found = openslo(rollout(*objectives), target_fraction=0.99, window="28d")
    return list(YAML(typ="safe").load_all(found.text)), found.left_out


def test_floor_that_watch_shows_is_a_threshold():
    ttft = objective(
        at_most(0.5, Against.FLOOR),
        name="First_Token",
        metric="serve.ttft",
        workload=SERVER,
        aggregate=Aggregate.P99,
    )
    (told,), left_out = documents(ttft)
    assert (told["apiVersion"], told["kind"], left_out) == ("openslo/v1", "SLO", ())
    assert told["metadata"]["name"] == "change-first-token"
    spec = told["spec"]
    assert spec["budgetingMethod"] == "Occurrences"
    assert spec["timeWindow"] == [{"duration": "28d", "isRolling": True}]
    source = spec["indicator"]["spec"]["thresholdMetric"]["metricSource"]
    assert source == {"type": "Prometheus", "spec": {"query": 'linkwise_watch_ttft_seconds{quantile="0.99"}'}}
    assert spec["objectives"] == [{"displayName": "First_Token", "op": "lte", "value": 0.5, "target": 0.99}]


def test_two_floors_are_two_documents_of_different_names():
    both = objective(
        at_least(9.0, Against.FLOOR), at_most(12.0, Against.FLOOR), metric="train.step_time", workload=JOB
    )
    told, _ = documents(both)
    assert [each["metadata"]["name"] for each in told] == ["change-bandwidth-least", "change-bandwidth-most"]
    assert [each["spec"]["objectives"][0]["op"] for each in told] == ["gte", "lte"]


def test_what_openslo_cannot_say_is_left_out_with_its_reason():
    told, left_out = documents(
        objective(name="ratio"), objective(at_least(3e11, Against.FLOOR), name="busbw")
    )
    assert told == []
    assert left_out == (
        "ratio: is a comparison with other runs, and after the rollout there are none to compare with",
        "busbw: linkwise watch shows no median of collective.busbw",
    )


def test_queries_are_of_what_watch_shows():
    """Names and quantiles stand in the source of the watch; a name that is changed there is changed here."""
    source = inspect.getsource(metrics)
    shown = {f"{metrics.PREFIX}_{name}" for name in re.findall(r'"([a-z_]+)"', source)}
    for query in set(openslo_export._WATCHED.values()):
        name, _, quantile = query.partition("{quantile=")
        assert name in shown, name
        quantiles = metrics._QUANTILES if "step_time" in name else endpoints._QUANTILES
        assert not quantile or float(quantile.strip('"}')) in quantiles, query
