"""GPUs, NVLink and the driver: which rank has which GPU, what a fault of the board looks like, what the platform refuses."""

from collections.abc import Iterator

from tests.job_logs import hosts
from tests.job_logs.case import LogCase, healthy_case, job, runs, script_of, stopped
from tests.job_logs.faults.sequel import collapse, connecting, elastic_failure, moment, peers_close, watchdog
from tests.job_logs.healthy import write
from tests.job_logs.job import INFINIBAND
from tests.job_logs.script import Script


def duplicate_gpu() -> Iterator[LogCase]:
    """Two ranks are on one GPU."""
    for number, version in enumerate(("2.7.8", "2.14.3", "2.20.5", "2.27.5", "2.30.7"), 1):
        case_id = f"duplicate_gpu-{number}"
        script = script_of(case_id, version, gpus_per_node=2)
        script.cut("graph")
        a, b = script.ranks[0], script.ranks[1]
        for rank, other in ((a, b), (b, a)):
            script.say(
                rank,
                "graph",
                "duplicate_gpu",
                a=rank.rank,
                b=other.rank,
                bus=a.bus,
                at_s=moment("graph"),
                decisive=True,
            )
        collapse(script, a, "graph", code=5, places=("init.cc:1089", "init.cc:1358"))
        facts = stopped(script)
        yield LogCase(id=case_id, cause="duplicate_gpu", script=script, facts=facts)
    for number, version in enumerate(("2.18.3", "2.26.5"), 1):
        case_id = f"duplicate_gpu-near-{number}"
        script = script_of(case_id, version)
        script.change("init_complete", lambda text: _device_zero(text))
        script.change("init_start", lambda text: _device_zero(text))
        yield healthy_case(case_id, script, "duplicate_gpu")


def _device_zero(text: str) -> str:
    return text.replace("cudaDev 1", "cudaDev 0")


def gpu_hw() -> Iterator[LogCase]:
    """A GPU or an NVLink fails."""
    texts = (
        (
            "2.14.3",
            "79",
            "pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
            "unspecified launch failure",
        ),
        (
            "2.20.5",
            "74",
            "NVLink: fatal error detected on link 6(0x10000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)",
            "an illegal memory access was encountered",
        ),
        (
            "2.27.5",
            "145",
            "RLW_RXPIPE Fatal XC1 i0 Link 13 (0x0409a0c2 0x00000008 0x00000001 0x00000000)",
            "uncorrectable NVLink error detected during the execution",
        ),
        (
            "2.30.7",
            "48",
            "pid=2211, name=python3, An uncorrectable double bit error (DBE) has been detected on GPU in the framebuffer",
            "uncorrectable ECC error encountered",
        ),
    )
    for number, (version, xid, text, cuda) in enumerate(texts, 1):
        case_id = f"gpu_hw-{number}"
        script = script_of(case_id, version, framework="pytorch")
        script.cut("end")
        rank = script.ranks[1]
        script.say(
            rank, "training", "cuda", reason=cuda, source="misc/strongstream.cc:414", at_s=31.0, decisive=True
        )
        collapse(script, rank, "training", code=1)
        bus = f"{rank.bus >> 12:02x}"
        side = {f"{rank.host}.dmesg.txt": hosts.dmesg(hosts.xid(bus, int(xid), text))}
        yield LogCase(id=case_id, cause="gpu_hw", script=script, side=side, facts=runs(script))
    script = script_of("gpu_hw-5", "2.23.4", framework="pytorch")
    script.cut("end")
    watchdog(script, script.ranks)
    side = {
        f"{script.job.hosts[0]}.dmesg.txt": hosts.dmesg(
            hosts.xid("43", 79, "GPU has fallen off the bus."),
            hosts.xid("43", 154, "GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)"),
        )
    }
    yield LogCase(id="gpu_hw-5", cause="gpu_hw", script=script, side=side, facts=runs(script))
    yield from _gpu_hw_near()


