"""Which network is chosen and how: fall-back to sockets, GPUDirect RDMA, the stacks of clouds."""

from collections.abc import Iterator

from tests.job_logs import hosts
from tests.job_logs.case import LogCase, healthy_case, runs, script_of, stopped
from tests.job_logs.faults.sequel import collapse
from tests.job_logs.job import (
    EFA,
    ETHERNET,
    FASTRAK,
    INFINIBAND_WITHOUT_GDR,
    TCPX,
    Facts,
    Network,
)
from tests.job_logs.script import Script

NET = frozenset({"INIT", "ENV", "NET", "BOOTSTRAP"})


def _hcas(script: Script) -> dict[str, str]:
    ports = (("mlx5_0", "Active", "InfiniBand", 400), ("mlx5_1", "Active", "InfiniBand", 400))
    return {f"{host}.ibstat.txt": hosts.ibstat(*ports) for host in script.job.hosts}


def socket_fallback() -> Iterator[LogCase]:
    """A fast network is there, and data goes over TCP."""
    for number, version in enumerate(("2.12.12", "2.20.5", "2.27.5"), 1):
        case_id = f"socket_fallback-{number}"
        script = script_of(
            case_id,
            version,
            network=ETHERNET,
            variables=(("NCCL_IB_DISABLE", "1"),),
            subsystems=frozenset({"INIT", "ENV", "NET"}),
        )
        script.mark("environment", "network", "net")
        yield LogCase(
            id=case_id,
            cause="socket_fallback",
            also=("env_misuse",),
            verdict="slow",
            script=script,
            side=_hcas(script) if number > 1 else {},
            facts=runs(script),
        )
    for number, version in enumerate(("2.18.3", "2.22.3"), 4):
        case_id = f"socket_fallback-{number}"
        script = script_of(case_id, version, network=ETHERNET, variables=(("NCCL_IB_HCA", "mlx5_9"),))
        script.mark("hca_filter", "no_ib", "network")
        yield LogCase(
            id=case_id,
            cause="socket_fallback",
            also=("env_misuse",),
            verdict="slow",
            script=script,
            side=_hcas(script),
            facts=runs(script),
        )
    yield from _unusable_verbs()
    yield from _socket_fallback_near()


def _unusable_verbs() -> Iterator[LogCase]:
    for number, version in enumerate(("2.7.8", "2.14.3", "2.24.3"), 6):
        case_id = f"socket_fallback-{number}"
        script = script_of(case_id, version, network=ETHERNET)
        for rank in script.ranks:
            for hca in ("mlx5_0", "mlx5_1"):
                script.say(rank, "network", "open_device", at_s=0.81, decisive=True)
                script.say(rank, "network", "unable_to_open", hca=hca, at_s=0.81, decisive=True)
        script.mark("network")
        side = {"pod.devices.txt": hosts.listing("/dev/infiniband")} if number != 7 else {}
        yield LogCase(
            id=case_id,
            cause="socket_fallback",
            also=("container",),
            verdict="slow",
            script=script,
            side=side,
            facts=runs(script),
        )
    script = script_of("socket_fallback-9", "2.21.5", network=ETHERNET)
    for rank in script.ranks:
        script.say(rank, "network", "no_verbs", at_s=0.81, decisive=True)
    script.mark("network")
    yield LogCase(
        id="socket_fallback-9",
        cause="socket_fallback",
        also=("container",),
        verdict="slow",
        script=script,
        side=_hcas(script),
        facts=runs(script),
    )


def _socket_fallback_near() -> Iterator[LogCase]:
    for number, version in enumerate(("2.18.3", "2.26.5", "2.30.7"), 1):
        case_id = f"socket_fallback-near-{number}"
        script = script_of(case_id, version, network=ETHERNET, intra="PCIe", multicast=False)
        side = {
            f"{host}.lspci.txt": hosts.command('lspci | grep -i -E "mellanox|infiniband"', "")
            for host in script.job.hosts
        }
        yield healthy_case(case_id, script, "socket_fallback", side=side)
    script = script_of("socket_fallback-near-4", "2.21.5")
    yield healthy_case("socket_fallback-near-4", script, "socket_fallback", side=_hcas(script))


def gdr_off() -> Iterator[LogCase]:
    """GPUDirect RDMA is not used because a piece of it is missing."""
    for number, version in enumerate(("2.7.8", "2.12.12", "2.20.5", "2.24.3"), 1):
        case_id = f"gdr_off-{number}"
        script = script_of(
            case_id, version, network=INFINIBAND_WITHOUT_GDR, subsystems=NET if number != 3 else None
        )
        script.mark("gdr_missing", "gdr_hca", "net")
        side = {f"{host}.lsmod.txt": hosts.modules("mlx5_ib") for host in script.job.hosts} | {
            "host.topo.txt": hosts.topology(2, "NV18")
        }
        yield LogCase(
            id=case_id,
            cause="gdr_off",
            also=("driver",),
            verdict="slow",
            script=script,
            side=side,
            facts=runs(script),
        )
    yield from _gdr_off_here_and_there()
    yield from _gdr_off_near()


