"""Faults of the program and its settings: order of collectives, variables, files, limits of isolation, and what is no fault."""

from collections.abc import Iterator

from tests.job_logs import hosts
from tests.job_logs.case import LogCase, healthy_case, job, runs, script_of, stopped
from tests.job_logs.faults.sequel import collapse, elastic_failure, peers_close, watchdog
from tests.job_logs.healthy import performance_table
from tests.job_logs.job import Facts, Network


def desync() -> Iterator[LogCase]:
    """Ranks do not issue the same collective."""
    for number, version in enumerate(("2.19.3", "2.23.4", "2.28.9"), 1):
        case_id = f"desync-{number}"
        script = script_of(case_id, version, framework="pytorch")
        script.cut("end")
        watchdog(script, script.ranks[1:], decisive=True)
        first = script.ranks[0]
        script.print(
            first,
            "training",
            "[rank0]:[E1104 08:26:20.1 ProcessGroupNCCL.cpp:1537] [PG ID 0 PG GUID 0(default_pg) Rank 0] Received a dump signal due to a collective timeout from rank 2 and we will try our best to dump the debug info. Last enqueued NCCL work: 411, last completed NCCL work: 411.",
            at_s=641.0,
            decisive=True,
        )
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
    script.print(
        script.ranks[0],
        "training",
        "[rank0]:[W1104 08:16:20.1 ProcessGroupNCCL.cpp:4115] [PG ID 0 PG GUID 0 Rank 0]  using GPU 0 to perform barrier as devices used by this process are currently unknown. This can potentially cause a hang if this rank to GPU mapping is incorrect.",
        at_s=4.6,
    )
    yield healthy_case("desync-near-1", script, "desync")
    script = script_of("desync-near-2", "2.21.5", framework="pytorch")
    script.cut("end")
    bad = script.ranks[-1]
    script.say(
        bad, "training", "async_event", hca="mlx5_0", event="port error", number=10, at_s=30.0, decisive=True
    )
    watchdog(script, script.ranks)
    yield LogCase(
        id="desync-near-2",
        cause="link_flap",
        also=("ib_error",),
        script=script,
        facts=runs(script),
        near_miss_of="desync",
    )


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
            script.say(
                rank,
                "training",
                "receive_failed",
                peer=f"{dead.address}<51{rank.rank}92>",
                reason="Connection reset by peer",
                at_s=31.1,
                decisive=True,
            ) or script.say(
                rank,
                "training",
                "closed_by_peer",
                peer=f"{dead.address}<51{rank.rank}92>",
                at_s=31.1,
                decisive=True,
            )
        peers_close(script, script.ranks[:-1], dead, "training", 31.2)
        yield LogCase(id=case_id, cause="remote_exit", script=script, facts=runs(script))
    script = script_of("remote_exit-near-1", "2.18.3", framework="pytorch")
    script.cut("channels")
    rank = script.ranks[-1]
    script.say(
        rank,
        "channels",
        "cuda",
        reason="out of memory",
        source="include/alloc.h:178",
        at_s=2.5,
        decisive=True,
        thread="proxy",
    )
    script.say(rank, "channels", "cuda_calloc", bytes=4_194_304, at_s=2.5, decisive=True, thread="proxy")
    collapse(script, rank, "channels", code=1, proxy="Setup")
    yield LogCase(
        id="remote_exit-near-1", cause="oom", script=script, facts=stopped(script), near_miss_of="remote_exit"
    )
    script = script_of("remote_exit-near-2", "2.23.4")
    script.say(script.ranks[1], "end", "service_closed", local=0, thread="proxy", at_s=59.9)
    yield healthy_case("remote_exit-near-2", script, "remote_exit")


