"""An NCCL variable breaks or slows something."""

from __future__ import annotations

from linkwise.diagnose.facts import Facts, lines_of
from linkwise.diagnose.finding import Confidence, Finding, Severity, finding
from linkwise.diagnose.peers import has_near_gpus, shared_memory_channels, shared_memory_despite_nvlink
from linkwise.diagnose.transport import nics_of
from linkwise.readers.job_log.values import Evidence, Sighting

__all__ = ["env_misuse"]

_MUST_AGREE = (
    "NCCL_ALGO",
    "NCCL_PROTO",
    "NCCL_BUFFSIZE",
    "NCCL_NTHREADS",
    "NCCL_LL_BUFFSIZE",
    "NCCL_LL128_BUFFSIZE",
    "NCCL_MIN_NCHANNELS",
    "NCCL_MAX_NCHANNELS",
    "NCCL_CROSS_NIC",
    "NCCL_IB_SPLIT_DATA_ON_QPS",
    "NCCL_IB_QPS_PER_CONNECTION",
    "NCCL_CHECKS_DISABLE",
)


def env_misuse(facts: Facts) -> Finding | None:
    """Return the finding when a variable that is shown explains an effect that is seen.

    Parameters
    ----------
    facts
        What is known of the job.
    """
    rules = (
        _malformed,
        _no_algorithm,
        _differing,
        _peer_off,
        _gpudirect_off,
        _unknown_device,
        _prefix_of_many,
        _narrowed,
    )
    return next((found for rule in rules if (found := rule(facts)) is not None), None)


def _malformed(facts: Facts) -> Finding | None:
    lines = facts.warned("comm_id_invalid")
    if not lines:
        return None
    name = lines[0].fields["name"]
    return _found(
        Severity.BROKEN,
        Confidence.HIGH,
        [*lines, *facts.settings(name)],
        explanation=f"{name} has a value that NCCL cannot read.",
        fix=(f"write {name} as ADDRESS:PORT, [IPV6]:PORT or NAME:PORT, or unset it",),
        check=f"env | grep {name}",
    )


def _no_algorithm(facts: Facts) -> Finding | None:
    lines = facts.warned("no_algorithm")
    if not lines:
        return None
    forced = facts.settings("NCCL_ALGO", "NCCL_PROTO")
    names = " and ".join(
        f"{each.fields['name']}={each.fields.get('value', '')}" for each in _distinct(forced)
    )
    return _found(
        Severity.BROKEN,
        Confidence.HIGH if forced else Confidence.MEDIUM,
        [*lines, *forced],
        explanation=f"{names or 'NCCL_ALGO or NCCL_PROTO'} leaves no way to run a collective: not every"
        " algorithm and protocol exists for every collective and data type (Tree is for all-reduce only).",
        fix=("unset NCCL_ALGO NCCL_PROTO, also in /etc/nccl.conf",),
        check="env | grep -E 'NCCL_(ALGO|PROTO)' on every rank",
    )


def _differing(facts: Facts) -> Finding | None:
    """Find values that differ between processes where all must agree, beside a sign that they do not."""
    signs = facts.warned("mismatch", "wrong_handshake")
    if not signs:
        return None
    for name in _MUST_AGREE:
        lines = facts.settings(name)
        values = {each.fields.get("value", "") for each in lines}
        if len(values) > 1:
            return _found(
                Severity.BROKEN,
                Confidence.HIGH,
                [*signs, *_distinct(lines)],
                explanation=f"{name} has different values on the ranks ({', '.join(sorted(values))}); they"
                " then expect different messages from one another.",
                fix=(f"set {name} alike on all ranks, or nowhere",),
                check=f"env | grep {name} on every rank; /etc/nccl.conf on every host",
            )
    return None


def _peer_off(facts: Facts) -> Finding | None:
    """Find peer access switched off by hand while GPUs of a node talk through host memory."""
    off = [each for each in facts.settings("NCCL_P2P_DISABLE") if each.fields.get("value") == "1"]
    # Up to NCCL 2.22 NCCL_P2P_DISABLE=1 is shown as the level it sets.
    low = [each for each in facts.settings("NCCL_P2P_LEVEL") if each.fields.get("value") in {"LOC", "0"}]
    staged = lines_of(shared_memory_channels(facts))
    if not (off or low) or not staged or facts.seen("p2p_level_off") or has_near_gpus(facts) is False:
        return None
    despite = shared_memory_despite_nvlink(facts)
    return _found(
        Severity.SLOW,
        Confidence.HIGH if despite else Confidence.MEDIUM,
        [*off, *low, *(despite or staged)],
        explanation="Direct transfers between GPUs are switched off (NCCL_P2P_DISABLE=1, which older"
        " releases show as NCCL_P2P_LEVEL=LOC), and data goes through host memory instead.",
        fix=("unset NCCL_P2P_DISABLE NCCL_P2P_LEVEL, also in /etc/nccl.conf",),
        check="nvidia-smi topo -m and topo -p2p r: what the GPUs could use",
    )


