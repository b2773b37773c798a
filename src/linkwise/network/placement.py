"""Where the ranks of a group sit: how many of them share an NVLink domain, and how many domains they span."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def ranks_per_domain(size: Floats, stride: Floats, domain_gpus: Floats) -> Floats:
    """Return how many ranks of a group share one NVLink domain.

    Parameters
    ----------
    size
        Ranks of the group [1].
    stride
        Distance of neighbouring ranks of the group in the rank order [1].
    domain_gpus
        GPUs of one NVLink domain [1].

    Returns
    -------
    Floats
        Between 1 and `size` [1]; a domain that the group does not fill evenly counts its whole ranks only.

    Notes
    -----
    A group of stride s meets floor(g/s) of its ranks in a domain of g GPUs when ranks are laid out in order. A group that
    spans domains is as fast as its emptiest one, hence the largest divisor-like share: min(size, max(1, floor(g/s))).
    """
    return np.minimum(size, np.maximum(1.0, np.floor(domain_gpus / stride)))


def bus_bytes_per_s(
    local: Floats, size: Floats, nvlink_bytes_per_s: Floats, nic_bytes_per_s: Floats
) -> Floats:
    """Return the rate at which a ring of the group moves bytes through its slowest hop [bytes/s].

    Parameters
    ----------
    local, size
        Ranks of the group in one NVLink domain, and in all [1].
    nvlink_bytes_per_s
        What a ring reaches inside the domain, one direction, per GPU [bytes/s].
    nic_bytes_per_s
        What one GPU's share of the NICs reaches, one direction, when all GPUs of the domain send [bytes/s].

    Notes
    -----
    All GPUs of a domain belong to some group of the kind at the same time, so a group with `local` ranks in the domain
    has `local` shares of its NICs: min(B_nvlink, local x B_nic). Never NVLink speed once it leaves the domain and the
    NICs are slower (Narayanan et al., Efficient Large-Scale Language Model Training, 2021, section 4).
    """
    across = np.minimum(nvlink_bytes_per_s, local * nic_bytes_per_s)
    return np.where(size > local, across, nvlink_bytes_per_s)
