"""Faults of the program and its settings: order of collectives, variables, files, limits of isolation, and what is no fault."""

from collections.abc import Iterator

from tests.job_logs import hosts
from tests.job_logs.case import LogCase, healthy_case, job, runs, script_of, stopped
from tests.job_logs.faults.gpus import container_without_capabilities
from tests.job_logs.faults.sequel import collapse, elastic_failure, moment, peers_close, watchdog
from tests.job_logs.healthy import performance_table
from tests.job_logs.job import ETHERNET, INFINIBAND, INFINIBAND_WITHOUT_GDR, ROCE, Facts, Network
from tests.job_logs.script import Script


def _connecting(script: Script) -> str:
    return "collective" if script.job.release.is_from("2.22.3") else "channels"


def desync() -> Iterator[LogCase]:
    """Ranks do not issue the same collective."""
    for number, version in enumerate(("2.19.3", "2.23.4", "2.28.9"), 1):
        case_id = f"desync-{number}"
        script = script_of(case_id, version, framework="pytorch")
        script.cut("end")
        watchdog(script, script.ranks[1:], decisive=True)
        first = script.ranks[0]
        script.print(first, "training", f"[rank0]:[E1104 08:26:20.1 ProcessGroupNCCL.cpp:1537] [PG ID 0 PG GUID 0(default_pg) Rank 0] Received a dump signal due to a collective timeout from rank 2 and we will try our best to dump the debug info. Last enqueued NCCL work: 411, last completed NCCL work: 411.", at_s=641.0, decisive=True)
        yield LogCase(id=case_id, cause="desync", script=script, facts=runs(script))
    for number, version in enumerate(("2.21.5", "2.26.5"), 4):
        case_id = f"desync-{number}"
        script = script_of(case_id, version, framework="pytorch")
        script.cut("end")
        watchdog(script, script.ranks[:2], numel=524_288, decisive=True)
        watchdog(script, script.ranks[2:], numel=262_144, decisive=True)
        yield LogCase(id=case_id, cause="desync", script=script, facts=runs(script))
    script = script_of("desync-6", "2.4.8", framework="pytorch")
    script.cut("training")
    script.say(script.ranks[1], "training", "mismatched_collective", at_s=31.0, decisive=True)
    collapse(script, script.ranks[1], "training", code=3, places=("enqueue.cc:197",))
    yield LogCase(id="desync-6", cause="desync", script=script, facts=runs(script))
    script = script_of("desync-near-1", "2.24.3", framework="pytorch")
    script.print(script.ranks[0], "training", "[rank0]:[W1104 08:16:20.1 ProcessGroupNCCL.cpp:4115] [PG ID 0 PG GUID 0 Rank 0]  using GPU 0 to perform barrier as devices used by this process are currently unknown. This can potentially cause a hang if this rank to GPU mapping is incorrect.", at_s=4.6)
    yield healthy_case("desync-near-1", script, "desync")
    script = script_of("desync-near-2", "2.21.5", framework="pytorch")
    script.cut("end")
    bad = script.ranks[-1]
    script.say(bad, "training", "async_event", hca="mlx5_0", event="port error", number=10, at_s=30.0, decisive=True)
    watchdog(script, script.ranks)
    yield LogCase(id="desync-near-2", cause="link_flap", also=("ib_error",), script=script, facts=runs(script), near_miss_of="desync")


def remote_exit() -> Iterator[LogCase]:
    """Another process died, and the log does not say why."""
    for number, version in enumerate(("2.10.3", "2.14.3", "2.20.5", "2.27.5"), 1):
        case_id = f"remote_exit-{number}"
        script = script_of(case_id, version, framework="pytorch" if number > 1 else "")
        script.cut("end")
        dead = script.ranks[-1]
        script.lines = [line for line in script.lines if line.rank.rank != dead.rank or line.at_s < 30.0]
        if number > 2:
            elastic_failure(script, dead, -11, 31.0, decisive=True)
        for rank in script.ranks[:-1]:
            script.say(rank, "training", "receive_failed", peer=f"{dead.address}<51{rank.rank}92>", reason="Connection reset by peer", at_s=31.1, decisive=True) or script.say(rank, "training", "closed_by_peer", peer=f"{dead.address}<51{rank.rank}92>", at_s=31.1, decisive=True)
        peers_close(script, script.ranks[:-1], dead, "training", 31.2)
        yield LogCase(id=case_id, cause="remote_exit", script=script, facts=runs(script))
    script = script_of("remote_exit-near-1", "2.18.3", framework="pytorch")
    script.cut("channels")
    rank = script.ranks[-1]
    script.say(rank, "channels", "cuda", reason="out of memory", source="include/alloc.h:178", at_s=2.5, decisive=True, thread="proxy")
    script.say(rank, "channels", "cuda_calloc", bytes=4_194_304, at_s=2.5, decisive=True, thread="proxy")
    collapse(script, rank, "channels", code=1, proxy="Setup")
    yield LogCase(id="remote_exit-near-1", cause="oom", script=script, facts=stopped(script), near_miss_of="remote_exit")
    script = script_of("remote_exit-near-2", "2.23.4")
    script.say(script.ranks[1], "end", "service_closed", local=0, thread="proxy", at_s=59.9)
    yield healthy_case("remote_exit-near-2", script, "remote_exit")


