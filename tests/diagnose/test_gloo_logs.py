"""Jobs over gloo: recorded outputs under faults, what of them may be missing, and what only looks like a fault."""

import re
from pathlib import Path

import pytest

from linkwise.diagnose.doctor import diagnose
from linkwise.readers.job_log.reading import parse_job_log

_LOGS = Path(__file__).parents[1] / "data" / "gloo_logs"

EXPECTED = {
    # verdict, causes in their order, and where the first is seen
    "healthy": ("healthy", [], []),
    "stopped-by-hand": ("healthy", [], []),
    "own-error": ("broken", [], []),
    "own-exit": ("broken", ["remote_exit"], ["n0", "rank 1"]),
    "crash": ("broken", ["remote_exit"], ["n0", "rank 0"]),
    "launcher-told": ("broken", ["remote_exit"], None),
    "interface": ("broken", ["socket_ifname"], []),
    "loopback": ("broken", ["socket_ifname"], []),
    "rank-killed": ("broken", ["rank_killed"], ["n1", "rank 3"]),
    "rank-frozen": ("broken", ["rank_frozen"], ["n1", "rank 3"]),
    "node-lost": ("broken", ["node_lost"], ["n1", "rank 2", "rank 3"]),
    "link-down": ("broken", ["link_down"], ["n0", "n1"]),
    "link-flap": ("slow", ["link_flap"], ["n0", "n1"]),
    "slow-link": ("slow", ["slow_link"], ["n0", "n1"]),
    "slow-node": ("slow", ["slow_node"], ["n1", "rank 2", "rank 3"]),
    "restart-fails": ("broken", ["rank_killed", "elastic_store"], ["n1", "rank 3"]),
    "restart-static": ("broken", ["rank_killed", "elastic_store"], ["n1"]),
    "restart-works": ("slow", ["rank_killed"], ["n1", "rank 3"]),
    "lab-link-down": ("broken", ["link_down"], ["n2", "n3"]),
    "lab-rank-frozen": ("broken", ["rank_frozen"], ["n2", "rank 2"]),
    "lab-node-lost": ("broken", ["node_lost"], ["n2", "rank 2"]),
    "lab-slow-node": ("slow", ["slow_node"], ["n2", "rank 2"]),
}
FAULTS = {
    "rank_killed", "rank_frozen", "node_lost", "link_down", "link_flap", "slow_link", "slow_node", "elastic_store",
}  # fmt: skip
_AGENT = re.compile(r"torch/distributed/elastic|^n\d: agent: |^\s*(?:time|host|rank|exitcode|traceback) +:")


def texts_of(name):
    return {path.name: path.read_text(encoding="utf-8") for path in sorted((_LOGS / name).iterdir())}


def judged(texts):
    return diagnose(parse_job_log((name, text.encode()) for name, text in texts.items()))


def causes_of(texts):
    return [each.cause for each in judged(texts).findings]


def without_agents(texts):
    return {
        name: "".join(line for line in text.splitlines(keepends=True) if not _AGENT.search(line))
        for name, text in texts.items()
    }


def test_every_recording_is_expected():
    assert {path.name for path in _LOGS.iterdir() if path.is_dir()} == set(EXPECTED)


def test_every_fault_has_a_recording():
    assert {cause for _, causes, _ in EXPECTED.values() for cause in causes} >= FAULTS


@pytest.mark.parametrize("name", EXPECTED)
def test_a_recorded_job_is_told_rightly(name):
    verdict, causes, where = EXPECTED[name]
    found = judged(texts_of(name))
    assert (str(found.verdict), [each.cause for each in found.findings]) == (verdict, causes), found.reason
    if causes and where is not None:
        assert list(found.findings[0].where) == where


@pytest.mark.parametrize("name", [name for name, (_, causes, _) in EXPECTED.items() if causes])
def test_one_console_tells_what_two_files_tell(name):
    texts = texts_of(name)
    if name in {"loopback", "restart-static", "restart-fails", "launcher-told"}:
        pytest.skip("which node printed a line, and which line came first, is told by the files alone")
    assert causes_of({"console": "".join(texts.values())}) == EXPECTED[name][1]


@pytest.mark.parametrize("name", EXPECTED)
def test_the_words_of_ranks_alone_lead_to_no_other_cause(name):
    found = causes_of(without_agents(texts_of(name)))
    # Ranks that leave by themselves and such as are ended look alike where no launcher tells.
    alike = {"own-exit": {"rank_killed"}, "crash": {"rank_killed"}, "launcher-told": {"node_lost"}}
    assert set(found) <= set(EXPECTED[name][1]) | alike.get(name, set())


