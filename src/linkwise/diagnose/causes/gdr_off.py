"""GPUDirect RDMA is not used: the piece that lets the NIC reach GPU memory is missing or not seen by NCCL."""

from __future__ import annotations

import re

from linkwise.diagnose.facts import Facts, lines_of
from linkwise.diagnose.finding import Confidence, Finding, Severity, finding
from linkwise.readers.job_log.values import ChannelUse, Evidence, Sighting

__all__ = ["gdr_off"]


def gdr_off(facts: Facts) -> Finding | None:
    """Return the finding when channels over InfiniBand or RoCE are not registered for GPUDirect RDMA.

    Parameters
    ----------
    facts
        What is known of the job.

    Notes
    -----
    The NIC's capability lines say whether the piece is there. Where they say it is and channels still lack
    it, the distance denies it, which is another cause; where neither side says anything the channels alone
    decide.
    """
    if _is_without_by_design(facts):
        return None
    over_ib = [each for each in facts.net_channels if each.network.startswith("IB")]
    without = [each for each in over_ib if not each.is_gpudirect]
    disabled = [each for each in facts.seen("gdr_hca") if each.fields["state"] == "Disabled"]
    if (not without and not (disabled and not over_ib)) or _is_denied_by_distance(facts) or facts.is_one_node:
        return None
    # NCCL says it of an RDMA device in use, so that the line alone tells of one where no other line does.
    is_rdma = facts.is_rdma or bool(disabled and not facts.networks and not facts.net_channels)
    if not is_rdma or _is_switched_off(facts):
        return None
    sure = _confidence(facts, over_ib, disabled)
    if sure is None:
        return None
    hosts = _hosts_without(without, disabled)
    return finding(
        "gdr_off",
        Severity.SLOW,
        sure,
        proof=[*disabled, *lines_of(without), *_loaded(facts)],
        where=hosts,
        explanation=_explanation(facts, hosts),
        fix=_fix(facts),
        next_check=(
            "lsmod | grep -E 'nvidia_peermem|nv_peer_mem'; ls /sys/kernel/mm/memory_peers; then look for"
            " GDRDMA in the channel lines"
        ),
    )


def _is_without_by_design(facts: Facts) -> bool:
    """Return whether no module and no setting gives the platform GPUDirect RDMA.

    Notes
    -----
    NCCL reaches Omni-Path (``hfi1``) by verbs, and prints ``GPU Direct RDMA Disabled`` for it:
    https://github.com/NVIDIA/nccl/issues/333. GB10 has neither nvidia-peermem nor DMA-BUF:
    https://forums.developer.nvidia.com/t/dgx-spark-gpudirect-rdma/348787.
    """
    devices = " ".join(each.fields.get("devices") or "" for each in facts.seen("ib_devices"))
    named = {*re.findall(r"\](\w+?)_\d+:", devices)}
    named |= {each.fields["hca"].partition("_")[0] for each in facts.seen("gdr_hca")}
    is_omni_path = bool(named) and all(each == "hfi1" for each in named)
    return is_omni_path or (bool(facts.gpus) and all(each.endswith("GB10") for each in facts.gpus))


def _confidence(facts: Facts, over_ib: list[ChannelUse], disabled: list[Sighting]) -> Confidence | None:
    """Return how sure it is; ``None`` where the platform may be without GPUDirect RDMA by design."""
    if disabled:
        return Confidence.HIGH
    if any(each.is_gpudirect for each in over_ib):
        return Confidence.MEDIUM
    is_denied = any(each.fields["state"] == "Disabled" for each in facts.seen("gdr_path"))
    # GeForce boards have neither peer access nor GPUDirect; behind the CPU it is off by default.
    if is_denied or facts.seen("p2p_level_off") or _are_nics_far(facts):
        return None
    return Confidence.LOW


def _are_nics_far(facts: Facts) -> bool:
    """Return whether a topology matrix shows every NIC behind the CPU from every GPU."""
    pairs = [
        matrix.cells[gpu, nic]
        for _, matrix in facts.log.matrices
        for gpu in matrix.gpus
        for nic in matrix.nics
    ]
    return bool(pairs) and all(cell in {"PHB", "NODE", "SYS"} for cell in pairs)


def _is_denied_by_distance(facts: Facts) -> bool:
    enabled = any(each.fields["state"].lower() == "enabled" for each in facts.seen("gdr_hca"))
    disabled = any(each.fields["state"] == "Disabled" for each in facts.seen("gdr_hca"))
    denied = any(each.fields["state"] == "Disabled" for each in facts.seen("gdr_path"))
    return denied and enabled and not disabled


def _is_switched_off(facts: Facts) -> bool:
    level = facts.value_of("NCCL_NET_GDR_LEVEL")
    return level in {"0", "LOC"}


def _hosts_without(without: list[ChannelUse], disabled: list[Sighting]) -> list[str]:
    named = [each.host for each in disabled if each.host]
    return list(dict.fromkeys(named)) or list(dict.fromkeys(each.host for each in without if each.host))


def _explanation(facts: Facts, hosts: list[str]) -> str:
    text = "Data between nodes is staged in host memory: the NICs are not allowed to reach GPU memory."
    if _is_renamed_module(facts):
        return text + (
            " The module is loaded, but this NCCL looks for it under its old name; NCCL 2.23 and later find"
            " both."
        )
    if set(hosts) < set(facts.hosts):
        return text + f" Only {', '.join(hosts)} lacks it, and that slows every transfer with the others."
    return text + " The kernel module nvidia_peermem is not loaded, or DMA-BUF is not available."


def _is_renamed_module(facts: Facts) -> bool:
    return bool(_loaded(facts)) and facts.version is not None and facts.version < (2, 23)


def _loaded(facts: Facts) -> list[Evidence]:
    """Return the lines of lsmod that show the module."""
    return [
        output.evidence_at(number)
        for output in facts.commands("lsmod")
        for number, line in enumerate(output.lines)
        if line.startswith(("nvidia_peermem", "nv_peer_mem"))
    ]


def _fix(facts: Facts) -> tuple[str, ...]:
    if _is_renamed_module(facts):
        return ("use NCCL 2.23 or later, or DMA-BUF (NCCL_DMABUF_ENABLE=1 on Linux 5.12 or later)",)
    return (
        "modprobe nvidia_peermem on the hosts named here",
        "echo nvidia_peermem > /etc/modules-load.d/nvidia-peermem.conf, so that it survives a reboot",
    )