def env_misuse() -> Iterator[LogCase]:
    """A variable breaks or slows something."""
    chosen = " NCCL_ALGO was set to Tree."
    for number, version in enumerate(("2.7.8", "2.21.5", "2.24.3", "2.30.7", "2.32.3"), 1):
        case_id = f"env_misuse-{number}"
        script = script_of(
            case_id, version, variables=(("NCCL_ALGO", "Tree"),), subsystems=frozenset({"INIT", "ENV"})
        )
        script.cut("training")
        script.mark("environment_text")
        rank = script.ranks[0]
        for other in script.ranks:
            script.say(
                other,
                "training",
                "no_algorithm",
                collective="ReduceScatter",
                chosen=chosen,
                at_s=5.0,
                decisive=True,
            )
        collapse(script, rank, "training", code=5, places=("enqueue.cc:1411", "enqueue.cc:1490"), at_s=5.0)
        yield LogCase(id=case_id, cause="env_misuse", script=script, facts=runs(script))
    for number, version in enumerate(("2.14.3", "2.23.4"), 6):
        case_id = f"env_misuse-{number}"
        script = script_of(
            case_id,
            version,
            nodes=1,
            gpus_per_node=4,
            intra="SHM",
            multicast=False,
            variables=(("NCCL_P2P_DISABLE", "1"),),
        )
        script.mark("p2p_level", "p2p_disable", "shm")
        yield LogCase(
            id=case_id,
            cause="env_misuse",
            also=("p2p",),
            verdict="slow",
            script=script,
            side={"host.topo.txt": hosts.topology(4, "NV12")},
            facts=runs(script),
        )
    network = Network(gdr=False)
    script = script_of("env_misuse-8", "2.21.5", network=network, variables=(("NCCL_NET_GDR_LEVEL", "LOC"),))
    script.mark("gdr_level_text", "net")
    yield LogCase(
        id="env_misuse-8",
        cause="env_misuse",
        also=("gdr_off",),
        verdict="slow",
        script=script,
        side={
            "host.lsmod.txt": hosts.modules("nvidia_peermem", "mlx5_ib"),
            "host.topo.txt": hosts.topology(2, "NV18"),
        },
        facts=runs(script),
    )
    yield from _env_misuse_near()


def _env_misuse_near() -> Iterator[LogCase]:
    for number, (version, variables) in enumerate(
        (
            ("2.21.5", (("NCCL_ALGO", "Ring"),)),
            ("2.26.5", (("NCCL_IB_QPS_PER_CONNECTION", "4"), ("NCCL_IB_TIMEOUT", "22"))),
        ),
        1,
    ):
        case_id = f"env_misuse-near-{number}"
        yield healthy_case(case_id, script_of(case_id, version, variables=variables), "env_misuse")
    script = script_of(
        "env_misuse-near-3",
        "2.20.5",
        nodes=1,
        gpus_per_node=2,
        intra="SHM",
        multicast=False,
        variables=(("NCCL_P2P_DISABLE", "1"),),
    )
    yield LogCase(
        id="env_misuse-near-3",
        cause="harmless",
        also=("env_misuse",),
        verdict="harmless",
        script=script,
        near_miss_of="env_misuse",
        facts=runs(script),
        side={
            "host.topo.txt": hosts.topology(2, "SYS"),
            "host.gpus.txt": hosts.command(
                "nvidia-smi -L",
                "GPU 0: NVIDIA GeForce RTX 4090 (UUID: GPU-1c)\nGPU 1: NVIDIA GeForce RTX 4090 (UUID: GPU-2d)",
            ),
        },
        basis="assumed",
    )


_TOPOLOGY_GRAPH = frozenset({"INIT", "ENV", "GRAPH"})


def topology() -> Iterator[LogCase]:
    """NCCL's picture of the machine is wrong."""
    path = "/opt/microsoft/ncv4/topo.xml"
    for number, version in enumerate(("2.14.3", "2.21.5", "2.27.5"), 1):
        case_id = f"topology-{number}"
        script = script_of(
            case_id,
            version,
            nodes=1,
            gpus_per_node=4,
            intra="PCIe",
            multicast=False,
            subsystems=_TOPOLOGY_GRAPH,
            variables=(("NCCL_TOPO_FILE", path),),
        )
        script.change("system", lambda text: _slow(text), decisive=True)
        script.change(
            "pattern", lambda text: text.replace("12.000000/12.000000", "0.100000/0.100000"), decisive=True
        )
        script.mark("topology_file")
        xml = '<system version="1">\n  <cpu numaid="0" arch="x86_64">\n    <pci busid="0001:00:00.0" class="0x060400" link_speed="2.5 GT/s PCIe" link_width="1"/>\n  </cpu>\n</system>\n'
        yield LogCase(
            id=case_id,
            cause="topology",
            also=("env_misuse",),
            verdict="slow",
            script=script,
            side={"host.topo.xml": xml},
            facts=runs(script),
        )
    for number, version in enumerate(("2.18.3", "2.24.3"), 4):
        case_id = f"topology-{number}"
        script = script_of(
            case_id, version, variables=(("NCCL_GRAPH_FILE", "/opt/microsoft/ncv4/_TOPOLOGY_GRAPH.xml"),)
        )
        script.cut("channels")
        script.cut("tuning")
        script.say(script.ranks[0], "graph", "import_channel", index=3, at_s=2.0, decisive=True)
        script.mark("graph_file")
        collapse(
            script,
            script.ranks[0],
            "graph",
            code=3,
            places=("graph/search.cc:708", "graph/search.cc:791", "init.cc:1034"),
        )
        yield LogCase(
            id=case_id, cause="topology", also=("env_misuse",), script=script, facts=stopped(script)
        )
    script = script_of("topology-6", "2.21.5", variables=(("NCCL_TOPO_FILE", "/etc/topo.xml"),))
    script.cut("graph")
    for rank in script.ranks:
        script.say(rank, "graph", "topology_file", path="/etc/topo.xml")
        script.say(rank, "graph", "xml_attribute", attribute="arch", node="cpu", at_s=1.9, decisive=True)
    collapse(script, script.ranks[0], "graph", code=3, places=("graph/topo.cc:566", "init.cc:1001"))
    yield LogCase(id="topology-6", cause="topology", also=("plugin",), script=script, facts=stopped(script))
    yield from _topology_near()


