"""Which network is used: sockets by design and by fault, EFA."""

import pytest


def test_healthy_job_over_infiniband_has_no_finding(job, causes):
    assert causes(job().healthy()) == []


def test_sockets_by_design_have_no_finding(job, causes):
    assert causes(job(network="Socket").healthy()) == []


def test_sockets_on_one_node_have_no_finding_when_infiniband_is_off(job, causes):
    assert causes(job(hosts=1, network="Socket").healthy(settings=[("NCCL_IB_DISABLE", "1")])) == []


def test_socket_fallback_when_infiniband_is_switched_off(job, causes):
    found = causes(job(network="Socket").healthy(settings=[("NCCL_IB_DISABLE", "1")]))
    assert found == [("socket_fallback", "slow", "high")]


def test_no_fallback_when_infiniband_is_switched_on_by_a_zero(job, causes):
    assert causes(job(network="Socket").healthy(settings=[("NCCL_IB_DISABLE", "0")])) == []


def test_socket_fallback_when_the_filter_matches_nothing(job, doctor):
    (found,) = doctor(job(network="Socket").healthy(settings=[("NCCL_IB_HCA", "mlx5_9")])).findings
    assert (found.cause, "mlx5_9" in found.explanation) == ("socket_fallback", True)


def test_socket_fallback_when_a_device_cannot_be_opened(job, causes):
    log = job(network="Socket", version=(2, 27, 3)).start().fault(0, "Call to ibv_open_device failed")
    log.fault(0, "NET/IB : Unable to open device mlx5_0").choose().init().connect().init("COMPLETE")
    assert causes(log)[0] == ("socket_fallback", "slow", "high")


def test_socket_fallback_when_the_kernel_has_no_rdma_stack(job, causes):
    log = (
        job(network="Socket")
        .healthy()
        .raw("$ ibv_devinfo", "Failed to get IB devices list: Function not implemented")
    )
    assert causes(log) == [("socket_fallback", "slow", "high")]


def test_socket_fallback_when_one_host_has_no_devices(job, doctor):
    log = job(network="Socket").start()
    for rank in (0, 1):
        log.say(rank, "NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.1<0>").say(
            rank, "Using network IB"
        )
    for rank in (2, 3):
        log.say(rank, "NET/IB : No device found.").say(rank, "Using network Socket")
    log.init().connect().init("COMPLETE")
    (found,) = doctor(log).findings
    assert (found.cause, found.where[0]) == ("socket_fallback", "n01")


def test_external_plugin_without_infiniband_devices_is_healthy(job, causes):
    log = job(network="AWS Libfabric").start()
    for rank in range(4):
        log.say(rank, "NET/OFI Selected provider is efa, fabric is efa-direct (found 16 nics)")
        log.say(rank, "NET/IB : No device found.")
    log.gdr = True
    log.choose().init()
    for rank, peer in ((1, 2), (3, 0)):
        log.say(rank, f"Channel 00/0 : {rank}[1] -> {peer}[0] [send] via NET/AWS Libfabric/0/GDRDMA")
    assert causes(log.init("COMPLETE")) == []


def test_efa_when_libfabric_has_no_provider(job, causes):
    log = job(network="Socket").start().fault(0, "NET/OFI Could not find any optimal provider", source="x.c")
    log.fault(0, "Failed to open libibverbs.so[.1]", source="misc/ibvwrap.cc")
    assert causes(log.choose().init().connect().init("COMPLETE"))[0] == ("efa", "slow", "high")


def test_efa_when_libfabric_gives_another_provider(job, causes):
    text = "NET/OFI Selected Provider is {} (found 1 nics)"
    log = job(network="AWS Libfabric").start()
    log.say(0, text.format("tcp;ofi_rxm"))
    assert causes(log)[0] == ("efa", "slow", "high")
    assert causes(job(network="AWS Libfabric").start().say(0, text.format("efa"))) == []


def _eight_gpu_hosts(job, *, hosts=2, network="Socket", multicast=True):
    log = job(hosts=hosts, per_host=8, network=network).start().choose()
    for rank in range(log.ranks):
        absent = "" if multicast else "not "
        log.say(rank, f"NVLS multicast support is {absent}available on dev {rank % 8}")
    return log.init().connect().init("COMPLETE")


def test_socket_fallback_on_hosts_of_a_class_that_has_rdma(job, doctor):
    found = doctor(_eight_gpu_hosts(job))
    (first,) = found.findings
    assert (first.cause, first.severity, first.confidence) == ("socket_fallback", "slow", "medium")
    assert "where there are none" in first.explanation


def test_no_fallback_of_eight_gpus_without_nvlink_or_on_one_host_or_over_rdma(job, causes):
    assert causes(_eight_gpu_hosts(job, multicast=False)) == []
    assert causes(_eight_gpu_hosts(job, hosts=1)) == []
    assert causes(_eight_gpu_hosts(job, network="IB")) == []


