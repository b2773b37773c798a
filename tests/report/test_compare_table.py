import csv
import io
import re
from dataclasses import replace

import pytest

from linkwise.cluster import load_cluster
from linkwise.job import Job
from linkwise.model import load_model
from linkwise.report.compare_csv import write_comparison
from linkwise.report.compare_table import print_comparison
from linkwise.report.comparison import compare_result
from linkwise.report.tables import console_for
from linkwise.search import compare
from linkwise.search.network_wall import Scaling, network_wall

JOB = Job(model=load_model("llama-3.1-8b"), sequence_length=4096, global_batch=64)
HUGE = Job(model=load_model("gpt-3-175b"), sequence_length=2048, global_batch=64)


def published(job, *places, share=0.2, scaling=Scaling.WEAK, most_gpus=32):
    clusters = [load_cluster(place) for place in places]
    walls = [
        network_wall(job, each, most_gpus=most_gpus, share_fraction=share, scaling=scaling)
        for each in clusters
    ]
    return compare_result(compare(job, clusters), walls, wall_share_fraction=share, scaling=scaling)


def printed(result, width=100):
    file = io.StringIO()
    print_comparison(result, console_for(file, width=width))
    return "".join(f"{line.rstrip()}\n" for line in file.getvalue().splitlines())


@pytest.fixture(scope="module")
def two():
    return published(JOB, "dgx-h100:2", "dgx-a100:4")


@pytest.mark.parametrize("width", [80, 100, 120, 160])
def test_print_comparison_keeps_every_number_and_the_width(two, width):
    text = printed(two, width)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    for each in two.clusters:
        assert f"{each.step_time_ratio:.3f}" in text
        assert f"{each.tokens_per_s_per_gpu:,.0f}"[:2] in text


def test_compare_result_puts_clusters_beside_the_first(two):
    first, second = two.clusters
    assert two.reference == first.name == "dgx-h100:2"
    assert (first.step_time_ratio, first.speed_ratio, first.verdict) == (1.0, 1.0, "equal")
    assert second.speed_ratio == pytest.approx(second.tokens_per_s_per_gpu / first.tokens_per_s_per_gpu)
    assert first.exposed_fraction == pytest.approx(sum(first.exposed_s.values()) / first.step_time_s)
    # 4 nodes of 6.5 kW; 32 links on one switch of 253 W, 5 W at each of their 64 ends.
    power_w = 4 * 6500 + 253 + 64 * 5
    assert second.energy_j_per_token == pytest.approx(power_w * second.step_time_s / JOB.tokens_per_step)
    (pair,) = two.break_even
    assert (pair.faster, pair.slower) == ("dgx-h100:2", "dgx-a100:4")
    assert pair.price_ratio == pytest.approx(1 / second.speed_ratio)


def test_compare_result_of_one_cluster_twice_tells_them_apart_and_calls_them_equal():
    result = published(JOB, "dgx-h100:2", "dgx-h100:2")
    assert [each.name for each in result.clusters] == ["dgx-h100:2", "dgx-h100:2 (2)"]
    assert [each.step_time_ratio for each in result.clusters] == [1.0, 1.0]
    assert [(each.price_ratio, each.verdict) for each in result.break_even] == [(1.0, "equal")]
    assert "may cost 1.000 times one of" in printed(result)
    assert "they are equal" in printed(result)


def test_compare_result_numbers_names_past_those_that_are_taken():
    one = load_cluster("dgx-h100:1")
    clusters = [replace(one, name=name) for name in ("a (2)", "a", "a")]
    walls = [network_wall(JOB, each, most_gpus=8, share_fraction=0.2) for each in clusters]
    result = compare_result(compare(JOB, clusters), walls, wall_share_fraction=0.2, scaling=Scaling.WEAK)
    assert [each.name for each in result.clusters] == ["a (2)", "a", "a (3)"]
    assert [each.name for each in result.wall] == ["a (2)", "a", "a (3)"]


