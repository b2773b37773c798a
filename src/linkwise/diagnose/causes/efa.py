"""The AWS stack: the provider or the plug-in is missing, or a security group shuts EFA off."""

from __future__ import annotations

import re

from linkwise.diagnose.facts import Facts, lines_of
from linkwise.diagnose.finding import Confidence, Finding, Severity, finding
from linkwise.readers.job_log.values import Evidence, Sighting

__all__ = ["efa"]

_EFA_DEVICE = re.compile(r"(?<![\w.-])rdmap\d+s\d+(?:f\d+)?(?![\w-])")
"""rdma-core names a device so by its place where it is neither InfiniBand (ibp), RoCE (rocep) nor iWARP."""
_WITH_GPUDIRECT = ("p4", "p5", "p6")
_STOPS = re.compile(
    r"Disabling shared memory failed|[Ii]nitiali[sz](?:ation|ing plugin) failed"
    r"|[Ff]ailed to (?:initiali[sz]e|find|open|create|register|allocate)"
    r"|Unable to (?:find a protocol|create|open|allocate)|NCCL failure|fi_getinfo"
    r"|(?:Could not|Couldn't|Cannot) (?:open|create|make|allocate|register|enable|bind|insert)"
    r"|completed with error|RC: -(?!38\b)\d+"
)


def efa(facts: Facts) -> Finding | None:
    """Return the finding when lines of the OFI plug-in or of libfabric tell of it.

    Parameters
    ----------
    facts
        What is known of the job.
    """
    rules = (_refused, _without_provider, _other_provider, _failed, _without_plugin, _without_gpudirect)
    return next((found for rule in rules if (found := rule(facts)) is not None), None)


def _refused(facts: Facts) -> Finding | None:
    lines: list[Sighting | Evidence] = [
        *facts.warned("ofi_request", "ofi_address"),
        *facts.seen("ofi_provider_error"),
    ]
    if not lines:
        return None
    return finding(
        "efa",
        Severity.BROKEN,
        Confidence.HIGH,
        proof=lines,
        explanation=(
            "EFA traffic to the peer is not let through. EFA is no IP traffic: the security group needs a"
            " rule for all traffic to itself, inbound and outbound, and 0.0.0.0/0 does not cover it."
        ),
        fix=(
            "add an inbound and an outbound rule: all traffic, from and to the security group itself",
            "keep all instances in one security group and one subnet",
        ),
        next_check="fi_pingpong -p efa between two of the hosts; ping and TCP prove nothing here",
    )


def _is_on_sockets(facts: Facts) -> bool:
    names = facts.used_networks or facts.networks
    return bool(names) and all(name == "Socket" for name in names)


def _without_provider(facts: Facts) -> Finding | None:
    lines = facts.seen("ofi_no_provider")
    if not lines:
        return None
    return _missing(
        facts,
        Confidence.HIGH,
        list(lines),
        "The OFI plug-in is loaded, but libfabric offers it no EFA provider, so NCCL goes on to the next"
        " network. Later lines about libibverbs are only that next attempt.",
    )


def _other_provider(facts: Facts) -> Finding | None:
    """Find that libfabric gave the plug-in a provider that sends over TCP."""
    lines = [each for each in facts.seen("ofi_provider") if _sends_over_tcp(each.fields["provider"])]
    if not lines:
        return None
    stops = [each for each in facts.warned("ofi_failed") if _stops_plugin(each.fields["text"])]
    return _missing(
        facts,
        Confidence.HIGH,
        [*lines, *stops],
        f"The OFI plug-in got the provider {lines[0].fields['provider']} from libfabric and not efa, so that"
        " data goes over TCP, or the plug-in stops where this provider lacks what it needs.",
    )


def _sends_over_tcp(provider: str) -> bool:
    return any(word in {"tcp", "sockets", "udp"} for word in re.split(r"[;,]", provider))


