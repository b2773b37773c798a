"""The MTU differs between the two sides, or is fixed to a value that one of them cannot carry."""

from __future__ import annotations

from linkwise.diagnose.facts import Facts
from linkwise.diagnose.finding import Confidence, Finding, Severity, finding
from linkwise.diagnose.verbs import calls, completions, mtu_of_hosts

__all__ = ["mtu"]

_LENGTH = 1
_INVALID_REQUEST = 9


def mtu(facts: Facts) -> Finding | None:
    """Return the finding when MTUs differ and a length error or a refused queue follows.

    Parameters
    ----------
    facts
        What is known of the job.
    """
    lines = [
        *completions(facts, _LENGTH, _INVALID_REQUEST),
        *calls(facts, "ibv_modify_qp", "Invalid argument", "22"),
    ]
    sizes = mtu_of_hosts(facts)
    different = {size for each in sizes.values() for size in each}
    if not lines or len(different) < 2:
        return None
    return finding(
        "mtu",
        Severity.BROKEN,
        Confidence.HIGH,
        proof=[*lines, *facts.seen("queue_pair", "port_state")],
        where=[host for host, each in sizes.items() if min(different) in each and "#" not in host],
        explanation=(
            f"The ports of the hosts have different MTUs ({', '.join(map(str, sorted(different)))} bytes),"
            " so one side sends messages the other cannot take."
        ),
        fix=("set one MTU on all ports of the fabric, NICs and switches: ip link set DEV mtu 9000 on RoCE",),
        next_check="ibv_devinfo | grep -E 'hca_id|active_mtu' on every host",
    )
