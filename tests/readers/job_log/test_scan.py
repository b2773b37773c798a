"""Recognised lines, whatever surrounds them."""

import itertools

import pytest

from linkwise.readers.job_log.reading import parse_job_log
from linkwise.readers.job_log.scan import Scan

_P = "h1:10:20 [0] NCCL INFO "


def _log(text, name="a.log"):
    return parse_job_log([(name, text if isinstance(text, bytes) else text.encode())])


def _one(log, what):
    (found,) = log.sightings[what]
    return found


@pytest.mark.parametrize("text", [
    f"{_P}Bootstrap: Using eth0:10.0.0.1<0>\n",
    f"{_P}Bootstrap : Using eth0:10.0.0.1<0>\n",
    f"{_P}Bootstrap : Using [0]eth0:10.0.0.1<0>\n",
    f"{_P}NET : Using interface eth0:10.0.0.1<0>\n",
    f"noise{_P}Bootstrap: Using eth0:10.0.0.1<0>#012\n",
    f"{_P}Bootstrap: Using eth0:10.0.0.1<0>\r\n",
    f"\x1b[32m{_P}Bootstrap: Using eth0:10.0.0.1<0>\x1b[0m",
])  # fmt: skip
def test_bootstrap_interface_in_the_words_of_all_releases(text):
    found = _one(_log(text), "bootstrap")
    assert (found.fields["interface"], found.fields["address"]) == ("eth0", "10.0.0.1")


@pytest.mark.parametrize(("text", "version", "cuda"), [
    ("NCCL version 2.21.5+cuda12.4\n", "2.21.5", "12.4"),
    (f"{_P}NCCL version 2.27.5+cuda12.9\n", "2.27.5", "12.9"),
    ("0: NCCL version 2.7.8+cuda10.2\n", "2.7.8", "10.2"),
    ("torch: NCCL error in: x.cpp:1, invalid usage, NCCL version 2.19.3\n", "2.19.3", None),
])  # fmt: skip
def test_version_bare_and_prefixed(text, version, cuda):
    found = _one(_log(text), "version")
    assert (found.fields["version"], found.fields.get("cuda")) == (version, cuda)


def test_glued_lines_are_two():
    log = _log(
        f"{_P}Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEMh2:11:21 [1] NCCL INFO Channel 00/0 : 1[1] -> 0[0] via SHM/direct/direct\n"
    )
    assert {(each.transport, each.kind) for each in log.channels} == {
        ("P2P/CUMEM", "P2P"),
        ("SHM/direct/direct", "SHM"),
    }


def test_a_host_with_a_glued_name_is_itself():
    known = "h2:11:21 [1] NCCL INFO Using network IB\n"
    glued = "0[0] -> 1[1] via P2P/CUMEMh2:11:21 [1] NCCL INFO Bootstrap: Using eth0:1.2.3.4<0>\n"
    assert _one(_log(known + glued), "bootstrap").host == "h2"


def test_channels_are_counted_per_process_and_transport():
    lines = [
        f"h:{pid}:9 [0] NCCL INFO Channel {c:02d}/0 : 0[0] -> 1[1] via P2P/IPC"
        for c in range(8)
        for pid in (1, 2)
    ]
    found = _log("\n".join(lines) + "\n").channels
    assert [(each.pid, each.count, len(each.lines)) for each in found] == [(1, 8, 8), (2, 8, 8)]


def test_threads_of_a_process_are_one():
    lines = [f"h:1:{tid} [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/IPC\n" for tid in (5, 6)]
    (found,) = _log("".join(lines)).channels
    assert found.count == 2


@pytest.mark.parametrize(("text", "fields"), [
    ("NET/IB : Got completion with error 12, opcode 1, len 32600, vendor err 129", {"status": "12", "vendor": "129"}),
    ("NET/IB : Got completion from peer 10.0.0.2<5> with error 4, opcode 0, len 0, vendor err 81 (Send)",
     {"peer": "10.0.0.2<5>", "status": "4", "vendor": "81", "side": "Send"}),
    ("NET/IB : Got completion from peer 10.0.0.2<5> with status=1 opcode=128 len=0 vendor err 105 (Recv) localGid ::ffff:10.0.0.1 remoteGids::ffff:10.0.0.2",
     {"peer": "10.0.0.2<5>", "status": "1", "vendor": "105", "side": "Recv", "local": "::ffff:10.0.0.1", "remote": "::ffff:10.0.0.2"}),
])  # fmt: skip
def test_completions_in_the_words_of_all_releases(text, fields):
    assert _one(_log(f"h:1:2 [0] x.cc:5 NCCL WARN {text}\n"), "completion").fields == fields


