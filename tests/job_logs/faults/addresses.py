"""How ranks find each other: interfaces, addresses, ports, filters between hosts, names of hosts, and versions of NCCL."""

from collections.abc import Iterator
from dataclasses import replace

from tests.job_logs import hosts
from tests.job_logs.case import LogCase, healthy_case, job, runs, script_of, stopped
from tests.job_logs.faults.sequel import collapse, connecting, give_up, moment, peers_close
from tests.job_logs.healthy import write
from tests.job_logs.job import Rank
from tests.job_logs.script import Script


def _cannot_connect(script: Script, rank: Rank, peer: str, failure: tuple[str, int], phase: str) -> None:
    """Let a rank try to reach an address, again and again, and fail."""
    reason, errno = failure
    at_s = moment(phase)
    for attempt in range(1, 4):
        script.say(
            rank,
            phase,
            "connect_retry",
            peer=peer,
            reason=reason,
            attempt=attempt,
            sleep=100 * attempt,
            at_s=at_s + attempt,
        )
    failed = (
        "connect_given_up"
        if reason in {"Connection refused", "Connection timed out", "No route to host"}
        and script.job.release.is_from("2.24.3")
        else "connect_failed"
    )
    script.say(rank, phase, failed, peer=peer, reason=reason, errno=errno, at_s=at_s + 34, decisive=True)
    script.unwind(
        rank,
        phase,
        ("misc/socket.cc:482", "misc/socket.cc:564", "bootstrap.cc:285", "init.cc:1382"),
        2,
        at_s=at_s + 34,
    )
    script.unwind(rank, phase, ("group.cc:64",), 2, at_s=at_s + 34, thread="async", tag=" [Async thread]")
    give_up(script, rank, 2, phase, at_s + 34.2)


_BOOTSTRAP_FOREIGN = "192.0.2.77<51822>"


def bootstrap() -> Iterator[LogCase]:
    """The out-of-band start fails though the interface is sensible."""
    for number, version in enumerate(("2.18.3", "2.21.5", "2.25.1"), 1):
        case_id = f"bootstrap-{number}"
        script = script_of(case_id, version)
        script.cut("init")
        root = script.ranks[0]
        script.say(root, "init", "closed_by_peer", peer=_BOOTSTRAP_FOREIGN, at_s=1.4, decisive=True)
        script.unwind(root, "init", ("misc/socket.cc:749", "bootstrap.cc:112"), 6, at_s=1.4)
        for rank in script.ranks:
            give_up(script, rank, 6, "init", 1.6)
        side = {
            "host.hosts.txt": hosts.command(
                "cat /etc/hosts", "\n".join(f"{r.address} {r.host}" for r in script.ranks if r.device == 0)
            )
        }
        yield LogCase(id=case_id, cause="bootstrap", script=script, side=side, facts=stopped(script))
    script = script_of("bootstrap-4", "2.21.5")
    script.cut("init")
    script.say(script.ranks[0], "init", "wrong_type", got=1_195_725_856, expected=1, at_s=1.4, decisive=True)
    collapse(script, script.ranks[0], "init", code=3, places=("misc/socket.cc:452", "bootstrap.cc:112"))
    yield LogCase(id="bootstrap-4", cause="bootstrap", script=script, facts=stopped(script))
    for number, version in enumerate(("2.14.3", "2.27.5"), 5):
        case_id = f"bootstrap-{number}"
        made = job(case_id, version)
        root = f"{made.subnet}.11:23456"
        script = write(replace(made, variables=(("NCCL_COMM_ID", root),)))
        script.cut("plugins")
        script.say(
            script.ranks[0],
            "bootstrap",
            "system_call",
            call="bind",
            reason="Address already in use",
            source="misc/socket.cc:409",
            at_s=0.4,
            decisive=True,
        )
        script.mark("environment_text")
        script.unwind(
            script.ranks[0],
            "bootstrap",
            ("misc/socket.cc:409", "bootstrap.cc:190", "init.cc:1810"),
            2,
            at_s=0.4,
        )
        give_up(script, script.ranks[0], 2, "bootstrap", 0.6)
        yield LogCase(id=case_id, cause="bootstrap", also=("ports",), script=script, facts=stopped(script))
    yield from _bootstrap_near()


