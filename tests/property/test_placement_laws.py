"""Laws of the placement of groups in domains."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from linkwise.network.placement import ranks_per_domain


def column(value):
    return np.array([float(value)])


@given(st.integers(1, 4096), st.integers(1, 512), st.integers(1, 144))
def test_ranks_of_a_domain_are_never_more_than_it_has_room_for(size, stride, domain_gpus):
    local = ranks_per_domain(column(size), column(stride), column(domain_gpus))
    assert 1.0 <= local <= size
    # Neighbours of the group stand a stride apart, so a domain has room for one in each stride.
    assert local <= max(1, -(-domain_gpus // stride))