@pytest.mark.parametrize(("text", "peer", "error"), [
    ("Net : Connect to 10.0.0.4<5> failed : Connection refused", "10.0.0.4<5>", "Connection refused"),
    ("socketStartConnect: Connect to 10.0.0.4<5> failed : Connection refused", "10.0.0.4<5>", "Connection refused"),
    ("socketPollConnect: Connect to 10.0.0.4<5> returned 113(No route to host) errno 115(x)", "10.0.0.4<5>", "No route to host"),
    ("socketPollConnect to 10.0.0.4<5> failed with error Connection refused", "10.0.0.4<5>", "Connection refused"),
])  # fmt: skip
def test_failed_connections_in_the_words_of_all_releases(text, peer, error):
    found = _one(_log(f"h:1:2 [0] x.cc:5 NCCL WARN {text}\n"), "connect_failed")
    assert (found.fields["peer"], found.fields["text"]) == (peer, error)


def test_lines_are_numbered_from_one_over_chunks():
    scan = Scan()
    text = b"noise\n" * 400_000 + f"{_P}Using network IB\n".encode()
    scan.feed("a", (text[at : at + 1000] for at in range(0, len(text), 1000)))
    assert scan.sightings["network"][0].evidence.line == 400_001


def test_outputs_of_commands_stand_under_their_prompt():
    log = _log(
        f"{_P}Using network IB\n$ ulimit -n\n1024\n$ lsmod | grep peermem\n\nuser@h:~$ ls /dev\nnvidia0\n{_P}x\n"
    )
    assert [(each.command, each.lines) for each in log.commands] == [
        ("ulimit -n", ("1024",)), ("lsmod | grep peermem", ()), ("ls /dev", ("nvidia0",)),
    ]  # fmt: skip


def test_heading_of_nccl_tests_is_no_prompt():
    assert _log("# nThread 1 nGpus 1\n# Using devices\n").commands == ()


def test_repeated_lines_are_kept_a_few_times():
    log = _log("h:1:2 [0] x.cc:5 NCCL WARN Call to connect returned Connection refused, retrying\n" * 5000)
    assert len(log.sightings["connect_retried"]) <= 12


def test_memory_does_not_grow_with_the_log():
    """Lines that differ in every number fill no table past its bound."""
    scan = Scan()
    counter = itertools.count()
    chunk = "".join(
        f"h{next(counter) % 50}:1:2 [0] NCCL INFO comm 0x{n:x} rank 0 nranks 8 something {n}\n"
        for n in range(20_000)
    )
    for _ in range(5):
        scan.feed("a", [chunk.encode()])
    assert scan.kept == 0
    assert len(scan._shapes) <= 100_000


def test_host_lines_are_found_without_a_prefix():
    log = _log(
        "[12.3] NVRM: Xid (PCI:0000:66:00): 79, pid=1, name=x\nACSCtl: SrcValid+ TransBlk-\nmax locked memory (kbytes, -l) 64\n"
    )
    assert set(log.sightings) == {"xid", "acs", "memlock_limit"}


def test_escapes_of_a_web_page_are_undone():
    log = _log(
        f"{_P}Bootstrap : Using eth0:10.0.0.1&lt;0&gt;\n{_P}Channel 00/0 : 0[0] -&gt; 1[1] via P2P/IPC\n"
    )
    assert _one(log, "bootstrap").fields["address"] == "10.0.0.1"
    assert [(each.rank, each.peer) for each in log.channels] == [(0, 1)]


def test_ampersands_of_other_text_stay():
    assert _one(_log("PATH=a&amp;b\nNCCL_IB_HCA=a&amp;b\n"), "setting").fields["value"] == "a&amp;b"


def test_lines_that_were_joined_are_told_apart():
    log = _log("[0] NCCL INFO NCCL_IB_DISABLE set by environment to 0. [0] NCCL INFO Using network Socket\n")
    assert _one(log, "setting").fields["value"] == "0"
    assert _one(log, "network").fields["name"] == "Socket"


