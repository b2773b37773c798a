"""Causes inside a node: each fires on its lines, and near misses do not."""

import pytest

_MATRIX = "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \t{0}\t0-7\nGPU1\t{0}\t X \t0-7\n"


@pytest.mark.parametrize("texts", [
    ("Call to posix_fallocate failed : No space left on device",),
    ("Error: failed to extend /dev/shm/nccl-q3 to 9637892 bytes, error: No space left on device (28)",),
    ("Error while creating shared memory segment /dev/shm/nccl-q3 (size 9637888), error: No space left on device (28)",),
])  # fmt: skip
def test_shm_when_the_segment_cannot_be_made(job, causes, texts):
    log = job(hosts=1).start().init()
    for text in texts:
        log.fault(1, text, source="misc/shmutils.cc")
    log.fault(0, "Socket recv failed while polling for opId=0x7f", source="proxy.cc")
    assert causes(log)[0] == ("shm", "broken", "high")


def test_a_full_dev_shm_without_a_failing_segment_is_no_fault(job, causes):
    log = job(hosts=1).healthy().raw("$ df -h /dev/shm", "shm              64M   63M  1.0M  99% /dev/shm")
    assert causes(log) == []


def test_cumem_when_ranks_choose_different_kinds(job, causes):
    log = (
        job(hosts=1)
        .start()
        .init()
        .say(
            1,
            "cuMem host allocations do not appear to be working; falling back to a /dev/shm/ based implementation.",
        )
    )
    text = "Error while attaching to shared memory segment /dev/shm/nccl-x (size 0), error: No such file or directory (2)"
    assert causes(log.fault(0, text, source="misc/shmutils.cc"))[0] == ("cumem", "broken", "high")


def test_the_notice_of_cumem_alone_is_harmless(job, doctor):
    log = (
        job(hosts=1)
        .healthy()
        .say(
            1,
            "cuMem host allocations do not appear to be working; falling back to a /dev/shm/ based implementation.",
        )
    )
    found = doctor(log)
    assert (found.verdict, [each.severity for each in found.findings]) == ("healthy", ["harmless"])


def test_duplicate_gpu_names_both_ranks(job, doctor):
    first = doctor(
        job()
        .start()
        .fault(1, "Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 1b000", source="init.cc")
    ).findings[0]
    assert (first.cause, set(first.where) >= {"rank 0", "rank 1"}) == ("duplicate_gpu", True)


def test_duplicate_gpu_is_found_in_the_last_error_of_pytorch(causes):
    log = (
        "[rank1]: torch.distributed.DistBackendError: NCCL error in: ../x.cpp:1691, invalid usage, NCCL version 2.19.3\n"
        "[rank1]: ncclInvalidUsage: This usually reflects invalid usage of NCCL library.\n[rank1]: Last error:\n"
        "[rank1]: Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 2000\n"
    )
    assert causes(log) == [("duplicate_gpu", "broken", "high")]


def test_fabric_manager_when_cuda_waits_for_the_fabric(causes):
    assert causes("RuntimeError: CUDA error: system not yet initialized\n")[0] == (
        "fabric_manager",
        "broken",
        "high",
    )


def test_fabric_manager_when_multicast_fails(job, causes):
    log = (
        job(hosts=1, version=(2, 23, 4))
        .start()
        .init()
        .fault(0, "Cuda failure 1 'invalid argument'", source="transport/nvls.cc")
    )
    assert causes(log)[0] == ("fabric_manager", "broken", "medium")


def test_container_when_multicast_fails_without_capability_devices(job, causes):
    log = (
        job(hosts=1).start().init().fault(0, "Cuda failure 1 'invalid argument'", source="transport/nvls.cc")
    )
    assert causes(log.raw("$ ls /dev | grep nvidia", "nvidia-uvm", "nvidia0", "nvidiactl"))[0] == (
        "container",
        "broken",
        "high",
    )


def test_fabric_manager_is_slow_when_nccl_goes_on_without_nvls(job, causes):
    text = "Failed to bind NVLink SHARP (NVLS) Multicast memory of size 2097152 : CUDA error 2 'out of memory'. Proceeding without NVLS support."
    assert causes(
        job(hosts=1, version=(2, 27, 7)).start().say(0, text).init().connect().init("COMPLETE")
    ) == [("fabric_manager", "slow", "medium")]


def test_oom_wins_over_its_echoes(job, causes):
    log = job(hosts=1).start().init().fault(0, "Cuda failure 'out of memory'", source="include/alloc.h")
    log.fault(0, "Failed to CUDA calloc 6291456 bytes", source="include/alloc.h")
    log.fault(1, "socketProgress: Connection closed by remote peer n00<40031>")
    log.fault(
        1, "[Proxy Service 1] Failed to execute operation Setup from rank 1, retcode 1", source="proxy.cc"
    )
    assert causes(log) == [("oom", "broken", "high")]


