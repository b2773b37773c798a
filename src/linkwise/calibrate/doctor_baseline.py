"""What a plain search for words says of a log: the yardstick that the doctor must beat."""

from __future__ import annotations

__all__ = ["WORDS", "words_say"]

WORDS: tuple[tuple[str, str], ...] = (
    ("Duplicate GPU detected", "duplicate_gpu"),
    ("Too many open files", "fd_limit"),
    ("No space left on device", "shm"),
    ("out of memory", "oom"),
    ("Cannot allocate memory", "memlock"),
    ("Xid", "gpu_hw"),
    ("uncorrectable", "gpu_hw"),
    ("NET/OFI Request", "efa"),
    ("any optimal provider", "efa"),
    ("ibv_reg_dmabuf_mr failed", "dmabuf"),
    ("ibv_modify_qp failed", "roce_gid"),
    ("Got completion", "ib_error"),
    ("no socket interface found", "socket_ifname"),
    ("No route to host", "firewall"),
    ("fe80", "ipv6"),
    ("Address already in use", "ports"),
    ("insufficient for CUDA runtime", "driver"),
    ("Watchdog caught", "desync"),
    ("no algorithm/protocol", "env_misuse"),
    ("not found", "topology"),
    ("nvls.cc", "fabric_manager"),
    ("Connection closed by remote peer", "remote_exit"),
    ("GPU Direct RDMA Disabled", "gdr_off"),
    ("via NET/Socket", "socket_fallback"),
    ("No device found", "socket_fallback"),
    ("NCCL WARN", "nccl_bug"),
)
"""What one would grep for, most telling first, and the cause one would then name."""


def words_say(text: str) -> str:
    """Return the cause of the first word found; empty where none is.

    Parameters
    ----------
    text
        All inputs of a case.
    """
    return next((cause for word, cause in WORDS if word in text), "")
