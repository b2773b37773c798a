"""Where the ranks of a group sit: how many of them share an NVLink domain, and how many domains they span."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def ranks_per_domain(size: Floats, stride: Floats, domain_gpus: Floats) -> Floats:
    """Return how many ranks of a group share one NVLink domain, where they are fewest.

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
        Between 1 and `size` [1].

    Notes
    -----
    Groups of span w = size x stride follow one another in the rank order, in domains of g GPUs. Where w
    divides g every group lies inside one domain; where g divides w it fills g / stride places of each.
    Otherwise groups straddle: they begin at every multiple of gcd(w, g), so some group has only gcd(w, g) /
    stride ranks in a domain, and a ring is as fast as its emptiest domain.
    """
    span = size * stride
    shared = np.gcd(span.astype(np.int64), domain_gpus.astype(np.int64)).astype(np.float64)
    return np.minimum(size, np.maximum(1.0, np.floor(shared / stride)))


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
    All GPUs of a domain belong to some group of the kind at the same time, so a group with `local` ranks in
    the domain has `local` shares of its NICs: min(B_nvlink, local x B_nic). Never NVLink speed once it
    leaves the domain and the NICs are slower (Narayanan et al., Efficient Large-Scale Language Model
    Training, 2021, section 4).
    """
    across = np.minimum(nvlink_bytes_per_s, local * nic_bytes_per_s)
    return np.where(size > local, across, nvlink_bytes_per_s)