def env_misuse() -> Iterator[LogCase]:
    """A variable breaks or slows something."""
    chosen = " NCCL_ALGO was set to Tree."
    for number, version in enumerate(("2.7.8", "2.21.5", "2.24.3", "2.30.7", "2.32.3"), 1):
        case_id = f"env_misuse-{number}"
        script = script_of(case_id, version, variables=(("NCCL_ALGO", "Tree"),), subsystems=frozenset({"INIT", "ENV"}))
        script.cut("training")
        script.mark("environment_text")
        rank = script.ranks[0]
        for other in script.ranks:
            script.say(other, "training", "no_algorithm", collective="ReduceScatter", chosen=chosen, at_s=5.0, decisive=True)
        collapse(script, rank, "training", code=5, places=("enqueue.cc:1411", "enqueue.cc:1490"))
        yield LogCase(id=case_id, cause="env_misuse", script=script, facts=runs(script))
    for number, version in enumerate(("2.14.3", "2.23.4"), 6):
        case_id = f"env_misuse-{number}"
        script = script_of(case_id, version, nodes=1, gpus_per_node=4, intra="SHM", multicast=False, variables=(("NCCL_P2P_DISABLE", "1"),))
        script.mark("p2p_level", "p2p_disable", "shm")
        yield LogCase(id=case_id, cause="env_misuse", also=("p2p",), verdict="slow", script=script, side={"host.topo.txt": hosts.topology(4, "NV12")}, facts=runs(script))
    network = Network(gdr=False)
    script = script_of("env_misuse-8", "2.21.5", network=network, variables=(("NCCL_NET_GDR_LEVEL", "LOC"),))
    script.mark("gdr_level_text", "net")
    yield LogCase(id="env_misuse-8", cause="env_misuse", also=("gdr_off",), verdict="slow", script=script, side={"host.lsmod.txt": hosts.modules("nvidia_peermem", "mlx5_ib"), "host.topo.txt": hosts.topology(2, "NV18")}, facts=runs(script))
    for number, (version, variables) in enumerate((("2.21.5", (("NCCL_ALGO", "Ring"),)), ("2.26.5", (("NCCL_IB_QPS_PER_CONNECTION", "4"), ("NCCL_IB_TIMEOUT", "22")))), 1):
        case_id = f"env_misuse-near-{number}"
        yield healthy_case(case_id, script_of(case_id, version, variables=variables), "env_misuse")
    script = script_of("env_misuse-near-3", "2.20.5", nodes=1, gpus_per_node=2, intra="SHM", multicast=False, variables=(("NCCL_P2P_DISABLE", "1"),))
    yield LogCase(id="env_misuse-near-3", cause="harmless", also=("env_misuse",), verdict="harmless", script=script, near_miss_of="env_misuse", facts=runs(script), side={"host.topo.txt": hosts.topology(2, "SYS"), "host.gpus.txt": hosts.command("nvidia-smi -L", "GPU 0: NVIDIA GeForce RTX 4090 (UUID: GPU-1c)\nGPU 1: NVIDIA GeForce RTX 4090 (UUID: GPU-2d)")}, basis="assumed")


