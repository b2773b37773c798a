"""How a job ended, from what torchrun 2.13 and its ranks print."""

import pytest

from linkwise.launch.run.ending import Outcome, ending_of

# As torchrun prints them: torch/distributed/elastic/multiprocessing/api.py and errors/__init__.py.
KILLED = "E0101 00:00:00.0 10 api.py:988] failed (exitcode: -9) local_rank: 1 (pid: 77) of binary: /usr/bin/python3"
TERMINATED = KILLED.replace("-9", "-15")
REPORT = ["  rank      : 3 (local_rank: 3)", "  exitcode  : -11 (pid: 80)"]


def failed(output, failures=()):
    return ending_of(exit_code=1, is_complete=False, failures=failures, output=output).reason


def test_a_rank_that_a_signal_ended_is_named_before_what_its_peers_say():
    peers = [{"rank": 0, "error": "RuntimeError: Connection closed by peer"}]
    assert "a rank (local rank 1 of its node) was killed by signal 9" in failed([KILLED], peers)
    assert "rank 3 was killed by signal 11 (SIGSEGV)" in failed(REPORT, peers)


def test_rank_of_another_node_is_named_by_its_report_and_host():
    # By torchrun 2.13 on the second of two nodes of two ranks, as srun labels it.
    report = [
        "  time      : x",
        "  host      : n1",
        "  rank      : 3 (local_rank: 1)",
        "  exitcode  : -9 (pid: 77)",
    ]
    labelled = [f"1: {line}" for line in (KILLED, *report)]
    assert failed(labelled).startswith("rank 3 was killed by signal 9 (SIGKILL) on n1")
    assert failed(labelled[:1]).startswith("a rank (local rank 1 of node 1) was killed by signal 9")


def test_node_that_slurm_gave_up_is_named_before_what_its_peers_say():
    # As srun 22.05 prints it.
    output = [
        "srun: error: Node failure on n1",
        TERMINATED,
        "srun: error: n0: task 0: Exited with exit code 1",
    ]
    assert failed(output).startswith("node n1 does not answer any more")


def test_ranks_that_torchrun_itself_ended_are_no_cause():
    own = [{"rank": 2, "error": "ValueError: no"}]
    assert failed([TERMINATED], own) == "rank 2: ValueError: no"


def test_only_echoes_are_better_than_nothing():
    assert (
        failed([], [{"rank": 0, "error": "Connection closed by peer"}]) == "rank 0: Connection closed by peer"
    )


def test_a_python_without_torch_is_told_what_to_install():
    assert "pip install 'linkwise[torch]'" in failed(["ModuleNotFoundError: No module named 'torch'"])


@pytest.mark.parametrize("exit_code", [0, 3])
def test_a_complete_job_is_done_only_with_exit_code_zero(exit_code):
    found = ending_of(exit_code=exit_code, is_complete=True, failures=(), output=())
    assert found.outcome is (Outcome.FAILED if exit_code else Outcome.DONE)
