"""The files of a Slurm in a lab, and the commands of its network, as values: nothing here runs or writes.

Slurm's own traffic goes over a network of its own, as on most clusters, so that the links of the lab carry
jobs alone. The names of nodes mean their addresses on the lab's links: what a job opens by name goes there.

References
----------
SchedMD, slurm.conf(5), topology.conf(5), gres.conf(5) and cgroup.conf(5), release 22.05.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from linkwise.lab.design import LabDesign
from linkwise.lab.wires import Batch, node_namespace, switch_namespace

__all__ = [
    "HEAD",
    "NODE_TIMEOUT_S",
    "gpu_devices",
    "network_batches",
    "network_ends",
    "node_name",
    "slurm_texts",
]

HEAD = "head"
"""Name of the node that the controller and the user's shell are on."""
NODE_TIMEOUT_S = 10
"""How long a node may be silent before its jobs end; Slurm's own 300 s are long for who looks on [s]."""
_KILL_WAIT_S = 10
"""From asking a job to end to killing it [s]."""
_CPUS, _MEMORY_MB = 8, 4000
"""What a node is said to have; nothing holds jobs to it (assumed)."""
_BRIDGE = "mgmt"
_NETWORK = "198.19.0"
"""Of the range for benchmarks (RFC 2544), whose other half the links of the lab use."""


def node_name(node: int) -> str:
    """Return the name of a node in Slurm.

    Parameters
    ----------
    node
        Its number, from 0.
    """
    return f"n{node}"


def gpu_devices(design: LabDesign, home: Path) -> tuple[Path, ...]:
    """Return the paths that stand for the GPUs of every node: they are null devices.

    Parameters
    ----------
    design
        The lab.
    home
        Folder of the Slurm.
    """
    return tuple(home / "dev" / f"gpu{number}" for number in range(design.ranks_per_node))


def slurm_texts(lab: str, design: LabDesign, home: Path, *, has_cgroup_v2: bool) -> dict[str, str]:
    """Return the files of a Slurm by name.

    Parameters
    ----------
    lab
        Name of the lab.
    design
        What it is.
    home
        Folder of the Slurm.
    has_cgroup_v2
        Whether the control groups of this machine are those of version 2.
    """
    switches = list(_switch_lines(design))
    gpus = f"{home}/dev/gpu[0-{design.ranks_per_node - 1}]"
    texts = {
        "slurm.conf": _conf(lab, design, home, is_tree=bool(switches)),
        "gres.conf": f"NodeName={_nodes(range(design.nodes))} Name=gpu Type=emulated File={gpus}\n",
        "cgroup.conf": _cgroups(has_cgroup_v2=has_cgroup_v2),
        "hosts": "".join(f"{line}\n" for line in _hosts(design)),
    }
    return {**texts, "topology.conf": "".join(f"{line}\n" for line in switches)} if switches else texts


def _conf(lab: str, design: LabDesign, home: Path, *, is_tree: bool) -> str:
    lines = [
        f"ClusterName=lw-{lab}",
        f"SlurmctldHost={HEAD}({_NETWORK}.254)",
        "SlurmUser=root",
        "SlurmdUser=root",
        "AuthType=auth/munge",
        f"AuthInfo=socket={home}/munge.sock",
        f"StateSaveLocation={home}/state",
        f"SlurmdSpoolDir={home}/spool/%n",
        f"SlurmctldPidFile={home}/slurmctld.pid",
        f"SlurmdPidFile={home}/slurmd.%n.pid",
        f"SlurmctldLogFile={home}/slurmctld.log",
        f"SlurmdLogFile={home}/slurmd.%n.log",
        # Nodes share the processes and control groups of one machine: Slurm must not fence them by either.
        "ProctrackType=proctrack/linuxproc",
        "TaskPlugin=task/none",
        "JobAcctGatherType=jobacct_gather/none",
        "MpiDefault=none",
        "SelectType=select/cons_tres",
        "SelectTypeParameters=CR_Core",
        "ReturnToService=2",
        f"SlurmdTimeout={NODE_TIMEOUT_S}",
        f"KillWait={_KILL_WAIT_S}",
        "GresTypes=gpu",
        "SlurmdParameters=config_overrides",
        *(["TopologyPlugin=topology/tree"] if is_tree else []),
    ]
    lines += [
        f"NodeName={node_name(node)} NodeAddr={_NETWORK}.{node + 1} CPUs={_CPUS} RealMemory={_MEMORY_MB} "
        f"Gres=gpu:emulated:{design.ranks_per_node}"
        for node in range(design.nodes)
    ]
    lines.append(f"PartitionName=lab Nodes={_nodes(range(design.nodes))} Default=YES State=UP")
    return "".join(f"{line}\n" for line in lines)


