from dataclasses import replace

import numpy as np
import pytest

from linkwise.cluster import load_cluster
from linkwise.errors import InputError, UnknownName
from linkwise.estimate.job_inputs import checked_layout
from linkwise.job import Job
from linkwise.job.framework import FRAMEWORKS, framework_of
from linkwise.job.offers import OFFERS, Offer, offer_of
from linkwise.layout import Layout
from linkwise.model import load_model
from linkwise.search import EVERYTHING, search_space
from linkwise.search.cuts import CUT_COLUMNS, divisors, legal_cuts

GPT3 = Job(model=load_model("gpt-3-175b"), sequence_length=2048, global_batch=1536)
H100 = load_cluster("dgx-h100:64")


def rows_of(cuts):
    return np.column_stack([cuts.columns[name] for name in CUT_COLUMNS]).astype(int)


def test_divisors_when_a_number_is_given_are_all_of_them():
    assert divisors(36) == [1, 2, 3, 4, 6, 9, 12, 18, 36]
    assert divisors(1) == [1]


def test_cuts_when_listed_by_hand_are_the_same():
    """Every cut of a small case, from the rules written as loops."""
    job = Job(model=load_model("mixtral-8x7b"), sequence_length=1024, global_batch=24)
    cluster = load_cluster("dgx-h100:2")
    by_hand = set()
    for t in (1, 2, 4, 8, 16):
        for c in (1, 2, 4):
            for p in (1, 2, 4, 8, 16):
                if 16 % (t * c * p):
                    continue
                d = 16 // (t * c * p)
                for mb in range(1, 25):
                    if 24 % (d * mb):
                        continue
                    for v in range(1, 33):
                        whole = v == 1 or (p > 1 and 32 % (p * v) == 0 and 24 // (d * mb) % p == 0)
                        if not whole:
                            continue
                        for e in (1, 2, 4, 8):
                            if (d * c) % e == 0 or (e % (d * c) == 0 and (d * c * t) % e == 0):
                                by_hand.add((t, c, p, d, mb, v, e))
    found = [tuple(row) for row in rows_of(legal_cuts(job, cluster, EVERYTHING, only={}))]
    assert len(found) == len(set(found))
    assert set(found) == by_hand


def test_cuts_when_checked_one_by_one_can_all_run():
    rows = rows_of(legal_cuts(GPT3, H100, EVERYTHING, only={}))
    for row in rows[:: len(rows) // 50]:
        layout = Layout(**dict(zip(CUT_COLUMNS, map(int, row), strict=True)))
        assert checked_layout(GPT3, H100, layout).data == layout.data


def test_rejected_when_heads_or_batch_do_not_divide_say_so():
    rejected = legal_cuts(GPT3, H100, EVERYTHING, only={}).rejected
    assert "tensor does not divide 96 heads" in rejected
    assert "global batch 1536 is not a multiple of data x micro-batch" in rejected


def test_only_when_a_degree_is_fixed_keeps_those_cuts():
    cuts = legal_cuts(GPT3, H100, EVERYTHING, only={"tensor": (8,), "data": (8,)})
    assert set(cuts.columns["tensor"]) == {8}
    assert set(cuts.columns["data"]) == {8}
    with pytest.raises(UnknownName, match="tensor"):
        legal_cuts(GPT3, H100, EVERYTHING, only={"tensr": (8,)})


def test_space_when_nothing_divides_says_what():
    with pytest.raises(InputError, match="global batch 3 is not a multiple"):
        search_space(replace(GPT3, global_batch=3), H100, offer=OFFERS["ddp"])


def test_space_when_the_products_are_listed_names_no_layout_twice():
    job = Job(model=load_model("llama-3.1-8b"), sequence_length=4096, global_batch=64)
    space = search_space(job, load_cluster("dgx-h100:2"), offer=EVERYTHING)
    seen = set()
    for table in space.tables(4096):
        columns = table.take(np.arange(table.rows)).varying
        seen |= set(zip(*(columns[name] for name in sorted(columns)), strict=True))
    assert len(seen) == space.rows


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_offer_when_a_framework_is_listed_has_its_usual_sharding(framework):
    assert FRAMEWORKS[framework].zero_stage in offer_of(FRAMEWORKS[framework]).zero_stages


def test_offer_when_a_framework_is_not_listed_is_that_of_its_family():
    unknown = framework_of(framework="somebody's", family="deepspeed", year=2025)
    assert isinstance(offer_of(unknown), Offer)
    assert not offer_of(unknown).sharded_pipeline
