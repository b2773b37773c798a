"""One flow uses one port of a bonded NIC: half of the bond's rate, or less."""

from __future__ import annotations

import re

from linkwise.diagnose.facts import Facts
from linkwise.diagnose.finding import Confidence, Finding, Severity, finding
from linkwise.diagnose.progress import plateau_bytes_per_s
from linkwise.diagnose.transport import nics_of
from linkwise.readers.job_log.values import Evidence, Sighting

__all__ = ["bond"]

_SPEED = re.compile(r"Speed: (\d+) ?Mb(?:ps|/s)")
_ONE_PORT = 1.05
"""What one port carries at most, over its rate; above that both ports are in use."""


def bond(facts: Facts) -> Finding | None:
    """Return the finding when one bonded device is used and the plateau is that of one of its ports.

    Parameters
    ----------
    facts
        What is known of the job.
    """
    lines = [each for each in facts.seen("ib_devices") if _is_one_bond(each)]
    plateau = plateau_bytes_per_s(facts)
    ports = _port_rates(facts)
    if not lines or plateau is None or len(ports) < 2 or not facts.is_rdma:
        return None
    fastest = max(rate for rate, _ in ports)
    if plateau > _ONE_PORT * fastest:
        return None
    proof: list[Sighting | Evidence] = [*lines, *(each for _, each in ports)]
    return finding(
        "bond",
        Severity.SLOW,
        Confidence.MEDIUM,
        proof=proof,
        explanation=(
            f"NCCL uses one bonded device, and the bus bandwidth stays at {plateau / 1e9:.3g} GB/s, what one"
            f" of its ports carries ({fastest / 1e9:.3g} GB/s). The hash of the bond lays all its flows on"
            " one port."
        ),
        fix=(
            "NCCL_IB_QPS_PER_CONNECTION=4 NCCL_IB_SPLIT_DATA_ON_QPS=0 gives the hash several flows",
            "xmit_hash_policy=layer3+4 on the bond and on the switch; or use the ports as two devices",
        ),
        next_check="ethtool -S PORT | grep tx_bytes on both ports while the job runs",
    )


def _is_one_bond(line: Sighting) -> bool:
    names = nics_of(line)
    return len(names) == 1 and "bond" in names[0]


def _port_rates(facts: Facts) -> list[tuple[float, Evidence]]:
    """Return the rates of the ports of a bond in bytes/s, as the kernel's bonding driver lists them."""
    found: list[tuple[float, Evidence]] = []
    for output in facts.commands("/proc/net/bonding"):
        for number, line in enumerate(output.lines):
            if match := _SPEED.search(line):
                found.append((int(match[1]) * 1e6 / 8, output.evidence_at(number)))
    return found
