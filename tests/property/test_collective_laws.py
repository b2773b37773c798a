"""Laws of every closed form of a collective: size, bandwidth, and the narrowest cut."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linkwise.network.collectives import (
    all_to_all_s,
    ring_all_gather_s,
    ring_all_reduce_s,
    tree_all_reduce_s,
)
from linkwise.network.placement import bus_bytes_per_s, ranks_per_domain

LAWS = settings(max_examples=60, deadline=None)
BYTES = st.floats(1.0, 1e12)
RATES = st.floats(1e8, 2e12)
LATENCIES = st.floats(0.0, 1e-3)
FACTORS = st.floats(1.0, 1e3)


def column(value):
    return np.array([float(value)])


@st.composite
def groups(draw):
    """Draw ranks in whole domains: how many in one, and in all."""
    local = draw(st.integers(1, 72))
    return local * draw(st.integers(1, 512)), local


CALLS = st.tuples(groups(), BYTES, RATES, RATES, LATENCIES)


def ring_gather(group, buffer_bytes, nvlink, nic, latency):
    rate = bus_bytes_per_s(column(group[1]), column(group[0]), column(nvlink), column(nic))
    return ring_all_gather_s(column(group[0]), column(buffer_bytes), rate, column(latency))


def ring_reduce(group, buffer_bytes, nvlink, nic, latency):
    rate = bus_bytes_per_s(column(group[1]), column(group[0]), column(nvlink), column(nic))
    return ring_all_reduce_s(column(group[0]), column(buffer_bytes), rate, column(latency))


def tree_reduce(group, buffer_bytes, nvlink, nic, latency):
    across = np.minimum(group[1] * nic, nvlink)
    size, local = column(group[0]), column(group[1])
    return tree_all_reduce_s(
        size, local, column(buffer_bytes), column(nvlink), column(across), column(latency)
    )


def exchange(group, buffer_bytes, nvlink, nic, latency):
    size, local = column(group[0]), column(group[1])
    return all_to_all_s(size, local, column(buffer_bytes), column(nvlink), column(nic), column(latency))


FORMS = (ring_gather, ring_reduce, tree_reduce, exchange)
form = pytest.mark.parametrize("form", FORMS, ids=lambda each: each.__name__)


@form
@LAWS
@given(CALLS, FACTORS)
def test_time_when_the_buffer_grows_never_falls(form, call, factor):
    group, buffer_bytes, nvlink, nic, latency = call
    smaller = form(group, buffer_bytes, nvlink, nic, latency)
    assert form(group, factor * buffer_bytes, nvlink, nic, latency) >= smaller


@form
@LAWS
@given(CALLS, FACTORS, st.booleans())
def test_time_when_a_rate_grows_never_rises(form, call, factor, inside):
    group, buffer_bytes, nvlink, nic, latency = call
    slower = form(group, buffer_bytes, nvlink, nic, latency)
    faster = (factor * nvlink, nic) if inside else (nvlink, factor * nic)
    assert form(group, buffer_bytes, *faster, latency) <= slower * (1.0 + 1e-12)


@form
@LAWS
@given(groups(), BYTES, RATES, RATES)
def test_time_without_latency_when_both_rates_double_halves(form, group, buffer_bytes, nvlink, nic):
    once = form(group, buffer_bytes, nvlink, nic, 0.0)
    assert 2.0 * form(group, buffer_bytes, 2.0 * nvlink, 2.0 * nic, 0.0) == pytest.approx(once)


@form
@LAWS
@given(groups(), BYTES, RATES, RATES)
def test_no_form_beats_the_bytes_over_the_cut_around_a_domain(form, group, buffer_bytes, nvlink, nic):
    size, local = group
    rest = 1.0 - local / size
    crossing = {
        ring_gather: rest * buffer_bytes,  # what the others hold comes in
        ring_reduce: (size > local) * buffer_bytes,  # a sum goes out, and one comes in
        tree_reduce: (size > local) * buffer_bytes,
        exchange: local * rest * buffer_bytes,  # of each rank's own, the share of the others goes out
    }[form]
    assert form(group, buffer_bytes, nvlink, nic, 0.0) >= crossing / (local * nic) * (1.0 - 1e-12)


@form
@LAWS
@given(groups(), BYTES, RATES, RATES)
def test_no_form_beats_the_bytes_over_the_cut_around_a_rank(form, group, buffer_bytes, nvlink, nic):
    size, local = group
    alone = 1.0 - 1.0 / size
    most = nvlink * (local > 1) + nic * (size > local)
    crossing = alone * buffer_bytes  # received by each rank: of an all-reduce that much at the very least
    if size > 1:
        assert form(group, buffer_bytes, nvlink, nic, 0.0) >= crossing / most * (1.0 - 1e-12)


@LAWS
@given(st.integers(1, 4096), st.integers(1, 512), st.integers(1, 144))
def test_ranks_of_a_domain_are_never_more_than_it_has_room_for(size, stride, domain_gpus):
    local = ranks_per_domain(column(size), column(stride), column(domain_gpus))
    assert 1.0 <= local <= size
    # Neighbours of the group stand a stride apart, so a domain has room for one in each stride.
    assert local <= max(1, -(-domain_gpus // stride))