@pytest.mark.parametrize("line", [
    "NVRM: Xid (PCI:0000:66:00): 79, pid=71811, name=python, GPU has fallen off the bus.",
    "NVRM: Xid (PCI:0000:66:00): 145, pid=71811, name=python, RLW_RXPIPE Nonfatal XC1 i0 Link 06",
    "NVRM: Xid (PCI:0000:66:00): 45, pid=1, name=python, Ch 00000001 caused by previous Xid 145",
    "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 30 LTSSM Fault Up",
])  # fmt: skip
def test_gpu_hw_when_the_driver_reports_a_fault(job, causes, line):
    assert causes(job().healthy().raw(f"[88231.0] {line}"))[0] == ("gpu_hw", "broken", "high")


@pytest.mark.parametrize("line", [
    "NVRM: Xid (PCI:0000:66:00): 13, pid=1, Graphics Exception",
    "NVRM: Xid (PCI:0000:66:00): 45, pid=1, Ch 0000000c",
    "NVRM: Xid (PCI:0000:66:00): 45, pid=1, Ch 0000000c caused by previous Xid 13",
])  # fmt: skip
def test_faults_of_programs_are_no_gpu_hw(job, causes, line):
    assert causes(job().healthy().raw(f"[88231.0] {line}")) == []


def test_p2p_when_mappings_are_exhausted(job, causes):
    log = (
        job(hosts=1)
        .start()
        .init()
        .fault(
            1,
            "failed to peer with device 0(=0): 60 peer mapping resources exhausted",
            source="transport/p2p.cc",
        )
    )
    assert causes(log)[0] == ("p2p", "broken", "high")


def test_p2p_when_it_is_off_between_nvlink_gpus(job, causes):
    text = "P2P is disabled between NVLINK connected GPUs 1 and 0. This should not be the case given their connectivity."
    log = (
        job(hosts=1)
        .start()
        .fault(0, text, source="graph/paths.cc")
        .init()
        .connect(inside="SHM/direct/direct")
        .init("COMPLETE")
    )
    assert causes(log)[0] == ("p2p", "slow", "high")


def test_shared_memory_between_nvlink_gpus_is_slow(job, causes):
    log = job(hosts=1).start().init().connect(inside="SHM/direct/direct").init("COMPLETE")
    assert causes(log, topo=_MATRIX.format("NV4")) == [("p2p", "slow", "medium")]


def test_shared_memory_across_sockets_is_design(job, causes):
    log = job(hosts=1).start().init().connect(inside="SHM/direct/direct").init("COMPLETE")
    assert causes(log, topo=_MATRIX.format("SYS")) == []


def test_env_misuse_when_peer_access_is_switched_off(job, causes):
    log = (
        job(hosts=1)
        .start(settings=[("NCCL_P2P_LEVEL", "LOC")])
        .init()
        .connect(inside="SHM/direct/direct")
        .init("COMPLETE")
    )
    assert causes(log, topo=_MATRIX.format("NV4")) == [("env_misuse", "slow", "high")]


def test_host_identity_when_one_name_has_two_addresses(job, causes):
    log = job().start()
    log.lines = [line.replace("n01:", "n00:") for line in log.lines]
    log.fault(1, "failed to open CUDA IPC handle : 11 invalid argument", source="transport/p2p.cc")
    assert causes(log)[0] == ("host_identity", "broken", "high")


def test_mnnvl_when_the_fabric_is_not_ready(job, causes):
    log = job().start()
    for rank in range(4):
        log.say(rank, "MNNVL busId 0x801000 fabric UUID 0.0 cliqueId 0x0 state 0 healthMask 0x0")
    assert causes(log.choose().init().connect().init("COMPLETE"))[0] == ("mnnvl", "slow", "high")


def test_fabric_of_one_board_in_health_is_no_fault(job, causes):
    log = job().start()
    for rank in range(4):
        log.say(rank, "MNNVL busId 0x1b000 fabric UUID 0.0 cliqueId 0x7ffe state 3 healthMask 0xaa")
    assert causes(log.choose().init().connect().init("COMPLETE")) == []


def test_topology_when_a_link_carries_nothing(job, causes):
    log = (
        job()
        .start()
        .say(0, "=== System : maxBw 0.1 totalBw 24.0 ===")
        .say(0, "+ PCI[0.1] - PCI/FFFFFF0 (104c)")
    )
    assert causes(log.choose().init().connect().init("COMPLETE")) == [("topology", "slow", "high")]


