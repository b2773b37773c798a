"""NCCL's picture of the machine is wrong: a topology or graph file, or the flat or odd PCI tree of a VM."""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.diagnose.facts import Facts
from linkwise.diagnose.finding import Confidence, Finding, Severity, finding
from linkwise.diagnose.nic_order import unlike_order
from linkwise.readers.job_log.values import Evidence, Sighting

__all__ = ["topology"]

_SLOWEST_GBYTE_S = 2.0
"""A link below this is slower than two lanes of PCIe 3.0; no GPU or NIC of a server hangs on one [GB/s]."""


def topology(facts: Facts) -> Finding | None:
    """Return the finding when a file does not fit the machine, or the graph has links that cannot be.

    Parameters
    ----------
    facts
        What is known of the job.
    """
    return _file_refused(facts) or _too_narrow(facts) or _pathless(facts) or _denied(facts) or _order(facts)


def _file_refused(facts: Facts) -> Finding | None:
    lines = facts.warned("xml_attribute", "xml_import", "xml_unopened")
    if not lines:
        return None
    sources = [*facts.settings("NCCL_TOPO_FILE", "NCCL_GRAPH_FILE"), *facts.seen("ofi_topology_file")]
    return _found(
        Severity.BROKEN,
        Confidence.HIGH,
        [*lines, *sources],
        explanation="A topology or graph file does not fit this machine or this release of NCCL. The image,"
        " a plug-in or /etc/nccl.conf may name it, even when no one set it.",
        fix=(
            "unset NCCL_TOPO_FILE NCCL_GRAPH_FILE, also in /etc/nccl.conf",
            "use a plug-in of the NCCL's release",
        ),
        check="grep -r NCCL_ /etc/nccl.conf ~/.nccl.conf; env | grep -E 'TOPO_FILE|GRAPH_FILE'",
    )


def _too_narrow(facts: Facts) -> Finding | None:
    graph = [
        *(each for each in facts.seen("graph_system") if float(each.fields["gbyte_s"]) < _SLOWEST_GBYTE_S),
        *(each for each in facts.seen("graph_pattern") if _is_narrow(each)),
        *(each for each in facts.seen("graph_link") if float(each.fields["gbyte_s"]) < _SLOWEST_GBYTE_S),
    ]
    written = [
        Evidence(
            file=name,
            line=each.line,
            text=f"graph {each.id}: {each.intra_bytes_per_s / 1e9:g} GB/s a channel",
        )
        for name, graphs in facts.log.graphs
        for each in graphs
        if 0 < each.intra_bytes_per_s < _SLOWEST_GBYTE_S * 1e9
    ]
    if not graph and not written:
        return None
    proof: list[Sighting | Evidence] = [*graph, *written, *facts.settings("NCCL_TOPO_FILE")]
    return _found(
        Severity.SLOW,
        Confidence.HIGH,
        proof,
        explanation="NCCL believes that a PCIe link of the machine carries almost nothing, and builds its"
        " rings around it. A virtual machine or a topology file shows a made-up bridge.",
        fix=(
            "give NCCL_TOPO_FILE a file with the true links: the provider's, or one corrected by hand",
            "in the file, set link_speed and link_width of the bridge to those of its slots",
        ),
        check="NCCL_TOPO_DUMP_FILE=topo.xml: the link_speed and link_width of every pci element",
    )


def _pathless(facts: Facts) -> Finding | None:
    """Find that NCCL sees no path between all GPUs and NICs for a pattern, and takes them in plain order."""
    lines = facts.warned("path_missing")
    if not lines:
        return None
    forced = facts.settings("NCCL_ALGO", "NCCL_CROSS_NIC", "NCCL_TOPO_FILE", "NCCL_GRAPH_FILE")
    return _found(
        Severity.SLOW,
        Confidence.MEDIUM,
        [*lines, *forced],
        explanation="NCCL finds no path through the machine for one of its patterns, and joins the GPUs in"
        " plain order instead, which is slow. Its picture of the links is wrong, or settings leave no path.",
        fix=(
            "unset what narrows the search: NCCL_ALGO, NCCL_CROSS_NIC, NCCL_IB_HCA, a topology file",
            "use another release of NCCL, and report the picture it has",
        ),
        check="NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=GRAPH; NCCL_TOPO_DUMP_FILE=topo.xml",
    )


def _is_narrow(line: Sighting) -> bool:
    return 0 < float(line.fields["intra"]) < _SLOWEST_GBYTE_S


def _denied(facts: Facts) -> Finding | None:
    """Find GPUDirect denied by distance although the devices could do it."""
    denied = [each for each in facts.seen("gdr_path") if each.fields["state"] == "Disabled"]
    allowed = any(each.fields["state"].lower() == "enabled" for each in facts.seen("gdr_hca"))
    near = any(
        matrix.cells[gpu, nic] in {"PIX", "PXB"}
        for _, matrix in facts.log.matrices
        for gpu in matrix.gpus
        for nic in matrix.nics
    )
    none = bool(facts.net_channels) and not any(each.is_gpudirect for each in facts.net_channels)
    if not denied or not none or not (allowed and near):
        return None
    return _found(
        Severity.SLOW,
        Confidence.HIGH,
        list(denied),
        explanation="GPUDirect RDMA is available, and NCCL denies it because it takes GPU and NIC for far"
        " apart, while the host shows them on one PCIe switch.",
        fix=("correct the topology file, or NCCL_NET_GDR_LEVEL=PHB",),
        check="nvidia-smi topo -m beside NCCL_TOPO_DUMP_FILE",
    )


def _order(facts: Facts) -> Finding | None:
    """Find NICs that stand in another order than the GPUs they belong to, so that rails are crossed."""
    order = unlike_order(facts)
    if not order or not facts.is_rdma:
        return None
    return _found(
        Severity.SLOW,
        Confidence.LOW,
        order,
        explanation="The GPU of one number has the NIC of another number beside it, and not on every host"
        " alike: NCCL then pairs NICs of different rails.",
        fix=(
            (
                "order the NICs alike on all hosts: rename them by udev rules, or"
                " NCCL_IB_HCA==DEVICE,DEVICE per host"
            ),
            "give all hosts one corrected NCCL_TOPO_FILE",
        ),
        check="nvidia-smi topo -m on both hosts: which NIC is PIX to which GPU",
    )


def _found(
    severity: Severity,
    confidence: Confidence,
    proof: Sequence[Sighting | Evidence],
    *,
    explanation: str,
    fix: tuple[str, ...],
    check: str,
) -> Finding:
    return finding(
        "topology", severity, confidence, proof=proof, explanation=explanation, fix=fix, next_check=check
    )
