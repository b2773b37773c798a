"""Resources of a host that run out: shared memory, locked memory, GPU memory, descriptors, and how memory is registered."""

from collections.abc import Iterator

from tests.job_logs import hosts
from tests.job_logs.case import LogCase, healthy_case, runs, script_of, stopped
from tests.job_logs.faults.sequel import collapse, connecting, elastic_failure, moment, peers_close
from tests.job_logs.job import ETHERNET, INFINIBAND
from tests.job_logs.script import Script

NO_SPACE = "No space left on device"


def shm_failure(script: Script, reason: str, errno: int, size: int, *, what: str = "creating") -> None:
    phase = connecting(script)
    rank = script.ranks[1]
    script.cut(phase, [r for r in script.ranks if r.node == rank.node])
    script.cut("complete" if phase == "channels" else "training")
    at_s = moment(phase)
    release = script.job.release
    thread = "proxy" if release.is_from("2.12.12") else "init"
    path = "nccl-shm-recv-52ab10c4be90ff21-1-0-1" if not release.is_from("2.10.0") else "/dev/shm/nccl-Wk3fJa"
    if what == "creating" and not script.say(
        rank,
        phase,
        "shm_extend",
        path=path,
        bytes=size,
        reason=reason,
        errno=errno,
        at_s=at_s,
        decisive=True,
        thread=thread,
    ):
        script.say(
            rank,
            phase,
            "system_call",
            call="posix_fallocate",
            reason=reason,
            at_s=at_s,
            decisive=True,
            source="include/shm.h:28",
        )
    script.say(
        rank,
        phase,
        "shm_segment",
        what=what,
        path=path,
        bytes=size,
        reason=reason,
        errno=errno,
        at_s=at_s,
        decisive=True,
        thread=thread,
    )
    proxy = "Setup" if release.is_from("2.16.5") else ""
    collapse(script, rank, phase, code=2, places=("transport/shm.cc:114", "proxy.cc:1388"), proxy=proxy)


def shm() -> Iterator[LogCase]:
    """/dev/shm is too small."""
    for number, version in enumerate(("2.7.8", "2.12.12", "2.18.3", "2.21.5", "2.24.3", "2.28.9"), 1):
        case_id = f"shm-{number}"
        script = script_of(
            case_id, version, nodes=1 if number % 2 else 2, gpus_per_node=4, intra="SHM", multicast=False
        )
        shm_failure(script, NO_SPACE, 28, 9_637_888)
        side = {"worker.df.txt": hosts.shared_memory("64M", "58M", "6.0M", 91)} if number % 2 else {}
        yield LogCase(
            id=case_id, cause="shm", also=("container",), script=script, side=side, facts=stopped(script)
        )
    for number, version in enumerate(("2.21.5", "2.27.5"), 1):
        case_id = f"shm-near-{number}"
        script = script_of(case_id, version, nodes=1, gpus_per_node=4, intra="SHM", multicast=False)
        yield healthy_case(
            case_id, script, "shm", side={"worker.df.txt": hosts.shared_memory("64M", "12M", "52M", 19)}
        )
    script = script_of("shm-near-3", "2.18.3")
    _full_gpu(script)
    yield LogCase(
        id="shm-near-3",
        cause="oom",
        script=script,
        side={"worker.df.txt": hosts.shared_memory("64M", "1M", "63M", 2)},
        facts=stopped(script),
        near_miss_of="shm",
    )


