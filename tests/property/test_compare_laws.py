"""Laws of comparisons: a better network never makes a step slower."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linkwise.cluster.document import HEADER, ClusterDocument
from linkwise.cluster.variants import VariantAxes, cluster_variants
from linkwise.documents import parse_document
from linkwise.job import Job
from linkwise.model import load_model
from linkwise.search import compare
from linkwise.search.break_even import break_even
from linkwise.search.comparison import Verdict, verdict
from linkwise.search.table_search import TIE_FRACTION

JOBS = (
    Job(model=load_model("llama-3.1-8b"), sequence_length=4096, global_batch=64),
    Job(model=load_model("gpt-3-175b"), sequence_length=2048, global_batch=96),
    Job(model=load_model("mixtral-8x7b"), sequence_length=4096, global_batch=64),
)
CHAINS = (
    ("infiniband-edr-100", "infiniband-hdr-200", "infiniband-ndr-400"),
    ("roce-25", "roce-100", "roce-200", "roce-400"),
    ("ethernet-10", "ethernet-25", "ethernet-100", "ethernet-200", "ethernet-400"),
)
"""Links of one protocol, each faster than the one before."""


def variants(nodes, **axes):
    text = f"linkwise: cluster/1\nnodes: {nodes}\nnode: dgx-h100\n"
    fabric = "fabric: {kind: leaf-spine, link: infiniband-ndr-400}\n"
    document = parse_document(text + fabric, ClusterDocument, HEADER)
    return cluster_variants(document, VariantAxes(**axes))


def steps(job, clusters):
    return [each.best.step_time_s for each in compare(job, clusters).contenders]


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.model.name)
@pytest.mark.parametrize("chain", CHAINS, ids=lambda chain: chain[0])
def test_step_when_the_link_is_faster_is_never_longer(job, chain):
    times = steps(job, variants(8, fabrics=chain))
    for slower, faster in itertools.pairwise(times):
        assert faster <= slower * (1.0 + TIE_FRACTION)
    assert times[-1] < times[0]


@settings(max_examples=10, deadline=None)
@given(st.sampled_from(JOBS), st.floats(1.0, 20.0), st.floats(1.01, 4.0))
def test_step_when_more_oversubscribed_is_never_shorter(job, ratio, more):
    less, most = steps(job, variants(8, oversubscription=(ratio, ratio * more)))
    assert most >= less * (1.0 - TIE_FRACTION)


@settings(max_examples=10, deadline=None)
@given(st.sampled_from(JOBS[:2]), st.sampled_from((8, 9, 16)))
def test_step_when_domains_are_wider_is_never_longer(job, nodes):
    narrow, wide = steps(job, variants(nodes, domains=(4, 8)))
    assert wide <= narrow * (1.0 + TIE_FRACTION)


@settings(max_examples=10, deadline=None)
@given(st.sampled_from(JOBS), st.sampled_from(CHAINS), st.sampled_from((8, 16)))
def test_verdicts_and_break_even_of_a_pair_agree_whichever_comes_first(job, chain, nodes):
    one, two = compare(job, variants(nodes, fabrics=(chain[0], chain[-1]))).contenders
    opposite = {Verdict.FASTER: Verdict.SLOWER, Verdict.SLOWER: Verdict.FASTER}
    assert verdict(two, one) is opposite.get(verdict(one, two), verdict(one, two))
    assert verdict(one, one) is Verdict.EQUAL
    there, back = break_even(one, two), break_even(two, one)
    assert there.price_ratio == back.price_ratio >= 1.0
    assert there.faster is back.faster