def _bootstrap_near() -> Iterator[LogCase]:
    for number, (version, name) in enumerate((("2.27.5", "no_magic"), ("2.30.7", "foreign_magic")), 1):
        case_id = f"bootstrap-near-{number}"
        script = script_of(case_id, version)
        script.say(script.ranks[0], "init", name, peer=_BOOTSTRAP_FOREIGN, at_s=1.22)
        yield healthy_case(
            case_id, script, "bootstrap", cause="harmless", also=("bootstrap",), verdict="harmless"
        )
    script = script_of("bootstrap-near-3", "2.20.5", framework="pytorch")
    script.cut("end")
    dead = script.ranks[-1]
    script.lines = [line for line in script.lines if line.rank.rank != dead.rank or line.at_s < 5.0]
    peers_close(script, script.ranks[:-1], dead, "training", 31.0)
    script.mark("closed_by_peer")
    yield LogCase(
        id="bootstrap-near-3",
        cause="remote_exit",
        script=script,
        facts=runs(script),
        near_miss_of="bootstrap",
    )


def socket_ifname() -> Iterator[LogCase]:
    """The interface is the wrong one, or none."""
    for number, version in enumerate(("2.12.12", "2.18.3", "2.21.5"), 1):
        case_id = f"socket_ifname-{number}"
        script = script_of(
            case_id,
            version,
            variables=(("NCCL_SOCKET_IFNAME", "ens5"),),
            subsystems=frozenset({"INIT", "ENV", "NET", "BOOTSTRAP"}),
        )
        bad = [rank for rank in script.ranks if rank.node == 1]
        script.cut("plugins")
        script.lines = [
            line for line in script.lines if line.rank.node == 0 or line.name not in {"bootstrap", "version"}
        ]
        script.change("bootstrap", lambda text: text.replace("eth0", "ens5"))
        script.mark("environment_text", "interface_filter")
        for rank in bad:
            script.say(rank, "bootstrap", "no_interface", at_s=0.5, decisive=True)
            script.unwind(rank, "bootstrap", ("bootstrap.cc:86", "init.cc:85", "init.cc:101"), 3, at_s=0.5)
            give_up(script, rank, 3, "bootstrap", 0.7)
        side = {
            f"{rank.host}.addresses.txt": hosts.addresses(
                ("lo", "UNKNOWN", "127.0.0.1/8"),
                ("ens6" if rank.node else "ens5", "UP", f"{rank.address}/24"),
            )
            for rank in script.ranks
        }
        yield LogCase(
            id=case_id,
            cause="socket_ifname",
            also=("env_misuse",),
            script=script,
            side=side,
            facts=stopped(script),
        )
    yield from _unreachable_interfaces()
    yield from _socket_ifname_near()


def _unreachable_interfaces() -> Iterator[LogCase]:
    for number, (version, interface, address) in enumerate(
        (
            ("2.14.3", "lo", "127.0.0.1"),
            ("2.23.4", "docker0", "172.17.0.1"),
            ("2.26.5", "usb0", "169.254.3.1"),
        ),
        4,
    ):
        case_id = f"socket_ifname-{number}"
        script = script_of(case_id, version, interface=interface)
        script.cut("init")
        script.change(
            "bootstrap",
            lambda text, a=address: _with_address(text, a),
            where=lambda line, i=interface: line.rank.node == 1 or i == "lo",
            decisive=True,
        )
        script.change(
            "ib_devices",
            lambda text, a=address: _with_address(text, a),
            where=lambda line, i=interface: line.rank.node == 1 or i == "lo",
        )
        _cannot_connect(script, script.ranks[-1], f"{address}<41337>", ("Connection refused", 111), "init")
        yield LogCase(
            id=case_id, cause="socket_ifname", also=("bootstrap",), script=script, facts=stopped(script)
        )
    script = script_of("socket_ifname-7", "2.27.5", variables=(("NCCL_SOCKET_IFNAME", "eth2"),))
    script.cut("init")
    script.drop("bootstrap")
    script.mark("environment_text")
    for rank in script.ranks:
        script.say(rank, "init", "family", peer="", family=59_936, at_s=1.3, decisive=True)
    collapse(script, script.ranks[0], "init", code=3, places=("misc/socket.cc:816", "bootstrap.cc:370"))
    yield LogCase(
        id="socket_ifname-7",
        cause="socket_ifname",
        also=("env_misuse",),
        script=script,
        facts=stopped(script),
    )