def cumem() -> Iterator[LogCase]:
    """Ranks choose different kinds of host memory, or the platform cannot share cuMem handles."""
    for number, version in enumerate(("2.26.5", "2.27.5", "2.28.9"), 1):
        case_id = f"cumem-{number}"
        script = script_of(case_id, version, nodes=1, gpus_per_node=4, intra="SHM", multicast=False)
        for rank in script.ranks[:2]:
            script.say(rank, "plugins", "cumem_host", at_s=0.6 + rank.rank / 100, decisive=True)
        shm_failure(script, "No such file or directory", 2, 0, what="attaching to")
        side = {"worker.df.txt": hosts.shared_memory("32G", "10M", "32G", 1)}
        yield LogCase(
            id=case_id, cause="cumem", also=("shm",), script=script, side=side, facts=stopped(script)
        )
    for number, version in enumerate(("2.19.3", "2.23.4"), 4):
        case_id = f"cumem-{number}"
        script = script_of(
            case_id,
            version,
            nodes=1,
            gpus_per_node=2,
            multicast=False,
            variables=(("NCCL_CUMEM_ENABLE", "1"),),
        )
        phase = connecting(script)
        script.cut(phase)
        script.say(
            script.ranks[0],
            phase,
            "cu",
            code=801,
            reason="operation not supported",
            source="transport/p2p.cc:263",
            decisive=True,
            at_s=moment(phase),
            thread="proxy",
        )
        collapse(
            script,
            script.ranks[0],
            phase,
            code=1,
            places=("transport/p2p.cc:263", "transport/p2p.cc:631"),
            proxy="Setup",
        )
        yield LogCase(
            id=case_id,
            cause="cumem",
            also=("env_misuse", "driver"),
            script=script,
            facts=stopped(script),
            basis="assumed",
        )
    yield from _cumem_near()


def _cumem_near() -> Iterator[LogCase]:
    script = script_of("cumem-near-1", "2.27.5", nodes=1, gpus_per_node=4, intra="SHM", multicast=False)
    for rank in script.ranks:
        script.say(rank, "plugins", "cumem_host", at_s=0.6 + rank.rank / 100)
    yield LogCase(
        id="cumem-near-1",
        cause="harmless",
        also=("cumem",),
        verdict="harmless",
        script=script,
        facts=runs(script),
        near_miss_of="cumem",
        side={"worker.df.txt": hosts.shared_memory("32G", "10M", "32G", 1)},
    )
    script = script_of("cumem-near-2", "2.28.9", nodes=1, gpus_per_node=4, intra="SHM", multicast=False)
    for rank in script.ranks:
        script.say(rank, "plugins", "cumem_host", at_s=0.6 + rank.rank / 100)
    shm_failure(script, NO_SPACE, 28, 33_030_528)
    yield LogCase(
        id="cumem-near-2",
        cause="shm",
        also=("container",),
        script=script,
        facts=stopped(script),
        near_miss_of="cumem",
        side={"worker.df.txt": hosts.shared_memory("64M", "60M", "4M", 94)},
    )


def _registration(script: Script, name: str, call: str, reason: str, *, node: int = 0) -> None:
    phase = connecting(script)
    rank = next(r for r in script.ranks if r.node == node)
    script.cut(phase)
    script.say(rank, phase, name, call=call, reason=reason, at_s=moment(phase), decisive=True, thread="proxy")
    proxy = "Connect" if script.job.release.is_from("2.12.12") else ""
    collapse(
        script,
        rank,
        phase,
        code=2,
        places=("misc/ibvwrap.cc:184", "transport/net_ib.cc:640", "transport/net.cc:783"),
        proxy=proxy,
    )


def memlock() -> Iterator[LogCase]:
    """The limit of locked memory is small."""
    variants = (
        ("2.12.12", "register", "ibv_reg_mr_iova2", "64"),
        ("2.14.3", "create_queue", "ibv_create_cq", "64"),
        ("2.18.3", "register", "ibv_reg_mr_iova2", "65536"),
        ("2.23.4", "create_queue", "ibv_create_qp", "8192"),
        ("2.30.7", "register", "ibv_reg_mr_iova2", "64"),
    )
    for number, (version, name, call, limit) in enumerate(variants, 1):
        case_id = f"memlock-{number}"
        script = script_of(case_id, version)
        _registration(script, name, call, "Cannot allocate memory")
        side = {f"{script.job.hosts[0]}.ulimit.txt": hosts.locked_memory(limit)}
        yield LogCase(
            id=case_id,
            cause="memlock",
            also=("ib_error", "container"),
            script=script,
            side=side,
            facts=stopped(script),
        )
    script = script_of("memlock-near-1", "2.27.5")
    _registration(script, "register", "ibv_reg_mr_iova2", "Cannot allocate memory")
    side = {f"{script.job.hosts[0]}.ulimit.txt": hosts.locked_memory("unlimited")}
    yield LogCase(
        id="memlock-near-1",
        cause="ib_error",
        also=("driver",),
        script=script,
        side=side,
        facts=stopped(script),
        near_miss_of="memlock",
    )
    for number, version in enumerate(("2.21.5", "2.26.5"), 2):
        script = script_of(f"memlock-near-{number}", version, network=ETHERNET if number == 2 else INFINIBAND)
        limit = "64" if number == 2 else "unlimited"
        yield healthy_case(
            f"memlock-near-{number}", script, "memlock", side={"host.ulimit.txt": hosts.locked_memory(limit)}
        )


