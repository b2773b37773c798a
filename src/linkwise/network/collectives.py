"""Closed forms of the collectives (Hockney: latency per step plus bytes over bandwidth).

Symbols: n ranks, B bytes/s of the slowest hop, S bytes of the full buffer (nccl-tests convention: for
all-gather and reduce-scatter the sum over ranks).

References
----------
R. Thakur, R. Rabenseifner, W. Gropp, Optimization of Collective Communication Operations in MPICH, 2005.
P. Sanders, J. Speck, J. Traeff, Two-tree algorithms for full bandwidth broadcast, reduction and scan, 2009.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def ring_pass_bytes(size: Floats, buffer_bytes: Floats) -> Floats:
    """Return the bytes each rank sends in one pass of a ring, (n-1)/n S [bytes]."""
    return (size - 1.0) / size * buffer_bytes


def ring_all_gather_s(
    size: Floats, buffer_bytes: Floats, bytes_per_s: Floats, step_latency_s: Floats
) -> Floats:
    """Return the time of an all-gather or reduce-scatter in a ring [s].

    Notes
    -----
    (n-1) a + (n-1)/n S/B.
    """
    return (size - 1.0) * step_latency_s + ring_pass_bytes(size, buffer_bytes) / bytes_per_s


def ring_all_reduce_s(
    size: Floats, buffer_bytes: Floats, bytes_per_s: Floats, step_latency_s: Floats
) -> Floats:
    """Return the time of an all-reduce in a ring, 2(n-1) a + 2(n-1)/n S/B [s]."""
    return 2.0 * ring_all_gather_s(size, buffer_bytes, bytes_per_s, step_latency_s)


def tree_all_reduce_s(
    size: Floats,
    local: Floats,
    buffer_bytes: Floats,
    nvlink_bytes_per_s: Floats,
    across_bytes_per_s: Floats,
    level_latency_s: Floats,
) -> Floats:
    """Return the time of an all-reduce in a double binary tree over domains [s].

    Notes
    -----
    2 ceil(log2 m) a + max(2(l-1)/l S/B_nvlink, v S/B_across), m domains of l ranks. Each tree carries half
    the buffer and a rank is inside one tree and a leaf of the other, so v = 2 (S up and S down in each
    direction); on two domains one edge of each tree crosses, half the volume, v = 1. One domain: the ring
    inside it.
    """
    domains = np.ceil(size / local)
    volume = np.where(domains <= 2.0, 1.0, 2.0)
    inside = 2.0 * ring_pass_bytes(local, buffer_bytes) / nvlink_bytes_per_s
    across = np.where(domains > 1.0, volume * buffer_bytes / across_bytes_per_s, 0.0)
    levels = 2.0 * np.ceil(np.log2(np.maximum(size, 2.0)))
    return levels * level_latency_s + np.maximum(inside, across)


def nvls_all_reduce_s(size: Floats, buffer_bytes: Floats, bytes_per_s: Floats) -> Floats:
    """Return the time of an all-reduce that the NVLink switch reduces and multicasts, (n+1)/n S/B [s].

    Notes
    -----
    Each rank reads its share of 1/n reduced by the switch and writes the result to all: (n+1)/n of the buffer
    instead of the 2(n-1)/n of a ring. The form reproduces published H100 bus bandwidths of 4 to 8 GPUs within
    2 % (NCCL issue 1455); NCCL takes it from four ranks on.
    """
    return (size + 1.0) / size * buffer_bytes / bytes_per_s


def all_to_all_s(
    size: Floats,
    local: Floats,
    send_bytes: Floats,
    nvlink_bytes_per_s: Floats,
    nic_bytes_per_s: Floats,
    call_latency_s: Floats,
) -> Floats:
    """Return the time of an all-to-all in which each rank holds `send_bytes` [s].

    Notes
    -----
    The share (n-l)/n leaves the domain through the rank's own NIC share, (l-1)/n stays inside it, both at
    once: a + max(S (l-1)/n / B_nvlink, S (n-l)/n / B_nic).
    """
    inside = send_bytes * (local - 1.0) / size / nvlink_bytes_per_s
    across = send_bytes * (size - local) / size / nic_bytes_per_s
    return np.where(size > 1.0, call_latency_s, 0.0) + np.maximum(inside, across)
