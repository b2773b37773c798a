"""What makes a run valid: every thing that was planned is seen, and nothing beside."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkwise.diagnose.doctor import diagnose
from linkwise.launch.run.proof import Expected, SeenRank, is_valid, prove, seen_rank
from linkwise.readers.job_log.reading import parse_job_log

SETTINGS = {"NCCL_IB_HCA": "mlx5", "CUDA_VISIBLE_DEVICES": ""}
EXPECTED = Expected(
    nodes=2,
    ranks_per_node=2,
    hosts=("n0", "n1"),
    device="cpu",
    settings=SETTINGS,
    protocol="",
    has_nvlink=True,
)
RANKS = tuple(SeenRank(rank=rank, ranks=4, host=f"n{rank // 2}", settings=SETTINGS) for rank in range(4))


def bad(ranks, expected=EXPECTED, **more):
    """Return the names of the checks that are not as planned."""
    return [each.what for each in prove(expected, ranks, transport=None, **more) if not each.is_as_planned]


def test_run_is_valid_when_all_is_as_planned():
    assert is_valid(prove(EXPECTED, RANKS, transport=None))


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"ranks": 5}, ["world size"]),
        ({"rank": 1}, ["world size", "hosts"]),
        ({"host": "n0"}, ["hosts"]),
        ({"host": "n9"}, ["hosts"]),
        ({"settings": {**SETTINGS, "NCCL_IB_HCA": "mlx4"}}, ["environment"]),
        ({"settings": {**SETTINGS, "NCCL_IB_DISABLE": "1"}}, ["environment"]),
        ({"settings": {"CUDA_VISIBLE_DEVICES": ""}}, ["environment"]),
        ({"settings": {**SETTINGS, "CUDA_VISIBLE_DEVICES": "0"}}, ["environment", "transport"]),
    ],
)
def test_run_is_invalid_when_one_rank_is_not_as_planned(change, what):
    assert bad((*RANKS[:3], replace(RANKS[3], **change))) == what


def test_variable_that_only_the_log_shows_is_found():
    assert bad(RANKS, logged=[("NCCL_IB_HCA", "mlx5"), ("NCCL_NET", "Socket")]) == ["environment"]


def test_nothing_seen_proves_nothing():
    checks = prove(EXPECTED, (), transport=None)
    assert {each.is_as_planned for each in checks} == {None}
    assert not is_valid(checks)
    assert not is_valid(())


def log_of(across):
    lines = [
        f"n{rank // 2}:{100 + rank}:{100 + rank} [{rank % 2}] NCCL INFO comm 0x1 rank {rank} nRanks 4 nNodes 2 "
        f"localRanks 2 localRank {rank % 2} MNNVL 0"
        for rank in range(4)
    ]
    lines += [
        "n0:100:100 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM",
        f"n0:101:101 [1] NCCL INFO Channel 00/0 : 1[1] -> 2[0] [send] via {across}",
        f"n1:102:102 [0] NCCL INFO Channel 00/0 : 1[1] -> 2[0] [receive] via {across}",
    ]
    return diagnose(parse_job_log([("log", ("\n".join(lines) + "\n").encode())])).transport


@pytest.mark.parametrize(
    ("across", "what"),
    [
        ("NET/IB/0/GDRDMA", []),
        ("NET/IB/0", ["GPUDirect RDMA"]),
        ("NET/Socket/0", ["between nodes", "GPUDirect RDMA"]),
    ],
)
def test_fallback_makes_a_run_of_gpus_invalid(across, what):
    expected = replace(EXPECTED, device="cuda", protocol="infiniband")
    checks = prove(expected, RANKS, transport=log_of(across))
    assert [each.what for each in checks if each.is_as_planned is False] == what


def test_single_gpu_is_proved_by_the_log_of_its_one_rank():
    # NCCL prints these of a communicator of one rank: there is no channel, and no transport to be wrong.
    lines = [
        "n0:100:100 [0] NCCL INFO NCCL version 2.28.9+cuda13.0",
        "n0:100:100 [0] NCCL INFO comm 0x1 rank 0 nRanks 1 nNodes 1 localRanks 1 localRank 0 MNNVL 0",
        "n0:100:100 [0] NCCL INFO comm 0x1 rank 0 nranks 1 cudaDev 0 busId 18000 commId 0x2 - Init COMPLETE",
    ]
    transport = diagnose(parse_job_log([("log", ("\n".join(lines) + "\n").encode())])).transport
    settings = {"NCCL_DEBUG": "INFO"}
    expected = replace(EXPECTED, nodes=1, ranks_per_node=1, hosts=("n0",), device="cuda", settings=settings)
    rank = SeenRank(rank=0, ranks=1, host="n0", settings=settings)
    checks = prove(expected, [rank], transport=transport)
    assert {each.what: each.seen for each in checks}["ranks of NCCL"] == "1"
    assert is_valid(checks)
    assert not is_valid(prove(expected, [rank], transport=None))  # NCCL was never initialised


WORDS = st.none() | st.integers() | st.text(max_size=9) | st.lists(st.integers(), max_size=2)


@given(st.dictionaries(st.sampled_from(["rank", "ranks", "host", "settings"]), WORDS) | WORDS)
def test_damaged_word_of_an_agent_is_a_rank_or_none(told):
    found = seen_rank(told)
    assert found is None or isinstance(found.rank, int)
