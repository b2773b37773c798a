"""Names of hosts, and versions of NCCL, that do not agree."""

from collections.abc import Iterator
from dataclasses import replace

from tests.job_logs import hosts
from tests.job_logs.case import LogCase, healthy_case, job, script_of, stopped
from tests.job_logs.faults.sequel import collapse, connecting, moment
from tests.job_logs.healthy import write
from tests.job_logs.job import ETHERNET
from tests.job_logs.releases import RELEASES


def host_identity() -> Iterator[LogCase]:
    """NCCL takes two hosts for one."""
    for number, version in enumerate(("2.4.8", "2.7.8"), 1):
        case_id = f"host_identity-{number}"
        script = script_of(case_id, version, hosts=("gpu", "gpu"), gpus_per_node=1)
        script.cut("channels")
        for rank, other in ((script.ranks[0], script.ranks[1]), (script.ranks[1], script.ranks[0])):
            script.say(
                rank,
                "channels",
                "p2p",
                channel=0,
                a=rank.rank,
                b=other.rank,
                a_bus=rank.bus,
                b_bus=other.bus,
                a_dev=0,
                b_dev=0,
                kind="IPC",
                read="",
                decisive=True,
            )
        script.say(
            script.ranks[0],
            "channels",
            "ipc_open",
            code=11,
            reason="invalid argument",
            at_s=moment("channels"),
            decisive=True,
        )
        collapse(
            script, script.ranks[0], "channels", code=1, places=("transport/p2p.cc:276", "transport.cc:33")
        )
        side = {
            "hosts.names.txt": hosts.command(
                "for a in 11 12; do ssh 10.0.0.$a hostname -f; done",
                "gpu.rack1.example.org\ngpu.rack2.example.org",
            )
        }
        yield LogCase(
            id=case_id,
            cause="host_identity",
            also=("p2p",),
            script=script,
            side=side,
            facts=stopped(script),
            basis="assumed" if number == 2 else "source",
        )
    yield from _equal_host_ids()
    yield from _host_identity_near()


def _equal_host_ids() -> Iterator[LogCase]:
    for number, version in enumerate(("2.18.3", "2.24.3", "2.28.9"), 3):
        case_id = f"host_identity-{number}"
        script = script_of(
            case_id,
            version,
            gpus_per_node=2,
            variables=(("NCCL_HOSTID", "h100"),),
            subsystems=frozenset({"INIT", "ENV", "BOOTSTRAP"}),
        )
        phase = connecting(script)
        script.cut(phase)
        for rank in script.ranks:
            local = f"nNodes 1 localRanks 4 localRank {rank.rank} "
            script.change(
                "size",
                lambda text, new=local, old=rank.device: text.replace(
                    f"nNodes 2 localRanks 2 localRank {old} ", new
                ),
                where=lambda line, r=rank: line.rank is r,
                decisive=True,
            )
        script.mark("environment_text")
        rank = script.ranks[2]
        script.say(
            rank,
            phase,
            "shm_segment",
            what="attaching to",
            path="/dev/shm/nccl-9dKq2v",
            bytes=9_637_892,
            reason="No such file or directory",
            errno=2,
            at_s=moment(phase),
            decisive=True,
            thread="proxy",
        )
        collapse(script, rank, phase, code=2, places=("transport/shm.cc:160",), proxy="Connect")
        yield LogCase(
            id=case_id,
            cause="host_identity",
            also=("env_misuse", "shm"),
            script=script,
            facts=stopped(script),
        )


def _host_identity_near() -> Iterator[LogCase]:
    script = script_of("host_identity-near-1", "2.21.5", hosts=("gpu-1", "gpu-10"))
    yield healthy_case("host_identity-near-1", script, "host_identity")
    script = script_of("host_identity-near-2", "2.27.5", hosts=("pod-train-0", "pod-train-1"))
    yield healthy_case("host_identity-near-2", script, "host_identity")


def version() -> Iterator[LogCase]:
    """Ranks load different libraries, or one that is too old for the GPU."""
    for number, (newer, older) in enumerate(
        (("2.23.4", "2.24.3"), ("2.27.5", "2.26.5"), ("2.30.7", "2.28.9")), 1
    ):
        case_id = f"version-{number}"
        made = job(case_id, newer)
        script = write(replace(made, releases_of_hosts={made.hosts[1]: RELEASES[older]}))
        script.cut("graph")
        for rank in script.ranks:
            mine = script.release_of(rank)
            other = RELEASES[older] if rank.node == 0 else RELEASES[newer]
            script.say(
                rank,
                "graph",
                "version_mismatch",
                a=3 - rank.rank,
                a_code=other.code,
                b=rank.rank,
                b_code=mine.code,
                at_s=1.9,
                decisive=True,
            )
        script.mark("version")
        collapse(script, script.ranks[0], "graph", code=5, places=("init.cc:731", "init.cc:1389"))
        yield LogCase(id=case_id, cause="version", script=script, facts=stopped(script))
    for number, (a, b) in enumerate((("2.19.3", "2.20.5"), ("2.18.3", "2.21.5")), 4):
        case_id = f"version-{number}"
        made = job(case_id, a)
        script = write(replace(made, releases_of_hosts={made.hosts[1]: RELEASES[b]}))
        script.cut("graph")
        last = script.ranks[2]
        script.say(last, "bootstrap", "version", at_s=0.5, decisive=True)
        script.mark("version")
        script.say(last, "graph", "family", peer="", family=0, at_s=1.9, decisive=True)
        collapse(script, last, "graph", code=3, places=("misc/socket.cc:480", "bootstrap.cc:620"))
        yield LogCase(id=case_id, cause="version", also=("bootstrap",), script=script, facts=None)
    script = script_of("version-6", "2.26.5", nodes=1, gpus_per_node=2, intra="PCIe", multicast=False)
    for rank in script.ranks:
        script.say(
            rank, "init", "shared_memory_limit", arch=1200, got=82_240, limit=81_920, at_s=1.25, decisive=True
        )
    script.cut("graph")
    script.say(
        script.ranks[0],
        "graph",
        "cuda",
        reason="no kernel image is available for execution on the device",
        source="enqueue.cc:82",
        at_s=2.0,
        decisive=True,
    )
    collapse(script, script.ranks[0], "graph", code=1, places=("enqueue.cc:82", "init.cc:1430"))
    yield LogCase(id="version-6", cause="version", also=("driver",), script=script, facts=stopped(script))
    yield from _version_near()


def _version_near() -> Iterator[LogCase]:
    made = job("version-near-1", "2.27.5")
    script = write(made)
    script.change(
        "version", lambda text: text.replace("cuda12.9", "cuda12.2"), where=lambda line: line.rank.node == 1
    )
    yield healthy_case("version-near-1", script, "version")
    script = script_of(
        "version-near-2", "2.27.5", variables=(("NCCL_SOCKET_IFNAME", "eth2"),), network=ETHERNET
    )
    script.cut("init")
    script.drop("bootstrap")
    script.mark("environment_text")
    script.say(script.ranks[0], "init", "family", peer="", family=20_771, at_s=1.3, decisive=True)
    collapse(script, script.ranks[0], "init", code=3, places=("misc/socket.cc:816", "bootstrap.cc:370"))
    yield LogCase(
        id="version-near-2",
        cause="socket_ifname",
        also=("env_misuse",),
        script=script,
        facts=stopped(script),
        near_miss_of="version",
    )