def _gdr_off_here_and_there() -> Iterator[LogCase]:
    script = script_of("gdr_off-5", "2.18.3")
    script.change(
        "net", lambda text: text.replace("/GDRDMA", ""), where=lambda line: line.rank.node == 1, decisive=True
    )
    script.drop("dmabuf", where=lambda line: line.rank.node == 1)
    side = {
        f"{host}.lsmod.txt": hosts.modules(*(["nvidia_peermem"] if index == 0 else []), "mlx5_ib")
        for index, host in enumerate(script.job.hosts)
    }
    facts = runs(script)
    yield LogCase(
        id="gdr_off-5",
        cause="gdr_off",
        also=("driver",),
        verdict="slow",
        script=script,
        side=side,
        facts=Facts(
            inside=facts.inside,
            between=facts.between,
            nics_per_node=2,
            versions=facts.versions,
            ranks=4,
            nodes=2,
        ),
    )
    script = script_of("gdr_off-6", "2.22.3", network=INFINIBAND_WITHOUT_GDR, subsystems=NET)
    script.mark("gdr_hca", "net")
    side = {
        "host.lsmod.txt": hosts.modules("nvidia_peermem", "mlx5_ib"),
        "host.peers.txt": hosts.listing("/sys/kernel/mm/memory_peers", "nvidia-peermem"),
    }
    yield LogCase(
        id="gdr_off-6",
        cause="gdr_off",
        also=("driver", "version"),
        verdict="slow",
        script=script,
        side=side,
        facts=runs(script),
        basis="assumed",
    )


def _gdr_off_near() -> Iterator[LogCase]:
    script = script_of(
        "gdr_off-near-1",
        "2.21.5",
        network=Network(link="RoCE", gdr=False),
        intra="PCIe",
        multicast=False,
        subsystems=NET,
    )
    for rank in script.ranks:
        for index in (0, 1):
            script.say(rank, "graph", "gdr_path_off", index=index, distance=7, limit=4, at_s=1.61)
    script.change("gdr_hca", lambda text: text.replace("Disabled", "Enabled"))
    yield LogCase(
        id="gdr_off-near-1",
        cause="harmless",
        also=("topology",),
        verdict="harmless",
        script=script,
        side={"host.topo.txt": hosts.topology(2, "SYS", "SYS")},
        facts=runs(script),
        near_miss_of="gdr_off",
        basis="assumed",
    )
    script = script_of("gdr_off-near-2", "2.27.5")
    script.drop("dmabuf")
    yield healthy_case(
        "gdr_off-near-2",
        script,
        "gdr_off",
        side={"host.lsmod.txt": hosts.modules("nvidia_peermem", "mlx5_ib")},
    )


_EFA_IMAGE = hosts.command(
    "cat /opt/aws/dlami/info", "Deep Learning Base OSS Nvidia Driver GPU AMI (Ubuntu 22.04)"
)


def efa() -> Iterator[LogCase]:
    """The AWS stack lacks a piece."""
    for number, (version, text) in enumerate(
        (
            ("2.12.12", "NET/OFI Could not find any optimal provider"),
            ("2.18.3", "NET/OFI No eligible providers were found"),
            ("2.23.4", "NET/OFI No eligible providers were found"),
        ),
        1,
    ):
        case_id = f"efa-{number}"
        script = script_of(case_id, version, network=ETHERNET)
        for rank in script.ranks:
            script.raw_warn(
                rank, "plugins", "NET/OFI Initializing aws-ofi-nccl 1.7.4-aws", "", level="INFO", at_s=0.55
            )
            script.raw_warn(rank, "plugins", text, "nccl_net_ofi_rdma.c:6411", at_s=0.6, decisive=True)
            script.say(rank, "network", "no_verbs", at_s=0.8)
        side = {
            "host.image.txt": _EFA_IMAGE,
            "host.fi_info.txt": hosts.command("fi_info -p efa", "fi_getinfo: -61 (No data available)"),
        }
        yield LogCase(
            id=case_id,
            cause="efa",
            also=("socket_fallback", "plugin"),
            verdict="slow",
            script=script,
            side=side,
            facts=runs(script),
            basis="assumed" if number > 1 else "source",
        )
    yield from _efa_between_hosts()
    yield from _efa_near()


