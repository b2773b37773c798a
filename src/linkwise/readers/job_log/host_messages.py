"""Lines of frameworks, kernels and host commands, told by their content wherever they stand.

References
----------
PyTorch, torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp and torch/distributed/elastic,
https://github.com/pytorch/pytorch; NVIDIA, *XID errors*, https://docs.nvidia.com/deploy/xid-errors; Linux,
Documentation/admin-guide/kernel-parameters; rdma-core, infiniband-diags (ibstat) and libibverbs
(ibv_devinfo).
"""

from __future__ import annotations

from linkwise.readers.job_log.counter_messages import COUNTER_MESSAGES
from linkwise.readers.job_log.gloo_messages import GLOO_MESSAGES
from linkwise.readers.job_log.message import Message, message

__all__ = ["HOST_MESSAGES"]

# The rank in the name of a process group is the rank inside it.
_GROUP = r"^(?:.*?\[(?:PG (?:ID \d+ PG GUID )?(?P<group>[^\]]*?) )?Rank (?P<rank>\d+)\])?"

HOST_MESSAGES: tuple[Message, ...] = (
    message(
        "watchdog_timeout",
        "Watchdog caught collective operation timeout",
        # Pasted lines are broken anywhere, often in the middle of a word.
        _GROUP + r".*?WorkNCCL\(SeqNum=(?P<sequence>\d+)(?:, OpType=(?P<operation>\w+))?"
        r"(?:, NumelIn=(?P<elements_in>\d+), NumelOut=(?P<elements_out>\d+))?",
    ),
    message(
        "watchdog_progress",
        "ast enqueued",
        _GROUP + r".*?[Ll]ast enqueued (?:NCCL )?work: (?P<enqueued>-?\d+), last completed"
        r" (?:NCCL )?work: (?P<completed>-?\d+)",
    ),
    message(
        "watchdog_failure",
        "detected by watchdog at work",
        _GROUP + r".*?detected by watchdog at work(?: sequence id)?: (?P<sequence>\d+)",
    ),
    message(
        "watchdog_failure", "Timeout at NCCL work", _GROUP + r".*?Timeout at NCCL work: (?P<sequence>\d+)"
    ),
    # Where the line is broken off before the number of the collective.
    message("watchdog_cut", "Watchdog caught collective", _GROUP + r".*?timeout: WorkNCCL\((?!SeqNum=\d)"),
    message("watchdog_witness", "dump signal due to a collective timeout", r"from +rank (?P<first>\d+)"),
    message("torch_error", "NCCL error in: ", r"NCCL error in: [^,]*, (?P<text>.*?)(?:, NCCL version|\s*$)"),
    message("xla_error", "NCCL operation nccl", r"NCCL operation nccl\w+.*? failed: (?P<text>[^;.(]+)"),
    message("xla_error", "Failed to create NCCL communicator", r"communicator: ?(?P<text>.*)$"),
    message(
        "last_error_quoted", "Last NCCL warning(error)", r"Last NCCL warning\(error\)[^']*'(?P<text>.+)'"
    ),
    message("torch_error", "NCCL error: ", r"NCCL error: (?P<text>.+?)\s*$"),
    message("tests_failure", "Test NCCL failure", r"Test NCCL failure (?P<place>\S+) '?(?P<text>[^'/]*)"),
    message("cuda_failure", "Test CUDA failure", r"Test CUDA failure (?P<place>\S+) '(?P<text>[^']*)'"),
    message("horovod_error", "HorovodInternalError", r"HorovodInternalError: ?(?P<text>.*)$"),
    message("cuda_error", "CUDA error: ", r"CUDA error: (?P<text>.+?)\s*$"),
    message(
        "cuda_oom", "CUDA out of memory", r"Error: CUDA out of memory|CUDA out of memory\. Tried to allocate"
    ),
    message("cuda_driver_old", "CUDA driver version is insufficient", r"insufficient"),
    message("fabric_not_ready", "system not yet initialized", r"system not yet initialized"),
    message(
        "peer_unsupported",
        "peer access is not supported between",
        r"peer access is not supported between these two devices",
    ),
    message(
        "symbol_missing", "undefined symbol: nccl", r"(?P<file>\S+): undefined symbol: (?P<symbol>nccl\w+)"
    ),
    message("kernel_image_none", "no kernel image is available", r"no kernel image"),
    message("crashed", "Segmentation fault", r"Segmentation fault"),
    message("crashed", "Signal: ", r"Signal: (?P<text>.+?)(?: \(|$)"),
    message("crashed", "Fatal Python error", r"Fatal Python error: (?P<text>.*)$"),
    message("worker_exit", "exitcode", r"exitcode ?: (?P<code>-?\d+)\)? *local_rank: (?P<local_rank>\d+)"),
    message("worker_failed", "(local_rank: ", r"\brank +: (?P<rank>\d+) \(local_rank: \d+\)"),
    message("host_oom", "oom-kill", r"oom-kill"),
    message("host_oom", "Out of memory: Killed process", r"Killed process (?P<pid>\d+)"),
    message("host_oom", "OOM Killed", r"OOM Killed"),
    message("host_oom", "OOMKilled", r"OOMKilled"),
    message(
        "task_died", "srun: error:", r"srun: error: (?P<host>[^:]+): task (?P<rank>\d+): (?P<text>.+?)\s*$"
    ),
    message(
        "task_died", "exited on signal", r"process rank (?P<rank>\d+).*on node (?P<host>\S+) exited on signal"
    ),
    message(
        "job_ended",
        "CANCELLED AT",
        r"\*\*\* (?:STEP|JOB) \S+ (?:ON (?P<host>\S+) )?CANCELLED AT \S+ DUE TO (?P<reason>[A-Z]+(?: [A-Z]+)*)",
    ),
    message(
        "xid",
        "NVRM: Xid",
        r"(?:^.*?\s(?P<host>[\w.-]+) kernel:.*?)?Xid \(PCI:(?P<bus>[^)]+)\): (?P<xid>\d+)(?P<detail>.*)$",
    ),
    message("sxid", "SXid (", r"SXid \((?P<bus>PCI:[^)]+)\): (?P<xid>\d+)(?P<detail>.*)$"),
    message("gpu_lost", "fallen off the bus", r"fallen off the bus"),
    message("iommu_fault", "IO_PAGE_FAULT", r"IO_PAGE_FAULT"),
    message("iommu_fault", "DMAR: [DMA", r"DMAR: \[DMA (?P<direction>Read|Write)"),
    message("acs", "ACSCtl:", r"ACSCtl:(?P<flags>.*)$"),
    message("iommu_boot", "iommu=", r"\b(?P<which>(?:intel_|amd_)?iommu)=(?P<value>\S+)"),
    message("memlock_limit", "max locked memory", r"max locked memory.*?\) *(?P<value>\S+)\s*$"),
    message("memlock_limit", "Max locked memory", r"Max locked memory +(?P<value>\S+)"),
    message("files_limit", "open files", r"^open files +\([^)]*\) *(?P<value>\S+)\s*$"),
    message("files_limit", "Max open files", r"Max open files +(?P<value>\S+)"),
    message(
        "shm_size",
        "/dev/shm",
        r"^\S+ +(?P<size>[\d.]+[KMGT]?) +(?P<used>[\d.]+[KMGT]?) +(?P<free>[\d.]+[KMGT]?) +(?P<share>\d+)% +/dev/shm",
    ),
    message(
        "port_state",
        "active_mtu",
        r"(?:(?P<host>\S+): )?(?:(?P<device>\S+) port \d+ .*?)?active_mtu:? *(?P<mtu>\d+)",
    ),
    message("link_layer", "ink layer:", r"[Ll]ink layer: *(?P<layer>InfiniBand|Ethernet)"),
    message(
        "port_down", "Physical state: ", r"Physical state: (?P<state>Disabled|Polling|LinkErrorRecovery)"
    ),
    message("verbs_devices_none", "Failed to get IB devices list", r"list: (?P<text>.+?)\s*$"),
    message("verbs_devices_none", "No IB devices found", r"(?P<text>No IB devices found)"),
    message("ofi_provider_error", "prov_err", r"prov_err: (?P<text>.+?)\s*$"),
    message("link_down", "Link is Down", r"(?P<interface>\S+):? .*Link is Down"),
    message("link_down", "Link down", r"(?P<interface>\S+):? .*Link down"),
    message("step_time", "elapsed time per iteration (ms)", r"\(ms\): (?P<time_ms>[\d.]+)"),
    message(
        "tests_rank",
        "#  Rank",
        r"# +Rank +(?P<rank>\d+) .*?Pid +\d+ on +(?P<host>\S+) device +(?P<device>\d+)",
    ),
    message(
        "tests_rank",
        "#   Rank",
        r"# +Rank +(?P<rank>\d+) .*?Pid +\d+ on +(?P<host>\S+) device +(?P<device>\d+)",
    ),
    message("tests_end", "# Avg bus bandwidth", r"bandwidth *: *(?P<gbyte_s>\d[\d.]*)"),
    message("nccl_frame", "libnccl", r"(?:#\d+ +(?:0x\w+ in )?(?P<function>\w+)|\[ ?\d+\]).*libnccl\S*"),
    message("setting", "NCCL_", r"^(?:export |declare -x )?(?P<name>NCCL_\w+)=[\"']?(?P<value>[^\"'\s]*)"),
    message("tests_start", "# nThread", r"# ?nThread"),
    message("cuda_combination", "unsupported display driver / cuda driver combination", r"unsupported"),
    message("cuda_combination", "forward compatibility was attempted", r"forward compatibility"),
    message("link_down", "Link DOWN", r"(?P<interface>mlx\w+|\w+).*Link DOWN"),
    message("scan_seen", "tcp-connect", r"from (?P<address>[\d.]+)"),
    message(
        "store_unreached",
        "client socket has",
        r"client socket has (?P<text>timed out|failed to connect)[^(]*\(?(?P<peer>[^,)]*)",
    ),
    message("store_waiting", "clients joined", r"\b(?P<joined>\d{1,7})/(?P<all>\d{1,7}) clients joined"),
    message("store_taken", "server socket has failed to", r"(?P<text>(?:bind|listen)\b.*)$"),
    message(
        "barrier_missed",
        "monitoredBarrier",
        r"[Rr]anks? (?P<ranks>[\d, ]+).*monitoredBarrier|monitoredBarrier.*[Rr]anks? (?P<late>[\d, ]+)",
    ),
    message("mismatch", "Detected mismatch between collectives", r"on ranks"),
    message(
        "ras_counts_differ",
        "Communicator ranks have different",
        r"different (?P<operation>\w+) operation counts",
    ),
    message(
        "torch_error",
        "Some NCCL operations have failed",
        r"(?P<text>Some NCCL operations have failed or timed out)",
    ),
    message("sharp_failed", "sharp_get_local_data", r"\bERROR (?P<text>.+)$"),
    message("sharp_failed", "SHARP job", r"\bERROR (?P<text>.+)$"),
    message("sharp_failed", "lock SAT tree", r"\bERROR (?P<text>.+)$"),
    message("closed", "Connection closed by peer", r"closed by peer \[?(?P<peer>[^\]\s]*)"),
    message(
        "version",
        "RCCL version ",
        r"(?P<library>RCCL) version (?:: )?(?P<version>\d+\.\d+(?:\.\d+)?)(?:[^\s+]*\+(?P<runtime>hip)(?P<cuda>\d+\.\d+))?",
    ),
    message("last_error", "Last error:", r"Last error:"),
    message("traceback", "Traceback (most recent call last)", r"Traceback"),
    *GLOO_MESSAGES,
    *COUNTER_MESSAGES,
)
"""Lines that are not NCCL's, each with the text it is found by."""
