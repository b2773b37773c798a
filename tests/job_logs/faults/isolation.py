"""What a container hides, and alarming text that has no effect."""

from collections.abc import Iterator

from tests.job_logs import hosts
from tests.job_logs.case import LogCase, healthy_case, runs, script_of, stopped
from tests.job_logs.faults.gpus import container_without_capabilities
from tests.job_logs.faults.memory import NO_SPACE, shm_failure
from tests.job_logs.faults.sequel import collapse, connecting, moment
from tests.job_logs.job import ETHERNET, INFINIBAND, INFINIBAND_WITHOUT_GDR, ROCE, Network
from tests.job_logs.script import Script


def container() -> Iterator[LogCase]:
    """Isolation hides what a process needs, or shows what it must not use."""
    for number, version in enumerate(("2.18.3", "2.21.5", "2.24.3"), 1):
        case_id = f"container-{number}"
        network = Network(link="RoCE", devices=("mlx5_0", "mlx5_1", "mlx5_2"))
        script = script_of(case_id, version, network=network)
        phase = connecting(script)
        script.cut(phase)
        rank = script.ranks[1]
        script.say(
            rank,
            phase,
            "modify_qp",
            reason="No such device",
            errno=19,
            hca="mlx5_2",
            gid_index=3,
            local_gid="N/A",
            remote_gid="::ffff:10.9.1.12",
            at_s=moment(phase),
            decisive=True,
            thread="proxy",
        )
        collapse(
            script,
            rank,
            phase,
            code=2,
            proxy="Connect",
            places=("misc/ibvwrap.cc:200", "transport/net_ib.cc:980"),
        )
        side = {
            "pod.devices.txt": hosts.listing("/sys/class/infiniband", "mlx5_0", "mlx5_1", "mlx5_2"),
            "pod.show_gids.txt": hosts.gids(
                ("mlx5_0", 3, hosts.gid_of("10.9.1.11"), "10.9.1.11", "v2"),
                ("mlx5_1", 3, hosts.gid_of("10.9.2.11"), "10.9.2.11", "v2"),
            ),
            "pod.cgroup.txt": hosts.command(
                "cat /proc/1/cgroup", "0::/kubepods.slice/kubepods-pod1c.slice/cri-containerd-5f.scope"
            ),
        }
        yield LogCase(
            id=case_id,
            cause="container",
            also=("ib_error", "rails"),
            script=script,
            side=side,
            facts=stopped(script),
        )
    yield from _hidden_devices()
    yield from _container_near()


def _hidden_devices() -> Iterator[LogCase]:
    for number, version in enumerate(("2.21.5", "2.23.4"), 4):
        yield container_without_capabilities(f"container-{number}", version)
    script = script_of("container-6", "2.24.3", hosts=("pod-a", "pod-a"), gpus_per_node=1, intra="NVLink")
    script.cut("collective")
    for rank in script.ranks:
        script.change(
            "size",
            lambda text, r=rank: text.replace(
                "nNodes 2 localRanks 1 localRank 0", f"nNodes 1 localRanks 2 localRank {r.rank}"
            ),
            where=lambda line, r=rank: line.rank is r,
        )
    for name in ("init_start", "init_complete"):
        script.change(
            name,
            lambda text: text.replace("busId 1b000", "busId 43000"),
            where=lambda line: line.rank.rank == 1,
        )
    rank = script.ranks[0]
    script.say(
        rank,
        "collective",
        "cu",
        code=101,
        reason="invalid device ordinal",
        source="transport/p2p.cc:310",
        at_s=3.5,
        decisive=True,
        thread="proxy",
    )
    collapse(
        script,
        rank,
        "collective",
        code=1,
        places=("transport/p2p.cc:310", "transport/p2p.cc:458"),
        proxy="Setup",
    )
    side = {
        "pod.gpus.txt": hosts.listing("/dev", "nvidia3", "nvidiactl", "nvidia-uvm"),
        "pod.cgroup.txt": hosts.command(
            "cat /proc/1/cgroup", "0::/kubepods.slice/kubepods-pod2b.slice/cri-containerd-9c.scope"
        ),
    }
    yield LogCase(
        id="container-6",
        cause="container",
        also=("host_identity", "p2p", "cumem"),
        script=script,
        side=side,
        facts=stopped(script),
        basis="assumed",
    )


