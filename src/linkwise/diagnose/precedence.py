"""Which of several findings wins: the one place where causes are weighed against each other.

Notes
-----
The order follows seven rules. (1) What must be changed is named, not what was printed: an echo never wins
over an
earlier cause on any rank. (2) When the data network fell back to TCP that is the finding, whatever made it,
except on
the stacks of AWS and Google. (3) A resource with its own name wins over *container*. (4) A variable with its
own name
(interface, GID index, topology file, rail filter) wins over *env_misuse*. (5) Evidence of hardware or
platform on one
host wins over the errors it causes on others. (6) What the text cannot tell apart is said both ways, the
likelier
first, with low confidence. (7) Where nothing is slow or broken, only harmless findings remain.

Nothing here depends on the order of lines: ranks interleave anew in every log.
"""

from __future__ import annotations

from collections.abc import Iterable

from linkwise.diagnose.finding import Confidence, Finding, Severity

__all__ = ["LIKELIHOOD", "OVER", "settle"]

_ECHOES = ("remote_exit", "ib_error", "bootstrap", "desync", "nccl_bug")
_RDMA_PLACES = ("ib_error", "remote_exit", "desync", "nccl_bug")

OVER: dict[str, tuple[str, ...]] = {
    "test_setup": ("env_misuse", "topology", "gdr_off", "remote_exit", "acs_iommu"),
    "efa": ("socket_fallback", "firewall", "plugin", "gdr_off", "topology", "container", *_ECHOES),
    "tcpx": ("socket_fallback", "container", "plugin", "gdr_off", "firewall", *_ECHOES),
    "socket_fallback": (
        "container", "env_misuse", "driver", "ib_error", "plugin", "rails", "gdr_off", "memlock", "mtu",
        "roce_gid",
    ),
    "duplicate_gpu": ("container", "version", "env_misuse", "host_identity", *_ECHOES),
    "oom": ("rank_killed", "container", "shm", "cumem", "p2p", "firewall", "socket_ifname", *_ECHOES),
    "gpu_hw": ("p2p", "oom", "fabric_manager", "link_flap", "firewall", "driver", *_ECHOES),
    "shm": ("container", "p2p", "firewall", *_ECHOES),
    "memlock": ("container", "dmabuf", "cumem", *_ECHOES),
    "fd_limit": ("container", "ports", "firewall", "socket_ifname", *_ECHOES),
    "ports": ("container", "firewall", "socket_ifname", "env_misuse", *_ECHOES),
    "acs_iommu": ("ib_error", "gdr_off", "p2p", "remote_exit", "desync", "nccl_bug", "cumem", "dmabuf"),
    "dmabuf": ("gdr_off", *_ECHOES),
    "version": ("bootstrap", "nccl_bug", "remote_exit", "desync", "p2p", "firewall", "socket_ifname"),
    "driver": ("version", "fabric_manager", "container", *_ECHOES),
    "mtu": ("roce_gid", *_RDMA_PLACES),
    "rails": ("roce_gid", "env_misuse", "link_flap", "bond", *_RDMA_PLACES),
    "roce_gid": ("env_misuse", "link_flap", *_RDMA_PLACES),
    "link_flap": _RDMA_PLACES,
    "ipv6": ("socket_ifname", "firewall", "env_misuse", *_ECHOES),
    "socket_ifname": ("bootstrap", "env_misuse", "firewall", "remote_exit", "desync", "nccl_bug"),
    "firewall": ("bootstrap", "remote_exit", "desync", "nccl_bug"),
    "bootstrap": ("remote_exit", "desync"),
    "host_identity": ("p2p", "shm", "cumem", "remote_exit", "desync"),
    "cumem": ("shm", "p2p", "remote_exit", "desync"),
    "topology": ("env_misuse", "gdr_off", "remote_exit", "desync", "nccl_bug"),
    "mnnvl": ("fabric_manager", "cumem", "p2p", "remote_exit", "desync"),
    "fabric_manager": ("p2p", "remote_exit", "desync", "nccl_bug"),
    "container": ("p2p", "fabric_manager", "ib_error", "remote_exit", "desync", "nccl_bug"),
    "sharp": ("plugin", "remote_exit", "desync"),
    "plugin": ("remote_exit", "desync"),
    "env_misuse": ("p2p", "remote_exit", "desync", "nccl_bug"),
    "p2p": ("remote_exit", "desync", "nccl_bug"),
    "ib_error": ("remote_exit", "desync", "nccl_bug"),
    "gdr_off": ("nccl_bug",),
    "desync": ("nccl_bug",),
    "bond": (),
    "node_lost": ("rank_frozen", "link_down"),
    "rank_killed": ("remote_exit",),
    "elastic_store": ("bootstrap",),
    "rank_frozen": ("remote_exit", "link_down"),
    "slow_node": ("slow_link", "link_flap"),
}  # fmt: skip
"""Of each cause, those that it explains: they are dropped when this one is at least as sure."""

LIKELIHOOD: tuple[str, ...] = (
    "test_setup", "duplicate_gpu", "gpu_hw", "oom", "efa", "tcpx", "socket_fallback", "shm", "memlock",
    "fd_limit",
    "ports", "acs_iommu", "dmabuf", "driver", "version", "host_identity", "mtu", "rails", "roce_gid",
    "link_flap",
    "ipv6", "socket_ifname", "firewall", "container", "mnnvl", "fabric_manager", "cumem", "topology", "sharp",
    "plugin", "env_misuse", "gdr_off", "p2p", "bond", "bootstrap", "ib_error", "desync", "nccl_bug",
    "node_lost", "rank_killed", "rank_frozen", "link_down", "elastic_store", "slow_node", "slow_link",
    "remote_exit",
    "harmless",
)  # fmt: skip
"""All causes, the one to be named first of two that are equally bad and equally sure."""

_SEVERITIES = tuple(Severity)
_CONFIDENCES = tuple(Confidence)


def settle(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings that stand, worst and surest first.

    Parameters
    ----------
    findings
        What the rules gave.
    """
    given = tuple(findings)
    standing = [each for each in given if not any(_explains(other, each) for other in given)]
    return tuple(sorted(standing, key=_rank))


def _explains(winner: Finding, other: Finding) -> bool:
    if winner is other:
        return False
    if other.cause == "remote_exit" and other.confidence is not Confidence.HIGH:
        # A closed connection is an echo, and loses to any fault, however unsure that is.
        return winner.severity is Severity.BROKEN
    if other.cause not in OVER.get(winner.cause, ()):
        return False
    if winner.severity is Severity.HARMLESS and other.severity is not Severity.HARMLESS:
        return False
    if winner.confidence is Confidence.LOW:
        return False
    return _CONFIDENCES.index(winner.confidence) <= _CONFIDENCES.index(other.confidence)


def _rank(each: Finding) -> tuple[int, int, int]:
    return (
        _SEVERITIES.index(each.severity),
        _CONFIDENCES.index(each.confidence),
        LIKELIHOOD.index(each.cause),
    )
