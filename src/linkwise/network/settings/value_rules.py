"""Rules on single values: outside what is allowed, left over from debugging, harmful, or the default anyway.

`RISKS` is the table of values that do harm; add one there and its two tests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from linkwise.nccl.allowed import integer_read, misfit
from linkwise.nccl.variables import Release, companion, release_text, variables
from linkwise.network.settings.finding import Finding, Severity, Subject, guide
from linkwise.readers.environment import Reach

__all__ = ["RISKS", "Risk", "defaults", "kept_from_debugging", "outside_allowed", "risky_values"]

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
        is_risky=lambda value: value.casefold() in ("ring", "tree"),
        what="leaves one algorithm, whatever the size and the collective",
        todo="take it out: NCCL chooses by size; exclude one with ^ where it is at fault",
        severity=Severity.ADVICE,
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
        source="NVIDIA, NCCL, issues",
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


def outside_allowed(subject: Subject) -> Iterator[Finding]:
    """Yield values that are not among those allowed."""
    for file, each, value in subject.settings():
        known = variables().get(each.name) or companion(each.name)
        if known is None or not value.strip() or "$" in value or "`" in value:
            continue
        why = misfit(known.allowed, value, subject.release)
        if why is not None:
            yield subject.finding(
                file,
                each,
                Severity.HARMFUL,
                rule="value-not-allowed",
                what=f"the value {why}",
                todo=f"write {_words(known.allowed)}, or take it out",
                source=known.source,
            )


def risky_values(subject: Subject) -> Iterator[Finding]:
    """Yield values of `RISKS`; those that a shell does not export do nothing."""
    for file, each, value in subject.settings():
        if each.reach is Reach.SHELL:
            continue
        for risk in RISKS:
            if risk.name == each.name and risk.is_risky(value) and _holds(risk, subject):
                yield subject.finding(
                    file,
                    each,
                    risk.severity,
                    rule="risky-value",
                    what=risk.what,
                    todo=risk.todo,
                    source=risk.source or guide(risk.name),
                )


def defaults(subject: Subject) -> Iterator[Finding]:
    """Yield values that hold without the setting."""
    for file, each, value in subject.settings():
        variable = variables().get(each.name)
        if variable is None or not variable.is_known(subject.release):
            continue
        default = variable.default(subject.release)
        number, is_whole = integer_read(value)
        if value == default or (is_whole and default.lstrip("-").isdigit() and number == int(default)):
            yield subject.finding(
                file,
                each,
                Severity.NO_EFFECT,
                rule="default",
                what=f"is the default of NCCL {release_text(subject.release)}",
                todo="take it out",
                source=variable.source,
            )


_OF_A_SITE = (
    "NCCL_IB_QPS_PER_CONNECTION",
    "NCCL_IB_SPLIT_DATA_ON_QPS",
    "NCCL_IB_ADAPTIVE_ROUTING",
    "NCCL_IB_PCI_RELAXED_ORDERING",
    "NCCL_MNNVL_ENABLE",
    "NCCL_NVLS_ENABLE",
    "NCCL_RAS_ADDR",
)
"""Variables that the user guide sorts under debugging, and that depend on the site."""


def kept_from_debugging(subject: Subject) -> Iterator[Finding]:
    """Yield variables for debugging, and internal ones; those of `RISKS` have a finding of their own."""
    known = {risk.name for risk in RISKS} | set(_OF_A_SITE)
    for file, each, value in subject.settings():
        variable = variables().get(each.name)
        if variable is None or each.name in known or not variable.is_known(subject.release):
            continue
        if value == variable.default(subject.release):
            continue
        if variable.section == "debugging":
            what = "is for debugging: the user guide says not to keep it, as it may slow, crash or hang a job"
        elif not variable.section and variable.meaning == "internal":
            what = "is internal to NCCL and not documented"
        else:
            continue
        yield subject.finding(
            file,
            each,
            Severity.ADVICE,
            rule="kept-from-debugging",
            what=what,
            todo="take it out, unless it works around a fault that you know",
            source=variable.source,
        )


def _holds(risk: Risk, subject: Subject) -> bool:
    if not risk.since <= subject.release < risk.before:
        return False
    if risk.protocols and subject.protocol is not None and subject.protocol not in risk.protocols:
        return False
    cluster = subject.cluster
    return not risk.needs_nvlink or cluster is None or cluster.nvlink_domain_gpus > 1


def _words(allowed: str) -> str:
    """Return what is allowed in words."""
    kind, _, words = allowed.partition(" ")
    if kind == "int":
        low, _, high = words.partition("..")
        return f"a number from {low or 'any'}" + (f" to {high}" if high else " on") if low else "a number"
    if kind in ("one", "word"):
        return "one of " + ", ".join(words.split("|"))
    return {"list": "names of " + words.replace("|", ", "), "cidr": "a range such as 10.0.0.0/8"}.get(
        kind, "a value that NCCL knows"
    )