def _gpudirect_off(facts: Facts) -> Finding | None:
    lines = [
        *(each for each in facts.settings("NCCL_NET_GDR_LEVEL") if each.fields.get("value") in {"LOC", "0"}),
        *(each for each in facts.settings("NCCL_IB_CUDA_SUPPORT") if each.fields.get("value") == "0"),
    ]
    without = lines_of(each for each in facts.net_channels if not each.is_gpudirect)
    if not lines or not without or not facts.is_rdma:
        return None
    return _found(
        Severity.SLOW,
        Confidence.HIGH,
        [*lines, *without],
        explanation="GPUDirect RDMA is switched off by a variable, and transfers are staged in host memory."
        " It is often left over from a test of PCIe ACS.",
        fix=("unset NCCL_NET_GDR_LEVEL NCCL_IB_CUDA_SUPPORT",),
        check="look for GDRDMA in the channel lines",
    )


def _unknown_device(facts: Facts) -> Finding | None:
    """Find a name in the list of devices that no device in use has."""
    for each in facts.settings("NCCL_IB_HCA"):
        value = each.fields.get("value", "")
        names = [name.split(":")[0] for name in value.lstrip("=").split(",") if name]
        listed = [line for line in facts.seen("ib_devices") if line.host == each.host and nics_of(line)]
        used = {nic.split(":")[0] for line in listed for nic in nics_of(line)}
        missing = [name for name in names if not any(nic.startswith(name) for nic in used)]
        if value.startswith("^") or not used or not missing:
            continue
        return _found(
            Severity.SLOW,
            Confidence.MEDIUM,
            [each, *listed],
            explanation=f"NCCL_IB_HCA names {', '.join(missing)}, and no active device has that name: a"
            " misspelling, or a port that is down. Its share of the bandwidth is missing.",
            fix=("name devices as ibv_devices lists them, or unset NCCL_IB_HCA",),
            check="ibv_devices; ibstat on the host named here",
        )
    return None


def _prefix_of_many(facts: Facts) -> Finding | None:
    """Find a name that selects more devices than it reads, because names are prefixes."""
    for each in facts.settings("NCCL_IB_HCA"):
        value = each.fields.get("value", "")
        if value.startswith(("=", "^")) or not value:
            continue
        names = [name.split(":")[0] for name in value.split(",") if name]
        listed = [line for line in facts.seen("ib_devices") if line.host == each.host]
        used = {nic.split(":")[0] for line in listed for nic in nics_of(line)}
        extra = sorted(
            nic for nic in used if nic not in names and any(nic.startswith(name) for name in names)
        )
        exact = any(name in used for name in names)
        if extra and exact:
            return _found(
                Severity.SLOW,
                Confidence.MEDIUM,
                [each, *listed],
                explanation=f"NCCL_IB_HCA={value} also selects {', '.join(extra)}: names are prefixes unless"
                " the list starts with an equals sign.",
                fix=(f"NCCL_IB_HCA=={value}",),
                check="the devices after 'NET/IB : Using'",
            )
    return None


def _narrowed(facts: Facts) -> Finding | None:
    """Find settings that cap the rate: one or two channels, or the protocol of small messages."""
    for each in facts.settings("NCCL_MAX_NCHANNELS", "NCCL_PROTO", "NCCL_NTHREADS"):
        name, value = each.fields["name"], each.fields.get("value", "")
        few = name == "NCCL_MAX_NCHANNELS" and value in {"1", "2"}
        small = name == "NCCL_PROTO" and value.upper() == "LL"
        if few or small:
            return _found(
                Severity.SLOW,
                Confidence.MEDIUM,
                [each],
                explanation=f"{name}={value} caps the bandwidth of large messages: "
                + ("few channels use few links." if few else "LL moves half payload, half flags."),
                fix=(f"unset {name}",),
                check="all_reduce_perf with and without it",
            )
    return None


def _distinct(lines: tuple[Sighting, ...]) -> list[Sighting]:
    found = {(each.fields["name"], each.fields.get("value", "")): each for each in reversed(lines)}
    return list(found.values())


def _found(
    severity: Severity,
    confidence: Confidence,
    proof: list[Sighting | Evidence],
    *,
    explanation: str,
    fix: tuple[str, ...],
    check: str,
) -> Finding:
    return finding(
        "env_misuse", severity, confidence, proof=proof, explanation=explanation, fix=fix, next_check=check
    )
