"""The NVSwitch service is not running, was restarted without a reset of the GPUs, or refuses multicast."""

from __future__ import annotations

from linkwise.diagnose.facts import Facts
from linkwise.diagnose.finding import Confidence, Finding, Severity, finding
from linkwise.diagnose.nvls import goes_on, lacks_capabilities, multicast_failures
from linkwise.readers.job_log.values import Evidence

__all__ = ["fabric_manager"]


def fabric_manager(facts: Facts) -> Finding | None:
    """Return the finding when CUDA waits for the fabric, or multicast memory cannot be bound.

    Parameters
    ----------
    facts
        What is known of the job.

    Notes
    -----
    A container without the capability devices prints the same of multicast; the host's listing of devices
    tells.
    """
    waiting = facts.seen("fabric_not_ready")
    if waiting:
        return finding(
            "fabric_manager",
            Severity.BROKEN,
            Confidence.HIGH,
            proof=waiting,
            explanation=(
                "CUDA does not start (error 802): on a board with NVSwitches the fabric manager must have"
                " set up NVLink first. It is not installed, not running, or of another release than the"
                " driver."
            ),
            fix=(
                "install nvidia-fabricmanager of the driver's very release",
                "systemctl enable --now nvidia-fabricmanager",
            ),
            next_check="systemctl status nvidia-fabricmanager; nvidia-smi -q | grep -A2 Fabric",
        )
    lines = multicast_failures(facts)
    if not lines:
        return None
    journal = _journal(facts)
    lacking = lacks_capabilities(facts)
    sure = Confidence.HIGH if journal else Confidence.LOW if lacking else Confidence.MEDIUM
    return finding(
        "fabric_manager",
        Severity.SLOW if goes_on(lines) and not facts.has_failed else Severity.BROKEN,
        sure,
        proof=[*lines, *journal],
        explanation=(
            "The GPU refuses the multicast memory of NVLink SHARP. Nearly always the fabric manager was"
            " restarted without a reset of the GPUs, or is not set up for multicast; a container without"
            " the capability devices prints the same."
        ),
        fix=(
            "stop all GPU processes, systemctl restart nvidia-fabricmanager, nvidia-smi --gpu-reset",
            "NCCL_NVLS_ENABLE=0 runs without NVLS until then",
        ),
        next_check="run all_reduce_perf on the host itself: if that works it is the container",
    )


def _journal(facts: Facts) -> list[Evidence]:
    return [
        output.evidence_at(number)
        for word in ("fabricmanager", "fabric-manager")
        for output in facts.commands(word)
        for number, line in enumerate(output.lines)
        if any(sign in line for sign in ("Stopped", "inactive", "failed", "dead", "Connected to"))
    ]
