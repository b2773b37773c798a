"""NVLink across trays: IMEX is missing, the fabric is not set up, cliques are wrong."""

from __future__ import annotations

from linkwise.diagnose.facts import Facts, lines_of
from linkwise.diagnose.finding import Confidence, Finding, Severity, finding
from linkwise.readers.job_log.values import Evidence, Sighting

__all__ = ["mnnvl"]

_COMPLETED = "3"


def mnnvl(facts: Facts) -> Finding | None:
    """Return the finding when the fabric of a rack is not in the state that lets trays share memory.

    Parameters
    ----------
    facts
        What is known of the job.

    Notes
    -----
    Boards of one node print a fabric too, with an empty UUID and state 3, in perfect health; clique 0x7ffe
    and health mask
    0xaa occur in healthy racks.
    """
    unset = [each for each in facts.seen("mnnvl_fabric") if each.fields["state"] != _COMPLETED]
    imex = _imex(facts)
    refused = facts.warned("mnnvl_refused")
    failed = (*refused, *(facts.warned("cumem_import") if facts.seen("mnnvl_fabric") else ()))
    off = facts.settings("NCCL_MNNVL_ENABLE")
    if (facts.is_one_node and not refused) or any(each.fields.get("value") == "0" for each in off):
        return None
    if not unset and not failed and not (imex and facts.seen("mnnvl_fabric")):
        return None
    across = lines_of(facts.net_channels)
    proof: list[Sighting | Evidence] = [*unset, *failed, *imex, *across]
    return finding(
        "mnnvl",
        Severity.BROKEN if failed or facts.has_failed else Severity.SLOW,
        Confidence.HIGH if imex or unset or refused else Confidence.MEDIUM,
        proof=proof,
        where=[each.host for each in (*unset, *failed) if each.host],
        explanation=(
            "The trays have NVLink between them, but its fabric is not ready, so NCCL goes over the network"
            " instead. The IMEX service, or its channel device in the container, is missing."
        ),
        fix=(
            (
                "systemctl enable --now nvidia-imex on every tray, with all trays in"
                " /etc/nvidia-imex/nodes_config.cfg"
            ),
            "give containers /dev/nvidia-caps-imex-channels/channel0 (on Kubernetes a ComputeDomain)",
        ),
        next_check="nvidia-imex-ctl -N; nvidia-smi -q | grep -A4 Fabric: state Completed, one cluster UUID",
    )


def _imex(facts: Facts) -> list[Evidence]:
    return [
        output.evidence_at(number)
        for output in facts.commands("imex")
        for number, line in enumerate(output.lines)
        if any(sign in line for sign in ("inactive", "failed", "No such file", "not found", "UNAVAILABLE"))
    ]
