"""Laws of the time of NCCL's collectives: size, the narrowest link, and the interval of choices."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linkwise.cluster import cluster_from_shorthand
from linkwise.nccl.choice import candidates
from linkwise.nccl.communicator import Limits
from linkwise.network.cluster_setting import setting_of
from linkwise.network.collective_time import collective_times
from linkwise.network.setting import OPERATIONS

LAWS = settings(max_examples=80, deadline=None)
SYSTEMS = (
    "dgx-1-v100",
    "dgx-a100",
    "azure-nc-a100-v4",
    "dgx-h100",
    "gh200-4",
    "aws-p5",
    "gcp-a3-high",
    "dgx-b200",
    "gb200-nvl72",
    "mi300x-8",
    "mgx-pcie-l40s-8",
    "rtx-pro-6000-8",
)
SHARED = ("all_gather", "reduce_scatter", "all_to_all")
SIZES = 2.0 ** np.linspace(0, 40, 401)


@st.composite
def places(draw):
    """Draw a cluster and how many of its GPUs take part."""
    cluster = cluster_from_shorthand(f"{draw(st.sampled_from(SYSTEMS))}:{draw(st.integers(1, 64))}")
    return setting_of(cluster, gpus=draw(st.integers(2, cluster.gpus)))


def choices(operation, there):
    """Return the setting once for each algorithm and protocol there is."""
    offered = (
        candidates(operation, there.group) if operation.startswith(("all_r", "all_g", "reduce_")) else ()
    )
    if not offered:
        return [there]
    return [
        replace(
            there,
            limits=Limits(algorithms=frozenset({one.algorithm}), protocols=frozenset({one.protocol})),
        )
        for one in offered
    ]


@LAWS
@given(there=places(), operation=st.sampled_from(OPERATIONS))
def test_time_never_falls_with_size_within_an_algorithm(there, operation):
    for one in choices(operation, there):
        time_s = collective_times(operation, one, SIZES).time_s
        assert np.all(np.isfinite(time_s))
        assert np.all(np.diff(time_s) >= -1e-12 * time_s[1:]), one.limits


def least_s(operation, there, size_bytes):
    """Return the bytes that must cross the narrowest cut, over its line rate.

    Around one GPU: what it lacks of the result, by the link to its peers; a switch that reduces does not spare
    it from sending its buffer once. Around a domain: what the others lack, by its NICs.
    """
    group = there.group
    share = (group.ranks - 1) / group.ranks if operation in SHARED else 1.0
    local = group.ranks_per_domain
    alone, domain = share, 1.0
    if operation in ("all_gather", "reduce_scatter"):
        domain = 1 - 1 / group.domains
    elif operation == "all_to_all":
        domain = local * (group.ranks - local) / group.ranks
        alone = share if group.generation == "pcie" else (local - 1) / group.ranks
    bound = alone * size_bytes / there.pair_bytes_per_s if local > 1 else np.zeros(len(size_bytes))
    return np.maximum(bound, domain * size_bytes / group.network_bytes_per_s) if group.domains > 1 else bound


@LAWS
@given(there=places(), operation=st.sampled_from(OPERATIONS))
def test_no_time_beats_the_bytes_over_the_narrowest_link(there, operation):
    for one in choices(operation, there):
        time_s = collective_times(operation, one, SIZES).time_s
        assert np.all(time_s >= least_s(operation, one, SIZES) * (1 - 1e-12)), one.limits


@LAWS
@given(there=places(), factor=st.floats(1.0, 8.0))
def test_time_never_rises_with_the_rate_of_the_network(there, factor):
    if there.group.domains == 1:
        return
    faster = replace(
        there, group=replace(there.group, network_bytes_per_s=factor * there.group.network_bytes_per_s)
    )
    for slow, fast in zip(choices("all_reduce", there), choices("all_reduce", faster), strict=True):
        before = collective_times("all_reduce", slow, SIZES).time_s
        assert np.all(collective_times("all_reduce", fast, SIZES).time_s <= before * (1 + 1e-9)), slow.limits


@pytest.mark.parametrize("operation", OPERATIONS)
def test_more_ranks_of_a_node_are_never_faster_at_small_sizes(operation):
    cluster = cluster_from_shorthand("dgx-h100:1")
    times = [
        collective_times(operation, setting_of(cluster, gpus=gpus), np.array([8.0])).time_s[0]
        for gpus in (2, 4, 8)
    ]
    assert times == sorted(times)
