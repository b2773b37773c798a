"""Causes of the RDMA family: each fires on its lines, and near misses do not."""

import pytest

_TIMED_OUT = (
    "Call to ibv_modify_qp failed with 110 Connection timed out, on dev mlx5_0:1, curr state INIT, next state RTR,"
    " local GID index 3, local GID ::ffff:10.0.{}.11, remote GID ::ffff:10.0.{}.12"
)
_VERBS = "misc/ibvwrap.cc"
_IB = "transport/net_ib.cc"


def test_gdr_off_when_the_nic_says_so(job, causes):
    log = job(gdr=False).start()
    for rank in range(4):
        log.say(rank, "NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'")
    assert causes(log.choose().init().connect().init("COMPLETE")) == [("gdr_off", "slow", "high")]


def test_gdr_off_names_the_host_that_lacks_it(job, doctor):
    log = job(gdr=False).start()
    for rank in (2, 3):
        log.say(rank, "NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'")
    (found,) = doctor(log.choose().init().connect().init("COMPLETE")).findings
    assert found.where == ("n01",)


def test_gdr_off_knows_the_renamed_module_of_old_releases(job, doctor):
    log = (
        job(gdr=False, version=(2, 22, 3)).raw("$ lsmod | grep peermem", "nvidia_peermem 16384 0", "").start()
    )
    log.say(0, "NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'")
    (found,) = doctor(log.choose().init().connect().init("COMPLETE")).findings
    assert "2.23" in found.fix[0]


def test_missing_gdr_is_no_fault_where_the_distance_denies_it(job, causes):
    log = job(gdr=False).start()
    for rank in range(4):
        log.say(rank, "NET/IB : GPU Direct RDMA Enabled for HCA 0 'mlx5_0'")
        log.say(rank, "GPU Direct RDMA Disabled for GPU 0 / HCA 0 (distance 8 > 5)")
    assert causes(log.choose().init().connect().init("COMPLETE")) == []


def test_missing_gdr_is_no_fault_on_geforce(job, causes):
    log = job(gdr=False).start()
    log.say(
        0,
        "P2P is disabled between connected GPUs 0 and 1. You can repress this message with NCCL_IGNORE_DISABLED_P2P=1.",
    )
    assert causes(log.choose().init().connect(inside="SHM/direct/direct").init("COMPLETE")) == []


@pytest.mark.parametrize("text", [
    "NET/IB : Got completion from peer 10.0.0.2<5> with error 4, opcode 0, len 0, vendor err 81 (Send)",
    "NET/IB: Got completion from peer 10.0.0.2<5> with status=4 opcode=0 len=0 vendor err 81 (Send)",
    ("NET/IB: Got completion from peer 10.0.0.2<5> with status=IBV_WC_LOC_PROT_ERR(4) opcode=IBV_WC_SEND(0)"
    " reqSize=1 vendor_err=81 req_type=Send"),
])  # fmt: skip
def test_acs_when_protection_fails_under_gdr(job, causes, text):
    assert causes(job().healthy().fault(1, text, source=_IB))[0] == ("acs_iommu", "broken", "high")


def test_protection_error_without_gdr_is_no_acs(job, causes):
    text = "NET/IB : Got completion from peer 10.0.0.2<5> with error 4, opcode 0, len 0, vendor err 81 (Send)"
    assert causes(job(gdr=False).healthy().fault(1, text, source=_IB))[0][0] == "ib_error"


@pytest.mark.parametrize(
    "flags", ["SrcValid+ TransBlk- ReqRedir+ CmpltRedir+", "SrcValid- TransBlk- ReqRedir+"]
)
def test_acs_when_the_host_shows_it(job, causes, flags):
    log = job(hosts=1).healthy().raw("$ lspci -vvv", f"\t\tACSCtl:\t{flags} UpstreamFwd+")
    assert causes(log) == [("acs_iommu", "broken", "high")]


def test_no_acs_when_the_host_has_it_off(job, causes):
    log = job(hosts=1).healthy().raw("$ lspci -vvv", "\t\tACSCtl:\tSrcValid- TransBlk- ReqRedir- CmpltRedir-")
    assert causes(log) == []


def test_no_acs_when_the_iommu_passes_through(job, causes):
    log = (
        job(hosts=1)
        .healthy()
        .raw("$ cat /proc/cmdline", "BOOT_IMAGE=/vmlinuz ro intel_iommu=on iommu=pt quiet")
    )
    assert causes(log) == []


def test_dmabuf_when_its_registration_fails(job, causes):
    log = job(version=(2, 13, 4)).healthy()
    log.fault(0, "Call to ibv_reg_dmabuf_mr failed with error Operation not supported", source=_VERBS)
    assert causes(log)[0] == ("dmabuf", "broken", "high")


