"""Faults of InfiniBand and RoCE: completions with errors, queue set-up, MTU, rails, links, bonds, access control of PCIe."""

from collections.abc import Iterator

from tests.job_logs import hosts
from tests.job_logs.case import LogCase, healthy_case, runs, script_of, stopped
from tests.job_logs.faults.sequel import collapse, connecting, moment, peers_close
from tests.job_logs.healthy import echo_variables
from tests.job_logs.job import INFINIBAND, ROCE, Network, Rank
from tests.job_logs.script import Script

_STATUS = {
    1: "IBV_WC_LOC_LEN_ERR",
    4: "IBV_WC_LOC_PROT_ERR",
    5: "IBV_WC_WR_FLUSH_ERR",
    12: "IBV_WC_RETRY_EXC_ERR",
    13: "IBV_WC_RNR_RETRY_EXC_ERR",
}
_VENDOR = {1: 105, 4: 81, 5: 249, 12: 129, 13: 135}
NET = frozenset({"INIT", "ENV", "NET", "BOOTSTRAP"})


def _gids(rank: Rank, peer: Rank, script: Script) -> str:
    if script.job.network.link != "RoCE":
        return ""
    mark = " remoteGids" if script.job.release.is_from("2.20.5") else " remoteGid "
    if dict(script.job.variables).get("NCCL_IB_GID_INDEX") in {"0", "1"}:
        return f" localGid fe80::e42:a1ff:fe00:1a2b{mark}fe80::e42:a1ff:fe00:3c4d"
    return f" localGid ::ffff:{rank.address}{mark}::ffff:{peer.address}"


def completion(
    script: Script,
    rank: Rank,
    peer: Rank,
    status: int,
    at_s: float,
    *,
    hca: str = "mlx5_0",
    decisive: bool = True,
    kind: str = "Send",
) -> None:
    """Print a completion with an error, and NCCL's advice where the release gives it."""
    script.say(
        rank, "training", "completion", peer=f"{peer.address}<4{rank.rank}217>", status=status, status_name=_STATUS[status], opcode=0 if kind == "Send" else 129,
        length=0, vendor=_VENDOR[status], kind=kind, gids=_gids(rank, peer, script), hca=hca, thread="progress", at_s=at_s, decisive=decisive,
    )  # fmt: skip
    if status == 4:
        script.say(rank, "training", "hint_acs", thread="progress", at_s=at_s)
    if status in {4, 5, 12}:
        script.say(rank, "training", "hint_timeout", thread="progress", at_s=at_s)
    tag = " [Progress Thread]" if script.job.release.is_from("2.19.3") else " [Proxy Thread]"
    script.unwind(
        rank,
        "training",
        ("transport/net.cc:1134", "proxy.cc:694", "proxy.cc:874"),
        6,
        thread="progress",
        at_s=at_s,
        tag=tag,
    )


def echoes(script: Script, victims: list[Rank], peer: Rank, at_s: float) -> None:
    """Let other ranks see flushed requests, then the closed sockets."""
    for index, rank in enumerate(victims):
        completion(script, rank, peer, 5, at_s + 0.4 + index * 0.05, decisive=False, kind="Recv")
    peers_close(script, victims, peer, "training", at_s + 2.0)


