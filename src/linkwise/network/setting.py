"""Where a collective runs: its ranks, the links they have, and how the job was launched."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from linkwise.nccl.communicator import NO_LIMITS, Communicator, Limits
from linkwise.network.link_factors import AS_MODELLED, LinkFactors
from linkwise.network.uplinks import Uplinks

__all__ = ["LARGEST_BOX_GPUS", "OPERATIONS", "WITH_CHOICE", "Launch", "Setting", "bus_factor"]

OPERATIONS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "reduce", "send_recv")
"""What can be asked for, in the words of nccl-tests."""
LARGEST_BOX_GPUS = 16
"""Most GPUs that NVLink joins in one box (HGX-2 and DGX-2, 16 V100); more are a rack [1]."""
WITH_CHOICE = ("all_reduce", "all_gather", "reduce_scatter")
"""Operations for which algorithms and protocols are told apart."""


class Launch(StrEnum):
    """Who calls the collective."""

    OWN_THREADS = "own_threads"
    """A process or a thread for each GPU."""
    ONE_THREAD = "one_thread"
    """One thread for all GPUs of a node."""
    FRAMEWORK = "framework"
    """PyTorch, timed from Python."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What the time of a collective depends on, but for its size.

    Parameters
    ----------
    group
        The ranks as NCCL sees them.
    network
        ``infiniband``, ``roce``, ``efa_v1`` to ``efa_v4``, ``tcpx``, ``tcpxo``, ``slingshot``, ``sockets``;
        ``nvlink`` for one domain.
    pair_bytes_per_s
        Line rate of a GPU's link inside its domain, one direction: NVLink, or PCIe [bytes/s].
    bridged
        Whether GPUs meet over PCIe between pairs that a bridge joins.
    through_host
        Whether GPUs reach each other through host memory only, without peer-to-peer access.
    nic_on_switch
        Whether GPUs sit behind the PCIe switch of their NIC.
    limits
        What the variables of the job leave to choose from.
    launch
        Who calls.
    uplinks
        What the leaves of the fabric let through; ``None`` where they limit nothing.
    factors
        What a site's calibration says of its links.
    """

    group: Communicator
    network: str = "nvlink"
    pair_bytes_per_s: float
    bridged: bool = False
    through_host: bool = False
    nic_on_switch: bool = False
    limits: Limits = NO_LIMITS
    launch: Launch = Launch.OWN_THREADS
    uplinks: Uplinks | None = None
    factors: LinkFactors = AS_MODELLED


def bus_factor(operation: str, ranks: int) -> float:
    """Return bus bandwidth over algorithm bandwidth as nccl-tests defines it [1].

    Parameters
    ----------
    operation
        One of `OPERATIONS`.
    ranks
        GPUs that take part [1].

    References
    ----------
    NVIDIA, nccl-tests, doc/PERFORMANCE.md.
    """
    if operation == "all_reduce":
        return 2.0 * (ranks - 1) / ranks
    if operation in ("all_gather", "reduce_scatter", "all_to_all"):
        return (ranks - 1) / ranks
    return 1.0