def _efa_between_hosts() -> Iterator[LogCase]:
    for number, version in enumerate(("2.14.3", "2.23.4"), 4):
        case_id = f"efa-{number}"
        script = script_of(case_id, version, network=EFA)
        script.cut("training")
        rank = script.ranks[1]
        script.raw_warn(
            rank,
            "training",
            "NET/OFI Request 0x7f1e90a1 completed with error. RC: 113. Error: Unresponsive receiver (reachable by EFA device but handshake failed). Completed length: 0, Request: { dev: 0, size: 0, state: CREATED, type: SEND_CONN }",
            "nccl_ofi_net.c:1221",
            at_s=6.0,
            decisive=True,
            thread="progress",
        )
        script.unwind(
            rank, "training", ("transport/net.cc:1134", "proxy.cc:694"), 2, at_s=6.0, thread="progress"
        )
        collapse(script, rank, "training", code=2, at_s=6.0)
        side = {
            "account.rules.txt": hosts.command(
                "aws ec2 describe-security-groups --group-ids sg-0a1b --query 'SecurityGroups[].IpPermissionsEgress[]'",
                '[{"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}], "UserIdGroupPairs": []}]',
            )
        }
        yield LogCase(
            id=case_id,
            cause="efa",
            also=("firewall",),
            script=script,
            side=side,
            facts=runs(script),
            basis="assumed",
        )
    script = script_of(
        "efa-6",
        "2.10.3",
        network=Network(
            name="AWS Libfabric",
            link="",
            devices=("rdmap79s0", "rdmap80s0"),
            plugin="libnccl-net.so",
            gdr=False,
        ),
    )
    script.mark("net")
    yield LogCase(
        id="efa-6",
        cause="efa",
        also=("gdr_off",),
        verdict="slow",
        script=script,
        side={
            "host.modules.txt": hosts.command("lsmod | grep efa", "efa                    81920  0"),
            "host.version.txt": hosts.command(
                "modinfo efa | grep -E 'version|gdr'", "version:        1.10.0"
            ),
        },
        facts=runs(script),
        basis="assumed",
    )


def _efa_near() -> Iterator[LogCase]:
    for number, version in enumerate(("2.18.3", "2.27.5"), 1):
        case_id = f"efa-near-{number}"
        script = script_of(case_id, version, network=EFA)
        for rank in script.ranks:
            script.say(rank, "network", "no_ib", at_s=0.8)
        yield healthy_case(case_id, script, "efa", side={"host.image.txt": _EFA_IMAGE})


_TCPX_GOOGLE = hosts.command(
    "curl -s -H Metadata-Flavor:Google http://metadata.google.internal/computeMetadata/v1/instance/machine-type",
    "projects/1/machineTypes/a3-megagpu-8g",
)


def tcpx() -> Iterator[LogCase]:
    """The Google stacks lack a piece."""
    for number, version in enumerate(("2.20.5", "2.26.5", "2.28.9"), 1):
        case_id = f"tcpx-{number}"
        script = script_of(case_id, version, network=FASTRAK)
        script.cut("init")
        for rank in script.ranks:
            script.raw_warn(
                rank,
                "network",
                "NET/FasTrak failed to connect to the receive data path manager on /run/rxdm: Connection refused",
                "fastrak_plugin.cc:88",
                at_s=1.0,
                decisive=True,
            )
        collapse(script, script.ranks[0], "network", code=2, places=("net.cc:390", "init.cc:320"))
        side = {
            "node.machine.txt": _TCPX_GOOGLE,
            "node.pods.txt": hosts.command(
                "kubectl get pod trainer-0 -o jsonpath='{.status.containerStatuses[*].name}{.status.containerStatuses[*].state}'",
                "tcpxo-daemon {terminated: {exitCode: 1, reason: Error}}",
            ),
        }
        yield LogCase(
            id=case_id,
            cause="tcpx",
            also=("plugin", "container"),
            script=script,
            side=side,
            facts=stopped(script),
            basis="assumed",
        )
    script = script_of(
        "tcpx-4",
        "2.21.5",
        network=Network(
            name="Socket", link="", devices=("eth0", "eth1", "eth2"), speed_mbit_per_s=200_000, gdr=False
        ),
    )
    script.mark("no_plugin", "network", "net")
    yield LogCase(
        id="tcpx-4",
        cause="tcpx",
        also=("socket_fallback", "plugin"),
        verdict="slow",
        script=script,
        side={"node.machine.txt": _TCPX_GOOGLE},
        facts=runs(script),
        basis="assumed",
    )
    yield from _tcpx_near()


def _tcpx_near() -> Iterator[LogCase]:
    script = script_of("tcpx-near-1", "2.26.5", network=FASTRAK)
    yield healthy_case("tcpx-near-1", script, "tcpx", side={"node.machine.txt": _TCPX_GOOGLE})
    script = script_of("tcpx-near-2", "2.18.3", network=TCPX)
    yield healthy_case(
        "tcpx-near-2", script, "tcpx", side={"node.machine.txt": _TCPX_GOOGLE.replace("megagpu", "highgpu")}
    )
