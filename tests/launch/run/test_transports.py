"""Transports in the log of NCCL; formats as src/transport/p2p.cc, shm.cc and net.cc print them."""

import json

from linkwise.launch.run.transports import transports_of
from tests.launch.run.playing import play

P2P = "h1:11:21 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read"
OLD_P2P = "h1:11:21 [0] NCCL INFO Channel 00 : 0[b000] -> 1[b010] via P2P/IPC"
SHM = "h1:11:21 [0] NCCL INFO Channel 01 : 1[1] -> 0[0] via SHM/direct/direct"
OLD_SHM = "h1:11:21 [0] NCCL INFO Channel 01 : 1[b010] -> 0[b000] via direct shared memory"
NET = "h1:11:21 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] [send] via NET/IB/0/GDRDMA"
OTHER = "h1:11:21 [0] NCCL INFO Connected all rings, use ring PXN 0 GDR 1"


def test_channels_are_counted_by_transport():
    assert transports_of([P2P, P2P, OLD_P2P, SHM, NET, OTHER]) == {
        "NET/IB": 1,
        "P2P/CUMEM": 2,
        "P2P/IPC": 1,
        "SHM/direct": 1,
    }


def test_older_releases_name_shared_memory_in_words():
    assert transports_of([OLD_SHM]) == {"SHM": 1}


def test_a_record_holds_what_the_log_of_nccl_showed(tmp_path):
    play(f"ready(0, 1); print({NET!r}); print('other'); say('done')", tmp_path)
    assert json.loads((tmp_path / "record.json").read_text())["transports"] == ["NET/IB"]
