from dataclasses import replace

import pytest

from linkwise.cluster import load_cluster
from linkwise.cluster.reading import parse_cluster
from linkwise.job import Job
from linkwise.layout import Layout
from linkwise.model import load_model
from linkwise.search import plan
from linkwise.search.comparison import exposed_s
from linkwise.search.network_wall import Scaling, grown_job, network_wall

LLAMA = Job(model=load_model("llama-3.1-8b"), sequence_length=4096, global_batch=64)
TWO = load_cluster("dgx-h100:2")


def test_wall_when_nothing_passes_the_share_is_none():
    found = network_wall(LLAMA, TWO, most_gpus=64, share_fraction=0.9)
    assert found.gpus is None
    assert found.stopped is None
    assert [(each.gpus, each.global_batch) for each in found.points] == [(16, 64), (32, 128), (64, 256)]


def test_wall_points_are_the_best_of_plan_at_each_size():
    for point in network_wall(LLAMA, TWO, most_gpus=64, share_fraction=0.5).points:
        job = replace(LLAMA, global_batch=point.global_batch)
        best = plan(job, load_cluster(f"dgx-h100:{point.gpus // 8}")).layouts[0]
        assert point.best == best
        assert point.exposed_fraction == sum(exposed_s(best).values()) / best.step_time_s


def test_wall_is_the_first_size_above_the_share():
    shares = network_wall(LLAMA, TWO, most_gpus=512, share_fraction=0.5, scaling=Scaling.STRONG).points
    assert shares[0].exposed_fraction < shares[-1].exposed_fraction
    between = (shares[0].exposed_fraction + shares[-1].exposed_fraction) / 2
    found = network_wall(LLAMA, TWO, most_gpus=512, share_fraction=between, scaling=Scaling.STRONG)
    above = [each.gpus for each in found.points if each.exposed_fraction > between]
    assert found.gpus == above[0] > TWO.gpus


def test_wall_when_the_cluster_is_larger_than_asked_looks_at_it_alone():
    assert [each.gpus for each in network_wall(LLAMA, TWO, most_gpus=8, share_fraction=0.5).points] == [16]


def test_wall_when_the_fabric_has_no_more_ports_says_so():
    text = "linkwise: cluster/1\nnodes: 2\nnode: dgx-h100\n"
    fabric = "fabric: {kind: single-switch, link: infiniband-ndr-400, switch: quantum-2-qm9700}\n"
    found = network_wall(LLAMA, parse_cluster(text + fabric), most_gpus=1024, share_fraction=0.9)
    assert [each.gpus for each in found.points] == [16, 32, 64]
    assert "no more ports" in found.stopped
    assert network_wall(LLAMA, parse_cluster(text + fabric), most_gpus=64, share_fraction=0.9).stopped is None


def test_wall_of_a_leaf_spine_fabric_goes_on_with_a_third_tier_and_stops_where_three_do_not_suffice():
    fabric = "{{kind: {}, oversubscription: 4, routing: {{ecmp: {{queue_pairs: 1}}}}}}"
    text = f"linkwise: cluster/1\nnodes: 128\nnode: dgx-h100\nfabric: {fabric}\n"
    job = replace(LLAMA, global_batch=128, layout=Layout(tensor=8))
    flat, tree = (
        network_wall(job, parse_cluster(text.format(kind)), most_gpus=1_000_000, share_fraction=0.99)
        for kind in ("leaf-spine", "fat-tree")
    )
    assert [each.exposed_fraction for each in flat.points] == [each.exposed_fraction for each in tree.points]
    assert flat.points[-1].gpus == 65_536  # 64 pods of 32 leaves of 6 nodes end 98,304 GPUs
    assert "more than three tiers of 64 ports join" in flat.stopped


def test_wall_when_no_layout_fits_a_size_goes_on_to_the_next():
    huge = Job(model=load_model("gpt-3-175b"), sequence_length=2048, global_batch=64)
    points = network_wall(huge, load_cluster("dgx-h100:1"), most_gpus=128, share_fraction=0.5).points
    assert points[0].exposed_fraction is None
    assert points[-1].exposed_fraction is not None


def test_wall_when_the_batch_stays_and_divides_no_more_has_no_layout_there():
    job = replace(LLAMA, layout=Layout(tensor=2))
    points = network_wall(job, TWO, most_gpus=256, share_fraction=0.5, scaling=Scaling.STRONG).points
    assert [each.best is None for each in points] == [False, False, False, False, True]


@pytest.mark.parametrize(("scaling", "batch"), [(Scaling.WEAK, 256), (Scaling.STRONG, 64)])
def test_grown_job_leaves_the_data_degree_to_the_cluster(scaling, batch):
    grown = grown_job(replace(LLAMA, layout=Layout(tensor=2, data=8)), 4, scaling)
    assert grown.global_batch == batch
    assert grown.layout == Layout(tensor=2)