def topology() -> Iterator[LogCase]:
    """NCCL's picture of the machine is wrong."""
    path = "/opt/microsoft/ncv4/topo.xml"
    graph = frozenset({"INIT", "ENV", "GRAPH"})
    for number, version in enumerate(("2.14.3", "2.21.5", "2.27.5"), 1):
        case_id = f"topology-{number}"
        script = script_of(case_id, version, nodes=1, gpus_per_node=4, intra="PCIe", multicast=False, subsystems=graph, variables=(("NCCL_TOPO_FILE", path),))
        script.change("system", lambda text: _slow(text), decisive=True)
        script.change("pattern", lambda text: text.replace("12.000000/12.000000", "0.100000/0.100000"), decisive=True)
        script.mark("topology_file")
        xml = '<system version="1">\n  <cpu numaid="0" arch="x86_64">\n    <pci busid="0001:00:00.0" class="0x060400" link_speed="2.5 GT/s PCIe" link_width="1"/>\n  </cpu>\n</system>\n'
        yield LogCase(id=case_id, cause="topology", also=("env_misuse",), verdict="slow", script=script, side={"host.topo.xml": xml}, facts=runs(script))
    for number, version in enumerate(("2.18.3", "2.24.3"), 4):
        case_id = f"topology-{number}"
        script = script_of(case_id, version, variables=(("NCCL_GRAPH_FILE", "/opt/microsoft/ncv4/graph.xml"),))
        script.cut("channels")
        script.cut("tuning")
        script.say(script.ranks[0], "graph", "import_channel", index=3, at_s=2.0, decisive=True)
        script.mark("graph_file")
        collapse(script, script.ranks[0], "graph", code=3, places=("graph/search.cc:708", "graph/search.cc:791", "init.cc:1034"))
        yield LogCase(id=case_id, cause="topology", also=("env_misuse",), script=script, facts=stopped(script))
    script = script_of("topology-6", "2.21.5", variables=(("NCCL_TOPO_FILE", "/etc/topo.xml"),))
    script.cut("graph")
    for rank in script.ranks:
        script.say(rank, "graph", "topology_file", path="/etc/topo.xml")
        script.say(rank, "graph", "xml_attribute", attribute="arch", node="cpu", at_s=1.9, decisive=True)
    collapse(script, script.ranks[0], "graph", code=3, places=("graph/topo.cc:566", "init.cc:1001"))
    yield LogCase(id="topology-6", cause="topology", also=("plugin",), script=script, facts=stopped(script))
    yield healthy_case("topology-near-1", script_of("topology-near-1", "2.23.4", subsystems=graph, variables=(("NCCL_TOPO_FILE", "/opt/topo/ndv5.xml"),)), "topology")
    script = script_of("topology-near-2", "2.28.9", subsystems=graph, variables=(("NCCL_TOPO_FILE", "/var/run/topo.xml"),))
    for rank in script.ranks:
        script.say(rank, "graph", "topology_unreadable", path="/var/run/topo.xml", reason="No such file or directory", at_s=1.62)
    yield healthy_case("topology-near-2", script, "topology", cause="harmless", also=("topology",), verdict="harmless")


def _slow(text: str) -> str:
    head = text.split(":")[0]
    unit = "maxBw 0.1 totalBw 12.0" if "maxBw" in text else "maxWidth 0.1 totalWidth 12.0"
    return f"{head}: {unit} ==="


def test_setup() -> Iterator[LogCase]:
    """Several runs of one node pass for one job."""
    for number, version in enumerate(("2.18.3", "2.21.5", "2.27.5"), 1):
        case_id = f"test_setup-{number}"
        made = job(case_id, version, nodes=1, gpus_per_node=8, framework="", multicast=True)
        script = script_of(case_id, version, nodes=1, gpus_per_node=8, framework="", hosts=made.hosts)
        other = job(case_id + "b", version, nodes=1, gpus_per_node=8, framework="", hosts=(made.hosts[0] + "b",))
        script.lines = []
        for which in (made, other):
            for row in performance_table(which, peak_gb_per_s=360.0 + number).splitlines():
                script.print(script.ranks[0], "training", row, at_s=5.0, decisive=True)
        side = {"host.command.txt": f"$ mpirun -np 2 -N 1 -H {made.hosts[0]},{other.hosts[0]} ./build/all_reduce_perf -b 1M -e 1G -f 4 -g 8\n"}
        yield LogCase(id=case_id, cause="test_setup", verdict="broken", script=script, side=side, facts=None)
    for number, version in enumerate(("2.21.5", "2.28.9"), 1):
        case_id = f"test_setup-near-{number}"
        yield healthy_case(case_id, script_of(case_id, version, framework="nccl-tests", gpus_per_node=4), "test_setup")