def test_efa_when_a_request_fails(job, causes):
    log = job(network="AWS Libfabric").start().choose()
    text = "NET/OFI Request 0x7f completed with error. RC: 113. Error: 4126 (Unresponsive receiver). Completed length: 0"
    assert causes(log.fault(1, text, source="nccl_ofi_rdma"))[0] == ("efa", "broken", "high")


def test_efa_without_gpudirect_is_slow_on_a_platform_that_has_it(job, causes):
    log = job(network="AWS Libfabric").start()
    for rank in range(4):
        file = "/opt/aws-ofi-nccl/xml/p4d-24xl-topo.xml"
        log.say(
            rank,
            f"NET/OFI Running on p4d.24xlarge platform, Setting NCCL_TOPO_FILE environment variable to {file}",
        )
    assert causes(log.choose().init().connect().init("COMPLETE")) == [("efa", "slow", "medium")]


def test_efa_without_gpudirect_is_healthy_on_a_platform_without(job, causes):
    log = job(network="AWS Libfabric").start()
    for rank in range(4):
        log.say(
            rank,
            "NET/OFI Running on g5.48xlarge platform, Setting NCCL_TOPO_FILE environment variable to /x.xml",
        )
    assert causes(log.choose().init().connect().init("COMPLETE")) == []


def test_socket_fallback_when_sockets_go_over_an_infiniband_interface(job, causes):
    log = job(network="Socket", version=(2, 18, 5))
    for rank in range(4):
        log.say(rank, "NET/IB : No device found.").say(
            rank, f"NET/Socket : Using [0]ibp12s0:10.9.0.{rank // 2 + 1}<0>"
        )
        log.say(rank, "Using network Socket")
    assert causes(log.init().connect().init("COMPLETE")) == [("socket_fallback", "slow", "medium")]


def test_one_node_over_an_infiniband_interface_is_no_fallback(job, causes):
    log = job(hosts=1, network="Socket").say(0, "NET/IB : No device found.")
    log.say(0, "NET/Socket : Using [0]ib0:10.9.0.1<0>").say(0, "Using network Socket")
    assert causes(log.init().connect().init("COMPLETE")) == []


def test_efa_when_its_plugin_warns_of_anything(job, causes):
    log = job(network="Socket").start()
    log.fault(0, "NET/OFI Could not make a completion queue. RC: -12", source="nccl_ofi_rdma")
    assert causes(log.choose().init().connect().init("COMPLETE")) == [("efa", "slow", "medium")]


def test_efa_plugin_that_finds_no_device_on_one_node_is_harmless(job, causes):
    log = job(hosts=1, network="Socket").start()
    log.fault(0, "NET/OFI Only EFA provider is supported", source="ofi_init")
    assert causes(log.choose().init().connect().init("COMPLETE")) == []


def test_notes_of_the_efa_plugin_are_no_fault(job, causes):
    log = job(network="AWS Libfabric").start().say(0, "NET/OFI Setting FI_OPT_EFA_SENDRECV not supported.")
    assert causes(log.say(0, "NET/OFI Selected Provider is efa (found 4 nics)")) == []


@pytest.mark.parametrize("text", [
    "Could not find ncclGetVersion symbol",
    "pciPath: Could not find real path of /sys/class/pci_bus/0000:10/device",
    "Error opening file: /sys/devices/virtual/dmi/id/product_name",
])  # fmt: skip
def test_what_the_efa_plugin_goes_on_without_is_harmless(job, doctor, text):
    log = job(network="AWS Libfabric").start().fault(0, f"NET/OFI {text}", source="nccl_net_ofi_init")
    found = doctor(log.choose().init().connect().init("COMPLETE"))
    assert (found.verdict, {each.severity for each in found.findings}) == ("healthy", {"harmless"})


@pytest.mark.parametrize("text", [
    "nccl_net_ofi_rdma_init:7978 NCCL WARN NET/OFI Initializing plugin failed",
    "Unable to find a protocol that worked.  Failing initialization.",
    "Operation with NULL context completed with error",
])  # fmt: skip
def test_what_stops_the_efa_plugin_is_a_fault(job, doctor, text):
    log = job(network="Socket").start().fault(0, f"NET/OFI {text}", source="nccl_net_ofi_create_plugin")
    assert doctor(log.choose().init().connect().init("COMPLETE")).findings[0].severity == "slow"


@pytest.mark.parametrize(
    ("device", "found"), [("rdmap79s0", ["efa"]), ("rocep79s0", []), ("ibp79s0", []), ("x-rdmap79s0", [])]
)
def test_efa_when_the_names_of_devices_are_those_of_efa(job, causes, device, found):
    log = job(network="Socket").healthy().raw("$ ls /sys/class/infiniband", device)
    assert [each[0] for each in causes(log)] == found


def test_efa_devices_of_a_job_that_does_not_use_sockets_are_no_fault(job, causes):
    assert causes(job().healthy().raw("$ ls /sys/class/infiniband", "rdmap79s0")) == []