def _container_near() -> Iterator[LogCase]:
    script = script_of("container-near-1", "2.23.4")
    yield healthy_case(
        "container-near-1",
        script,
        "container",
        side={
            "pod.cgroup.txt": hosts.command(
                "cat /proc/1/cgroup", "0::/kubepods.slice/kubepods-pod1c.slice/cri-containerd-5f.scope"
            )
        },
    )
    script = script_of("container-near-2", "2.21.5", nodes=1, gpus_per_node=4, intra="SHM", multicast=False)
    shm_failure(script, NO_SPACE, 28, 9_637_888)
    side = {
        "pod.df.txt": hosts.shared_memory("64M", "58M", "6.0M", 91),
        "pod.cgroup.txt": hosts.command(
            "cat /proc/1/cgroup", "0::/kubepods.slice/kubepods-pod1c.slice/cri-containerd-5f.scope"
        ),
    }
    yield LogCase(
        id="container-near-2",
        cause="shm",
        also=("container",),
        script=script,
        side=side,
        facts=stopped(script),
        near_miss_of="container",
    )


def harmless() -> Iterator[LogCase]:
    """Alarming text without effect; and the same text where it has one."""
    script = script_of("harmless-1", "2.18.3", multicast=False)
    yield _harmless(
        "harmless-1",
        script,
        {"host.gpus.txt": hosts.command("nvidia-smi -L", "GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-1c)")},
    )
    single = Network(name="Socket", link="", devices=("eth0",), gdr=False)
    for number, version in enumerate(("2.12.12", "2.21.5", "2.27.5"), 2):
        script = script_of(f"harmless-{number}", version, nodes=1, gpus_per_node=8, network=single)
        for rank in script.ranks:
            script.say(rank, "network", "no_verbs", at_s=0.8)
        yield _harmless(f"harmless-{number}", script)
    script = script_of(
        "harmless-5",
        "2.22.3",
        network=Network(
            name="AWS Libfabric", link="", devices=("rdmap79s0", "rdmap80s0"), plugin="libnccl-net.so"
        ),
    )
    for rank in script.ranks:
        script.say(rank, "network", "no_ib", at_s=0.8)
    yield _harmless("harmless-5", script)
    script = script_of("harmless-6", "2.27.5", subsystems=frozenset({"INIT", "ENV", "NET"}))
    yield _harmless("harmless-6", script)
    script = script_of("harmless-7", "2.10.3", network=ROCE)
    for rank in script.ranks:
        script.say(
            rank, "graph", "real_path", device="mlx5_0", path="/sys/class/infiniband/mlx5_0/device", at_s=1.62
        )
    yield _harmless("harmless-7", script)
    script = script_of("harmless-8", "2.24.3")
    for rank in script.ranks:
        script.say(rank, "graph", "collnet_threshold", nodes=2, threshold=4, at_s=1.9)
    yield _harmless("harmless-8", script)
    yield from _harmless_near()


def _harmless_near() -> Iterator[LogCase]:
    script = script_of("harmless-near-1", "2.21.5", network=ETHERNET)
    side = {
        f"{host}.ibstat.txt": hosts.ibstat(
            ("mlx5_0", "Active", "InfiniBand", 400), ("mlx5_1", "Active", "InfiniBand", 400)
        )
        for host in script.job.hosts
    }
    script.mark("no_ib", "network")
    yield LogCase(
        id="harmless-near-1",
        cause="socket_fallback",
        also=("container",),
        verdict="slow",
        script=script,
        side=side,
        facts=runs(script),
        near_miss_of="harmless",
    )
    script = script_of("harmless-near-2", "2.20.5", network=INFINIBAND_WITHOUT_GDR)
    script.mark("net")
    yield LogCase(
        id="harmless-near-2",
        cause="gdr_off",
        also=("driver",),
        verdict="slow",
        script=script,
        side={"host.lsmod.txt": hosts.modules("mlx5_ib"), "host.topo.txt": hosts.topology(2, "NV18")},
        facts=runs(script),
        near_miss_of="harmless",
    )
    yield healthy_case(
        "harmless-near-3", script_of("harmless-near-3", "2.26.5", network=INFINIBAND), "harmless"
    )


def _harmless(case_id: str, script: Script, side: dict[str, str] | None = None) -> LogCase:
    return LogCase(
        id=case_id, cause="harmless", verdict="harmless", script=script, side=side or {}, facts=runs(script)
    )