def _cgroups(*, has_cgroup_v2: bool) -> str:
    plugin = ["CgroupPlugin=cgroup/v2", "IgnoreSystemd=yes"] if has_cgroup_v2 else ["CgroupPlugin=cgroup/v1"]
    lines = [*plugin, "ConstrainCores=no", "ConstrainRAMSpace=no", "ConstrainDevices=no"]
    return "".join(f"{line}\n" for line in lines)


def _nodes(numbers: Iterator[int] | range | list[int]) -> str:
    return ",".join(map(node_name, numbers))


def _switch_lines(design: LabDesign) -> Iterator[str]:
    """Yield the tree of switches; nodes below the same leaves are one group, as all are of rails."""
    groups: dict[tuple[str, ...], list[int]] = {}
    for node in range(design.nodes):
        leaves = tuple(sorted({nic.switch for nic in design.nics if nic.node == node}))
        if leaves:
            groups.setdefault(leaves, []).append(node)
    names = {leaves: "-".join(leaves) for leaves in groups}
    for leaves, nodes in groups.items():
        yield f"SwitchName={names[leaves]} Nodes={_nodes(nodes)}"
    if design.trunks and len(groups) > 1:
        yield f"SwitchName=spine Switches={','.join(names.values())}"


def _hosts(design: LabDesign) -> Iterator[str]:
    first = {nic.node: nic.address for nic in reversed(design.nics)}
    yield "127.0.0.1 localhost"
    yield f"{_NETWORK}.254 {HEAD}"
    for node in range(design.nodes):
        yield f"{first.get(node, f'{_NETWORK}.{node + 1}')} {node_name(node)}"


def network_batches(lab: str, design: LabDesign) -> Iterator[Batch]:
    """Yield what builds the network of Slurm's own traffic, which is not shaped.

    Parameters
    ----------
    lab
        Name of the lab.
    design
        What it is.
    """
    switches = switch_namespace(lab)
    nodes = [(node, node_namespace(lab, node), port) for node, port in enumerate(network_ends(design)[1:])]
    made = [f"link add {_BRIDGE} netns {switches} type bridge mcast_snooping 0 stp_state 0 forward_delay 0"]
    made += [
        f"link add {_BRIDGE}0 netns {name} type veth peer name {port} netns {switches}"
        for _, name, port in nodes
    ]
    yield Batch(argv=("ip", "-batch", "-"), lines=tuple(made))
    joined = [f"addr add {_NETWORK}.254/24 dev {_BRIDGE}", f"link set {_BRIDGE} addrgenmode none up"]
    joined += [f"link set {port} addrgenmode none master {_BRIDGE} up" for _, _, port in nodes]
    yield Batch(argv=("ip", "-n", switches, "-batch", "-"), lines=tuple(joined))
    for node, name, _ in nodes:
        device = f"{_BRIDGE}0"
        lines = (f"addr add {_NETWORK}.{node + 1}/24 dev {device}", f"link set {device} addrgenmode none up")
        yield Batch(argv=("ip", "-n", name, "-batch", "-"), lines=lines)


def network_ends(design: LabDesign) -> tuple[str, ...]:
    """Return the devices of Slurm's network in the namespace of the switches: the bridge, then a port a node.

    Parameters
    ----------
    design
        The lab.
    """
    return (_BRIDGE, *(f"m{node}" for node in range(design.nodes)))
