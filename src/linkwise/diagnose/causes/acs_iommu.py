"""PCIe ACS redirect, or an IOMMU that translates, breaks or slows traffic between GPUs, or GPU and NIC."""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.diagnose.facts import Facts, lines_of
from linkwise.diagnose.finding import Confidence, Finding, Severity, finding
from linkwise.diagnose.progress import has_progressed, plateau_fraction
from linkwise.diagnose.verbs import LOCAL_PROTECTION, completions
from linkwise.readers.job_log.values import Evidence, Sighting

__all__ = ["acs_iommu"]

_HALF = (0.4, 0.62)


def acs_iommu(facts: Facts) -> Finding | None:
    """Return the finding on the host's word, on local protection errors, or on half the rate.

    Parameters
    ----------
    facts
        What is known of the job.
    """
    host = _host_evidence(facts)
    protection = completions(facts, LOCAL_PROTECTION)
    if host and _goes_peer_to_peer(facts):
        stops = bool(protection) or not has_progressed(facts)
        return _found(
            Severity.BROKEN if stops else Severity.SLOW,
            Confidence.HIGH,
            [*host, *protection],
            "The host redirects PCIe traffic between devices through the CPU: ACS is on at its bridges, or"
            " the IOMMU translates. Peer-to-peer transfers then hang, fail, or run at a fraction of the"
            " rate.",
        )
    if protection and _registers_gpu_memory(facts):
        return _found(
            Severity.BROKEN,
            Confidence.HIGH if not facts.seen("gdr_hca") or _is_gdr_on(facts) else Confidence.MEDIUM,
            list(protection),
            "The NIC may not reach the memory it was given (local protection error) while GPUDirect RDMA is"
            " on. That is the sign of PCIe ACS or an IOMMU between NIC and GPU.",
        )
    fraction = plateau_fraction(facts)
    if fraction is not None and _HALF[0] < fraction < _HALF[1] and _is_gdr_on(facts):
        return _found(
            Severity.SLOW,
            Confidence.LOW,
            lines_of(each for each in facts.net_channels if each.is_gpudirect),
            f"GPUDirect RDMA is in use, and the bus bandwidth stays at {fraction:.0%} of the slowest NICs"
            " that could carry it. Traffic that ACS redirects through the CPU runs at about that.",
        )
    return _setting_missing(facts)


def _setting_missing(facts: Facts) -> Finding | None:
    """Find RCCL's word that the kernel was booted without a setting of the IOMMU; most jobs run without."""
    lines = facts.warned("iommu_setting_missing")
    if not lines:
        return None
    return _found(
        Severity.BROKEN if facts.has_failed else Severity.HARMLESS,
        Confidence.LOW,
        list(lines),
        f"RCCL finds no {lines[0].fields['setting']} among the kernel's settings, without which an IOMMU may"
        " stand between the GPUs. It says so on every such host, also where all is well.",
    )


def _found(
    severity: Severity, confidence: Confidence, proof: Sequence[Sighting | Evidence], explanation: str
) -> Finding:
    return finding(
        "acs_iommu",
        severity,
        confidence,
        proof=proof,
        explanation=explanation,
        fix=(
            "setpci -s BRIDGE ECAP_ACS+0x6.w=0000 on every PCIe bridge, at each boot (bare metal)",
            "boot with iommu=pt (intel_iommu=off or amd_iommu=off where no virtual machine needs it)",
            "in a virtual machine, enable ATS on the NIC and ask the provider for GPUDirect settings",
        ),
        next_check="sudo lspci -vvv | grep ACSCtl (SrcValid+ is wrong); cat /proc/cmdline;"
        " NCCL_P2P_DISABLE=1 as a test",
    )


def _host_evidence(facts: Facts) -> list[Sighting]:
    redirecting = [
        each
        for each in facts.seen("acs")
        if "SrcValid+" in each.fields["flags"] or "ReqRedir+" in each.fields["flags"]
    ]
    translating = [
        each
        for each in facts.seen("iommu_boot")
        if each.fields["value"] in {"on", "force"} and "iommu=pt" not in each.evidence.text
    ]
    return [*redirecting, *facts.seen("iommu_fault"), *translating]


def _goes_peer_to_peer(facts: Facts) -> bool:
    """Return whether the job moves data between devices; where no channel is seen, it may."""
    if not facts.channels:
        return True
    return any(each.kind == "P2P" or each.is_gpudirect for each in facts.channels)


def _registers_gpu_memory(facts: Facts) -> bool:
    return not facts.net_channels or _is_gdr_on(facts)


def _is_gdr_on(facts: Facts) -> bool:
    return any(each.is_gpudirect for each in facts.net_channels)
