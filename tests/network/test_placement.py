"""Where groups sit in a rank order, on nodes of eight and in racks."""

import numpy as np
import pytest

from linkwise.network.placement import bus_bytes_per_s, ranks_per_domain

GB = 1e9


def one(value):
    return np.array([float(value)])


@pytest.mark.parametrize(
    ("size", "stride", "domain", "local"),
    [
        (8, 1, 8, 8),  # a tensor group fills its node
        (16, 1, 8, 8),  # over two nodes
        (16, 8, 8, 1),  # data ranks beside eight tensor ranks: one to a node
        (16, 4, 8, 2),
        (16, 3, 8, 2),  # whole ranks only
        (4, 16, 8, 1),  # farther apart than a node
        (64, 1, 64, 64),
    ],
)
def test_ranks_per_domain(size, stride, domain, local):
    assert ranks_per_domain(one(size), one(stride), one(domain)) == local


def test_bus_rate_inside_a_domain_is_that_of_nvlink():
    assert bus_bytes_per_s(one(8), one(8), one(450 * GB), one(50 * GB)) == 450 * GB


def test_bus_rate_over_nodes_is_that_of_the_nics_of_its_ranks():
    assert bus_bytes_per_s(one(8), one(16), one(450 * GB), one(50 * GB)) == 400 * GB
    assert bus_bytes_per_s(one(1), one(16), one(450 * GB), one(50 * GB)) == 50 * GB


def test_bus_rate_never_exceeds_nvlink():
    assert bus_bytes_per_s(one(8), one(16), one(250 * GB), one(50 * GB)) == 250 * GB