def _socket_ifname_near() -> Iterator[LogCase]:
    for number, version in enumerate(("2.18.3", "2.27.5"), 1):
        case_id = f"socket_ifname-near-{number}"
        script = script_of(
            case_id,
            version,
            interface="bond0",
            variables=(("NCCL_SOCKET_IFNAME", "^lo,docker" if number == 1 else "bond"),),
        )
        yield healthy_case(case_id, script, "socket_ifname")


def _with_address(text: str, address: str) -> str:
    head, _, tail = text.rpartition(":")
    return f"{head}:{address}{tail[tail.index('<') :]}"


def ipv6() -> Iterator[LogCase]:
    """A link-local or tunnel address is chosen that the peer cannot reach."""
    for number, (version, interface) in enumerate(
        (("2.7.8", "ip6tnl0"), ("2.14.3", "enP4p1s0"), ("2.18.3", "eth1"), ("2.27.5", "ip6tnl0")), 1
    ):
        case_id = f"ipv6-{number}"
        address = f"fe80::a8bb:ccff:fe00:{number}1%{interface}"
        script = script_of(case_id, version, interface=interface)
        script.cut("init")
        script.change(
            "bootstrap",
            lambda text, a=address: _after_colon(text, a),
            where=lambda line: line.rank.node == 0,
            decisive=True,
        )
        script.change(
            "ib_devices",
            lambda text, a=address, i=interface: text[: text.index("OOB")] + f"OOB {i}:{a}<0>",
            where=lambda line: line.rank.node == 0,
        )
        _cannot_connect(script, script.ranks[-1], f"{address}<36055>", ("Connection timed out", 110), "init")
        yield LogCase(id=case_id, cause="ipv6", also=("socket_ifname",), script=script, facts=stopped(script))
    for number, version in enumerate(("2.21.5", "2.28.9"), 1):
        case_id = f"ipv6-near-{number}"
        script = script_of(case_id, version, variables=(("NCCL_SOCKET_FAMILY", "AF_INET6"),))
        for name in ("bootstrap", "ib_devices"):
            script.change(name, lambda text: _global_address(text))
        yield healthy_case(case_id, script, "ipv6")


def _after_colon(text: str, address: str) -> str:
    head, tail = text.split("Using", 1)
    interface = tail.split(":", 1)[0]
    return f"{head}Using{interface}:{address}<0>"


def _global_address(text: str) -> str:
    head, _, tail = text.rpartition(":")
    return f"{head}:2001:db8:10::{tail.split('.')[-1]}"