def test_dmabuf_line_alone_is_healthy(job, causes):
    assert causes(job().say(0, "DMA-BUF is available on GPU device 0").healthy()) == []


@pytest.mark.parametrize(("extra", "want"), [
    ((), ("memlock", "broken", "medium")),
    (("$ ulimit -l", "64"), ("memlock", "broken", "high")),
    (("max locked memory           (kbytes, -l) 8192",), ("memlock", "broken", "high")),
    (("$ ulimit -l", "unlimited"), ("ib_error", "broken", "high")),
])  # fmt: skip
def test_registration_without_memory_is_weighed_by_the_limit(job, causes, extra, want):
    log = job().start().choose().init()
    log.fault(0, "Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory", source=_VERBS).raw(
        *extra
    )
    assert causes(log)[0] == want


def test_roce_gid_when_connecting_within_a_subnet_times_out(job, causes):
    log = job(link="RoCE").start(settings=[("NCCL_IB_GID_INDEX", "0")]).choose().init()
    assert causes(log.fault(1, _TIMED_OUT.format(0, 0), source=_VERBS))[0] == ("roce_gid", "broken", "high")


def test_rails_when_connecting_across_subnets_times_out(job, causes):
    log = job(link="RoCE").start().choose().init().fault(1, _TIMED_OUT.format(3, 1), source=_VERBS)
    assert causes(log)[0] == ("rails", "broken", "high")


def test_roce_gid_when_there_is_no_route(job, causes):
    text = "Call to ibv_modify_qp failed with error Network is unreachable"
    assert causes(job(link="RoCE").start().choose().init().fault(1, text, source=_VERBS))[0][0] == "roce_gid"


def test_timeout_of_infiniband_is_no_roce_gid(job, causes):
    text = "Call to ibv_modify_qp failed with error Connection timed out"
    assert causes(job().start().choose().init().fault(1, text, source=_VERBS))[0][0] == "ib_error"


def test_retries_exceeded_after_timed_steps_are_no_roce_gid(job, causes):
    log = job(link="RoCE").healthy().raw("iteration 7 | elapsed time per iteration (ms): 812.5 |")
    log.fault(
        1,
        "NET/IB: Got completion from peer 10.0.0.2<5> with status=12 opcode=0 len=0 vendor err 129 (Recv)",
        source=_IB,
    )
    assert causes(log)[0][0] == "ib_error"


def test_link_flap_when_a_port_reports_an_error(job, doctor):
    log = job().healthy().fault(2, "NET/IB : mlx5_1:1 Got async fatal event: port error", source=_IB)
    log.fault(
        0,
        "NET/IB: Got completion from peer 10.0.0.2<5> with status=12 opcode=0 len=0 vendor err 129 (Recv)",
        source=_IB,
    )
    first = doctor(log).findings[0]
    assert (first.cause, first.where) == ("link_flap", ("n01",))


@pytest.mark.parametrize("event", ["client reregistration", "GID table change", "SM change", "LID change"])
def test_other_events_are_no_link_flap(job, causes, event):
    assert causes(job().healthy().say(2, f"NET/IB : mlx5_1:1 Got non-fatal async event: {event}(17)")) == []


def test_mtu_when_ports_differ_and_a_length_is_wrong(job, causes):
    log = job(link="RoCE").healthy()
    log.say(
        0,
        "NET/IB: NCCL Dev 0 IbDev 0 Port 1 qpn 300 mtu 5 query_ece={supported=1} GID 3 (0/0B0) fifoRkey=0x1",
    )
    log.say(
        2,
        "NET/IB: NCCL Dev 0 IbDev 0 Port 1 qpn 301 mtu 3 query_ece={supported=1} GID 3 (0/0B0) fifoRkey=0x1",
    )
    log.fault(
        2,
        "NET/IB : Got completion from peer 10.0.0.1<4> with status=1 opcode=128 len=0 vendor err 105 (Recv)",
        source=_IB,
    )
    assert causes(log)[0] == ("mtu", "broken", "high")


def test_different_mtus_alone_are_no_fault(job, causes):
    log = job(link="RoCE").healthy()
    log.say(0, "NET/IB: NCCL Dev 0 IbDev 0 Port 1 qpn 300 mtu 5 GID 3 (0/0B0) fifoRkey=0x1")
    log.say(2, "NET/IB: NCCL Dev 0 IbDev 0 Port 1 qpn 301 mtu 3 GID 3 (0/0B0) fifoRkey=0x1")
    assert causes(log) == []