def _gpu_hw_near() -> Iterator[LogCase]:
    script = script_of("gpu_hw-near-1", "2.21.5")
    old = "[Mon Jul 14 03:02:11 2025] NVRM: Xid (PCI:0000:43:00): 31, pid=771, name=python3, MMU Fault: ENGINE GRAPHICS GPC0 faulted @ 0x7f1e_40000000"
    yield healthy_case("gpu_hw-near-1", script, "gpu_hw", side={"host.dmesg.txt": hosts.dmesg(old)})
    script = script_of("gpu_hw-near-2", "2.24.3", framework="pytorch")
    script.cut("end")
    last = script.ranks[-1]
    elastic_failure(script, last, -9, 31.0, decisive=True)
    peers_close(script, script.ranks[:-1], last, "training", 31.2)
    side = {
        f"{last.host}.dmesg.txt": hosts.dmesg(
            f"[Tue Nov  4 08:16:01 2025] Out of memory: Killed process {last.pid} (python3) total-vm:912345678kB, anon-rss:501658240kB",
            hosts.xid("43", 45, f"pid={last.pid}, name=python3, Ch 00000008"),
        )
    }
    yield LogCase(
        id="gpu_hw-near-2",
        cause="oom",
        also=("remote_exit",),
        script=script,
        side=side,
        facts=runs(script),
        near_miss_of="gpu_hw",
    )


def p2p() -> Iterator[LogCase]:
    """Peer access between GPUs of one host fails."""
    for number, version in enumerate(("2.4.8", "2.12.12", "2.18.3"), 1):
        case_id = f"p2p-{number}"
        script = script_of(
            case_id, version, nodes=1, gpus_per_node=8, intra="PCIe", multicast=False, network=INFINIBAND
        )
        phase = connecting(script)
        rank = script.ranks[-1]
        script.cut(phase)
        script.say(
            rank,
            phase,
            "peer_failed",
            bus=0x1B000,
            nvml=0,
            device=0,
            code=711,
            reason="peer mapping resources exhausted",
            at_s=moment(phase),
            decisive=True,
        )
        collapse(
            script, rank, phase, code=3, places=("transport/p2p.cc:238", "transport.cc:33", "init.cc:800")
        )
        side = (
            {
                "host.processes.txt": hosts.command(
                    "nvidia-smi --query-compute-apps=pid,name --format=csv,noheader",
                    "1842, /usr/lib/xorg/Xorg\n1842, /usr/lib/xorg/Xorg",
                )
            }
            if number == 1
            else {}
        )
        yield LogCase(id=case_id, cause="p2p", script=script, side=side, facts=stopped(script))
    for number, version in enumerate(("2.14.3", "2.23.4", "2.30.7"), 4):
        case_id = f"p2p-{number}"
        script = script_of(case_id, version, nodes=1, gpus_per_node=4, intra="SHM", multicast=False)
        for rank in script.ranks:
            script.say(rank, "graph", "p2p_off_nvlink", a=0, b=1, at_s=1.65, decisive=True)
        yield LogCase(
            id=case_id,
            cause="p2p",
            also=("gpu_hw",),
            verdict="slow",
            script=script,
            side={"host.topo.txt": hosts.topology(4, "NV4")},
            facts=runs(script),
        )
    yield from _p2p_near()


def _p2p_near() -> Iterator[LogCase]:
    for number, version in enumerate(("2.18.3", "2.27.5"), 1):
        case_id = f"p2p-near-{number}"
        script = script_of(case_id, version, nodes=1, gpus_per_node=4, intra="SHM", multicast=False)
        for rank in script.ranks:
            script.say(rank, "graph", "p2p_off", a=0, b=1, at_s=1.65)
        yield LogCase(
            id=case_id,
            cause="harmless",
            verdict="harmless",
            script=script,
            side={"host.topo.txt": hosts.topology(4, "PHB")},
            facts=runs(script),
            near_miss_of="p2p",
        )


