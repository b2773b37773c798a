import json

from linkwise.report.results import PlanResult, published_json


def test_published_json_reads_back_to_the_same_result(make_layout, make_plan):
    result = make_plan([make_layout()])
    text = published_json(result)
    assert PlanResult.model_validate_json(text) == result


def test_published_json_names_its_schema_and_says_null_where_nothing_is_stated(make_layout, make_plan):
    published = json.loads(published_json(make_plan([make_layout(training_time_s=None)])))
    assert published["schema"] == "linkwise.plan/1"
    assert published["closest"] is None
    assert published["layouts"][0]["training_time_s"] is None


def test_plan_result_has_a_json_schema_with_the_contract():
    properties = PlanResult.model_json_schema(by_alias=True)["properties"]
    assert {"schema", "layouts", "evaluated", "infeasible", "closest", "assumptions"} <= set(properties)