def test_rails_when_a_host_has_fewer_devices(job, doctor):
    log = job().start()
    for rank in range(4):
        names = "[0]mlx5_0:1/IB [1]mlx5_1:1/IB" if rank < 2 else "[0]mlx5_0:1/IB"
        log.say(rank, f"NET/IB : Using {names} [RO]; OOB eth0:10.0.0.1<0>").say(rank, "Using network IB")
    (found,) = doctor(log.init().connect().init("COMPLETE")).findings
    assert (found.cause, found.severity, found.where) == ("rails", "slow", ("n01",))


def test_ib_error_when_link_layers_are_mixed(job, causes):
    log = job().start()
    for rank in range(4):
        log.say(rank, "NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/RoCE ; OOB eth0:10.0.0.1<0>").say(
            rank, "Using network IB"
        )
    log.init().fault(1, "Call to ibv_modify_qp failed with error Invalid argument", source=_VERBS)
    assert causes(log)[0] == ("ib_error", "broken", "high")


def test_a_flush_alone_is_named_an_echo(job, doctor):
    text = "NET/IB : Got completion from peer 10.0.0.2<5> with status=5 opcode=0 len=9 vendor err 249 (Send)"
    first = doctor(job().healthy().fault(1, text, source=_IB)).findings[0]
    assert (first.cause, first.confidence) == ("ib_error", "low")


def test_gdr_off_when_only_the_line_of_the_device_is_there(causes):
    assert causes("INFO NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'\n") == [
        ("gdr_off", "slow", "high")
    ]


def test_gdr_off_needs_a_device_in_use(job, causes):
    log = job(network="Socket").healthy().say(0, "NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'")
    assert "gdr_off" not in {each[0] for each in causes(log)}


def test_rate_that_a_nic_does_not_tell_is_harmless(job, doctor):
    log = job(version=(2, 30, 7)).start()
    log.fault(
        0,
        "Call to ibv_query_port_speed failed with error Protocol not supported errno 93",
        source="ibvwrap.cc",
    )
    found = doctor(log.choose().init().connect().init("COMPLETE"))
    assert (found.verdict, [each.cause for each in found.findings]) == ("healthy", ["harmless"])


def test_other_query_that_fails_is_an_error(job, causes):
    log = (
        job()
        .healthy()
        .fault(0, "Call to ibv_query_port failed with error Input/output error", source="ibvwrap.cc")
    )
    assert causes(log)[0][0] == "ib_error"


def test_sharp_when_its_library_complains_outside_of_nccl(doctor):
    found = doctor(
        "[n1:0:77 - context.c:4] ERROR sharp_get_local_data failed: Cannot create SHARP job(-11)\n"
    )
    assert found.findings[0].cause == "sharp"


def test_acs_iommu_when_rccl_misses_a_setting_and_the_job_failed(job, causes):
    text = 'Missing "iommu=pt" from kernel command line which can lead to system instablity or hang!'
    assert causes(job().healthy().fault(0, text, source="init.cc")) == []
    failed = (
        job()
        .start()
        .fault(0, text, source="init.cc")
        .raw("n00: Test NCCL failure common.cu:1 'internal error'")
    )
    assert causes(failed) == [("acs_iommu", "broken", "low")]


def test_missing_gdr_is_no_fault_on_omni_path(job, causes):
    log = job(gdr=False).start().say(0, "NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'")
    text = log.choose().init().connect().init("COMPLETE").text
    assert causes(text.replace("mlx5_", "hfi1_")) == []


def test_missing_gdr_is_told_where_other_devices_stand_beside_omni_path(job, causes):
    log = job(gdr=False).start().say(0, "NET/IB : GPU Direct RDMA Disabled for HCA 0 'hfi1_0'")
    log.say(0, "NET/IB : GPU Direct RDMA Disabled for HCA 1 'mlx5_0'")
    assert causes(log.choose().init().connect().init("COMPLETE")) == [("gdr_off", "slow", "high")]


@pytest.mark.parametrize(("gpu", "is_told"), [("NVIDIA GB10", False), ("NVIDIA H100 80GB HBM3", True)])
def test_missing_gdr_is_no_fault_of_gb10(job, causes, gpu, is_told):
    log = job(gdr=False).start().say(0, "NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'")
    log.raw("# nThread 1 nGpus 1 minBytes 8 maxBytes 8 step: 2(factor) warmup iters: 5 iters: 20")
    log.raw("# Using devices", f"#  Rank  0 Group  0 Pid   1000 on n00 device  0 [0x01] {gpu}")
    log.raw("#       size  count  type  redop  root   time  algbw  busbw #wrong   time  algbw  busbw #wrong")
    log.raw("        8192   2048 float    sum    -1  35.15   0.23   0.23      0  35.15   0.23   0.23      0")
    found = causes(log.choose().init().connect().init("COMPLETE"))
    assert ("gdr_off" in {each[0] for each in found}) is is_told
