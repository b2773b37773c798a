"""Lines of gloo and torchrun, of several releases, find their message; steps of ranks are read in bounded memory."""

import pytest

from linkwise.readers.job_log.messages import HOST_MESSAGES, matches
from linkwise.readers.job_log.reading import parse_job_log

# Texts as public threads and recordings show them: pytorch#75512, YOLOX#139, YOLOX#702, horovod#1341, FlagCX#117.
_LINES = [
    ("RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:575] Connection closed by peer [127.0.1.1]:39827", "gloo_closed", {"peer": "127.0.1.1"}),
    ("[rank2]: RuntimeError: [/__w/pytorch/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:553] Connection closed by peer [198.18.0.2]:33436. This is typically caused by a remote worker crashing.", "gloo_closed", {"peer": "198.18.0.2", "rank": "2"}),
    ("RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:589] Read error [192.168.70.92]:25266: Connection reset by peer", "gloo_closed", {"peer": "192.168.70.92", "text": "Connection reset by peer"}),
    ("RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:378] writev [10.0.0.9]:4421: Broken pipe", "gloo_closed", {"text": "Broken pipe"}),
    ("RuntimeError: [../third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 1800000ms for recv operation to complete", "gloo_timeout", {"timeout_ms": "1800000", "way": "recv"}),
    ("RuntimeError: [... gloo/transport/uv/unbound_buffer.cc:67] Timed out waiting 5000ms for send operation to complete", "gloo_timeout", {"way": "send"}),
    ("[E ProcessGroupGloo.cpp:138] Gloo connectFullMesh failed with [../third_party/gloo/gloo/transport/tcp/pair.cc:144] no error", "gloo_unconnected", {}),
    ("[rank8]: RuntimeError: Gloo connectFullMesh failed with [../third_party/gloo/gloo/transport/tcp/pair.cc:152] timed out connecting: SO_ERROR: Connection refused, remote=[127.0.0.1]:14215", "gloo_unconnected", {"peer": "127.0.0.1", "rank": "8"}),
    ("RuntimeError: [enforce fail at /pytorch/third_party/gloo/gloo/transport/tcp/device.cc:83] ifa != nullptr. Unable to find address for: ib0", "gloo_no_address", {"what": "ifa", "name": "ib0"}),
    ("RuntimeError: [enforce fail at ../third_party/gloo/gloo/transport/tcp/device.cc:127] rp != nullptr. Unable to find address for: dgx-1.ai", "gloo_no_address", {"what": "rp"}),
    ("[/src/third_party/gloo/gloo/transport/tcp/debug_logger.cc:9] ERROR failed to connect, willRetry=1, retry=1, retryLimit=3, rank=2, size=4, local=[127.0.0.1]:55993, remote=[127.0.0.1]:8096$2, error=SO_ERROR: Connection refused", "gloo_refused", {"rank": "2", "world": "4", "peer": "127.0.0.1"}),
    ("export GLOO_SOCKET_IFNAME=bond0", "gloo_interface", {"name": "bond0"}),
    ("E1201 05:45:09.477000 11087 torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: -9) local_rank: 1 (pid: 11159) of binary: /usr/bin/python3", "agent_exit", {"code": "-9", "pid": "11159"}),
    ("WARNING:torch.distributed.elastic.multiprocessing.api:Sending process 1234 closing signal SIGTERM", "agent_closing", {"pid": "1234"}),
    ("WARNING:torch.distributed.elastic.multiprocessing.api:Unable to shutdown process 1234 via Signals.SIGTERM, forcefully exiting via Signals.SIGKILL", "agent_forced", {"pid": "1234"}),
    ("WARNING:torch.distributed.elastic.agent.server.api:Received Signals.SIGINT death signal, shutting down workers", "agent_told", {"signal": "SIGINT"}),
    ("W1201 05:49:45.724000 17234 torch/distributed/elastic/agent/server/api.py:753] Received 15 death signal, shutting down workers", "agent_told", {"signal": "15"}),
    ("  exitcode  : -9 (pid: 11160)  (SIGKILL)", "summary_exit", {"code": "-9", "pid": "11160"}),
    ("  rank      : 3 (local_rank: 1)", "summary_rank", {"rank": "3"}),
    ("  host      : n1", "summary_host", {"host": "n1"}),
    ("[rank2]: ValueError: labels have 7 classes", "own_error", {"rank": "2", "name": "ValueError"}),
    ("torch.cuda.OutOfMemoryError: CUDA out of memory.", "own_error", {"name": "torch.cuda.OutOfMemoryError"}),
]  # fmt: skip

_OTHERS = [
    ("Connection closed by peer while reading the header", "gloo_closed"),
    ("n0:1:2 [0] NCCL WARN socket: Connection closed by peer [10.0.0.1]", "gloo_closed"),
    ("Timed out waiting for pending UserRRefs to be confirmed by owner", "gloo_timeout"),
    ("2026-12-01 ERROR main: caught Error: the server said no", "own_error"),
    ("Unable to find address for the invoice", "gloo_no_address"),
]


@pytest.mark.parametrize(("line", "name", "fields"), _LINES)
def test_a_line_is_its_message(line, name, fields):
    found = {message.name: told for message, told in matches(line, HOST_MESSAGES)}
    assert name in found
    assert fields.items() <= found[name].items()


@pytest.mark.parametrize(("line", "name"), _OTHERS)
def test_a_line_that_looks_alike_is_not(line, name):
    assert name not in {message.name for message, _ in matches(line, HOST_MESSAGES)}


STEP = "2026-12-01 05:54:18,137 [rank{rank}] n0: step {step} loss 0.0592 time {time} s compute 0.061 s wait 0.522 s\n"


def test_steps_of_ranks_are_told_apart_with_their_host_and_line():
    text = "".join(STEP.format(rank=rank, step=step, time="0.583") for step in range(3) for rank in (1, 0))
    ranks = parse_job_log([("log", text.encode())]).rank_steps
    assert [(each.rank, each.host, each.count) for each in ranks] == [(0, "n0", 3), (1, "n0", 3)]
    first = ranks[0].steps[0]
    assert (first.number, first.time_s, first.compute_s, first.wait_s) == (0, 0.583, 0.061, 0.522)
    assert first.evidence.line == 2


def test_of_many_steps_the_first_the_last_and_the_longest_are_kept():
    text = "".join(
        STEP.format(rank=0, step=step, time="9.5" if step == 777 else "0.583") for step in range(5000)
    )
    rank = parse_job_log([("log", text.encode())]).rank_steps[0]
    kept = [each.number for each in rank.steps]
    assert rank.count == 5000
    assert len(kept) < 700
    assert {0, 777, 4999} <= set(kept)


@pytest.mark.parametrize(
    "line",
    [
        "step 3 loss 5.1 time 0.7 s compute 0.2 s wait 0.5 s\n",  # of no rank
        "[rank1]: n0: step 3 loss 5.1 time 0.7 s compute none s wait 0.5 s\n",
        "[rank1]: n0: epoch 3 took 0.7 s compute 0.2 s wait 0.5 s\n",
    ],
)
def test_lines_that_are_no_step_of_a_rank_are_left(line):
    assert parse_job_log([("log", line.encode())]).rank_steps == ()
