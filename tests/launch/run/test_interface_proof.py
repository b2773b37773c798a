"""Over which interfaces ranks talked: by the ends of their connections, and no other way."""

import os
import socket
from dataclasses import replace

import pytest

from linkwise.launch.run.checks import Expected, SeenRank
from linkwise.launch.run.interface_proof import interface_check, interfaces_of
from linkwise.launch.run.node_sight import MOST_CONNECTIONS, addresses_of, connections_of, rank_of
from linkwise.launch.run.proof import seen_rank

EXPECTED = Expected(
    nodes=2,
    ranks_per_node=1,
    hosts=("n0", "n1"),
    device="cpu",
    settings={},
    protocol="",
    has_nvlink=False,
    interfaces=("eth0",),
)
ADDRESSES = {
    host: {"127.0.0.1": "lo", f"10.0.0.{number}": "eth0", f"10.1.0.{number}": "eth1"}
    for number, host in enumerate(("n0", "n1"), start=1)
}


def ranks(*ends):
    """Return two ranks that are connected by pairs of ends."""
    there = [SeenRank(rank=rank, ranks=2, host=f"n{rank}", settings={}) for rank in (0, 1)]
    return (
        replace(there[0], connections=tuple(ends)),
        replace(there[1], connections=tuple((other, own) for own, other in ends)),
    )


def check(seen, expected=EXPECTED):
    (found,) = interface_check(expected, seen, ADDRESSES)
    return found.is_as_planned, found.seen


def test_connection_between_planned_addresses_is_as_planned():
    assert check(ranks(("10.0.0.1:50", "10.0.0.2:60"))) == (True, "eth0")


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        ([("10.1.0.1:50", "10.1.0.2:60")], (False, "connections on eth1 (rank 0), eth1 (rank 1)")),
        (
            [("10.0.0.1:50", "10.0.0.2:60"), ("10.1.0.1:5", "10.1.0.2:6")],
            (False, "connections on eth0, eth1 (rank 0), eth0, eth1 (rank 1)"),
        ),
        ([], (None, "no connection to another rank of rank 0, 1")),
    ],
)
def test_other_interface_or_none_is_not_as_planned(ends, expected):
    assert check(ranks(*ends)) == expected


def test_planned_interface_that_nobody_uses_is_named():
    both = replace(EXPECTED, interfaces=("eth0", "eth1"))
    assert check(ranks(("10.0.0.1:50", "10.0.0.2:60")), both) == (False, "connections on eth0, none on eth1")


def test_loopback_of_another_host_is_no_peer():
    one, other = ranks(("127.0.0.1:50", "127.0.0.1:60"))
    assert interfaces_of((one, other), ADDRESSES) == {0: set(), 1: set()}
    assert interfaces_of((one, replace(other, host="n0")), ADDRESSES) == {0: {"lo"}, 1: {"lo"}}


def test_connection_to_somebody_else_counts_for_nothing():
    seen = ranks(("10.0.0.1:50", "10.0.0.2:60"))
    seen = (
        replace(seen[0], connections=(*seen[0].connections, ("10.1.0.1:9", "93.184.216.34:443"))),
        seen[1],
    )
    assert check(seen) == (True, "eth0")


@pytest.mark.parametrize(
    "expected",
    [
        replace(EXPECTED, interfaces=()),
        replace(EXPECTED, device="cuda"),
        replace(EXPECTED, nodes=1),
    ],
)
def test_nothing_is_checked_where_nothing_is_planned_or_there_is_nobody(expected):
    assert list(interface_check(expected, (), ADDRESSES)) == []


def test_kernel_shows_addresses_and_connections_of_a_process():
    assert addresses_of("self")["127.0.0.1"] == "lo"
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as client,
        server.accept()[0],
    ):
        ends = [f"{host}:{port}" for host, port in (client.getsockname(), client.getpeername())]
        assert ends in connections_of(os.getpid())
        assert ends[::-1] in connections_of(os.getpid())
        port = str(server.getsockname()[1])
        assert ends not in connections_of(os.getpid(), without_port=port)
    assert rank_of(os.getpid(), host="n0") is None  # no rank was told to it
    assert connections_of(2**22 + 1) == []


def test_addresses_are_on_the_interface_of_their_narrowest_network(tmp_path):
    net = tmp_path / "7" / "net"
    net.mkdir(parents=True)
    (net / "if_inet6").write_text("fe800000000000000000000000000001 02 40 20 80 eth0\nbroken\n")
    (net / "fib_trie").write_text(
        "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 10.0.0.1\n        /32 host LOCAL\n"
        "     |-- 10.0.0.255\n        /32 link BROADCAST\n     |-- 10.1.0.1\n        /32 host LOCAL\n"
    )
    (net / "route").write_text(
        "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\n"
        "eth0 0000000A 00000000 0001 0 0 0 0000FFFF 0 0 0\n"
        "wide 0000000A 00000000 0001 0 0 0 000000FF 0 0 0\n"
        "eth9 00000000 0100000A 0003 0 0 0 00000000 0 0 0\n"
    )
    found = addresses_of("7", proc=tmp_path)
    assert found == {"fe80::1": "eth0", "10.0.0.1": "eth0", "10.1.0.1": "wide"}


def test_ends_of_sockets_of_ipv6_that_hold_ipv4_are_read(tmp_path):
    fd = tmp_path / "7" / "fd"
    fd.mkdir(parents=True)
    (fd / "3").symlink_to("socket:[99]")
    net = tmp_path / "7" / "net"
    net.mkdir()
    rest = "00000000:00000000 00:00000000 00000000     0        0"
    head = "  sl  local_address remote_address st ...\n"
    own, other = "0000000000000000FFFF00000100000A:1F90", "0000000000000000FFFF00000200000A:0050"
    (net / "tcp6").write_text(
        f"{head}   0: {own} {other} 01 {rest} 99 1 x\n   1: {own} {other} 0A {rest} 99 1 x\n"
    )
    (net / "tcp").write_text(f"{head}   0: 0100007F:0001 0100007F:0002 01 {rest} 98 1 x\n")
    assert connections_of(7, proc=tmp_path) == [["10.0.0.1:8080", "10.0.0.2:80"]]


@pytest.mark.parametrize("connections", [None, "x", [1], [["a"]], [["a", "b", "c"]]])
def test_damaged_connections_are_none(connections):
    told = {"rank": 0, "ranks": 1, "host": "n", "settings": {}, "connections": connections}
    assert seen_rank(told).connections == ()
    assert MOST_CONNECTIONS > 0