@pytest.mark.parametrize(
    ("name", "cause"),
    [("rank-killed", "rank_killed"), ("link-down", "link_down"), ("node-lost", "node_lost")],
)
def test_the_words_of_ranks_alone_tell_these(name, cause):
    assert causes_of(without_agents(texts_of(name))) == [cause]


@pytest.mark.parametrize("name", EXPECTED)
@pytest.mark.parametrize("node", ["n0.log", "n1.log"])
def test_the_output_of_one_node_leads_to_no_other_cause(name, node):
    texts = texts_of(name)
    if node not in texts:
        pytest.skip("recorded as one file")
    found = judged({node: texts[node]})
    assert {each.cause for each in found.findings} <= set(EXPECTED[name][1])
    if str(found.verdict) == "healthy" and EXPECTED[name][0] != "healthy":
        # The steps of a node until it is gone are well, and so is what goes on after an outage.
        assert name == "node-lost" or found.reason.startswith("nothing slow or broken is seen; "), (
            found.reason
        )


@pytest.mark.parametrize("name", EXPECTED)
@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_an_output_that_is_cut_leads_to_no_other_cause(name, share):
    texts = {file: text[: int(len(text) * share)] for file, text in texts_of(name).items()}
    sure = {each.cause for each in judged(texts).findings if each.confidence.value != "low"}
    assert sure & FAULTS <= set(EXPECTED[name][1])


def test_a_kernel_that_was_out_of_memory_is_the_cause_of_a_killed_rank():
    texts = texts_of("rank-killed")
    texts["dmesg"] = "[ 91.3] Out of memory: Killed process 9047 (python3) total-vm:9000kB, anon-rss:8000kB\n"
    assert causes_of(texts) == ["oom"]


@pytest.mark.parametrize("name", ["rank-killed", "rank-frozen", "node-lost", "link-down"])
def test_lines_of_gloo_beside_nccl_are_echoes(name, job, doctor):
    log = job().healthy().fault(0, "Net : Connection closed by remote peer 10.0.0.2<47861>")
    log.raw(*"".join(texts_of(name).values()).splitlines())
    assert not {each.cause for each in doctor(log).findings} & (FAULTS - {"slow_link", "slow_node"})


def test_the_reason_of_a_program_that_fails_names_its_error_and_rank():
    assert "program of rank 2 ended with an error of its own" in judged(texts_of("own-error")).reason
    assert "ValueError: labels have 7 classes" in judged(texts_of("own-error")).reason


def test_half_of_the_ranks_that_wait_is_no_cause_and_said_so():
    found = judged({"n0.log": texts_of("link-down")["n0.log"]})
    assert found.findings == ()
    assert "give the output of all ranks" in found.reason


def steps(times, *, hosts=("n0", "n1"), computes=None, first=0):
    """Return lines of steps: for each rank a time of each step, and what of it was computed."""
    lines = []
    for number, time_s in enumerate(times):
        for rank, host in enumerate(hosts):
            compute_s = 0.2 if computes is None else computes[rank][number]
            lines.append(
                f"[rank{rank}]: {host}: step {number + first} loss 5.1 time {time_s:.3f} s"
                f" compute {compute_s:.3f} s wait {time_s - compute_s:.3f} s"
            )
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("times", "cause"),
    [
        ([2.0, 0.7, 0.72, 0.69, 3.1, 3.0, 3.2], "slow_link"),
        ([0.7] * 40 + [1.2] * 8, "slow_link"),
        ([2.0, 0.7, 0.72, 4.4, 0.7, 0.71], "link_flap"),
        ([2.0, 0.7, 0.72, 3.4, 1.4, 0.7, 0.71], "link_flap"),
    ],
)
def test_steps_in_which_all_wait_tell_of_the_network(times, cause):
    assert causes_of({"log": steps(times)}) == [cause]


@pytest.mark.parametrize(
    "times",
    [
        [2.0, 0.7, 0.72, 0.69, 0.8, 0.7],
        [0.7] * 30 + [0.9] * 10,  # a change that is within what a busy host does
        [2.0, 0.7, 0.7, 4.4],  # nothing after the long step
        [2.0, 0.7, 0.7, 4.4, 0.7, 0.7, 4.4, 0.7, 0.7, 4.4, 0.7],  # a checkpoint, say
        [2.0, 0.7, 1.6, 0.7, 1.5, 0.7, 0.7],
        [2.0, 0.7],
    ],
)
def test_steps_that_waver_are_no_fault(times):
    assert causes_of({"log": steps(times)}) == []


