"""Causes in software, variables and programs: each fires on its lines, and near misses do not."""

import pytest

_TIMEOUT = (
    "[rank{0}]:[E1116 10:21:33.1 ProcessGroupNCCL.cpp:632] [{2}Rank {0}] Watchdog caught collective operation timeout:"
    " WorkNCCL(SeqNum={1}, OpType=ALLREDUCE, NumelIn={3}, NumelOut={3}, Timeout(ms)=600000) ran for 600041 milliseconds"
)


def test_version_when_releases_differ_and_an_address_is_empty(job, causes):
    log = job().start().raw("NCCL version 2.19.3+cuda12.3")
    log.fault(
        2, "ncclSocketInit: connecting to address  with family 0 is neither AF_INET(2) nor AF_INET6(10)"
    )
    assert causes(log)[0] == ("version", "broken", "high")


def test_version_when_nccl_refuses(job, causes):
    log = job(version=(2, 23, 4)).start()
    log.fault(
        2,
        "Mismatched NCCL version detected : rank 0 version 22304 rank 2 version 22005",
        source="bootstrap.cc",
    )
    assert causes(log)[0] == ("version", "broken", "high")


def test_different_versions_of_healthy_jobs_are_no_fault(job, causes):
    assert causes(job().healthy().raw("NCCL version 2.19.3+cuda12.3")) == []


def test_version_when_no_kernel_fits_the_gpu(causes):
    log = "RuntimeError: CUDA error: no kernel image is available for execution on the device\n"
    assert causes(log)[0] == ("version", "broken", "high")


def test_version_when_the_framework_calls_what_nccl_does_not_have(doctor):
    first = doctor("ImportError: /x/torch/lib/libtorch_cuda.so: undefined symbol: ncclAlltoAll\n").findings[0]
    assert (first.cause, first.confidence, "libtorch_cuda.so" in first.explanation) == (
        "version",
        "high",
        True,
    )


def test_a_missing_symbol_of_another_library_is_not_of_nccl(doctor):
    assert doctor("ImportError: /x/libtorch_cuda.so: undefined symbol: cudnnGetVersion\n").findings == ()


def test_driver_when_a_call_needs_a_newer_one(job, causes):
    text = "Cuda failure 'API call is not supported in the installed CUDA driver'"
    assert causes(job(hosts=1).start().fault(0, text, source="init.cc"))[0][0] == "driver"


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("Failed to bind NVLink SHARP (NVLS) Multicast memory: CUDA error 401", "fabric_manager"),
        ("P2P is disabled between NVLINK connected GPUs 1 and 0. This should not be the case", "p2p"),
        ("socketStartConnect: Connect to 10.1.0.9<40815> failed : Connection timed out", "firewall"),
        (
            "NET/IB: Got completion from peer 10.0.0.2<3> with status=12 opcode=1 len=0 vendor err 129",
            "ib_error",
        ),
    ],
)
def test_a_warning_picked_out_without_its_prefix_has_its_cause(causes, text, cause):
    assert causes(f"{text}\n")[0][0] == cause


def test_version_when_cuda_does_not_find_kernels_of_nccl(job, doctor):
    log = job(hosts=1).start().fault(0, "Cuda failure 500 'named symbol not found'", source="enqueue.cc")
    first = doctor(log).findings[0]
    assert (first.cause, first.confidence, "driver" in first.explanation) == ("version", "low", True)


def test_lines_broken_off_tell_no_other_collective(doctor):
    first = _TIMEOUT.format(0, 7, "", 16) + " before timing out."
    log = "\n".join(
        [first, first.replace("rank0", "rank1").replace("Rank 0", "Rank 1").partition("NumelOut")[0]]
    )
    assert doctor(log + "\n").findings == ()


def test_driver_when_cuda_calls_it_insufficient(causes):
    log = (
        "h: Test CUDA failure common.cu:891 'CUDA driver version is insufficient for CUDA runtime version'\n"
    )
    assert causes(log)[0] == ("driver", "broken", "high")


@pytest.mark.parametrize(("name", "value"), [("NCCL_ALGO", "Tree"), ("NCCL_PROTO", "LL128")])
def test_env_misuse_when_no_algorithm_is_left(job, doctor, name, value):
    log = (
        job()
        .healthy(settings=[(name, value)])
        .fault(0, "Error : no algorithm/protocol available", source="enqueue.cc")
    )
    first = doctor(log).findings[0]
    assert (first.cause, first.confidence, f"{name}={value}" in first.explanation) == (
        "env_misuse",
        "high",
        True,
    )


