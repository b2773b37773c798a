"""What NCCL sees of a communicator when it chooses, and which choices its variables leave."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["ALGORITHMS", "NO_LIMITS", "PROTOCOLS", "Communicator", "Limits", "limits_of", "release_of"]

ALGORITHMS = ("ring", "tree", "nvls", "nvls_tree")
PROTOCOLS = ("ll", "ll128", "simple")


@dataclass(frozen=True, slots=True, kw_only=True)
class Communicator:
    """The ranks of a collective, and the rates NCCL plans with.

    Parameters
    ----------
    ranks
        GPUs that take part [1].
    domains
        What NCCL calls nodes: NVLink domains, or hosts without NVLink [1].
    generation
        ``volta``, ``ampere``, ``hopper``, ``blackwell``, ``amd``, or ``pcie`` where GPUs meet over PCIe.
    local_bytes_per_s
        Rate of a GPU inside its domain that NCCL plans with, one direction [bytes/s].
    network_bytes_per_s
        All NICs of a domain at line rate, one direction; 0 for one domain [bytes/s].
    release
        NCCL release, such as ``(2, 27)``; ``None`` takes today's constants.
    has_multicast
        Whether the NVLink switch reduces and multicasts (NVLS).
    """

    ranks: int
    domains: int
    generation: str
    local_bytes_per_s: float
    network_bytes_per_s: float
    release: tuple[int, int] | None = None
    has_multicast: bool = False

    @property
    def ranks_per_domain(self) -> float:
        """Return ranks over domains [1]."""
        return self.ranks / self.domains


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Algorithms and protocols that may be chosen."""

    algorithms: frozenset[str] = frozenset(ALGORITHMS)
    protocols: frozenset[str] = frozenset(PROTOCOLS)


NO_LIMITS = Limits()
"""What NCCL may choose from when no variable is set."""


def limits_of(variables: Mapping[str, str]) -> Limits:
    """Return what NCCL's variables leave to choose from.

    Parameters
    ----------
    variables
        NCCL_ALGO and NCCL_PROTO (names with commas; ``^`` before them excludes), NCCL_NVLS_ENABLE; others
        do not limit the choice. Names NCCL does not know are ignored, as NCCL does.
    """
    algorithms = _listed(variables.get("NCCL_ALGO", ""), ALGORITHMS)
    if variables.get("NCCL_NVLS_ENABLE") == "0":
        algorithms -= {"nvls", "nvls_tree"}
    return Limits(algorithms=algorithms, protocols=_listed(variables.get("NCCL_PROTO", ""), PROTOCOLS))


def _listed(text: str, known: tuple[str, ...]) -> frozenset[str]:
    plain = {name.replace("_", ""): name for name in known}
    words = {word.strip().lower().replace("_", "") for word in text.lstrip("^").split(",")}
    named = frozenset(plain[word] for word in words if word in plain)
    if not named:
        return frozenset(known)
    return frozenset(known) - named if text.startswith("^") else named


def release_of(text: str) -> tuple[int, int] | None:
    """Return major and minor number of an NCCL version such as ``2.27.3``; ``None`` where it names none."""
    match = re.match(r"\s*(2)\.(\d{1,3})(?:\D|$)", text)
    return (int(match[1]), int(match[2])) if match else None
