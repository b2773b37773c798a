"""A GPU or an NVLink is faulty."""

from __future__ import annotations

import re

from linkwise.diagnose.degraded import degraded
from linkwise.diagnose.facts import Facts
from linkwise.diagnose.finding import Confidence, Finding, Severity, finding
from linkwise.readers.job_log.values import Sighting

__all__ = ["gpu_hw"]

_HARDWARE_XIDS = frozenset(
    {
        48, 54, 62, 64, 69, 74, 79, 92, 94, 95, 110, 119, 120, 121, 136, 140, 142, 143, 144, 145, 146, 147,
        148, 149, 150, 151, 154, 155, 156, 158, 160, 161, 163, 165, 167, 168, 170, 171, 172, 173,
    }
)  # fmt: skip
"""Xids that NVIDIA lists as of the GPU, its memory, its firmware or NVLink; 13, 31, 43 and 45 are of
programs."""

_CAUSED_BY = re.compile(r"caused by previous Xid (\d{1,4})\b")
"""What the driver adds to Xid 45, the end of a channel, where another Xid led to it."""

_HARDWARE_TEXTS = ("uncorrectable", "ECC error", "GPU is lost", "hardware stack error", "GPU requires reset")


def gpu_hw(facts: Facts) -> Finding | None:
    """Return the finding when the driver reports a fault of a GPU or link, or CUDA names one.

    Parameters
    ----------
    facts
        What is known of the job.

    References
    ----------
    NVIDIA, *XID errors*, catalogue of Xids, https://docs.nvidia.com/deploy/xid-errors, 2025.
    """
    xids = [each for each in facts.seen("xid") if _is_hardware_xid(each)]
    switches = [each for each in facts.seen("sxid") if "Non-fatal" not in each.fields.get("detail", "")]
    named = [each for each in facts.seen("cuda_failure", "cuda_error", "nvml_failed") if _is_hardware(each)]
    lines = [*xids, *switches, *facts.seen("gpu_lost"), *named]
    if not lines:
        return degraded(facts)
    return finding(
        "gpu_hw",
        Severity.BROKEN,
        Confidence.HIGH,
        proof=lines,
        where=[*_hosts(lines), *_devices([*xids, *switches])] or None,
        explanation=(
            "The driver reports a fault of a GPU or of its NVLinks. Ranks on other hosts then time out or"
            " lose their connections; those lines are echoes."
        ),
        fix=(
            (
                "drain the host, reset the GPU (nvidia-smi --gpu-reset) or power-cycle it, and run dcgmi"
                " diag -r 3"
            ),
            "have the board replaced where the Xid comes back",
        ),
        next_check="dmesg | grep -E 'Xid|SXid'; nvidia-smi nvlink -e; nvidia-smi -q -d ECC",
    )


def _hosts(lines: list[Sighting]) -> list[str]:
    """Return the hosts as NCCL or the system's log names them."""
    return [host for each in lines if (host := each.host or each.fields.get("host"))]


def _is_hardware_xid(line: Sighting) -> bool:
    earlier = _CAUSED_BY.search(line.fields["detail"])
    return int(earlier[1] if earlier else line.fields["xid"]) in _HARDWARE_XIDS


def _is_hardware(line: Sighting) -> bool:
    return any(word in line.fields.get("text", "") for word in _HARDWARE_TEXTS)


def _devices(lines: list[Sighting]) -> list[str]:
    return [f"GPU at PCI {each.fields['bus']}" for each in lines if each.what == "xid"]
