"""One cause, one file: a function of the name of the cause, from facts to a finding or ``None``.

It says what a line means, by its format in the program's source, never by how a sample reads: no line number
of a source, name of a host, pointer or order of ranks decides. What wins over what is said in `precedence`
alone. `RULES` lists them all.
"""

from __future__ import annotations

from collections.abc import Callable

from linkwise.diagnose.causes.acs_iommu import acs_iommu
from linkwise.diagnose.causes.bond import bond
from linkwise.diagnose.causes.bootstrap import bootstrap
from linkwise.diagnose.causes.container import container
from linkwise.diagnose.causes.cumem import cumem
from linkwise.diagnose.causes.desync import desync
from linkwise.diagnose.causes.dmabuf import dmabuf
from linkwise.diagnose.causes.driver import driver
from linkwise.diagnose.causes.duplicate_gpu import duplicate_gpu
from linkwise.diagnose.causes.efa import efa
from linkwise.diagnose.causes.elastic_store import elastic_store
from linkwise.diagnose.causes.env_misuse import env_misuse
from linkwise.diagnose.causes.fabric_manager import fabric_manager
from linkwise.diagnose.causes.fd_limit import fd_limit
from linkwise.diagnose.causes.firewall import firewall
from linkwise.diagnose.causes.gdr_off import gdr_off
from linkwise.diagnose.causes.gpu_hw import gpu_hw
from linkwise.diagnose.causes.harmless import harmless
from linkwise.diagnose.causes.host_identity import host_identity
from linkwise.diagnose.causes.ib_error import ib_error
from linkwise.diagnose.causes.ipv6 import ipv6
from linkwise.diagnose.causes.link_down import link_down
from linkwise.diagnose.causes.link_flap import link_flap
from linkwise.diagnose.causes.memlock import memlock
from linkwise.diagnose.causes.mnnvl import mnnvl
from linkwise.diagnose.causes.mtu import mtu
from linkwise.diagnose.causes.nccl_bug import nccl_bug
from linkwise.diagnose.causes.node_lost import node_lost
from linkwise.diagnose.causes.oom import oom
from linkwise.diagnose.causes.p2p import p2p
from linkwise.diagnose.causes.plugin import plugin
from linkwise.diagnose.causes.ports import ports
from linkwise.diagnose.causes.rails import rails
from linkwise.diagnose.causes.rank_frozen import rank_frozen
from linkwise.diagnose.causes.rank_killed import rank_killed
from linkwise.diagnose.causes.remote_exit import remote_exit
from linkwise.diagnose.causes.roce_gid import roce_gid
from linkwise.diagnose.causes.sharp import sharp
from linkwise.diagnose.causes.shm import shm
from linkwise.diagnose.causes.slow_link import slow_link
from linkwise.diagnose.causes.slow_node import slow_node
from linkwise.diagnose.causes.socket_fallback import socket_fallback
from linkwise.diagnose.causes.socket_ifname import socket_ifname
from linkwise.diagnose.causes.tcpx import tcpx
from linkwise.diagnose.causes.test_setup import test_setup
from linkwise.diagnose.causes.topology import topology
from linkwise.diagnose.causes.version import version
from linkwise.diagnose.facts import Facts
from linkwise.diagnose.finding import Finding

__all__ = ["RULES"]

RULES: dict[str, Callable[[Facts], Finding | None]] = {
    "acs_iommu": acs_iommu,
    "bond": bond,
    "bootstrap": bootstrap,
    "container": container,
    "cumem": cumem,
    "desync": desync,
    "dmabuf": dmabuf,
    "driver": driver,
    "duplicate_gpu": duplicate_gpu,
    "efa": efa,
    "elastic_store": elastic_store,
    "env_misuse": env_misuse,
    "fabric_manager": fabric_manager,
    "fd_limit": fd_limit,
    "firewall": firewall,
    "gdr_off": gdr_off,
    "gpu_hw": gpu_hw,
    "harmless": harmless,
    "host_identity": host_identity,
    "ib_error": ib_error,
    "ipv6": ipv6,
    "link_down": link_down,
    "link_flap": link_flap,
    "memlock": memlock,
    "mnnvl": mnnvl,
    "mtu": mtu,
    "nccl_bug": nccl_bug,
    "node_lost": node_lost,
    "oom": oom,
    "p2p": p2p,
    "plugin": plugin,
    "ports": ports,
    "rails": rails,
    "rank_frozen": rank_frozen,
    "rank_killed": rank_killed,
    "remote_exit": remote_exit,
    "roce_gid": roce_gid,
    "sharp": sharp,
    "shm": shm,
    "slow_link": slow_link,
    "slow_node": slow_node,
    "socket_fallback": socket_fallback,
    "socket_ifname": socket_ifname,
    "tcpx": tcpx,
    "test_setup": test_setup,
    "topology": topology,
    "version": version,
}
"""All rules by the cause that each finds."""