def nccl_bug() -> Iterator[LogCase]:
    """A fault of NCCL that another release mends."""
    stacks = (
        ("2.19.3", "ncclP2pImportShareableBuffer (transport/p2p.cc)\n  cuMemImportFromShareableHandle\n  ioctl"),
        ("2.19.3", "ncclTransportP2pSetup (transport.cc)\n  p2pRecvConnect (transport/p2p.cc)\n  cuMemImportFromShareableHandle"),
        ("2.27.5", "ncclCommInitRankFunc (init.cc)\n  socketPollConnect (misc/socket.cc)\n  poll"),
    )
    for number, (version, stack) in enumerate(stacks, 1):
        case_id = f"nccl_bug-{number}"
        script = script_of(case_id, version, gpus_per_node=8, framework="pytorch", steps=0)
        if number < 3:
            script.cut("tuning")
            script.drop("rings", "all_trees", "nvls_tree", where=lambda line: line.rank.rank % 3 == 0)
        else:
            script.cut("complete", script.ranks[3:6])
            script.cut("collective")
        for rank in script.ranks[:1]:
            script.print(rank, "channels", f"[W1104 08:46:01 ProcessGroupNCCL.cpp:1602] [Rank {rank.rank}] HeartbeatMonitor: heartbeat lost, all ranks of node 0 are still in ncclCommInitRank after 1800 s", at_s=1800.0, decisive=True)
        side = {f"{script.job.hosts[0]}.stack.txt": hosts.command(f"gdb -p {script.ranks[0].pid} -batch -ex 'thread apply all bt'", stack)}
        yield LogCase(id=case_id, cause="nccl_bug", also=("cumem", "bootstrap"), script=script, side=side, facts=Facts(versions=(version,)), basis="assumed")
    script = script_of("nccl_bug-near-1", "2.19.3")
    yield healthy_case("nccl_bug-near-1", script, "nccl_bug")
    script = script_of("nccl_bug-near-2", "2.19.3", framework="pytorch")
    script.cut("end")
    watchdog(script, script.ranks[1:], decisive=True)
    script.print(script.ranks[0], "training", "[rank0]:[E1104 08:26:20.1 ProcessGroupNCCL.cpp:1537] [Rank 0] Received a dump signal due to a collective timeout from rank 1. Last enqueued NCCL work: 411, last completed NCCL work: 411.", at_s=641.0, decisive=True)
    yield LogCase(id="nccl_bug-near-2", cause="desync", script=script, facts=runs(script), near_miss_of="nccl_bug")


def container() -> Iterator[LogCase]:
    """Isolation hides what a process needs, or shows what it must not use."""
    for number, version in enumerate(("2.18.3", "2.21.5", "2.24.3"), 1):
        case_id = f"container-{number}"
        network = Network(link="RoCE", devices=("mlx5_0", "mlx5_1", "mlx5_2"))
        script = script_of(case_id, version, network=network)
        phase = _connecting(script)
        script.cut(phase)
        rank = script.ranks[1]
        script.say(rank, phase, "modify_qp", reason="No such device", errno=19, hca="mlx5_2", gid_index=3, local_gid="N/A", remote_gid="::ffff:10.9.1.12", at_s=moment(phase), decisive=True, thread="proxy")
        collapse(script, rank, phase, code=2, proxy="Connect", places=("misc/ibvwrap.cc:200", "transport/net_ib.cc:980"))
        side = {
            "pod.devices.txt": hosts.listing("/sys/class/infiniband", "mlx5_0", "mlx5_1", "mlx5_2"),
            "pod.show_gids.txt": hosts.gids(("mlx5_0", 3, "0000:0000:0000:0000:0000:ffff:0a09:010b", "10.9.1.11", "v2"), ("mlx5_1", 3, "0000:0000:0000:0000:0000:ffff:0a09:020b", "10.9.2.11", "v2")),
            "pod.cgroup.txt": hosts.command("cat /proc/1/cgroup", "0::/kubepods.slice/kubepods-pod1c.slice/cri-containerd-5f.scope"),
        }
        yield LogCase(id=case_id, cause="container", also=("ib_error", "rails"), script=script, side=side, facts=stopped(script))
    for number, version in enumerate(("2.21.5", "2.23.4"), 4):
        yield container_without_capabilities(f"container-{number}", version)
    script = script_of("container-6", "2.24.3", hosts=("pod-a", "pod-a"), gpus_per_node=1, intra="NVLink")
    script.cut("collective")
    script.change("size", lambda text: text.replace("nNodes 2", "nNodes 1"))
    rank = script.ranks[0]
    script.say(rank, "collective", "cu", code=101, reason="invalid device ordinal", source="transport/p2p.cc:310", at_s=3.5, decisive=True, thread="proxy")
    collapse(script, rank, "collective", code=1, places=("transport/p2p.cc:310", "transport/p2p.cc:458"), proxy="Setup")
    side = {"pod.gpus.txt": hosts.listing("/dev", "nvidia3", "nvidiactl", "nvidia-uvm"), "pod.cgroup.txt": hosts.command("cat /proc/1/cgroup", "0::/kubepods.slice/kubepods-pod2b.slice/cri-containerd-9c.scope")}
    yield LogCase(id="container-6", cause="container", also=("host_identity", "p2p", "cumem"), script=script, side=side, facts=stopped(script), basis="assumed")
    script = script_of("container-near-1", "2.23.4")
    yield healthy_case("container-near-1", script, "container", side={"pod.cgroup.txt": hosts.command("cat /proc/1/cgroup", "0::/kubepods.slice/kubepods-pod1c.slice/cri-containerd-5f.scope")})
    from tests.job_logs.faults.memory import _NO_SPACE, _shm_failure

    script = script_of("container-near-2", "2.21.5", nodes=1, gpus_per_node=4, intra="SHM", multicast=False)
    _shm_failure(script, _NO_SPACE, 28, 9_637_888)
    side = {"pod.df.txt": hosts.shared_memory("64M", "58M", "6.0M", 91), "pod.cgroup.txt": hosts.command("cat /proc/1/cgroup", "0::/kubepods.slice/kubepods-pod1c.slice/cri-containerd-5f.scope")}
    yield LogCase(id="container-near-2", cause="shm", also=("container",), script=script, side=side, facts=stopped(script), near_miss_of="container")