def fabric_manager() -> Iterator[LogCase]:
    """The service of the NVSwitches does not run, or refuses multicast."""
    for number, version in enumerate(("2.14.3", "2.20.5"), 1):
        case_id = f"fabric_manager-{number}"
        script = script_of(case_id, version, gpus_per_node=8)
        script.cut("start")
        bad = [rank for rank in script.ranks if rank.node == 0]
        for rank in bad:
            script.print(
                rank,
                "start",
                f"[rank{rank.rank}]: RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 802: system not yet initialized",
                at_s=0.4,
                decisive=True,
            )
        side = {
            f"{script.job.hosts[0]}.service.txt": hosts.service(
                "nvidia-fabricmanager", "inactive" if number == 1 else "failed"
            )
        }
        yield LogCase(
            id=case_id, cause="fabric_manager", also=("driver",), script=script, side=side, facts=None
        )
    for number, version in enumerate(("2.18.3", "2.23.4"), 3):
        case_id = f"fabric_manager-{number}"
        script = script_of(case_id, version, nodes=1, gpus_per_node=8)
        _multicast_refused(script)
        log = "Nov 04 08:02:11 host nv-fabricmanager[2101]: Connected to 1 node.\nNov 04 08:02:11 host systemd[1]: Started NVIDIA fabric manager service."
        side = {
            "host.journal.txt": hosts.command(
                "journalctl -u nvidia-fabricmanager --since -30min | tail -3", log
            ),
            "host.capabilities.txt": hosts.listing("/dev/nvidia-caps", "nvidia-cap1", "nvidia-cap2"),
        }
        yield LogCase(
            id=case_id,
            cause="fabric_manager",
            script=script,
            side=side,
            facts=stopped(script),
            basis="assumed",
        )
    yield from _multicast_refused_at_run_time()
    yield from _fabric_manager_near()


def _multicast_refused_at_run_time() -> Iterator[LogCase]:
    script = script_of("fabric_manager-5", "2.27.5", nodes=1, gpus_per_node=8)
    for rank in script.ranks:
        script.say(
            rank,
            "collective",
            "nvls_off",
            bytes=2_097_152,
            code=401,
            reason="the operation cannot be performed in the present state",
            at_s=3.5,
            decisive=True,
        )
    yield LogCase(
        id="fabric_manager-5", cause="fabric_manager", verdict="slow", script=script, facts=runs(script)
    )
    script = script_of("fabric_manager-6", "2.29.3", nodes=1, gpus_per_node=8)
    script.cut("collective")
    script.say(
        script.ranks[2],
        "collective",
        "nvls_failed",
        bytes=2_097_152,
        code=401,
        reason="the operation cannot be performed in the present state",
        at_s=3.5,
        decisive=True,
    )
    collapse(
        script,
        script.ranks[2],
        "collective",
        code=1,
        places=("transport/nvls.cc:287", "transport/nvls.cc:440"),
    )
    yield LogCase(id="fabric_manager-6", cause="fabric_manager", script=script, facts=stopped(script))


def _fabric_manager_near() -> Iterator[LogCase]:
    for number, version in enumerate(("2.18.3", "2.27.5"), 1):
        case_id = f"fabric_manager-near-{number}"
        script = script_of(case_id, version, multicast=False)
        yield LogCase(
            id=case_id,
            cause="harmless",
            verdict="harmless",
            script=script,
            facts=runs(script),
            near_miss_of="fabric_manager",
            side={
                "host.gpus.txt": hosts.command(
                    "nvidia-smi -L",
                    "GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-1c)\nGPU 1: NVIDIA A100-SXM4-80GB (UUID: GPU-2d)",
                ),
                "host.service.txt": hosts.service("nvidia-fabricmanager", "active"),
            },
        )


def _multicast_refused(script: Script) -> None:
    phase = connecting(script)
    script.cut(phase)
    for rank in script.ranks:
        script.say(
            rank,
            phase,
            "cu",
            code=1,
            reason="invalid argument",
            source="transport/nvls.cc:244",
            at_s=moment(phase),
            decisive=True,
        )
    collapse(
        script,
        script.ranks[0],
        phase,
        code=1,
        places=("transport/nvls.cc:244", "transport/nvls.cc:401", "init.cc:1189"),
    )


def container_without_capabilities(case_id: str, version: str, **fields) -> LogCase:
    """Return the same refusal in a container that lacks the capability devices."""
    script = script_of(case_id, version, nodes=1, gpus_per_node=8)
    _multicast_refused(script)
    side = {
        "pod.capabilities.txt": hosts.listing("/dev/nvidia-caps"),
        "pod.cgroup.txt": hosts.command(
            "cat /proc/1/cgroup", "0::/kubepods.slice/kubepods-pod1c.slice/cri-containerd-5f.scope"
        ),
        "host.service.txt": hosts.service("nvidia-fabricmanager", "active"),
    }
    return LogCase(
        id=case_id,
        cause="container",
        also=("fabric_manager",),
        script=script,
        side=side,
        facts=stopped(script),
        **fields,
    )


