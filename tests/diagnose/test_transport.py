"""What is in use, where the log shows it and where it does not."""

import pytest


def _values(doctor, log):
    used = doctor(log).transport
    return {name: getattr(used, name).value for name in used.__slots__}


def test_transport_of_a_job_over_infiniband(job, doctor):
    assert _values(doctor, job(nics=8).healthy()) == {
        "nccl_version": "2.21.5", "cuda_version": "12.4", "ranks": 4, "nodes": 2, "intra_node": "P2P/CUMEM",
        "inter_node": "NET/IB", "nics_per_node": 8, "nic_link": "IB", "nic_gbit_per_s": None, "algorithms": None,
        "gpudirect_rdma": True, "nvls": None, "bootstrap_interface": "eth0",
    }  # fmt: skip


def test_every_value_has_the_line_that_proves_it(job, doctor):
    used = doctor(job().healthy()).transport
    for name in used.__slots__:
        each = getattr(used, name)
        assert (each.value is None) != (each.evidence is not None), name
        assert each.value is not None or each.hint, name


def test_a_log_without_channels_says_what_to_set(job, doctor):
    used = doctor(job(version=(2, 18, 5)).start().choose().init().init("COMPLETE")).transport
    assert (used.intra_node.value, "NCCL_DEBUG_SUBSYS=" in used.intra_node.hint) == (None, True)


def test_channels_of_new_releases_come_with_the_first_collective(job, doctor):
    used = doctor(job(version=(2, 22, 3)).start().choose().init().init("COMPLETE")).transport
    assert "first" in used.intra_node.hint


def test_gpudirect_is_in_use_only_where_all_channels_have_it(job, doctor):
    log = job().healthy().say(1, "Channel 05/0 : 1[1] -> 2[0] [send] via NET/IB/1")
    assert doctor(log).transport.gpudirect_rdma.value is False


def test_a_list_without_devices_counts_none(job, doctor):
    log = (
        job(hosts=1)
        .start()
        .say(0, "NET/IB : No device found.")
        .say(0, "NET/IB : Using [RO]; OOB eth0:10.0.0.1<0>")
    )
    log.say(0, "NET/Socket : Using [0]eth0:10.0.0.1<0>").say(0, "Using network Socket")
    assert doctor(log.init()).transport.nics_per_node.value == 1


def test_merged_devices_count_once(job, doctor):
    log = job().start()
    devices = "[0]={[0] mlx5_2:1/RoCE, [1] mlx5_3:1/RoCE} [1]={[0] mlx5_4:1/RoCE, [1] mlx5_5:1/RoCE}"
    log.say(0, f"NET/IB : Using {devices} [RO]; OOB eth0:10.0.0.1<0>").say(0, "Using network IB")
    assert doctor(log.init()).transport.nics_per_node.value == 2


def test_nvlink_between_trays_is_told_from_that_inside_them(job, doctor):
    log = job().start().init()
    for rank in range(4):
        log.say(rank, f"Channel 00/0 : {rank}[0] -> {(rank + 1) % 4}[0] via P2P/MNNVL")
    used = doctor(log).transport
    assert (used.intra_node.value, used.inter_node.value) == ("P2P/MNNVL", "P2P/MNNVL")


def test_rate_and_algorithm_are_those_that_are_shown(job, doctor):
    log = (
        job(link="RoCE")
        .healthy()
        .say(0, "+ NET[50.0] - NET/0 (0/0/50.000000)")
        .say(0, "+ NET[25.0] - NET/1 (0/0/25.0)")
    )
    log.say(0, "AllReduce: 1024 Bytes -> Algo 0 proto 0 time 9").say(
        0, "AllReduce: 1073741824 Bytes -> Algo 1 proto 2 time 9"
    )
    used = doctor(log).transport
    assert (used.nic_link.value, used.nic_gbit_per_s.value, used.algorithms.value) == (
        "RoCE",
        200,
        "AllReduce Ring/Simple",
    )


@pytest.mark.parametrize(("line", "value"), [
    ("16 coll channels, 0 collnet channels, 16 nvls channels, 16 p2p channels, 2 p2p channels per peer", True),
    ("16 coll channels, 0 collnet channels, 0 nvls channels, 16 p2p channels, 2 p2p channels per peer", False),
    ("NVLS multicast support is available on dev 0 (NVLS_NCHANNELS 16)", True),
    ("NVLS multicast support is not available on dev 0", False),
])  # fmt: skip
def test_nvls(job, doctor, line, value):
    assert doctor(job(hosts=1).healthy().say(0, line)).transport.nvls.value is value


def test_rings_of_old_releases_are_read(doctor):
    log = "a:1:2 [0] NCCL INFO Ring 00 : 0 -> 1 [send] via NET/IB/0/GDRDMA\nb:1:2 [0] NCCL INFO Ring 01 : 1[3] -> 2[0] via direct shared memory\n"
    used = doctor(log).transport
    assert (used.inter_node.value, used.intra_node.value) == ("NET/IB", "SHM")


def test_the_largest_communicator_tells_ranks_and_nodes(job, doctor):
    log = job(hosts=4).healthy()
    log.say(
        0,
        "ncclCommSplit comm 0x99 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 1b000 parent 0x10 color 1 key 0 commId 0x9 - Init START",
    )
    log.say(0, "comm 0x99 rank 0 nRanks 2 nNodes 1 localRanks 2 localRank 0 MNNVL 0")
    used = doctor(log).transport
    assert (used.ranks.value, used.nodes.value) == (8, 4)


def test_link_layer_is_open_where_no_line_tells_of_a_network(job, doctor):
    used = doctor(job().start()).transport.nic_link
    assert (used.value, "NCCL_DEBUG_SUBSYS" in used.hint) == (None, True)


def test_link_layer_is_none_over_sockets(job, doctor):
    used = doctor(job(network="Socket").healthy()).transport.nic_link
    assert (used.value, "no RDMA device" in used.hint) == (None, True)
