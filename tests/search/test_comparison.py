from dataclasses import replace

import pytest

from linkwise.cluster import load_cluster
from linkwise.errors import InputError
from linkwise.job import Job
from linkwise.job.job import Precision
from linkwise.layout import Layout
from linkwise.model import load_model
from linkwise.search import compare, plan
from linkwise.search.comparison import Contender, Verdict, exposed_s, verdict

LLAMA = Job(model=load_model("llama-3.1-8b"), sequence_length=4096, global_batch=64)
H100, A100 = load_cluster("dgx-h100:2"), load_cluster("dgx-a100:2")
BEST = plan(LLAMA, H100).layouts[0]
NOTHING = dict.fromkeys(BEST.parts, 0.0)


def contender(rest_s, exposed_s, *, cluster=H100, low=0.9, high=1.1):
    time_s = rest_s + exposed_s
    parts = {**NOTHING, "compute": rest_s, "data": exposed_s}
    best = replace(
        BEST, step_time_s=time_s, step_time_low_s=low * time_s, step_time_high_s=high * time_s, parts=parts
    )
    return Contender(cluster=cluster, best=best)


def test_compare_when_clusters_fit_gives_the_best_of_plan_on_each():
    found = compare(LLAMA, [H100, A100])
    for each, cluster in zip(found.contenders, (H100, A100), strict=True):
        planned = plan(LLAMA, cluster)
        assert each.cluster == cluster
        assert each.best == planned.layouts[0]
        assert each.assumptions == planned.assumptions
    assert found.reference is found.contenders[0]


def test_compare_when_nothing_fits_keeps_the_cluster_with_the_closest():
    huge = Job(model=load_model("gpt-3-175b"), sequence_length=2048, global_batch=64)
    small, large = load_cluster("dgx-h100:1"), load_cluster("dgx-h100:16")
    found = compare(huge, [small, large])
    assert found.contenders[0].best is None
    assert found.contenders[0].closest == plan(huge, small).closest
    assert found.reference is found.contenders[1]
    assert compare(huge, [small]).reference is None


def test_compare_when_a_cluster_cannot_run_the_job_says_why_and_raises_if_none_can():
    eight_bit = replace(LLAMA, precision=Precision.FP8)
    found = compare(eight_bit, [A100, H100])
    assert "a100-sxm-80gb has no fp8" in found.contenders[0].refused
    assert found.reference is found.contenders[1]
    with pytest.raises(InputError, match="no fp8"):
        compare(eight_bit, [A100, A100])


def test_compare_when_the_layout_is_fixed_estimates_it_on_each():
    found = compare(replace(LLAMA, layout=Layout(tensor=2)), [H100, A100])
    assert {each.best.layout.tensor for each in found.contenders} == {2}


def test_compare_without_clusters_is_refused():
    with pytest.raises(InputError, match="no cluster"):
        compare(LLAMA, [])


def test_exposed_s_are_parts_of_the_step_that_are_communication():
    assert exposed_s(BEST) == {
        kind: BEST.parts[kind] for kind in ("tensor", "context", "expert", "pipeline", "data")
    }


@pytest.mark.parametrize(
    ("mine", "theirs", "called"),
    [
        # Apart by more than the intervals: 8.8 < 9.9.
        (contender(8.0, 0.0), contender(11.0, 0.0), Verdict.FASTER),
        # Of one GPU, all but the communication alike: 1.1 x 1 < 0.9 x 1.5.
        (contender(9.0, 1.0), contender(9.0, 1.5), Verdict.FASTER),
        (contender(9.0, 1.5), contender(9.0, 1.0), Verdict.SLOWER),
        # 1.1 x 1 > 0.9 x 1.2: the communication alone may be off by as much.
        (contender(9.0, 1.0), contender(9.0, 1.2), Verdict.CLOSE),
        # Of two GPUs nothing is common.
        (contender(9.0, 1.0), contender(9.0, 1.5, cluster=A100), Verdict.CLOSE),
        (contender(9.0, 1.0), contender(9.0, 1.005), Verdict.EQUAL),
    ],
)
def test_verdict_is_a_winner_only_where_errors_cannot_turn_it(mine, theirs, called):
    assert verdict(mine, theirs) is called


def test_verdict_of_clusters_of_two_sizes_is_gpu_for_gpu():
    twice = contender(4.5, 0.5, cluster=load_cluster("dgx-h100:4"))
    assert verdict(contender(9.0, 1.0), twice) is Verdict.EQUAL


def test_verdict_without_a_layout_is_none():
    empty = Contender(cluster=H100, best=None, refused="no")
    assert verdict(empty, contender(9.0, 1.0)) is None
    assert verdict(contender(9.0, 1.0), empty) is None