def firewall() -> Iterator[LogCase]:
    """A filter between hosts rejects or drops TCP."""
    variants = (
        ("2.12.12", "No route to host", 113),
        ("2.18.3", "Connection timed out", 110),
        ("2.21.5", "No route to host", 113),
        ("2.27.5", "No route to host", 113),
    )
    for number, (version, reason, errno) in enumerate(variants, 1):
        case_id = f"firewall-{number}"
        script = script_of(case_id, version)
        script.cut("init")
        bad = script.ranks[-1]
        peer = f"{script.ranks[0].address}<4{number}137>"
        _cannot_connect(script, bad, peer, (reason, errno), "init")
        side = {
            f"{bad.host}.ping.txt": hosts.command(
                f"ping -c1 {script.ranks[0].address}",
                f"64 bytes from {script.ranks[0].address}: icmp_seq=1 ttl=64 time=0.121 ms\n1 packets transmitted, 1 received, 0% packet loss",
            )
        }
        if number > 2:
            side[f"{script.ranks[0].host}.firewall.txt"] = hosts.command(
                "sudo firewall-cmd --state", "running"
            )
        yield LogCase(id=case_id, cause="firewall", script=script, side=side, facts=stopped(script))
    for number, version in enumerate(("2.21.5", "2.26.5"), 1):
        case_id = f"firewall-near-{number}"
        script = script_of(case_id, version)
        for rank in script.ranks[1:]:
            script.say(
                rank,
                "init",
                "connect_retry",
                peer=f"{script.ranks[0].address}<41001>",
                reason="Connection refused",
                attempt=1,
                sleep=100,
                at_s=1.21,
            )
        yield healthy_case(case_id, script, "firewall")
    script = script_of("firewall-near-3", "2.18.3", interface="lo")
    script.cut("init")
    script.change("bootstrap", lambda text: _with_address(text, "127.0.0.1"), decisive=True)
    script.change("ib_devices", lambda text: _with_address(text, "127.0.0.1"))
    _cannot_connect(script, script.ranks[-1], "127.0.0.1<41337>", ("Connection refused", 111), "init")
    yield LogCase(
        id="firewall-near-3",
        cause="socket_ifname",
        also=("bootstrap",),
        script=script,
        facts=stopped(script),
        near_miss_of="firewall",
    )


def ports() -> Iterator[LogCase]:
    """Ephemeral ports run out."""
    variants = (
        ("2.14.3", "bind", "Address already in use"),
        ("2.18.3", "bind", "Address already in use"),
        ("2.24.3", "bind", "Address already in use"),
        ("2.27.5", "connect", "Cannot assign requested address"),
    )
    for number, (version, call, reason) in enumerate(variants, 1):
        case_id = f"ports-{number}"
        script = script_of(
            case_id, version, gpus_per_node=8, variables=(("NCCL_PXN_DISABLE", "1"),) if number > 2 else ()
        )
        phase = connecting(script)
        script.cut(phase)
        rank = script.ranks[9]
        if call == "bind":
            script.say(
                rank,
                phase,
                "system_call",
                call=call,
                reason=reason,
                source="misc/socket.cc:380",
                at_s=moment(phase),
                decisive=True,
                thread="proxy",
            )
        else:
            script.say(
                rank,
                phase,
                "connect_failed",
                peer=f"{script.ranks[0].address}<60211>",
                reason=reason,
                errno=99,
                at_s=moment(phase),
                decisive=True,
                thread="proxy",
            )
        collapse(
            script,
            rank,
            phase,
            code=2,
            places=("misc/socket.cc:380", "transport/net_ib.cc:700", "transport/net.cc:590"),
            proxy="Setup",
        )
        side = {
            "host.sysctl.txt": hosts.command(
                "sysctl net.ipv4.ip_local_port_range", "net.ipv4.ip_local_port_range = 32768\t60999"
            )
            + hosts.command(
                "ss -s", "Total: 29144\nTCP:   28702 (estab 27980, closed 311, orphaned 0, timewait 288)"
            )
        }
        yield LogCase(id=case_id, cause="ports", script=script, side=side, facts=stopped(script))
    yield from _ports_near()


def _ports_near() -> Iterator[LogCase]:
    for number, version in enumerate(("2.21.5", "2.27.5"), 1):
        case_id = f"ports-near-{number}"
        side = {
            "host.sysctl.txt": hosts.command(
                "sysctl net.ipv4.ip_local_port_range", "net.ipv4.ip_local_port_range = 32768\t60999"
            )
        }
        yield healthy_case(case_id, script_of(case_id, version, gpus_per_node=4), "ports", side=side)