def _queue(
    script: Script,
    rank: Rank,
    peer: Rank,
    reason: str,
    errno: int,
    *,
    hca: str = "mlx5_0",
    local: str | None = None,
    remote: str | None = None,
    gid_index: int = 3,
) -> None:
    phase = connecting(script)
    script.cut(phase)
    for other in script.ranks:
        echo_variables(script, other, phase, "connect")
    at_s = moment(phase)
    fields = {
        "reason": reason, "errno": errno, "hca": hca, "gid_index": gid_index,
        "local_gid": local or f"::ffff:{rank.address}", "remote_gid": remote or f"::ffff:{peer.address}",
    }  # fmt: skip
    for attempt in (1, 2):
        script.say(
            rank,
            phase,
            "modify_qp_retry",
            attempt=attempt,
            sleep=100 * attempt,
            at_s=at_s,
            thread="proxy",
            **fields,
        )
    script.say(rank, phase, "modify_qp", at_s=at_s + 3, decisive=True, thread="proxy", **fields)
    if errno == 110:
        script.say(rank, phase, "hint_rail", at_s=at_s + 3, thread="proxy")
    if errno == 22:
        script.say(rank, phase, "hint_gid", at_s=at_s + 3, thread="proxy")
    proxy = "Connect" if script.job.release.is_from("2.12.12") else ""
    collapse(
        script,
        rank,
        phase,
        code=2,
        places=("misc/ibvwrap.cc:262", "transport/net_ib.cc:1031", "transport/net.cc:783"),
        proxy=proxy,
        at_s=at_s + 3,
    )


def ib_error() -> Iterator[LogCase]:
    """A verbs failure with no nearer name."""
    for number, version in enumerate(("2.10.3", "2.21.5", "2.28.9"), 1):
        case_id = f"ib_error-{number}"
        script = script_of(case_id, version, steps=2, framework="pytorch")
        script.cut("end")
        bad, peer = script.ranks[1], script.ranks[2]
        completion(script, bad, peer, 13 if number == 2 else 12, 31.0)
        echoes(script, [rank for rank in script.ranks if rank is not bad], bad, 31.0)
        yield LogCase(
            id=case_id,
            cause="ib_error",
            also=("link_flap",),
            script=script,
            facts=runs(script),
            basis="assumed",
        )
    script = script_of("ib_error-4", "2.18.3", steps=2, framework="pytorch")
    script.cut("end")
    echoes(script, list(script.ranks[1:]), script.ranks[0], 31.0)
    script.mark("completion")
    yield LogCase(
        id="ib_error-4",
        cause="ib_error",
        also=("remote_exit", "acs_iommu"),
        script=script,
        facts=runs(script),
        basis="assumed",
    )
    mixed = Network(devices=("mlx5_0", "mlx5_1"))
    for number, version in enumerate(("2.7.8", "2.23.4", "2.27.5"), 5):
        case_id = f"ib_error-{number}"
        script = script_of(case_id, version, network=mixed)
        script.change("ib_devices", lambda text: text.replace("mlx5_1:1/IB", "mlx5_1:1/RoCE"), decisive=True)
        rank, peer = script.ranks[1], script.ranks[2]
        if number == 5:
            _queue(script, rank, peer, "Invalid argument", 22, hca="mlx5_1")
        else:
            script.cut("collective")
            script.say(
                rank,
                "collective",
                "link_layers",
                local=1,
                remote=2,
                remote_name="RoCE",
                local_name="IB",
                index=0,
                hca="mlx5_0",
                at_s=3.5,
                decisive=True,
                thread="proxy",
            )
            collapse(
                script, rank, "collective", code=3, places=("transport/net_ib.cc:1460",), proxy="Connect"
            )
        yield LogCase(
            id=case_id, cause="ib_error", also=("rails", "env_misuse"), script=script, facts=stopped(script)
        )
    yield from _ib_error_near()


def _ib_error_near() -> Iterator[LogCase]:
    for number, version in enumerate(("2.21.5", "2.26.5"), 1):
        case_id = f"ib_error-near-{number}"
        script = script_of(case_id, version, network=ROCE if number == 1 else INFINIBAND, subsystems=NET)
        yield healthy_case(case_id, script, "ib_error")
    script = script_of("ib_error-near-3", "2.23.4", steps=2, framework="pytorch")
    script.cut("end")
    bad = script.ranks[0]
    script.say(
        bad,
        "training",
        "async_event",
        hca="mlx5_1",
        event="port error",
        number=10,
        at_s=30.0,
        decisive=True,
        thread="progress",
    )
    for rank in script.ranks[2:]:
        completion(script, rank, bad, 12, 60.0 + rank.rank / 10, hca="mlx5_1")
    yield LogCase(
        id="ib_error-near-3",
        cause="link_flap",
        also=("ib_error",),
        script=script,
        facts=runs(script),
        near_miss_of="ib_error",
    )