def _failed(facts: Facts) -> Finding | None:
    """Find any other warning of the plug-in; what it warns of decides whether it stops, or only goes on."""
    lines = facts.warned("ofi_failed")
    if not lines:
        return None
    decisive = [each for each in lines if _stops_plugin(each.fields["text"])]
    if not decisive:
        return _noted(list(lines))
    return _missing(
        facts,
        Confidence.MEDIUM,
        list(decisive),
        "The OFI plug-in says that it fails. NCCL goes on to the next network where there is one, and stops"
        " where it does not.",
    )


def _stops_plugin(text: str) -> bool:
    """Return whether the plug-in cannot go on after this warning.

    Notes
    -----
    The texts are those of aws-ofi-nccl, https://github.com/aws/aws-ofi-nccl (src and include). Code 38 is
    ENOSYS, which the plug-in meets where a provider lacks an option, and goes on without it.
    """
    return _STOPS.search(text) is not None


def _noted(lines: list[Sighting | Evidence]) -> Finding:
    return finding(
        "efa",
        Severity.HARMLESS,
        Confidence.LOW,
        proof=lines,
        explanation=(
            "The OFI plug-in warns of something that it goes on without, such as a path of the platform that"
            " a container hides or an option that the provider lacks."
        ),
        fix=("nothing, as long as the log goes on to 'Selected provider'",),
        next_check="look for 'Selected provider is' and for NET/AWS Libfabric in the channel lines",
    )


def _without_plugin(facts: Facts) -> Finding | None:
    devices = [
        output.evidence_at(number)
        for output in facts.log.commands
        for number, line in enumerate(output.lines)
        if "Elastic Fabric Adapter" in line or "provider: efa" in line or _EFA_DEVICE.search(line)
    ]
    if not devices or not _is_on_sockets(facts):
        return None
    return _missing(
        facts,
        Confidence.HIGH,
        [*devices, *facts.seen("plugin_missing")],
        "The host has EFA devices, and NCCL uses sockets: the plug-in aws-ofi-nccl is not found.",
    )


def _severity(facts: Facts) -> Severity:
    if facts.is_one_node and not facts.has_failed:
        return Severity.HARMLESS
    return Severity.SLOW if _is_on_sockets(facts) or not facts.has_failed else Severity.BROKEN


def _missing(
    facts: Facts, confidence: Confidence, proof: list[Sighting | Evidence], explanation: str
) -> Finding:
    chosen = [each for each in facts.seen("network") if each.fields["name"] == "Socket"]
    return finding(
        "efa",
        _severity(facts),
        confidence,
        proof=[*proof, *chosen],
        explanation=explanation,
        fix=(
            (
                "install the EFA software (efa_installer.sh) in the image, and put /opt/amazon/efa/lib and"
                " /opt/amazon/ofi-nccl/lib into LD_LIBRARY_PATH"
            ),
            (
                "give the container the devices: --device=/dev/infiniband, or vpc.amazonaws.com/efa on"
                " Kubernetes"
            ),
        ),
        next_check="fi_info -p efa, where the job runs; then 'Selected provider is efa' in the log",
    )


def _without_gpudirect(facts: Facts) -> Finding | None:
    over = [each for each in facts.net_channels if "Libfabric" in each.network]
    without = [each for each in over if not each.is_gpudirect]
    platforms = [each.fields["platform"] for each in facts.seen("ofi_topology_file")]
    has_it = any(each.startswith(_WITH_GPUDIRECT) for each in platforms)
    if not without or (platforms and not has_it):
        return None
    return finding(
        "efa",
        Severity.SLOW,
        Confidence.MEDIUM if has_it or len(without) < len(over) else Confidence.LOW,
        proof=lines_of(without),
        where=[each.host for each in without if each.host],
        explanation=(
            "Traffic goes over EFA without GPUDirect RDMA, staged in host memory. P4d and later instances"
            " can do without the copy."
        ),
        fix=("install an EFA driver with GPUDirect support, and the plug-in's current release",),
        next_check="cat /sys/class/infiniband/*/device/p2p; look for GDRDMA in the channel lines",
    )
