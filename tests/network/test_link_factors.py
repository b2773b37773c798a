"""Factors of a site's links on the time of collectives."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkwise.cluster import load_cluster
from linkwise.network.cluster_setting import setting_of
from linkwise.network.collective_constants import collective_values
from linkwise.network.collective_time import collective_times
from linkwise.network.link_factors import LOCAL_LATENCIES, NETWORK_LATENCIES, LinkFactors
from linkwise.network.setting import OPERATIONS

SIZES = 2.0 ** np.arange(3, 34)


def times(operation="all_reduce", cluster="dgx-h100:4", **factors):
    setting = replace(setting_of(load_cluster(cluster)), factors=LinkFactors(**factors))
    return collective_times(operation, setting, SIZES)


def test_constants_that_are_scaled_exist_and_are_scaled_once():
    assert {*LOCAL_LATENCIES, *NETWORK_LATENCIES} <= set(collective_values())
    assert not set(LOCAL_LATENCIES) & set(NETWORK_LATENCIES)


def test_all_factors_together_scale_small_and_large_messages():
    plain = times()
    slow = times(local_latency=2.0, network_latency=2.0, local_bandwidth=0.5, network_bandwidth=0.5)
    ratio = slow.time_s / plain.time_s
    assert ratio[0] == pytest.approx(2.0, rel=0.15)  # the floor of a hop over a network is not scaled
    assert ratio[-1] == pytest.approx(2.0, rel=0.15)  # less where NCCL's own ceilings bind
    assert (slow.choice == plain.choice).all()  # NCCL does not know


def test_latency_shows_in_small_messages_and_bandwidth_in_large_ones():
    plain = times(cluster="dgx-h100:1").time_s
    late = times(cluster="dgx-h100:1", local_latency=1.5).time_s / plain
    narrow = times(cluster="dgx-h100:1", local_bandwidth=0.8).time_s / plain
    assert late[0] > 1.4
    assert late[-1] < 1.05
    assert narrow[0] < 1.01
    assert narrow[-1] > 1.2


@given(
    operation=st.sampled_from(OPERATIONS),
    factor=st.sampled_from(["local_latency", "network_latency", "local_bandwidth", "network_bandwidth"]),
    low=st.floats(0.2, 1.0),
    more=st.floats(1.0, 4.0),
)
def test_time_never_falls_as_latency_grows_or_bandwidth_shrinks(operation, factor, low, more):
    first, second = times(operation, **{factor: low}).time_s, times(operation, **{factor: low * more}).time_s
    rising = second >= first * (1 - 1e-9) if factor.endswith("latency") else second <= first * (1 + 1e-9)
    assert rising.all()
