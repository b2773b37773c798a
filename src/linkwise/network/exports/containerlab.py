"""A fabric as a lab of containers, every cable a link between two of them.

References
----------
Containerlab, topology definition file.
"""

from __future__ import annotations

from linkwise.cluster import Cluster
from linkwise.errors import InputError
from linkwise.network.cabling import cable_runs
from linkwise.network.clos import wiring_of

__all__ = ["MOST_CABLES", "containerlab_yaml"]

MOST_CABLES = 20_000
"""A lab of more links than this runs on no machine."""


def containerlab_yaml(cluster: Cluster) -> str:
    """Return a topology definition with a container for each node and switch.

    Parameters
    ----------
    cluster
        What there is. Interfaces are numbered in the order of their cables; where the fabric has several
        networks that are not joined, the switches of each have its number.

    Raises
    ------
    InputError
        When its fabric cannot be wired, or has more cables than `MOST_CABLES`.
    """
    wiring = wiring_of(cluster)
    cables = wiring.node_cables + wiring.switch_cables
    if cables > MOST_CABLES:
        raise InputError(
            f"{cluster.name} has {cables:,} cables, more than the {MOST_CABLES:,} that a lab of containers "
            "can have; use fewer nodes"
        )
    interfaces: dict[str, int] = {}
    links = []
    for run in cable_runs(wiring):
        ends = []
        for end in (run.lower, run.upper):
            name = end if wiring.networks == 1 or end.startswith("node-") else f"net-{run.network}-{end}"
            interfaces[name] = interfaces.get(name, 0) + 1
            ends.append(f'"{name}:eth{interfaces[name]}"')
        links.append(f"    - endpoints: [{', '.join(ends)}]")
    lines = [f"name: {_lab_name(cluster.name)}", "topology:", "  defaults:", "    kind: linux"]
    lines += ["    image: alpine:latest  # assumed: any image with a shell", "  nodes:"]
    lines += [f"    {name}: {{}}" for name in interfaces]
    return "\n".join([*lines, "  links:", *links]) + "\n"


def _lab_name(name: str) -> str:
    return (
        "".join(each if each.isascii() and each.isalnum() else "-" for each in name).strip("-") or "cluster"
    )
