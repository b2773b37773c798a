"""Causes of the TCP family: each fires on its lines, and near misses do not."""

import pytest

_CONNECT = (
    "Net : Connect to {peer}<51007> failed : {text}",
    "socketStartConnect: Connect to {peer}<51007> failed : {text}",
    "socketPollConnect: Connect to {peer}<51007> returned 0({text}) errno 115(Operation now in progress)",
    "socketPollConnect to {peer}<51007> failed with error {text}",
)


@pytest.mark.parametrize("form", _CONNECT)
def test_firewall_when_an_ordinary_address_is_rejected(job, causes, form):
    log = job().start().fault(1, form.format(peer="10.0.0.2", text="No route to host"))
    assert causes(log)[0] == ("firewall", "broken", "medium")
    answered = log.raw("$ ping -c1 10.0.0.2", "64 bytes from 10.0.0.2: icmp_seq=1 ttl=64 time=0.1 ms")
    assert causes(answered)[0] == ("firewall", "broken", "high")


def test_firewall_when_the_last_retry_is_spent(job, causes):
    spent = "socketPollConnect: connect returned No route to host, retrying ({}/34) after sleep for 3400 msec"
    assert causes(job().start().say(1, spent.format(34)))[0] == ("firewall", "broken", "medium")
    assert causes(job().start().say(1, spent.format(33))) == []


@pytest.mark.parametrize("form", _CONNECT)
def test_firewall_when_an_ordinary_address_does_not_answer(job, causes, form):
    log = job().start().fault(1, form.format(peer="10.0.0.2", text="Connection timed out"))
    assert causes(log)[0] == ("firewall", "broken", "medium")


def test_a_retry_that_succeeds_is_no_firewall(job, causes):
    assert causes(job().say(1, "Call to connect returned Connection refused, retrying").healthy()) == []


def test_ipv6_when_the_start_goes_over_a_link_local_address(job, causes):
    log = job().start(interface="ip6tnl0", addresses=["fe80::1%ip6tnl0", "fe80::2%ip6tnl0"])
    log.fault(0, "Connect to fe80::2%ip6tnl0<46020> failed : Connection timed out")
    assert causes(log)[0] == ("ipv6", "broken", "high")


def test_socket_ifname_when_a_second_interface_is_link_local(job, causes):
    log = job(network="Socket").start()
    for rank in range(4):
        host = rank // 2 + 1
        log.say(rank, f"NET/Socket : Using [0]eth0:10.0.0.{host}<0> [1]enP1s1:fe80::{host}%enP1s1<0>")
        log.say(rank, "Using network Socket")
    log.init().fault(
        0, "socketStartConnect: Connect to fe80::2%enP1s1<57010> failed : Software caused connection abort"
    )
    assert causes(log)[0] == ("socket_ifname", "broken", "high")


@pytest.mark.parametrize(
    ("interface", "address"), [("usb0", "169.254.3.1"), ("docker0", "172.17.0.1"), ("lo", "127.0.0.1")]
)
def test_socket_ifname_when_the_interface_reaches_no_other_host(job, causes, interface, address):
    log = job().start(interface=interface, addresses=[address, address])
    log.fault(0, f"socketPollConnect to {address}<39215> failed with error Connection refused")
    assert causes(log)[0] == ("socket_ifname", "broken", "high")


@pytest.mark.parametrize(("peer", "confidence"), [("169.254.9.18", ["medium"]), ("10.254.9.18", [])])
def test_socket_ifname_when_the_peer_gave_an_address_of_one_link(doctor, peer, confidence):
    found = doctor(
        f"h:17:52 [0] misc/socket.cc:484 NCCL WARN socketStartConnect: Connect to {peer}<42219> failed : Software caused connection abort\n"
    )
    assert [each.confidence for each in found.findings if each.cause == "socket_ifname"] == confidence


def test_socket_ifname_when_the_filter_matches_nothing(job, doctor):
    log = job().start(settings=[("NCCL_SOCKET_IFNAME", "ib9")])
    log.fault(2, "Bootstrap : no socket interface found", source="bootstrap.cc")
    first = doctor(log).findings[0]
    assert (first.cause, first.where, "ib9" in first.explanation) == ("socket_ifname", ("n01",), True)


