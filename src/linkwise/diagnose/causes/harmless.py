"""Alarming text without effect: probes, notices, designs without a feature."""

from __future__ import annotations

from linkwise.diagnose.facts import Facts
from linkwise.diagnose.finding import Confidence, Finding, Severity, finding

__all__ = ["harmless"]

_NOTICES = {
    "mlx5dv_missing": "an optional interface of newer NICs was looked for and not found",
    "p2p_level_off": "these GPUs have no peer access by design, and NCCL goes through host memory",
    "topology_gap": "a virtual machine does not show its PCIe links, and a topology file stands in for them",
    "cumem_host_off": "an optional kind of host memory is not available, and /dev/shm is used",
    "plugin_probe": "older interfaces of a plug-in were probed",
    "ras_port": "another job of the host has the port that NCCL's status service asks for",
    "numa_balancing": "the kernel moves memory between NUMA nodes by itself, and the rate may vary a little"
    " (sysctl kernel.numa_balancing=0 ends that)",
    "port_speed_unread": "the NIC does not tell its rate in the newest way, and NCCL takes the older",
    "setting_limited": "a setting outside its bounds is cut to them or left out",
    "feature_left": "NCCL does without something that is optional",
    "registration_failed": "a buffer is not registered, and data goes through NCCL's own",
    "socket_steering": "the fast-socket plug-in cannot steer connections, and uses them as they come",
    "ib_verbs_missing": "there is no InfiniBand library, and NCCL goes on without",
}


def harmless(facts: Facts) -> Finding | None:
    """Return the finding for notices that look like faults and are none.

    Parameters
    ----------
    facts
        What is known of the job.
    """
    lines = [each for name in _NOTICES for each in facts.seen(name)]
    if not lines:
        return None
    kinds = dict.fromkeys(_NOTICES[each.what] for each in lines)
    return finding(
        "harmless",
        Severity.HARMLESS,
        Confidence.HIGH,
        proof=lines,
        explanation=f"These lines tell of nothing wrong: {'; '.join(kinds)}.",
        fix=("nothing",),
        next_check="none is needed",
    )