def test_topology_of_a_machine_whose_nic_is_as_slow_as_its_graph_has_no_finding(job, causes):
    log = job(network="Socket").start().choose()
    log.say(0, "=== System : maxBw 1.2 totalBw 24.0 ===")
    log.say(0, " Pattern 4, crossNic 0, nChannels 1, bw 1.200000/1.200000, type PHB/PHB, sameChannels 1")
    assert causes(log) == []
    assert causes(log.say(0, "              + NET[1.2] - NET/0 (0/0/1.250000)")) == []
    wide = causes(log.say(0, "=== System : maxBw 0.1 totalBw 24.0 ==="))
    assert wide[0] == ("topology", "slow", "high")


def test_topology_of_a_sound_machine_has_no_finding(job, causes):
    log = (
        job()
        .start()
        .say(0, "=== System : maxBw 48.0 totalBw 240.0 ===")
        .say(0, "+ PCI[48.0] - GPU/1B000 (0)")
    )
    log.say(0, "Pattern 4, crossNic 0, nChannels 8, bw 44.000000/44.000000, type NVL/PIX, sameChannels 1")
    assert causes(log.choose().init().connect().init("COMPLETE")) == []


def test_topology_when_a_file_lacks_an_attribute(job, causes):
    log = (
        job()
        .start(settings=[("NCCL_TOPO_FILE", "/x.xml")])
        .fault(0, "Attribute arch of node cpu not found", source="graph/xml.h")
    )
    assert causes(log)[0] == ("topology", "broken", "high")


def test_a_missing_attribute_as_notice_is_no_fault(job, causes):
    assert causes(job().say(0, "Attribute coll of node net not found").healthy()) == []


def test_p2p_when_a_handle_cannot_be_made(job, causes):
    log = (
        job(hosts=1)
        .start()
        .fault(0, "hipIpcGetMemHandle failed : invalid argument", source="transport/p2p.cc")
    )
    assert causes(log)[0] == ("p2p", "broken", "medium")


def test_topology_when_no_path_is_found_for_a_pattern(job, causes):
    text = "Could not find a path for pattern 1, falling back to simple order"
    assert causes(job().healthy().fault(0, text, source="graph/search.cc")) == [
        ("topology", "slow", "medium")
    ]


def test_buffer_that_cannot_be_registered_is_no_fault_of_the_fabric(job, causes):
    log = job(hosts=1, version=(2, 25, 1)).healthy()
    log.fault(0, "Cuda failure 1 'invalid argument'", source="transport/nvls.cc")
    log.fault(0, "rank 0 failed to NVLS register sendbuff 0x7 sendbuffSize 8 recvbuff 0x7 recvbuffSize 8")
    assert "fabric_manager" not in {each[0] for each in causes(log)}


@pytest.mark.parametrize(("text", "is_told"), [
    ("Failed: Cuda error /w/custom_all_reduce.cuh:7 'peer access is not supported between these two devices'", True),
    ("Custom allreduce is disabled because your platform lacks GPU P2P capability", False),
])  # fmt: skip
def test_p2p_when_a_program_asks_for_peer_access_that_is_not_there(causes, text, is_told):
    assert (("p2p", "broken", "high") in causes(text + "\n")) is is_told


def test_fine_grained_memory_that_rccl_misses_is_harmless(job, doctor):
    text = 'Missing "HSA_FORCE_FINE_GRAIN_PCIE=1" from environment which can lead to low RCCL performance'
    found = doctor(job(hosts=1).healthy().fault(0, text, source="init.cc"))
    assert (found.verdict, [each.cause for each in found.findings], found.unknown) == (
        "healthy",
        ["harmless"],
        (),
    )


@pytest.mark.parametrize(("text", "found"), [
    ("no CUDA-capable device is detected", [("container", "broken", "medium")]),
    ("all CUDA-capable devices are busy or unavailable", []),
])  # fmt: skip
def test_container_without_gpus(job, causes, text, found):
    assert causes(job().start().fault(1, f"Cuda failure 100 '{text}'", source="init.cc")) == found


def test_gpu_hw_names_the_host_that_the_log_of_the_system_names(doctor):
    line = "Nov 30 01:00:01 n01 kernel: [12.3] NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.\n"
    assert doctor(line).findings[0].where == ("n01", "GPU at PCI 0000:3b:00")


def test_gpu_hw_without_a_host_names_the_gpu(doctor):
    line = "[12.3] NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.\n"
    assert doctor(line).findings[0].where == ("GPU at PCI 0000:3b:00",)


def test_memory_that_the_program_asked_for_is_not_said_to_be_nccls(job, doctor):
    program = doctor("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n").findings[0]
    nccl = doctor(job().start().fault(0, "Cuda failure 'out of memory'", source="init.cc")).findings[0]
    assert (program.cause, nccl.cause) == ("oom", "oom")
    assert "program asks" in program.explanation
    assert "NCCL allocates" in nccl.explanation