def test_bootstrap_when_there_is_no_interface_and_no_filter(job, causes):
    log = job().start().fault(2, "Bootstrap : no socket interface found", source="bootstrap.cc")
    assert causes(log)[0] == ("bootstrap", "broken", "medium")


def test_socket_ifname_when_the_family_is_no_family(job, causes):
    log = job().start(settings=[("NCCL_SOCKET_IFNAME", "eth2")])
    log.fault(
        0, "ncclSocketInit: connecting to address  with family 59936 is neither AF_INET(2) nor AF_INET6(10)"
    )
    assert causes(log)[0] == ("socket_ifname", "broken", "high")


def test_bootstrap_when_a_stranger_closes_the_connection(job, causes):
    log = job().start().fault(0, "socketProgress: Connection closed by remote peer 192.168.9.9<36138>")
    assert causes(log)[0] == ("bootstrap", "broken", "medium")


def test_a_host_of_the_job_that_closes_is_no_stranger(job, causes):
    log = job().start().fault(0, "socketProgress: Connection closed by remote peer 10.0.0.2<36138>")
    assert causes(log) == [("remote_exit", "broken", "medium")]


def test_bootstrap_when_the_subnet_of_comm_id_is_missed(job, causes):
    log = job().start(
        interface="lo", addresses=["127.0.0.1"] * 2, settings=[("NCCL_COMM_ID", "172.20.16.2:12340")]
    )
    log.fault(0, "socketPollConnect to 127.0.0.1<40217> failed with error Connection refused")
    assert causes(log)[0] == ("bootstrap", "broken", "high")


def test_fd_limit_shows_the_limit(job, doctor):
    log = (
        job()
        .healthy()
        .fault(0, "Net : Socket creation failed : Too many open files")
        .raw("$ ulimit -n", "1024")
    )
    first = doctor(log).findings[0]
    assert (first.cause, "1024" in first.explanation) == ("fd_limit", True)


def test_ports_when_none_is_left_to_bind(job, causes):
    log = job().healthy(settings=[("NCCL_PXN_DISABLE", "1")])
    assert causes(log.fault(0, "Call to bind failed: Address already in use"))[0] == (
        "ports",
        "broken",
        "high",
    )


def test_port_of_the_status_service_that_is_taken_is_harmless(job, doctor):
    log = job(hosts=1, version=(2, 27, 5)).start()
    log.fault(0, "Call to bind failed: Address already in use", source="ras/client_support.cc")
    log.say(0, "RAS failed to establish a client listening socket at localhost:28028")
    found = doctor(log.init().connect().init("COMPLETE"))
    assert (found.verdict, [each.cause for each in found.findings]) == ("healthy", ["harmless"])


def test_ports_when_nccl_itself_cannot_bind(job, causes):
    log = job().start().fault(0, "Call to bind failed: Address already in use", source="misc/socket.cc")
    assert causes(log)[0][:2] == ("ports", "broken")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("mismatch in rank count from procs 16 : 8", "counts 16 ranks, another 8"),
        ("rank 3 of 4 ranks has already checked in", "the same rank"),
        ("mismatch in rank count from procs 16 : 1936287860", "not meant for"),
        ("mismatch in rank count from procs 16 : 0", "not meant for"),
    ],
)
def test_bootstrap_when_ranks_disagree_on_how_many_they_are(job, doctor, text, words):
    log = job().start().fault(0, f"Bootstrap Root : {text}", source="bootstrap.cc")
    first = doctor(log).findings[0]
    assert first.cause == "bootstrap"
    assert words in first.explanation


@pytest.mark.parametrize(("joined", "causes_found"), [("3/4", ["bootstrap"]), ("4/4", [])])
def test_bootstrap_says_how_many_came_to_the_store(doctor, joined, causes_found):
    line = (
        f"[rank0]: DistStoreError: Timed out after 1801 seconds waiting for clients. {joined} clients joined."
    )
    found = doctor(line + "\n").findings
    assert [each.cause for each in found] == causes_found
    assert not found or "3 of 4 came" in found[0].explanation