def _topology_near() -> Iterator[LogCase]:
    yield healthy_case(
        "topology-near-1",
        script_of(
            "topology-near-1",
            "2.23.4",
            subsystems=_TOPOLOGY_GRAPH,
            variables=(("NCCL_TOPO_FILE", "/opt/topo/ndv5.xml"),),
        ),
        "topology",
    )
    script = script_of(
        "topology-near-2",
        "2.28.9",
        subsystems=_TOPOLOGY_GRAPH,
        variables=(("NCCL_TOPO_FILE", "/var/run/topo.xml"),),
    )
    for rank in script.ranks:
        script.say(
            rank,
            "graph",
            "topology_unreadable",
            path="/var/run/topo.xml",
            reason="No such file or directory",
            at_s=1.62,
        )
    yield healthy_case(
        "topology-near-2", script, "topology", cause="harmless", also=("topology",), verdict="harmless"
    )


def _slow(text: str) -> str:
    head = text.split(":", maxsplit=1)[0]
    unit = "maxBw 0.1 totalBw 12.0" if "maxBw" in text else "maxWidth 0.1 totalWidth 12.0"
    return f"{head}: {unit} ==="


def test_setup() -> Iterator[LogCase]:
    """Several runs of one node pass for one job."""
    for number, version in enumerate(("2.18.3", "2.21.5", "2.27.5"), 1):
        case_id = f"test_setup-{number}"
        made = job(case_id, version, nodes=1, gpus_per_node=8, framework="", multicast=True)
        script = script_of(case_id, version, nodes=1, gpus_per_node=8, framework="", hosts=made.hosts)
        other = job(
            case_id + "b", version, nodes=1, gpus_per_node=8, framework="", hosts=(made.hosts[0] + "b",)
        )
        script.lines = []
        for which in (made, other):
            for row in performance_table(which, peak_gb_per_s=360.0 + number).splitlines():
                script.print(script.ranks[0], "training", row, at_s=5.0, decisive=True)
        side = {
            "host.command.txt": f"$ mpirun -np 2 -N 1 -H {made.hosts[0]},{other.hosts[0]} ./build/all_reduce_perf -b 1M -e 1G -f 4 -g 8\n"
        }
        yield LogCase(id=case_id, cause="test_setup", verdict="broken", script=script, side=side, facts=None)
    for number, version in enumerate(("2.21.5", "2.28.9"), 1):
        case_id = f"test_setup-near-{number}"
        yield healthy_case(
            case_id, script_of(case_id, version, framework="nccl-tests", gpus_per_node=4), "test_setup"
        )


def nccl_bug() -> Iterator[LogCase]:
    """A fault of NCCL that another release mends."""
    stacks = (
        (
            "2.19.3",
            "ncclP2pImportShareableBuffer (transport/p2p.cc)\n  cuMemImportFromShareableHandle\n  ioctl",
        ),
        (
            "2.19.3",
            "ncclTransportP2pSetup (transport.cc)\n  p2pRecvConnect (transport/p2p.cc)\n  cuMemImportFromShareableHandle",
        ),
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
        side = {
            f"{script.job.hosts[0]}.stack.txt": hosts.command(
                f"gdb -p {script.ranks[0].pid} -batch -ex 'thread apply all bt'", stack
            )
        }
        yield LogCase(
            id=case_id,
            cause="nccl_bug",
            also=("cumem", "bootstrap"),
            script=script,
            side=side,
            facts=Facts(versions=(version,)),
            basis="assumed",
        )
    script = script_of("nccl_bug-near-1", "2.19.3")
    yield healthy_case("nccl_bug-near-1", script, "nccl_bug")
    script = script_of("nccl_bug-near-2", "2.19.3", framework="pytorch")
    script.cut("end")
    watchdog(script, script.ranks[1:], decisive=True)
    script.print(
        script.ranks[0],
        "training",
        "[rank0]:[E1104 08:26:20.1 ProcessGroupNCCL.cpp:1537] [Rank 0] Received a dump signal due to a collective timeout from rank 1. Last enqueued NCCL work: 411, last completed NCCL work: 411.",
        at_s=641.0,
        decisive=True,
    )
    yield LogCase(
        id="nccl_bug-near-2", cause="desync", script=script, facts=runs(script), near_miss_of="nccl_bug"
    )