def mnnvl() -> Iterator[LogCase]:
    """NVLink between the trays of a rack is not used."""
    for number, version in enumerate(("2.21.5", "2.24.3", "2.28.9"), 1):
        case_id = f"mnnvl-{number}"
        hosts_ = ("gb-01", "gb-02")
        script = script_of(case_id, version, hosts=hosts_, gpus_per_node=4)
        for rank in script.ranks:
            script.say(
                rank, "init", "fabric", uuid="0.0", clique=0, state=0, health=0, at_s=1.45, decisive=True
            )
        side = {
            f"{h}.imex.txt": hosts.service("nvidia-imex", "inactive")
            + hosts.command("nvidia-smi -L | head -1", "GPU 0: NVIDIA GB200 (UUID: GPU-77)")
            for h in hosts_
        }
        yield LogCase(id=case_id, cause="mnnvl", verdict="slow", script=script, side=side, facts=runs(script))
    for number, (version, name) in enumerate(
        (("2.26.5", "imex"), ("2.27.5", "imex_channel"), ("2.30.7", "imex")), 4
    ):
        case_id = f"mnnvl-{number}"
        script = script_of(case_id, version, hosts=("gb-01", "gb-02"), gpus_per_node=4, rack=True)
        script.cut("graph")
        for rank in script.ranks:
            script.say(rank, "graph", name, size=8, at_s=1.7, decisive=True)
        collapse(script, script.ranks[0], "graph", code=2, places=("mnnvl.cc:63", "init.cc:711"))
        yield LogCase(id=case_id, cause="mnnvl", script=script, facts=stopped(script))
    script = script_of("mnnvl-near-1", "2.26.5", hosts=("gb-01", "gb-02"), gpus_per_node=4, rack=True)
    script.change("fabric", lambda text: text.replace("healthMask 0x0", "healthMask 0xaa"))
    yield healthy_case("mnnvl-near-1", script, "mnnvl")
    script = script_of("mnnvl-near-2", "2.28.9", nodes=1, gpus_per_node=4)
    for rank in script.ranks:
        script.say(
            rank,
            "init",
            "fabric",
            uuid="4c0e21d7aa10b3f2.91d2f0a8c1e47b60",
            clique=0x7FFE,
            state=3,
            health=0,
            at_s=1.45,
        )
    yield healthy_case("mnnvl-near-2", script, "mnnvl")


def driver() -> Iterator[LogCase]:
    """The CUDA driver is too old for the runtime."""
    texts = (
        ("2.4.8", "CUDA driver version is insufficient for CUDA runtime version"),
        ("2.12.12", "system has unsupported display driver / cuda driver combination"),
        ("2.18.3", "the provided PTX was compiled with an unsupported toolchain."),
        ("2.27.5", "CUDA driver version is insufficient for CUDA runtime version"),
    )
    for number, (version, text) in enumerate(texts, 1):
        case_id = f"driver-{number}"
        script = script_of(case_id, version)
        script.cut("init")
        old = 9000 if number == 1 else 11040
        script.change("driver", lambda _, old=old: f"cudaDriverVersion {old}")
        for rank in script.ranks:
            script.say(rank, "init", "cuda", reason=text, source="init.cc:1702", at_s=1.3, decisive=True)
        collapse(script, script.ranks[0], "init", code=1, places=("init.cc:1702", "init.cc:1738"))
        side = {
            "host.smi.txt": hosts.command(
                "nvidia-smi --query-gpu=driver_version --format=csv,noheader | head -1",
                "384.81" if number == 1 else "470.199.02",
            )
        }
        yield LogCase(
            id=case_id, cause="driver", also=("version",), script=script, side=side, facts=stopped(script)
        )
    script = script_of("driver-near-1", "2.21.5")
    script.change("driver", lambda _: "cudaDriverVersion 12020")
    yield healthy_case(
        "driver-near-1",
        script,
        "driver",
        side={
            "host.smi.txt": hosts.command(
                "nvidia-smi --query-gpu=driver_version --format=csv,noheader | head -1", "535.161.08"
            )
        },
    )
    made = job("driver-near-2", "2.28.9")
    script = write(made)
    script.change("driver", lambda _: "cudaDriverVersion 13010")
    yield healthy_case("driver-near-2", script, "driver", facts=runs(script))