def link_flap() -> Iterator[LogCase]:
    """A port goes down and up."""
    for number, version in enumerate(("2.12.12", "2.18.3", "2.21.5", "2.24.3", "2.28.9"), 1):
        case_id = f"link_flap-{number}"
        script = script_of(case_id, version, network=ROCE if number % 2 else INFINIBAND, framework="pytorch")
        script.cut("end")
        bad = script.ranks[2]
        script.say(
            bad,
            "training",
            "async_event",
            hca="mlx5_1",
            event="port error",
            number=10,
            thread="progress",
            at_s=30.0,
            decisive=True,
        )
        for rank in script.ranks[:2]:
            completion(script, rank, bad, 12, 50.0 + rank.rank / 10, hca="mlx5_1")
        echoes(script, [script.ranks[3]], bad, 52.0)
        side = (
            {
                f"{bad.host}.dmesg.txt": hosts.dmesg(
                    "[Tue Nov  4 08:15:59 2025] mlx5_core 0000:19:00.0 ens2f1: Link down",
                    "[Tue Nov  4 08:16:21 2025] mlx5_core 0000:19:00.0 ens2f1: Link up",
                )
            }
            if number % 2
            else {}
        )
        yield LogCase(
            id=case_id, cause="link_flap", also=("ib_error",), script=script, side=side, facts=runs(script)
        )
    yield from _link_flap_near()


def _link_flap_near() -> Iterator[LogCase]:
    script = script_of("link_flap-near-1", "2.21.5")
    yield healthy_case(
        "link_flap-near-1",
        script,
        "link_flap",
        side={
            "host.dmesg.txt": hosts.dmesg(
                "[Tue Nov  4 06:02:59 2025] igb 0000:04:00.0 eno2: igb: eno2 NIC Link is Down"
            )
        },
    )
    script = script_of(
        "link_flap-near-2", "2.21.5", network=ROCE, variables=(("NCCL_IB_GID_INDEX", "1"),), subsystems=NET
    )
    script.cut("training")
    completion(script, script.ranks[1], script.ranks[2], 12, 6.0)
    echoes(script, [script.ranks[0], *script.ranks[2:]], script.ranks[1], 6.0)
    script.mark("environment")
    yield LogCase(
        id="link_flap-near-2",
        cause="roce_gid",
        also=("ib_error",),
        script=script,
        side={"host.show_gids.txt": _gid_table(script.ranks[0], "v1")},
        facts=runs(script),
        near_miss_of="link_flap",
    )


def _gid_table(rank: Rank, at_one: str) -> str:
    return hosts.gids(
        ("mlx5_0", 0, "fe80:0000:0000:0000:0e42:a1ff:fe00:1a2b", "", "v1"),
        ("mlx5_0", 1, "fe80:0000:0000:0000:0e42:a1ff:fe00:1a2b", "", at_one),
        ("mlx5_0", 2, hosts.gid_of(rank.address), rank.address, "v1"),
        ("mlx5_0", 3, hosts.gid_of(rank.address), rank.address, "v2"),
    )