def test_ranks_of_one_host_have_no_link_between_nodes():
    found = judged({"log": steps([0.7, 0.7, 0.7, 3.1, 3.0, 3.2], hosts=("n0", "n0"))})
    assert (found.findings, str(found.verdict)) == ((), "cannot_tell")
    assert "since step 3 a step takes 3.1 s instead of 0.7 s" in found.reason


def test_all_ranks_that_compute_longer_are_no_slow_node():
    computes = [[0.2] * 4 + [0.9] * 4] * 2
    found = judged({"log": steps([0.7] * 4 + [1.5] * 4, computes=computes)})
    assert (found.findings, str(found.verdict)) == ((), "cannot_tell")


def test_stages_that_differ_from_the_first_step_on_are_no_slow_node():
    computes = [[0.2] * 8, [0.9] * 8]
    assert causes_of({"log": steps([1.0] * 8, computes=computes)}) == []


def test_what_ranks_compute_while_they_wait_longer_is_no_slow_node():
    computes = [[0.2] * 4 + [0.3] * 4, [0.2] * 8, [0.2] * 4 + [0.3] * 4, [0.2] * 8]
    log = steps([0.7] * 4 + [6.0] * 4, hosts=("n0", "n0", "n1", "n1"), computes=computes)
    assert causes_of({"log": log}) == ["slow_link"]


def test_one_rank_of_a_host_that_computes_longer_is_told_as_a_rank():
    computes = [[0.2] * 8, [0.2] * 4 + [0.8] * 4, [0.2] * 8, [0.2] * 8]
    log = steps([0.7] * 4 + [1.3] * 4, hosts=("n0", "n0", "n1", "n1"), computes=computes)
    found = judged({"log": log}).findings
    assert [(each.cause, each.confidence.value, each.where) for each in found] == [
        ("slow_node", "medium", ("n0", "rank 1"))
    ]


def test_a_change_far_into_a_long_log_is_seen():
    # of 3,000 steps the first and the last are kept
    assert causes_of({"log": steps([0.7] * 2800 + [2.0] * 200)}) == ["slow_link"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("[enforce fail at ../third_party/gloo/gloo/transport/tcp/device.cc:84] ifa != nullptr. Unable to find address for: ^lo", "NCCL's grammar"),
        ("[enforce fail at /pytorch/third_party/gloo/gloo/transport/tcp/device.cc:83] ifa != nullptr. Unable to find address for: 10.1.2.3", "is an address"),
        ("  what():  [enforce fail at /tmp/x/third_party/gloo/gloo/transport/tcp/device.cc:88] ifa != nullptr. Unable to find address for: eth0", "No interface eth0"),
        ("RuntimeError: [enforce fail at ../third_party/gloo/gloo/transport/tcp/device.cc:127] rp != nullptr. Unable to find address for: box-1.example", "resolves to no address"),
        ("[rank8]: RuntimeError: Gloo connectFullMesh failed with [../third_party/gloo/gloo/transport/tcp/pair.cc:152] timed out connecting: SO_ERROR: Connection refused, remote=[127.0.1.1]:17308", "127.0.1.1"),
    ],
)  # fmt: skip
def test_every_way_to_the_wrong_interface_is_told(line, words):
    found = judged({"log": f"{line}\n"}).findings
    assert [(each.cause, each.confidence.value) for each in found] == [("socket_ifname", "high")]
    assert words in found[0].explanation