def test_print_comparison_keeps_a_cluster_that_nothing_fits_with_what_it_lacks():
    result = published(HUGE, "dgx-h100:1", "dgx-h100:16")
    text = printed(result)
    assert result.reference == "dgx-h100:16"
    assert result.break_even == []
    assert "does not fit" in text
    assert re.search(r" 1  no layout fits; the closest lacks [\d.]+ [GT]B per GPU", text)


def test_print_comparison_when_nothing_fits_has_no_tables():
    result = published(HUGE, "dgx-h100:1", most_gpus=8)
    text = printed(result)
    assert not result.has_curves
    assert "[%" not in text
    assert "the closest lacks" in text


def test_print_comparison_when_only_a_larger_cluster_would_do_shows_its_curve():
    result = published(HUGE, "dgx-h100:1", most_gpus=128)
    text = printed(result)
    assert result.has_curves
    assert "Best layout" not in text
    assert re.search(r"\n +8 +-\n", text)


def test_print_comparison_of_one_cluster_has_nothing_to_put_beside_it():
    text = printed(published(JOB, "dgx-h100:2"))
    assert "GPU for GPU" not in text
    assert "Break-even" not in text
    assert "MFU" in text


@pytest.mark.parametrize(
    ("share", "scaling", "says"),
    [
        (0.9, Scaling.WEAK, r"with their batch.* wall: first above 90 %"),
        (0.0001, Scaling.WEAK, r"wall +16 +32"),
        (0.9, Scaling.STRONG, r"at one batch"),
    ],
)
def test_print_comparison_says_where_the_wall_is(share, scaling, says):
    result = published(JOB, "dgx-h100:2", "dgx-a100:4", share=share, scaling=scaling)
    assert [each.gpus for each in result.wall] == ([16, 32] if share < 0.1 else [None, None])
    text = printed(result, 120)
    assert re.search(says, text)
    assert re.search(r"wall +none +none", text) or share < 0.1
    assert f"({scaling} scaling)" in text


def test_assumptions_name_the_clusters_they_are_of(two):
    assert any(
        said.startswith("cluster 1: fabric taken from the default of dgx-h100") for said in two.assumptions
    )
    assert sum("gradients are kept" in said for said in two.assumptions) == 1
    assert any("not modelled are congestion" in said for said in two.assumptions)


def test_write_comparison_has_one_row_per_cluster_with_the_wall(two):
    file = io.StringIO()
    write_comparison(two, file)
    rows = list(csv.DictReader(io.StringIO(file.getvalue())))
    assert [row["name"] for row in rows] == ["dgx-h100:2", "dgx-a100:4"]
    assert float(rows[0]["step_time_s"]) == two.clusters[0].step_time_s
    assert float(rows[1]["exposed_data_s"]) == two.clusters[1].exposed_s["data"]
    assert {row["wall_gpus"] for row in rows} == {""}


def test_write_comparison_when_nothing_fits_leaves_the_numbers_empty():
    file = io.StringIO()
    write_comparison(published(HUGE, "dgx-h100:1", "dgx-h100:16"), file)
    row = next(csv.DictReader(io.StringIO(file.getvalue())))
    assert row["step_time_s"] == ""
    assert "lacks" in row["lacks"]


def test_print_comparison_escapes_what_a_name_would_do_to_the_terminal():
    cluster = replace(load_cluster("dgx-h100:2"), name="\x1b[31mred")
    wall = network_wall(JOB, cluster, most_gpus=16, share_fraction=0.2)
    result = compare_result(compare(JOB, [cluster]), [wall], wall_share_fraction=0.2, scaling=Scaling.WEAK)
    assert "\x1b" not in printed(result)


def test_energy_of_a_cluster_whose_fabric_is_not_known_is_more_than_it_says():
    result = published(JOB, "dgx-h100:2", "aws-p5:2")
    assert [each.energy_leaves_out for each in result.clusters] == [
        [],
        ["nodes beside their GPUs", "the fabric"],
    ]
    lines = printed(result).splitlines()
    start = next(place for place, line in enumerate(lines) if line.startswith("Energy and money"))
    first, second = lines[start + 3 : start + 5]
    assert ">" not in first
    assert second.split()[1].startswith(">")