def roce_gid() -> Iterator[LogCase]:
    """The GID is not the routable one."""
    for number, version in enumerate(("2.12.12", "2.18.3", "2.20.5", "2.24.3"), 1):
        case_id = f"roce_gid-{number}"
        index = "0" if number % 2 else "1"
        script = script_of(
            case_id, version, network=ROCE, variables=(("NCCL_IB_GID_INDEX", index),), subsystems=NET
        )
        rank, peer = script.ranks[1], script.ranks[2]
        script.cut("training")
        if number in {2, 4}:
            _queue(
                script,
                rank,
                peer,
                "Connection timed out",
                110,
                local="fe80::e42:a1ff:fe00:1a2b",
                remote="fe80::e42:a1ff:fe00:3c4d",
                gid_index=int(index),
            )
        else:
            completion(script, rank, peer, 12, 6.0)
            echoes(script, [r for r in script.ranks if r is not rank], rank, 6.0)
        script.mark("environment")
        facts = stopped(script) if number in {2, 4} else runs(script)
        yield LogCase(
            id=case_id,
            cause="roce_gid",
            also=("ib_error",),
            script=script,
            side={f"{rank.host}.show_gids.txt": _gid_table(rank, "v2")},
            facts=facts,
        )
    script = script_of("roce_gid-5", "2.28.9", network=ROCE, framework="pytorch")
    script.cut("end")
    bad = script.ranks[2]
    script.say(bad, "training", "gid_table", hca="mlx5_0", thread="progress", at_s=30.0, decisive=True)
    completion(script, script.ranks[1], bad, 12, 60.0)
    echoes(script, [script.ranks[0], script.ranks[3]], script.ranks[1], 60.0)
    yield LogCase(
        id="roce_gid-5", cause="roce_gid", also=("link_flap", "ib_error"), script=script, facts=runs(script)
    )
    for number, version in enumerate(("2.18.3", "2.27.5"), 1):
        case_id = f"roce_gid-near-{number}"
        script = script_of(
            case_id, version, network=ROCE, variables=(("NCCL_IB_GID_INDEX", "3"),), subsystems=NET
        )
        yield healthy_case(
            case_id, script, "roce_gid", side={"host.show_gids.txt": _gid_table(script.ranks[0], "v2")}
        )


def mtu() -> Iterator[LogCase]:
    """The MTU differs between hosts, or is one that a side cannot carry."""
    for number, version in enumerate(("2.20.5", "2.21.5", "2.25.1"), 1):
        case_id = f"mtu-{number}"
        script = script_of(case_id, version, network=ROCE, subsystems=NET)
        _queues_with_mtu(script, 5, 3, decisive=True)
        script.cut("training")
        completion(script, script.ranks[2], script.ranks[1], 1, 6.0, kind="Recv")
        completion(script, script.ranks[1], script.ranks[2], 12, 30.0, decisive=False)
        echoes(script, [script.ranks[0], script.ranks[3]], script.ranks[2], 31.0)
        side = {
            f"{script.job.hosts[0]}.ibv_devinfo.txt": hosts.devinfo("mlx5_0", 4096),
            f"{script.job.hosts[1]}.ibv_devinfo.txt": hosts.devinfo("mlx5_0", 1024),
        }
        yield LogCase(
            id=case_id, cause="mtu", also=("ib_error",), script=script, side=side, facts=runs(script)
        )
    script = script_of("mtu-4", "2.18.3", network=ROCE)
    _queue(script, script.ranks[1], script.ranks[2], "Invalid argument", 22)
    side = {
        f"{script.job.hosts[0]}.ibv_devinfo.txt": hosts.devinfo("mlx5_0", 4096),
        f"{script.job.hosts[1]}.ibv_devinfo.txt": hosts.devinfo("mlx5_0", 1024, 2048),
    }
    yield LogCase(
        id="mtu-4", cause="mtu", also=("ib_error",), script=script, side=side, facts=stopped(script)
    )
    for number, version in enumerate(("2.21.5", "2.28.9"), 1):
        case_id = f"mtu-near-{number}"
        script = script_of(case_id, version, network=ROCE, subsystems=NET)
        _queues_with_mtu(script, 3, 3)
        side = {f"{host}.ibv_devinfo.txt": hosts.devinfo("mlx5_0", 1024) for host in script.job.hosts}
        yield healthy_case(case_id, script, "mtu", side=side)


