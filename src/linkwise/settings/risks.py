"""Values that do harm, or are left from debugging: a table. Add one here, and its two values in the tests.

References
----------
NVIDIA, NCCL user guide, "Environment Variables", where a row names no other source.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from linkwise.nccl.allowed import integer_read
from linkwise.nccl.variables import Release
from linkwise.settings.finding import Severity

__all__ = ["RISKS", "Risk"]

_RDMA = frozenset({"infiniband", "roce"})
_SWITCHES = "take it out"


@dataclass(frozen=True, slots=True, kw_only=True)
class Risk:
    """A value that does harm, or is seldom meant.

    Attributes
    ----------
    name
        The variable.
    is_risky
        Whether a value is one of those.
    what
        What it does.
    todo
        What to do.
    severity
        How bad it is.
    protocols
        Protocols of links on which it holds; empty for all. Where the fabric is not known it holds.
    needs_nvlink
        Whether it holds only where GPUs have NVLink.
    since, before
        Releases it holds for: from the first on, before the second.
    source
        Where that can be read; the user guide where it is empty.
    """

    name: str
    is_risky: Callable[[str], bool]
    what: str
    todo: str = _SWITCHES
    severity: Severity = Severity.HARMFUL
    protocols: frozenset[str] = frozenset()
    needs_nvlink: bool = False
    since: Release = (0, 0, 0)
    before: Release = (99, 0, 0)
    source: str = ""


def _is(*numbers: int) -> Callable[[str], bool]:
    return lambda value: integer_read(value)[1] and integer_read(value)[0] in numbers


def _below(limit: int) -> Callable[[str], bool]:
    return lambda value: integer_read(value)[1] and 0 <= integer_read(value)[0] < limit


def _from(limit: int) -> Callable[[str], bool]:
    return lambda value: integer_read(value)[1] and integer_read(value)[0] >= limit


def _word(*words: str) -> Callable[[str], bool]:
    return lambda value: value.strip().casefold() in words


def _names(word: str) -> Callable[[str], bool]:
    """Return the test that a list names a word and does not exclude it."""
    return lambda value: not value.startswith("^") and word in value.casefold().split(",")


def _leaves_ring_out(value: str) -> bool:
    """Return whether the algorithms of all functions are named, and ring is none of them."""
    first = value.partition(";")[0].casefold().strip()
    return bool(first) and not first.startswith("^") and ":" not in first and "ring" not in first.split(",")


def _any(value: str) -> bool:
    return bool(value)


_DEBUGGING = "was left from debugging"

RISKS: tuple[Risk, ...] = (
    Risk(
        name="NCCL_IB_DISABLE",
        is_risky=_is(1),
        what="turns InfiniBand and RoCE off: traffic between nodes goes over TCP sockets, many times slower",
        protocols=_RDMA,
    ),
    Risk(
        name="NCCL_NET",
        is_risky=_word("socket"),
        what="sends traffic between nodes over TCP sockets, many times slower than RDMA",
        protocols=_RDMA | {"efa", "tcpx", "tcpxo", "slingshot"},
    ),
    Risk(
        name="NCCL_P2P_DISABLE",
        is_risky=_is(1),
        what="turns NVLink and direct PCIe copies off: GPUs of a node meet in host memory",
        needs_nvlink=True,
    ),
    Risk(
        name="NCCL_P2P_LEVEL",
        is_risky=_word("loc", "0"),
        what="turns NVLink and direct PCIe copies off: GPUs of a node meet in host memory",
        needs_nvlink=True,
    ),
    Risk(
        name="NCCL_SHM_DISABLE",
        is_risky=_is(1),
        what="turns shared memory off: GPUs of a node without NVLink meet over the network card",
    ),
    Risk(
        name="NCCL_NET_GDR_LEVEL",
        is_risky=_word("loc", "0"),
        what="turns GPUDirect RDMA off: every byte between nodes goes through host memory",
        protocols=_RDMA | {"efa", "slingshot"},
    ),
    Risk(
        name="NCCL_NET_GDR_LEVEL",
        is_risky=_word("sys"),
        what="uses GPUDirect RDMA even between CPU sockets, which is often slower than not to",
        severity=Severity.ADVICE,
    ),
    Risk(
        name="NCCL_GDR_FLUSH_DISABLE",
        is_risky=_is(1),
        what="leaves out the flush after GPUDirect writes: a GPU may read data that are not there yet",
        source="NVIDIA, NCCL, src/transport/net_ib",
    ),
    Risk(
        name="NCCL_NVLS_ENABLE",
        is_risky=_is(0),
        what="turns reduction in the NVLink switches off: all-reduce on H100 and later loses bandwidth",
        severity=Severity.ADVICE,
        needs_nvlink=True,
    ),
    Risk(
        name="NCCL_CUMEM_ENABLE",
        is_risky=_is(0),
        what="turns cuMem allocations off, and with them NVLS and NVLink across nodes",
        severity=Severity.ADVICE,
        since=(2, 19, 0),
    ),
    Risk(
        name="NCCL_MNNVL_ENABLE",
        is_risky=_is(0),
        what="turns NVLink across nodes off: traffic inside a rack takes the network",
        severity=Severity.ADVICE,
    ),
    Risk(
        name="NCCL_PROTO",
        is_risky=_word("ll"),
        what="leaves only LL, which carries about half of the bandwidth",
    ),
    Risk(
        name="NCCL_PROTO",
        is_risky=_names("ll128"),
        what="forces LL128, which can corrupt data on platforms that do not support it",
        severity=Severity.ADVICE,
    ),
    Risk(
        name="NCCL_ALGO",
        is_risky=_word("ring", "tree"),
        what="leaves one algorithm, whatever the size and the collective",
        todo="take it out: NCCL chooses by size; exclude one with ^ where it is at fault",
        severity=Severity.ADVICE,
    ),
    Risk(
        name="NCCL_ALGO",
        is_risky=_leaves_ring_out,
        what="leaves ring out, to which NCCL from 2.24 on does not fall back: collectives without another "
        "algorithm fail",
        todo="take it out, or limit it to a collective: allreduce:tree",
        since=(2, 24, 0),
    ),
    Risk(
        name="NCCL_MAX_NCHANNELS",
        is_risky=_below(4),
        what="caps NVLink and the network at the few channels it leaves",
    ),
    Risk(
        name="NCCL_MAX_P2P_NCHANNELS",
        is_risky=_below(2),
        what="makes all-to-all slow: one channel for send and receive",
        source="NVIDIA, NCCL, src/init.cc",
    ),
    Risk(
        name="NCCL_IGNORE_DISABLED_P2P",
        is_risky=_is(2),
        what="goes on where NVLink between GPUs is broken: hides a fault of the hardware",
        source="NVIDIA, NCCL, src/graph/paths.cc",
    ),
    Risk(
        name="NCCL_CHUNK_SIZE",
        is_risky=_from(1 << 20),
        what="chunks from 1 MiB on gave wrong results in releases 2.29 to 2.31",
        since=(2, 29, 0),
        before=(2, 32, 0),
        source="https://github.com/NVIDIA/nccl/issues/2408",
    ),
    Risk(
        name="NCCL_IB_TIMEOUT",
        is_risky=_below(14),
        what="waits less than 70 ms for an acknowledgement: congestion ends the job with error 12",
    ),
    Risk(
        name="NCCL_IB_RETRY_CNT",
        is_risky=_below(7),
        what="makes a short flap of a link end the job",
    ),
    Risk(
        name="NCCL_IB_RETURN_ASYNC_EVENTS",
        is_risky=_is(0),
        what="turns a dead port into a hang instead of an error",
    ),
    Risk(
        name="NCCL_IB_ROCE_VERSION_NUM",
        is_risky=_is(1),
        what="takes RoCE v1, which no router passes on",
        protocols=frozenset({"roce"}),
    ),
    Risk(
        name="NCCL_PXN_DISABLE",
        is_risky=_is(1),
        what="sends across rails: all-to-all opens many more connections, and rails that are not joined fail",
        severity=Severity.ADVICE,
    ),
    Risk(
        name="NCCL_NVB_DISABLE",
        is_risky=_is(1),
        what="takes routes through a neighbouring GPU away",
        severity=Severity.ADVICE,
    ),
    Risk(
        name="NCCL_LAUNCH_RACE_FATAL",
        is_risky=_is(0),
        what="hides that threads of the program race",
        severity=Severity.ADVICE,
    ),
    Risk(
        name="NCCL_GRAPH_FILE",
        is_risky=_any,
        what="puts rings and trees of a file in place of NCCL's; with other GPUs it fails",
        source="NVIDIA, NCCL, src/graph",
    ),
    Risk(
        name="NCCL_HOSTID",
        is_risky=_any,
        what="replaces the identity of the host; two hosts with one value try to share memory and fail",
        source="NVIDIA, NCCL, src/misc/utils.cc",
    ),
    Risk(
        name="NCCL_DEBUG",
        is_risky=_word("info", "trace"),
        what="writes a log for every rank, which floods the console at scale",
        todo="write WARN in production; with INFO set NCCL_DEBUG_FILE to a name with %h and %p",
        severity=Severity.ADVICE,
    ),
    Risk(
        name="NCCL_CHECK_POINTERS",
        is_risky=_is(1),
        what=f"checks every pointer of every call; {_DEBUGGING}",
        severity=Severity.ADVICE,
    ),
    Risk(
        name="NCCL_CHECK_MODE",
        is_risky=_word("debug_local", "debug_global"),
        what=f"checks the arguments of every call; {_DEBUGGING}",
        severity=Severity.ADVICE,
    ),
    Risk(
        name="CUDA_LAUNCH_BLOCKING",
        is_risky=_is(1),
        what="waits for every kernel: communication no longer overlaps with computing",
        source="CUDA C++ Programming Guide, environment variables",
    ),
    Risk(
        name="TORCH_DISTRIBUTED_DEBUG",
        is_risky=_word("detail"),
        what="checks every collective with further collectives, which slows training",
        source="PyTorch documentation, torch.distributed",
    ),
    Risk(
        name="TORCH_NCCL_BLOCKING_WAIT",
        is_risky=_is(1),
        what=f"makes the host wait for collectives; {_DEBUGGING}",
        severity=Severity.ADVICE,
        source="PyTorch documentation, ProcessGroupNCCL environment variables",
    ),
    Risk(
        name="TORCH_NCCL_DESYNC_DEBUG",
        is_risky=_is(1),
        what=f"records every collective; {_DEBUGGING}",
        severity=Severity.ADVICE,
        source="PyTorch documentation, ProcessGroupNCCL environment variables",
    ),
    Risk(
        name="TORCH_NCCL_ASYNC_ERROR_HANDLING",
        is_risky=_is(0),
        what="does nothing on an error of NCCL: the job hangs instead of ending",
        source="PyTorch documentation, ProcessGroupNCCL environment variables",
    ),
    Risk(
        name="RDMAV_FORK_SAFE",
        is_risky=_any,
        what="breaks fork on newer kernels",
        todo="take it out; for EFA on kernels before 5.15 use FI_EFA_FORK_SAFE=1",
        protocols=frozenset({"efa"}),
        source="aws-samples/awsome-distributed-training, 1.architectures/efa-cheatsheet.md",
    ),
)
"""Values that do harm or are left from debugging."""