def dmabuf() -> Iterator[LogCase]:
    """Registering GPU memory by DMA-BUF fails."""
    variants = (
        ("2.14.3", "Operation not supported"),
        ("2.18.3", "Invalid argument"),
        ("2.21.5", "Operation not supported"),
        ("2.27.5", "Bad address"),
    )
    for number, (version, reason) in enumerate(variants, 1):
        case_id = f"dmabuf-{number}"
        script = script_of(case_id, version)
        _registration(script, "register", "ibv_reg_dmabuf_mr", reason, node=1)
        side = (
            {f"{script.job.hosts[1]}.uname.txt": hosts.command("uname -r", "5.4.0-150-generic")}
            if number == 1
            else {}
        )
        yield LogCase(
            id=case_id,
            cause="dmabuf",
            also=("driver", "version", "gdr_off"),
            script=script,
            side=side,
            facts=stopped(script),
        )
    for number, version in enumerate(("2.18.3", "2.24.3"), 1):
        case_id = f"dmabuf-near-{number}"
        script = script_of(case_id, version)
        script.drop("dmabuf")
        yield healthy_case(
            case_id, script, "dmabuf", side={"host.lsmod.txt": hosts.modules("nvidia_peermem", "mlx5_ib")}
        )
    script = script_of("dmabuf-near-3", "2.21.5")
    _registration(script, "register", "ibv_reg_mr_iova2", "Cannot allocate memory")
    yield LogCase(
        id="dmabuf-near-3",
        cause="memlock",
        also=("ib_error",),
        script=script,
        side={"host.ulimit.txt": hosts.locked_memory("64")},
        facts=stopped(script),
        near_miss_of="dmabuf",
    )


def _full_gpu(script: Script) -> None:
    phase = connecting(script)
    rank = script.ranks[-1]
    script.cut(phase)
    at_s = moment(phase)
    name = "cu" if script.job.release.is_from("2.19.3") else "cuda"
    script.say(
        rank,
        phase,
        name,
        code=2,
        reason="out of memory",
        source="include/alloc.h:228",
        at_s=at_s,
        decisive=True,
        thread="proxy",
    )
    script.say(
        rank,
        phase,
        "cuda_calloc",
        bytes=6_291_456,
        source="include/alloc.h:233",
        at_s=at_s,
        decisive=True,
        thread="proxy",
    )
    proxy = "Setup" if script.job.release.is_from("2.12.12") else ""
    collapse(
        script,
        rank,
        phase,
        code=1,
        places=("transport/p2p.cc:204", "transport/p2p.cc:605", "proxy.cc:1303"),
        proxy=proxy,
    )


def oom() -> Iterator[LogCase]:
    """GPU or host memory is full."""
    for number, version in enumerate(("2.10.3", "2.14.3", "2.18.3", "2.21.5", "2.27.5"), 1):
        case_id = f"oom-{number}"
        script = script_of(case_id, version, framework="pytorch")
        _full_gpu(script)
        yield LogCase(id=case_id, cause="oom", script=script, facts=stopped(script))
    script = script_of("oom-6", "2.20.5", framework="pytorch")
    _torch_oom(script)
    yield LogCase(id="oom-6", cause="oom", script=script, facts=runs(script))
    script = script_of("oom-7", "2.23.4", framework="pytorch")
    _host_oom(script)
    side = {
        f"{script.job.hosts[1]}.dmesg.txt": hosts.dmesg(
            "[Tue Nov  4 08:16:01 2025] oom-kill:constraint=CONSTRAINT_MEMCG,task=python3,pid=2211",
            "[Tue Nov  4 08:16:01 2025] Memory cgroup out of memory: Killed process 2211 (python3) total-vm:412345678kB, anon-rss:251658240kB",
        )
    }
    yield LogCase(
        id="oom-7", cause="oom", also=("remote_exit",), script=script, side=side, facts=runs(script)
    )
    script = script_of("oom-near-1", "2.21.5", framework="pytorch")
    first = script.ranks[0]
    script.print(first, "training", "batch 64: CUDA out of memory, trying batch 32", at_s=4.7)
    yield healthy_case("oom-near-1", script, "oom")
    script = script_of("oom-near-2", "2.18.3", framework="pytorch")
    _registration(script, "register", "ibv_reg_mr_iova2", "Cannot allocate memory")
    yield LogCase(
        id="oom-near-2",
        cause="memlock",
        also=("ib_error",),
        script=script,
        side={"host.ulimit.txt": hosts.locked_memory("64")},
        facts=stopped(script),
        near_miss_of="oom",
    )