def test_a_forced_algorithm_that_works_is_no_fault(job, causes):
    assert causes(job().healthy(settings=[("NCCL_ALGO", "Ring")])) == []


def test_env_misuse_when_values_differ_and_collectives_do_not_match(job, causes):
    log = job().start()
    for rank, size in enumerate((4194304, 4194304, 8388608, 8388608)):
        log.say(rank, f"NCCL_BUFFSIZE set by environment to {size}.")
    log.choose().init().connect().fault(
        0, "NET/Socket : message truncated : receiving 65536 bytes instead of 32768"
    )
    assert causes(log)[0] == ("env_misuse", "broken", "high")


def test_env_misuse_when_a_prefix_selects_more(job, doctor):
    log = job(nics=12).healthy(settings=[("NCCL_IB_HCA", "mlx5_1")])
    first = doctor(log).findings[0]
    assert (first.cause, first.fix[0]) == ("env_misuse", "NCCL_IB_HCA==mlx5_1")


def test_desync_names_the_rank_that_did_not_come(doctor):
    lines = [_TIMEOUT.format(rank, 2847, "", 1000) for rank in (1, 2, 3)]
    lines.append(
        "[rank0]:[E602 11:19:30.1 ProcessGroupNCCL.cpp:1895] [PG ID 0 PG GUID 0(default_pg) Rank 0] Received a dump signal due to a"
        " collective timeout from  rank 1. Last enqueued NCCL work: 2846, last completed NCCL work: 2846."
    )
    first = doctor("\n".join(lines)).findings[0]
    assert (first.cause, first.confidence, first.where) == ("desync", "high", ("rank 0",))


def test_desync_when_sizes_differ_at_one_place(causes):
    lines = [_TIMEOUT.format(0, 9, "", 1000), _TIMEOUT.format(1, 9, "", 2000)]
    assert causes("\n".join(lines)) == [("desync", "broken", "high")]


def test_equal_places_of_different_groups_are_no_desync(causes):
    lines = [
        _TIMEOUT.format(0, 9, "PG ID 1 PG GUID 3(tp) ", 1000),
        _TIMEOUT.format(1, 9, "PG ID 2 PG GUID 5(dp) ", 2000),
    ]
    assert causes("\n".join(lines)) == []


def test_desync_when_one_rank_of_many_does_not_wait(causes):
    lines = [_TIMEOUT.format(rank, 9, "", 1000) for rank in (0, 1, 3, 4, 5)]
    assert causes("\n".join(lines)) == [("desync", "broken", "medium")]


def test_the_echo_on_one_rank_names_no_cause(job, doctor):
    log = job().start().choose().init().fault(0, "Net : Connection closed by remote peer 10.0.0.2<47861>")
    log.lines = [line for line in log.lines if ":1000:" in line]
    found = doctor(log)
    assert (found.verdict, found.findings, "logs of all ranks" in found.reason) == ("broken", (), True)


def test_all_ranks_in_one_collective_are_no_desync(job, causes):
    log = job().healthy().raw(*(_TIMEOUT.format(rank, 9, "", 1000) for rank in range(4)))
    assert causes(log) == []


def test_remote_exit_when_a_process_crashed(job, causes):
    log = (
        job()
        .healthy()
        .raw("[n01:71552] *** Process received signal ***", "[n01:71552] Signal: Segmentation fault (11)")
    )
    log.fault(0, "Net : Call to recv from 10.0.0.2<58355> failed : Broken pipe")
    assert causes(log) == [("remote_exit", "broken", "high")]


def test_connections_closed_after_the_end_are_no_fault(job, causes):
    log = job().healthy()
    for rank in range(4):
        log.say(rank, f"comm 0x{rank + 16:x} rank {rank} nranks 4 cudaDev 0 busId 1b000 - Destroy COMPLETE")
    assert causes(log.fault(0, "Net : Connection closed by remote peer 10.0.0.2<47861>")) == []


def _table(host, rank=0):
    return f"#  Rank  {rank} Group  0 Pid   9001 on     {host} device  {rank} [0x1b] NVIDIA A100-SXM4-80GB"


