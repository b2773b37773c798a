"""Peer access between GPUs of one host fails, is exhausted, or is off between GPUs that have NVLink."""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.diagnose.facts import Facts
from linkwise.diagnose.finding import Confidence, Finding, Severity, finding
from linkwise.diagnose.peers import shared_memory_despite_nvlink
from linkwise.readers.job_log.values import Evidence, Sighting

__all__ = ["p2p"]

_REFUSED = ("peer access", "peer mapping", "invalid device context", "mapping of buffer object failed")


def p2p(facts: Facts) -> Finding | None:
    """Return the finding when CUDA refuses peer access, or NCCL warns that it is off over NVLink.

    Parameters
    ----------
    facts
        What is known of the job.
    """
    peers = facts.warned("peer_failed", "ipc_failed")
    refused = [each for each in facts.warned("cuda_failure") if "p2p" in each.source and _is_refused(each)]
    if peers or refused:
        exhausted = any("exhausted" in each.fields.get("text", "") for each in peers)
        return _found(
            Severity.BROKEN,
            Confidence.HIGH if exhausted or facts.warned("peer_failed") else Confidence.MEDIUM,
            [*peers, *refused, *_display_servers(facts)],
            "CUDA lets a GPU map eight peers, and all are taken, as by a display server on every GPU."
            if exhausted
            else "CUDA refuses peer access between two GPUs of a host, so NCCL cannot connect them.",
        )
    if asked := facts.seen("peer_unsupported"):
        # cudaErrorPeerAccessUnsupported (217) of a program that asks for peer access itself.
        return _found(
            Severity.BROKEN,
            Confidence.HIGH,
            list(asked),
            "CUDA says that two GPUs have no peer access. A program that does not ask first, such as an"
            " all-reduce of its own beside NCCL, stops there (vLLM: --disable-custom-all-reduce).",
        )
    warned = facts.warned("p2p_nvlink_off")
    staged = shared_memory_despite_nvlink(facts)
    if warned:
        return _found(
            Severity.BROKEN if facts.has_failed else Severity.SLOW,
            Confidence.HIGH,
            [*warned, *staged],
            "Two GPUs have NVLink and may not use it; NCCL calls that a fault of the hardware or of the"
            " driver.",
        )
    if not staged or facts.settings("NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL"):
        return None
    return _found(
        Severity.SLOW,
        Confidence.MEDIUM,
        staged,
        "GPUs that have NVLink exchange data through host memory, many times slower.",
    )


def _is_refused(line: Sighting) -> bool:
    return any(word in line.fields.get("text", "") for word in _REFUSED)


def _display_servers(facts: Facts) -> list[Evidence]:
    return [
        output.evidence_at(number)
        for output in facts.commands("nvidia-smi")
        for number, line in enumerate(output.lines)
        if "Xorg" in line or "gnome-shell" in line
    ][:2]


def _found(
    severity: Severity,
    confidence: Confidence,
    proof: Sequence[Sighting | Evidence],
    explanation: str,
) -> Finding:
    return finding(
        "p2p",
        severity,
        confidence,
        proof=proof,
        explanation=explanation + " NCCL_P2P_DISABLE=1 avoids it at the price of speed.",
        fix=(
            "stop display servers and other processes on the GPUs: systemctl isolate multi-user.target",
            "nvidia-smi topo -p2p r must print OK for every pair; update the driver, reset the GPUs",
        ),
        next_check="nvidia-smi topo -p2p r; nvidia-smi nvlink -s; p2pBandwidthLatencyTest of the CUDA"
        " samples",
    )