def _torch_oom(script: Script) -> None:
    script.cut("end")
    rank = script.ranks[1]
    text = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 1 has a total capacity of 79.11 GiB of which 1.12 GiB is free."
    for row in (
        "Traceback (most recent call last):",
        '  File "/workspace/train.py", line 231, in backward',
        text,
    ):
        script.print(rank, "training", f"[rank{rank.rank}]: {row}", at_s=31.0, decisive=True)
    elastic_failure(script, rank, 1, 32.0)
    peers_close(script, [r for r in script.ranks if r.rank != rank.rank], rank, "training", 31.6)


def _host_oom(script: Script) -> None:
    script.cut("end")
    rank = script.ranks[-1]
    elastic_failure(script, rank, -9, 31.0, decisive=True)
    peers_close(script, [r for r in script.ranks if r.rank != rank.rank], rank, "training", 31.2)


def fd_limit() -> Iterator[LogCase]:
    """Too many open files."""
    variants = (
        ("2.10.3", "socket_creation", ""),
        ("2.14.3", "socket_creation", ""),
        ("2.18.3", "socket_creation", ""),
        ("2.24.3", "system_call", "accept"),
        ("2.27.5", "system_call", "open"),
    )
    for number, (version, name, call) in enumerate(variants, 1):
        case_id = f"fd_limit-{number}"
        script = script_of(case_id, version, gpus_per_node=4, network=ETHERNET)
        phase = connecting(script)
        rank = script.ranks[3]
        script.cut(phase)
        script.say(
            rank,
            phase,
            name,
            call=call,
            reason="Too many open files",
            at_s=moment(phase),
            decisive=True,
            thread="proxy",
        )
        proxy = "Connect" if script.job.release.is_from("2.12.12") else ""
        collapse(
            script,
            rank,
            phase,
            code=2,
            places=("misc/socket.cc:583", "transport/net_socket.cc:330"),
            proxy=proxy,
        )
        side = {"host.ulimit.txt": hosts.open_files("1024")} if number % 2 else {}
        yield LogCase(id=case_id, cause="fd_limit", script=script, side=side, facts=stopped(script))
    yield from _fd_limit_near()


def _fd_limit_near() -> Iterator[LogCase]:
    for number, version in enumerate(("2.21.5", "2.28.9"), 1):
        case_id = f"fd_limit-near-{number}"
        yield healthy_case(
            case_id,
            script_of(case_id, version),
            "fd_limit",
            side={"host.ulimit.txt": hosts.open_files("1024")},
        )
    script = script_of("fd_limit-near-3", "2.21.5")
    phase = connecting(script)
    script.cut(phase)
    script.say(
        script.ranks[0],
        phase,
        "system_call",
        call="bind",
        reason="Address already in use",
        at_s=moment(phase),
        decisive=True,
        thread="proxy",
        source="misc/socket.cc:380",
    )
    collapse(script, script.ranks[0], phase, code=2, proxy="Setup")
    side = {
        "host.sysctl.txt": hosts.command(
            "sysctl net.ipv4.ip_local_port_range", "net.ipv4.ip_local_port_range = 60000\t60999"
        )
    }
    yield LogCase(
        id="fd_limit-near-3",
        cause="ports",
        script=script,
        side=side,
        facts=stopped(script),
        near_miss_of="fd_limit",
    )