_HEAD = "# nThread 1 nGpus 8 minBytes 8 maxBytes 8 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1"


def test_test_setup_when_two_runs_start_together(causes):
    lines = [
        _HEAD,
        _HEAD,
        _table("a"),
        _table("b"),
        "# Avg bus bandwidth    : 153.8",
        "# Avg bus bandwidth    : 153.8",
    ]
    assert causes("\n".join(lines)) == [("test_setup", "broken", "high")]


def test_runs_one_after_the_other_are_no_fault(causes):
    one = [_HEAD, _table("a"), "# Avg bus bandwidth    : 153.8"]
    other = [_HEAD, _table("b"), "# Avg bus bandwidth    : 153.8"]
    assert causes("\n".join([*one, *other])) == []


def test_nccl_bug_when_a_stack_ends_in_a_known_deadlock(job, causes):
    log = job(version=(2, 19, 3)).healthy().raw("#1  ncclProxyClientGetFdBlocking () from libnccl.so.2")
    assert causes(log) == [("nccl_bug", "broken", "medium")]


def test_harmless_notices_leave_the_job_healthy(job, doctor):
    log = job().say(
        0, "NET/IB : Failed to open mlx5dv symbols. Advance features like CX-8 Direct-NIC will be disabled."
    )
    found = doctor(log.healthy())
    assert (found.verdict, [each.cause for each in found.findings]) == ("healthy", ["harmless"])


def test_version_when_the_program_was_built_with_another(job, causes):
    text = "This application was compiled with NCCL version 2.29.7, but is running with NCCL library version 2.30.7."
    log = (
        job(version=(2, 30, 7))
        .start()
        .fault(0, f"NCCL library is not backwards compatible. {text}", source="init.cc")
    )
    assert causes(log) == [("version", "broken", "high")]


def test_driver_when_its_library_is_missing_and_the_job_failed(job, causes):
    text = "Failed to find CUDA library libcuda.so (NCCL_CUDA_PATH='') : libcuda.so: cannot open shared object file"
    assert causes(job(version=(2, 18, 5)).fault(0, text, source="misc/cudawrap.cc").healthy()) == []
    log = (
        job()
        .fault(0, text, source="misc/cudawrap.cc")
        .raw("x NCCL error in: y.cpp:1, unhandled cuda error, NCCL version 2.18.5")
    )
    assert causes(log) == [("driver", "broken", "medium")]


def test_driver_when_nvml_is_missing(job, causes):
    log = job().fault(0, "Failed to open libnvidia-ml.so.1", source="misc/nvmlwrap.cc")
    assert causes(log) == [("driver", "broken", "medium")]


@pytest.mark.parametrize(("version", "found"), [
    ((2, 20, 3), [("nccl_bug", "broken", "medium")]),
    ((2, 20, 5), []),
])  # fmt: skip
def test_nccl_bug_when_two_communicators_take_one_name(job, causes, version, found):
    text = "UDS: Binding to socket /tmp/nccl-socket-1-ab failed : Address already in use (98)"
    assert causes(job(version=version).start().fault(0, text, source="misc/ipcsocket.cc")) == found


def test_desync_is_weak_when_counts_differ_in_one_snapshot(causes):
    log = "#0-0 (fa93) MISMATCH\n  Communicator ranks have different AllGather operation counts\n"
    assert causes(log) == [("desync", "broken", "low")]


def test_version_is_weak_when_a_communicator_has_lost_its_marks(job, causes):
    log = job().healthy().fault(0, "Error: corrupted comm object detected", source="misc/argcheck.cc")
    assert causes(log) == [("version", "broken", "low")]


def test_oom_when_xla_quotes_it(causes):
    said = "NCCL operation ncclCommInitRank(&comm, n, id, r) failed: unhandled cuda error (run with NCCL_DEBUG=INFO)."
    quoted = (
        "Last NCCL warning(error) log entry (may be unrelated) 'Cuda failure 2 'out of memory''.; scope: x"
    )
    assert causes(f"{said} {quoted}\n")[0][:2] == ("oom", "broken")


def test_xla_alone_is_broken_without_a_cause(doctor):
    found = doctor(
        "NCCL operation ncclAllReduce(a, b) failed: invalid argument (run with NCCL_DEBUG=WARN).\n"
    )
    assert (found.verdict, found.findings) == ("broken", ())


