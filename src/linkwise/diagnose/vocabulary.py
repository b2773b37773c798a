"""The causes that a finding may name, and the family each belongs to."""

from __future__ import annotations

__all__ = ["FAMILIES", "family_of", "title_of"]

FAMILIES: dict[str, dict[str, str]] = {
    "network choice": {
        "socket_fallback": "the data network fell back to TCP sockets",
        "efa": "the AWS stack is incomplete or shut off",
        "tcpx": "Google's TCPX or TCPXO stack is incomplete",
        "plugin": "a plug-in of NCCL is broken or chosen wrongly",
    },
    "RDMA": {
        "gdr_off": "GPUDirect RDMA is off",
        "dmabuf": "registering GPU memory as DMA-BUF fails",
        "acs_iommu": "PCIe ACS or an IOMMU is in the way of peer-to-peer traffic",
        "roce_gid": "RoCE addresses do not reach each other",
        "mtu": "the MTU differs or does not fit",
        "rails": "the NICs of the hosts do not pair",
        "bond": "one flow uses one port of a bond",
        "link_flap": "a link goes down and up",
        "ib_error": "an RDMA operation fails",
        "memlock": "the limit of locked memory is too low",
        "sharp": "reduction in the switches (SHARP) fails",
    },
    "TCP": {
        "bootstrap": "NCCL's start over TCP fails",
        "socket_ifname": "the wrong interface is used",
        "firewall": "a filter drops or rejects TCP",
        "ipv6": "an IPv6 address is used that the peer cannot reach",
        "ports": "TCP ports run out",
        "fd_limit": "too many open files",
        "link_down": "the network between nodes carries nothing any more",
        "slow_link": "a link between nodes carries less than it did",
    },
    "inside a node": {
        "p2p": "GPUs cannot reach each other directly",
        "shm": "/dev/shm is too small or not shared",
        "cumem": "GPU memory cannot be shared through cuMem",
        "fabric_manager": "the NVSwitch service is not in order",
        "mnnvl": "NVLink across trays is not in order",
        "host_identity": "NCCL takes hosts for one another",
        "container": "the container hides or shares what it should not",
        "topology": "NCCL's picture of the machine is wrong",
        "duplicate_gpu": "two ranks use one GPU",
        "gpu_hw": "a GPU or NVLink is faulty",
        "oom": "memory is full",
        "slow_node": "a node computes slower than it did",
        "node_lost": "a node is gone with all its ranks",
    },
    "software": {
        "version": "NCCL versions differ or are too old",
        "driver": "the CUDA driver is too old or mismatched",
        "nccl_bug": "a fault of this NCCL version",
        "env_misuse": "an NCCL variable does harm",
    },
    "program": {
        "desync": "ranks do not issue the same collective",
        "remote_exit": "another process died",
        "rank_killed": "a rank was ended from outside, by SIGKILL or SIGTERM",
        "rank_frozen": "a rank neither goes on nor ends",
        "elastic_store": "ranks that torchrun starts again find the addresses of the ended ones",
        "test_setup": "the measurement is not what it seems",
    },
    "harmless": {"harmless": "alarming text without effect"},
}
"""Families of causes; of each cause what it is."""

_FAMILY = {cause: family for family, causes in FAMILIES.items() for cause in causes}


def family_of(cause: str) -> str:
    """Return the family of a cause.

    Parameters
    ----------
    cause
        A word of the vocabulary.
    """
    return _FAMILY[cause]


def title_of(cause: str) -> str:
    """Return what a cause is, in a few words.

    Parameters
    ----------
    cause
        A word of the vocabulary.
    """
    return FAMILIES[_FAMILY[cause]][cause]
