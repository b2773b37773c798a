"""Paths that are forced, and their proof from NCCL's log."""

import pytest

from linkwise.bench.isolation import ISOLATIONS, checked_isolation, prove
from linkwise.errors import InputError

# Lines as NCCL 2.18 to 2.27 prints them at INFO; the formats are those of src/transport/p2p.cc, shm.cc and net.cc.
P2P = "h1:11:21 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read"
OLD_P2P = "h1:11:21 [0] NCCL INFO Channel 00 : 0[b000] -> 1[b010] via P2P/IPC"
SHM = "h1:11:21 [0] NCCL INFO Channel 01 : 1[1] -> 0[0] via SHM/direct/direct"
NET = "h1:11:21 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] [send] via NET/IB/0/GDRDMA"
OTHER = "h1:11:21 [0] NCCL INFO Connected all rings, use ring PXN 0 GDR 1"


@pytest.mark.parametrize(
    ("path", "log", "is_shown"),
    [
        ("network", [NET, NET, OTHER], True),
        ("network", [NET, SHM], False),
        ("network", [P2P], False),
        ("nvlink", [P2P, OLD_P2P], True),
        ("nvlink", [P2P, NET], False),
        ("pcie", [SHM], True),
        ("pcie", [P2P], False),
        ("pcie", [OTHER], None),
        ("network", [], None),
    ],
)
def test_a_path_is_shown_only_where_every_channel_took_it(path, log, is_shown):
    found = prove(ISOLATIONS[path], log)
    assert found.is_shown is is_shown
    assert path in found.text


@pytest.mark.parametrize(
    ("device", "ranks", "environ", "message"),
    [
        ("cpu", 2, {}, "gloo, which has TCP alone"),
        ("cuda", 1, {}, "one rank sends nothing"),
        (
            "cuda",
            2,
            {"NCCL_DEBUG_FILE": "/tmp/log"},
            "the log, would go to NCCL_DEBUG_FILE=/tmp/log; unset it",
        ),
        ("cuda", 2, {"NCCL_P2P_DISABLE": "0"}, "the environment has NCCL_P2P_DISABLE=0; unset it"),
    ],
)
def test_what_cannot_be_isolated_is_refused_with_its_reason(device, ranks, environ, message):
    with pytest.raises(InputError, match=message):
        checked_isolation("network", device=device, ranks=ranks, environ=environ)


def test_settings_that_agree_with_the_environment_are_taken():
    environ = {"NCCL_P2P_DISABLE": "1", "NCCL_DEBUG": "WARN"}
    found = checked_isolation("network", device="cuda", ranks=2, environ=environ)
    assert (found.settings["NCCL_SHM_DISABLE"], found.settings["NCCL_DEBUG"]) == ("1", "INFO")