@pytest.mark.parametrize("before", ["", "3: ", "n01: ", "2026-11-30T03:00:00Z "])
def test_the_rank_that_a_framework_writes_before_a_line_is_where_it_is_seen(doctor, before):
    log = f"{before}[rank9]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
    assert doctor(log).findings[0].where == ("rank 9",)


def test_a_rank_deep_in_a_line_is_no_prefix(doctor):
    log = (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. " + "x" * 60 + " [rank9]:\n"
    )
    assert doctor(log).findings[0].where == ()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("*** STEP 12.0 ON n00 CANCELLED AT 2026-11-30T03:00:00 DUE TO TIME LIMIT ***", "time limit"),
        ("*** JOB 12 ON n00 CANCELLED AT 2026-11-30T03:00:00 DUE TO PREEMPTION ***", "preemption"),
        (
            "*** JOB 12 ON n00 CANCELLED AT 2026-11-30T03:00:00 DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***",
            "node failure",
        ),
    ],
)
def test_a_job_that_slurm_ended_is_told_from_one_that_died(job, doctor, line, words):
    log = job().healthy().raw(f"slurmstepd: error: {line}")
    log.fault(0, "socketProgress: Connection closed by remote peer n01<50134>")
    (found,) = doctor(log).findings
    assert (found.cause, found.confidence) == ("remote_exit", "medium")
    assert f"reason: {words}." in found.explanation
    assert "slurmstepd" in found.evidence[0].text


def test_a_step_that_slurm_cancels_without_a_reason_explains_nothing(job, doctor):
    log = job().healthy().raw("slurmstepd: error: *** STEP 12.0 ON n00 CANCELLED AT 2026-11-30T03:00:00 ***")
    log.fault(0, "socketProgress: Connection closed by remote peer n01<50134>")
    assert "Slurm" not in doctor(log).findings[0].explanation


def test_the_end_of_a_healthy_job_at_its_time_limit_is_no_fault(job, causes):
    line = "slurmstepd: error: *** STEP 12.0 ON n00 CANCELLED AT 2026-11-30T03:00:00 DUE TO TIME LIMIT ***"
    assert causes(job().healthy().raw(line)) == []


def test_memory_that_is_full_wins_over_the_time_limit(job, causes):
    log = (
        job()
        .healthy()
        .raw(
            "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
            "slurmstepd: error: *** STEP 12.0 ON n00 CANCELLED AT 2026-11-30T03:00:00 DUE TO TIME LIMIT ***",
        )
    )
    log.fault(0, "socketProgress: Connection closed by remote peer n01<50134>")
    assert [each[0] for each in causes(log)] == ["oom"]


@pytest.mark.parametrize(("code", "is_memory"), [(-9, True), (-6, False)])
def test_remote_exit_names_the_rank_that_torchrun_names(job, doctor, code, is_memory):
    log = (
        job()
        .healthy()
        .raw(
            f"E1130 api.py:869] failed (exitcode: {code}) local_rank: 3 (pid: 20003) of binary: /usr/bin/python3",
            "Root Cause (first observed failure):",
            "  host      : n01",
            "  rank      : 11 (local_rank: 3)",
            f"  exitcode  : {code} (pid: 20003)",
        )
    )
    first = doctor(log).findings[0]
    assert (first.cause, first.where) == ("remote_exit", ("rank 11",))
    assert ("Signal 9" in first.explanation) is is_memory


def test_a_rank_that_ends_with_an_exit_code_names_no_signal(job, causes):
    log = (
        job()
        .healthy()
        .raw(
            "E1130 api.py:869] failed (exitcode: 1) local_rank: 3 (pid: 20003) of binary: /usr/bin/python3",
            "  rank      : 11 (local_rank: 3)",
        )
    )
    assert "remote_exit" not in [each[0] for each in causes(log)]


def test_what_rccl_says_of_numa_balancing_is_known_and_harmless(job, doctor):
    text = "NUMA auto balancing enabled which can lead to variability in the RCCL performance!"
    found = doctor(job().healthy().fault(0, text, source="init.cc"))
    assert (found.verdict, found.unknown) == ("healthy", ())
    assert [(each.cause, each.severity) for each in found.findings] == [("harmless", "harmless")]
