"""Every case, by cause."""

from collections.abc import Callable, Iterator, Mapping

from tests.job_logs.case import LogCase
from tests.job_logs.faults import (
    addresses,
    buses,
    gpus,
    identity,
    isolation,
    memory,
    networks,
    plugins,
    program,
    verbs,
)
from tests.job_logs.stacks import stacks

CAUSES: Mapping[str, Callable[[], Iterator[LogCase]]] = {
    "acs_iommu": buses.acs_iommu,
    "bond": buses.bond,
    "bootstrap": addresses.bootstrap,
    "container": isolation.container,
    "cumem": memory.cumem,
    "desync": program.desync,
    "dmabuf": memory.dmabuf,
    "driver": gpus.driver,
    "duplicate_gpu": gpus.duplicate_gpu,
    "efa": networks.efa,
    "env_misuse": program.env_misuse,
    "fabric_manager": gpus.fabric_manager,
    "fd_limit": memory.fd_limit,
    "firewall": addresses.firewall,
    "gdr_off": networks.gdr_off,
    "gpu_hw": gpus.gpu_hw,
    "harmless": isolation.harmless,
    "host_identity": identity.host_identity,
    "ib_error": verbs.ib_error,
    "ipv6": addresses.ipv6,
    "link_flap": verbs.link_flap,
    "memlock": memory.memlock,
    "mnnvl": gpus.mnnvl,
    "mtu": verbs.mtu,
    "nccl_bug": program.nccl_bug,
    "oom": memory.oom,
    "p2p": gpus.p2p,
    "plugin": plugins.plugin,
    "ports": addresses.ports,
    "rails": verbs.rails,
    "remote_exit": program.remote_exit,
    "roce_gid": verbs.roce_gid,
    "sharp": plugins.sharp,
    "shm": memory.shm,
    "socket_fallback": networks.socket_fallback,
    "socket_ifname": addresses.socket_ifname,
    "tcpx": networks.tcpx,
    "test_setup": program.test_setup,
    "topology": program.topology,
    "version": identity.version,
}
"""The vocabulary of causes, and who writes logs that have them and logs that only look like it."""


def cases() -> Iterator[LogCase]:
    """Return every case: healthy stacks first, then cause by cause, each with its near misses."""
    yield from stacks()
    for write in CAUSES.values():
        yield from write()