@pytest.mark.parametrize(("start", "host", "source"), [
    ("<host>:33:105 [2] misc/socket.cc:57", "<host>", "misc/socket.cc"),
    ("[1,0]<stdout>:n1:33:105 [2] misc/socket.cc:57", "n1", "misc/socket.cc"),
    ("transport/nvls.cc:158", None, "transport/nvls.cc"),
    ("> `transport/nvls.cc:158 (nvlsBind)", None, "transport/nvls.cc"),
    ("h:1:2 [0] int create(plugin_t**):418", "h", "int create(plugin_t**)"),
    ("step 3:158", None, ""),
])  # fmt: skip
def test_prefix_that_was_masked_or_left_out(start, host, source):
    found = _one(_log(f"{start} NCCL WARN Cuda failure 1 'invalid argument'\n"), "cuda_failure")
    assert (found.host, found.source) == (host, source)


def test_quotation_that_was_cut_is_read():
    found = _one(
        _log("h:1:2 [0] transport/nvls.cc:2 NCCL WARN Cuda failure 999 'unknown err\n"), "cuda_failure"
    )
    assert (found.fields["number"], found.fields["text"]) == ("999", "unknown err")


def test_last_error_that_no_message_is_stays_visible():
    log = _log(
        "ncclInvalidArgument: Invalid value for an argument.\nLast error:\nReduce : root 9 is of no use\n"
    )
    assert (_one(log, "warning").fields["text"], _one(log, "warning").level) == (
        "Reduce : root 9 is of no use",
        "LAST",
    )


def test_no_last_error_is_no_warning():
    assert "warning" not in _log("x, NCCL version 2.19.3\nLast error:\n\n").sightings


@pytest.mark.parametrize(("text", "what"), [
    ("2 | INFO NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'", "gdr_hca"),
    ("it said Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 4000", "duplicate_gpu"),
    ("10.0.0.1: WARN: Function: find_provider Line: 5: NET/OFI Could not open the domain", "ofi_failed"),
])  # fmt: skip
def test_text_of_nccl_is_known_without_its_prefix(text, what):
    assert _one(_log(text + "\n"), what)


@pytest.mark.parametrize("text", [
    "how to solve Duplicate GPU detected errors",
    "GPU Direct RDMA is on",
    "10.0.0.1: INFO: Function: ofi_init Line: 1: NET/OFI Setting RDMAV_FORK_SAFE",
])  # fmt: skip
def test_words_about_a_text_of_nccl_are_none(text):
    assert not {"duplicate_gpu", "gdr_hca", "ofi_failed"} & set(_log(text + "\n").sightings)


def test_warning_whose_text_begins_with_the_name_of_the_library():
    found = _one(_log("h:1:2 [0] init.cc:1 NCCL WARN NCCL cannot use more than 8 plane IDs.\n"), "warning")
    assert (found.host, found.fields["text"]) == ("h", "NCCL cannot use more than 8 plane IDs.")


@pytest.mark.parametrize(("quoted", "what"), [
    ("Last NCCL warning(error) log entry (may be unrelated) 'Cuda failure 2 'out of memory''.; current scope: x.", "cuda_failure"),
    ("invalid usage ... Last NCCL warning(error): 'Bootstrap : no socket interface found'", "interface_none"),
    ("Last NCCL warning(error) log entry (may be unrelated) 'Flux capacitor overflows'.", "warning"),
])  # fmt: skip
def test_last_warning_that_xla_quotes(quoted, what):
    found = _one(
        _log(f"INTERNAL: NCCL operation ncclCommInitRank(&comm, n) failed: unhandled error. {quoted}\n"), what
    )
    assert found.level == "LAST"


def test_empty_quotation_of_xla_is_no_warning():
    assert (
        "warning"
        not in _log("Last NCCL warning(error) log entry (may be unrelated) ''.: while running\n").sightings
    )


def test_device_that_the_plugin_of_hpcx_enables():
    found = _one(_log(f"{_P}NET/IB : GPU Direct RDMA (DMABUF) enabled for HCA 1 'roceP2p1s0f1\n"), "gdr_hca")
    assert (found.fields["state"], found.fields["hca"]) == ("enabled", "roceP2p1s0f1")