@pytest.mark.parametrize(
    ("lines", "cause", "confidence"),
    [
        (
            (
                "W api.py:719] Received 1 death signal, shutting down workers\n"
                "W api.py:900] Sending process 85005 closing signal SIGHUP\n"
            ),
            "remote_exit",
            "high",
        ),
        ("W api.py:719] Received 15 death signal, shutting down workers\n", "remote_exit", "medium"),
        (
            (
                "WARNING:torch.distributed.elastic.rendezvous.dynamic_rendezvous:The node 'a_1_0' has failed to shutdown"
                " the rendezvous 'b' due to an error of type RendezvousConnectionError.\n"
            ),
            "bootstrap",
            "low",
        ),
        (
            (
                "RuntimeError: Gloo connectFullMesh failed with [../third_party/gloo/gloo/transport/tcp/pair.cc:144] no"
                " error\n"
            ),
            "socket_ifname",
            "low",
        ),
        (
            (
                "Gloo connectFullMesh failed with [gloo/transport/tcp/pair.cc:152] timed out connecting: SO_ERROR: No"
                " route to host, remote=[10.2.3.4]:30111\n"
            ),
            "firewall",
            "medium",
        ),
        (
            (
                "Gloo connectFullMesh failed with [gloo/transport/tcp/pair.cc:152]\n  timed out connecting: SO_ERROR:"
                " Connection refused, remote=[127.0.0.1]:12345\n  (rank=8, size=16, local=[127.0.0.1])\n"
            ),
            "socket_ifname",
            "low",
        ),
        ("RuntimeError: [gloo/transport/tcp/pair.cc:176] bind: Address already in use\n", "ports", "high"),
        (
            (
                "[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:769] connect [127.0.1.1]:25472: Connection"
                " refused\n"
            ),
            "socket_ifname",
            "high",
        ),
        (
            "[ERROR] [launch.py:321] ['python', 'train.py'] exits with return code = -9\n",
            "remote_exit",
            "medium",
        ),
        (
            "slurmstepd: error: *** JOB 37 ON n5 CANCELLED AT 2021-03-15T18:00:46 DUE TO PREEMPTION ***\n",
            "remote_exit",
            "medium",
        ),
        (
            "[enforce fail at ../gloo/transport/tcp/device.cc:208] ifa != nullptr. Unable to find interface for: x\n",
            "socket_ifname",
            "high",
        ),
        ("RuntimeError: DataLoader worker (pid 325) is killed by signal: Bus error.\n", "shm", "medium"),
        ("This might be caused by insufficient shared memory (shm).\n", "shm", "high"),
        ("api:failed (exitcode: -7) local_rank: 0 (pid: 3311) of binary: python\n", "shm", "medium"),
        ("process 0 terminated with signal SIGSEGV\n", "remote_exit", "medium"),
        (
            "(raylet) A worker died or was killed while executing a task by an error\n",
            "remote_exit",
            "medium",
        ),
        ("  exitcode  : -11 (pid: 6421)\n", "remote_exit", "medium"),
    ],
)
def test_lines_of_public_threads_are_told(lines, cause, confidence):
    found = judged({"log": lines}).findings
    assert [(each.cause, each.confidence.value) for each in found] == [(cause, confidence)]


@pytest.mark.parametrize(
    "lines",
    [
        "W api.py:753] Received 2 death signal, shutting down workers\n",
        "W api.py:753] Received 15 death signal, shutting down workers\n[rank1]: ValueError: 7 classes\n",
        "The node 'a' has failed to shutdown the rendezvous 'b'\nfailed (exitcode: 1) local_rank: 0 (pid: 7) of x\n",
        "[E ProcessGroupGloo.cpp:138] Gloo connectFullMesh failed with Connection reset by peer\n",
        "process 0 terminated with signal SIGTERM\n",
        "slurmstepd: error: *** JOB 37 ON n5 CANCELLED AT 2021-03-15T18:00:46 DUE TO TIME LIMIT ***\n",
        "[gloo/transport/tcp/pair.cc:799] connect [172.31.71.170]:13195: Connection refused\n",
        "[INFO] [launch.py:315:sigkill_handler] Killing subprocess 1080504\n",
        "  exitcode  : -6 (pid: 6421)\n",
        "  exitcode  : -15 (pid: 6421)  (SIGTERM)\n",
        (
            "[trainer22|6]:RuntimeError: [gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 1800000ms for recv"
            " operation to complete\n"
        ),
    ],
)
def test_lines_that_follow_from_something_else_are_no_cause(lines):
    assert causes_of({"log": lines}) == []


def test_a_warning_of_loopback_alone_is_no_fault():
    warned = "[W] Warning: Unable to resolve hostname to a (local) address. Using the loopback address as fallback.\n"
    assert causes_of({"log": warned + steps([0.7] * 6)}) == []


def test_a_rank_that_found_nobody_on_its_own_host_is_no_wrong_interface():
    line = (
        "RuntimeError: Gloo connectFullMesh failed with [../third_party/gloo/gloo/transport/tcp/pair.cc:152] timed"
        " out connecting: SO_ERROR: Connection refused, remote=[127.0.0.1]:17308\n"
    )
    assert causes_of({"log": line}) == []


def test_a_job_that_ran_until_it_was_told_to_end_is_well(job, doctor):
    found = doctor(job().healthy().raw("W api.py:719] Received 15 death signal, shutting down workers"))
    assert (str(found.verdict), found.findings) == ("healthy", ())
    assert found.reason.endswith("; its launcher was told to end (SIGTERM)")