def harmless() -> Iterator[LogCase]:
    """Alarming text without effect; and the same text where it has one."""
    script = script_of("harmless-1", "2.18.3", multicast=False)
    yield _harmless("harmless-1", script, {"host.gpus.txt": hosts.command("nvidia-smi -L", "GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-1c)")})
    single = Network(name="Socket", link="", devices=("eth0",), gdr=False)
    for number, version in enumerate(("2.12.12", "2.21.5", "2.27.5"), 2):
        script = script_of(f"harmless-{number}", version, nodes=1, gpus_per_node=8, network=single)
        for rank in script.ranks:
            script.say(rank, "network", "no_verbs", at_s=0.8)
        yield _harmless(f"harmless-{number}", script)
    script = script_of("harmless-5", "2.22.3", network=Network(name="AWS Libfabric", link="", devices=("rdmap79s0", "rdmap80s0"), plugin="libnccl-net.so"))
    for rank in script.ranks:
        script.say(rank, "network", "no_ib", at_s=0.8)
    yield _harmless("harmless-5", script)
    script = script_of("harmless-6", "2.27.5", subsystems=frozenset({"INIT", "ENV", "NET"}))
    yield _harmless("harmless-6", script)
    script = script_of("harmless-7", "2.10.3", network=ROCE)
    for rank in script.ranks:
        script.say(rank, "graph", "real_path", device="mlx5_0", path="/sys/class/infiniband/mlx5_0/device", at_s=1.62)
    yield _harmless("harmless-7", script)
    script = script_of("harmless-8", "2.24.3")
    for rank in script.ranks:
        script.say(rank, "graph", "collnet_threshold", nodes=2, threshold=4, at_s=1.9)
    yield _harmless("harmless-8", script)
    script = script_of("harmless-near-1", "2.21.5", network=ETHERNET)
    side = {f"{host}.ibstat.txt": hosts.ibstat(("mlx5_0", "Active", "InfiniBand", 400), ("mlx5_1", "Active", "InfiniBand", 400)) for host in script.job.hosts}
    script.mark("no_ib", "network")
    yield LogCase(id="harmless-near-1", cause="socket_fallback", also=("container",), verdict="slow", script=script, side=side, facts=runs(script), near_miss_of="harmless")
    script = script_of("harmless-near-2", "2.20.5", network=INFINIBAND_WITHOUT_GDR)
    script.mark("net")
    yield LogCase(id="harmless-near-2", cause="gdr_off", also=("driver",), verdict="slow", script=script, side={"host.lsmod.txt": hosts.modules("mlx5_ib"), "host.topo.txt": hosts.topology(2, "NV18")}, facts=runs(script), near_miss_of="harmless")
    yield healthy_case("harmless-near-3", script_of("harmless-near-3", "2.26.5", network=INFINIBAND), "harmless")


def _harmless(case_id: str, script: Script, side: dict[str, str] | None = None) -> LogCase:
    return LogCase(id=case_id, cause="harmless", verdict="harmless", script=script, side=side or {}, facts=runs(script))