def _queues_with_mtu(script: Script, first: int, second: int, *, decisive: bool = False) -> None:
    phase = connecting(script)
    at_s = 3.3 if phase == "collective" else 2.2
    for rank in script.ranks:
        script.say(
            rank,
            phase,
            "qp_roce",
            index=0,
            qpn=1200 + rank.rank,
            mtu=second if rank.node else first,
            gid_index=3,
            gid=hosts.interface_id(rank.address),
            at_s=at_s,
            thread="proxy",
            decisive=decisive,
        )


def rails() -> Iterator[LogCase]:
    """NICs of the hosts do not pair."""
    for number, version in enumerate(("2.18.3", "2.24.3", "2.30.7"), 1):
        case_id = f"rails-{number}"
        script = script_of(case_id, version, network=ROCE, subsystems=NET)
        rank, peer = script.ranks[1], script.ranks[2]
        _queue(
            script,
            rank,
            peer,
            "Connection timed out",
            110,
            hca="mlx5_0",
            local="::ffff:10.101.0.11",
            remote="::ffff:10.102.0.12",
        )
        rows = (
            ("mlx5_0", 3, hosts.gid_of("10.101.0.11"), "10.101.0.11", "v2"),
            ("mlx5_1", 3, hosts.gid_of("10.102.0.11"), "10.102.0.11", "v2"),
        )
        pings = hosts.command(
            "ping -I ens2f0 -c1 10.101.0.12", "1 packets transmitted, 1 received, 0% packet loss"
        ) + hosts.command(
            "ping -I ens2f0 -c1 10.102.0.12", "1 packets transmitted, 0 received, 100% packet loss"
        )
        yield LogCase(
            id=case_id,
            cause="rails",
            also=("roce_gid",),
            script=script,
            side={f"{rank.host}.show_gids.txt": hosts.gids(*rows), f"{rank.host}.ping.txt": pings},
            facts=stopped(script),
        )
    yield from _missing_rails()
    yield from _rails_near()


def _missing_rails() -> Iterator[LogCase]:
    for number, version in enumerate(("2.21.5", "2.27.5"), 4):
        case_id = f"rails-{number}"
        network = Network(devices=("mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3"))
        script = script_of(case_id, version, network=network, gpus_per_node=4)
        script.change(
            "ib_devices",
            lambda text: text.replace(" [3]mlx5_3:1/IB", ""),
            where=lambda line: line.rank.node == 1,
            decisive=True,
        )
        yield LogCase(
            id=case_id,
            cause="rails",
            verdict="slow",
            script=script,
            side={
                f"{script.job.hosts[1]}.ibstat.txt": hosts.ibstat(
                    *((f"mlx5_{i}", "Down" if i == 3 else "Active", "InfiniBand", 400) for i in range(4))
                )
            },
            facts=None,
            also=("link_flap",),
        )
    script = script_of("rails-6", "2.30.7", network=Network(devices=("mlx5_0", "mlx5_1")))
    script.change(
        "ib_devices",
        lambda text: text.replace(" [1]mlx5_1:1/IB", ""),
        where=lambda line: line.rank.node == 1,
        decisive=True,
    )
    script.cut("channels")
    for rank in script.ranks:
        script.say(rank, "graph", "net_counts", fewest=1, most=2, at_s=1.9, decisive=True)
    collapse(script, script.ranks[0], "graph", code=5, places=("init.cc:1180",))
    yield LogCase(id="rails-6", cause="rails", script=script, facts=stopped(script))


def _rails_near() -> Iterator[LogCase]:
    script = script_of("rails-near-1", "2.24.3")
    script.change(
        "ib_devices",
        lambda text: text.replace("mlx5_0", "mlx5_4").replace("mlx5_1", "mlx5_5"),
        where=lambda line: line.rank.node == 1,
    )
    yield healthy_case("rails-near-1", script, "rails")
    script = script_of(
        "rails-near-2", "2.21.5", variables=(("NCCL_IB_HCA", "mlx5_0,mlx5_1"), ("NCCL_CROSS_NIC", "1"))
    )
    yield healthy_case("rails-near-2", script, "rails")
