"""Rules on settings that do not go together: one undoes the other, needs the other, or is set twice.

`PAIRS` is the table of two settings; add one there and its two tests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from linkwise.nccl.allowed import integer_read
from linkwise.nccl.variables import Release
from linkwise.readers.environment import Assignment
from linkwise.settings.finding import Finding, Severity, Subject, guide

__all__ = ["PAIRS", "Pair", "debug_file_names", "limits_crossed", "pairs", "set_twice", "too_many_sockets"]

Values = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A setting that another one undoes, or that needs another one.

    Attributes
    ----------
    name
        The setting that the finding is on.
    holds
        Whether the pair is wrong, on the values of all settings; the name itself is among them.
    what, todo
        What is wrong and what to do.
    severity
        How bad it is.
    since
        The first release it holds for.
    """

    name: str
    holds: Callable[[Values], bool]
    what: str
    todo: str
    severity: Severity = Severity.NO_EFFECT
    since: Release = (0, 0, 0)


def _is(values: Values, name: str, number: int) -> bool:
    return name in values and integer_read(values[name]) == (number, True)


def _is_on(values: Values, name: str) -> bool:
    return name in values and integer_read(values[name])[0] > 0


def _says(values: Values, name: str, *words: str) -> bool:
    return values.get(name, "").strip().casefold() in words


_IB_OFF = "has no effect beside NCCL_IB_DISABLE=1, which turns InfiniBand and RoCE off"
_IB_OFF_TODO = "take out NCCL_IB_DISABLE=1 if the network is InfiniBand or RoCE, and this setting if not"
_IB_NAMES = (
    "NCCL_IB_HCA",
    "NCCL_IB_GID_INDEX",
    "NCCL_IB_TC",
    "NCCL_IB_SL",
    "NCCL_IB_TIMEOUT",
    "NCCL_IB_RETRY_CNT",
    "NCCL_IB_QPS_PER_CONNECTION",
    "NCCL_IB_SPLIT_DATA_ON_QPS",
    "NCCL_IB_ADAPTIVE_ROUTING",
    "NCCL_IB_PCI_RELAXED_ORDERING",
)
_AUTOMATIC_GID = ("NCCL_IB_ROCE_VERSION_NUM", "NCCL_IB_ADDR_FAMILY", "NCCL_IB_ADDR_RANGE")

PAIRS: tuple[Pair, ...] = (
    *(
        Pair(
            name=name,
            holds=lambda values: _is(values, "NCCL_IB_DISABLE", 1),
            what=_IB_OFF,
            todo=_IB_OFF_TODO,
            severity=Severity.HARMFUL if name == "NCCL_IB_HCA" else Severity.NO_EFFECT,
        )
        for name in _IB_NAMES
    ),
    *(
        Pair(
            name=name,
            holds=lambda values: _says(values, "NCCL_NET", "socket"),
            what="has no effect beside NCCL_NET=Socket, which leaves InfiniBand and RoCE unused",
            todo="take out NCCL_NET=Socket if the network is InfiniBand or RoCE, and this setting if not",
            severity=Severity.HARMFUL if name == "NCCL_IB_HCA" else Severity.NO_EFFECT,
        )
        for name in _IB_NAMES
    ),
    Pair(
        name="NCCL_NET",
        holds=lambda values: _says(values, "NCCL_NET", "ib") and _is(values, "NCCL_IB_DISABLE", 1),
        what="asks for the network that NCCL_IB_DISABLE=1 turns off: NCCL does not start",
        todo="take out one of the two",
        severity=Severity.HARMFUL,
    ),
    Pair(
        name="NCCL_NET",
        holds=lambda values: (
            _says(values, "NCCL_NET", "aws libfabric", "ofi", "libfabric")
            and _says(values, "NCCL_NET_PLUGIN", "none")
        ),
        what="asks for a network of a plugin, and NCCL_NET_PLUGIN=none loads no plugin: NCCL does not start",
        todo="take out NCCL_NET_PLUGIN=none",
        severity=Severity.HARMFUL,
    ),
    *(
        Pair(
            name=name,
            holds=lambda values: integer_read(values.get("NCCL_IB_GID_INDEX", "-1"))[0] >= 0,
            what="has no effect beside NCCL_IB_GID_INDEX: it guides the automatic choice of a GID only",
            todo="take out NCCL_IB_GID_INDEX",
            since=(2, 21, 0),
        )
        for name in _AUTOMATIC_GID
    ),
    Pair(
        name="NCCL_IB_SPLIT_DATA_ON_QPS",
        holds=lambda values: integer_read(values.get("NCCL_IB_QPS_PER_CONNECTION", "1"))[0] <= 1,
        what="has no effect with one queue pair per connection",
        todo="take it out, or set NCCL_IB_QPS_PER_CONNECTION above 1",
    ),
    Pair(
        name="NCCL_DEBUG_SUBSYS",
        holds=lambda values: not _says(values, "NCCL_DEBUG", "info", "trace"),
        what="chooses topics of INFO lines, which need NCCL_DEBUG=INFO",
        todo="take it out, or set NCCL_DEBUG=INFO for the time of the search",
    ),
    Pair(
        name="NCCL_DEBUG_FILE",
        holds=lambda values: not values.get("NCCL_DEBUG", "") or _says(values, "NCCL_DEBUG", "version"),
        what="has no effect without NCCL_DEBUG=WARN or INFO",
        todo="take it out, or set NCCL_DEBUG",
    ),
    Pair(
        name="NCCL_NVLS_ENABLE",
        holds=lambda values: _is_on(values, "NCCL_NVLS_ENABLE") and _is(values, "NCCL_CUMEM_ENABLE", 0),
        what="has no effect beside NCCL_CUMEM_ENABLE=0: NVLS needs cuMem",
        todo="take out NCCL_CUMEM_ENABLE=0",
    ),
    Pair(
        name="NCCL_MNNVL_ENABLE",
        holds=lambda values: _is_on(values, "NCCL_MNNVL_ENABLE") and _is(values, "NCCL_CUMEM_ENABLE", 0),
        what="asks for NVLink across nodes, which NCCL_CUMEM_ENABLE=0 makes impossible",
        todo="take out NCCL_CUMEM_ENABLE=0",
        severity=Severity.HARMFUL,
    ),
    Pair(
        name="NCCL_P2P_LEVEL",
        holds=lambda values: _is(values, "NCCL_P2P_DISABLE", 1),
        what="has no effect beside NCCL_P2P_DISABLE=1",
        todo="take out NCCL_P2P_DISABLE=1",
    ),
    Pair(
        name="NCCL_ALGO",
        holds=lambda values: (
            "nvls" in values.get("NCCL_ALGO", "").casefold()
            and not values.get("NCCL_ALGO", "").startswith("^")
            and _is(values, "NCCL_NVLS_ENABLE", 0)
        ),
        what="names NVLS, which NCCL_NVLS_ENABLE=0 turns off: a collective may be left without an algorithm",
        todo="take out one of the two",
        severity=Severity.HARMFUL,
    ),
    Pair(
        name="NCCL_IB_RESILIENCY_PORT_RECOVERY",
        holds=lambda values: (
            _is_on(values, "NCCL_IB_RESILIENCY_PORT_RECOVERY")
            and not _is_on(values, "NCCL_IB_RESILIENCY_PORT_FAILOVER")
        ),
        what="has no effect without NCCL_IB_RESILIENCY_PORT_FAILOVER=1",
        todo="set both, or none",
    ),
    Pair(
        name="TORCH_NCCL_DUMP_ON_TIMEOUT",
        holds=lambda values: (
            _is_on(values, "TORCH_NCCL_DUMP_ON_TIMEOUT")
            and not _is_on(values, "TORCH_NCCL_TRACE_BUFFER_SIZE")
            and not _is_on(values, "TORCH_FR_BUFFER_SIZE")
        ),
        what="has no effect without events to dump in releases of PyTorch where the buffer is 0 by default",
        todo="set TORCH_NCCL_TRACE_BUFFER_SIZE=2000 (TORCH_FR_BUFFER_SIZE in newer PyTorch) as well",
        severity=Severity.ADVICE,
    ),
)
"""Settings that do not go together."""


def pairs(subject: Subject) -> Iterator[Finding]:
    """Yield settings of `PAIRS`."""
    for file, settings in subject.scopes():
        values = {name: each.value or "" for name, each in settings.items()}
        for pair in PAIRS:
            if pair.name in values and subject.release >= pair.since and pair.holds(values):
                yield subject.finding(
                    file,
                    settings[pair.name],
                    pair.severity,
                    rule="contradiction",
                    what=pair.what,
                    todo=pair.todo,
                    source=guide(pair.name),
                )


def set_twice(subject: Subject) -> Iterator[Finding]:
    """Yield settings that a later line of the same scope sets otherwise."""
    for file in subject.files:
        first: dict[tuple[str, str], Assignment] = {}
        for each in file.assignments:
            before = first.setdefault((each.scope, each.name), each)
            is_same = before.value == each.value or before.reach is not each.reach
            if is_same or before.value is None or each.value is None or before.name in each.value:
                continue
            yield subject.finding(
                file,
                before,
                Severity.NO_EFFECT,
                rule="set-twice",
                what=f"line {each.line} sets it otherwise; the later one holds",
                todo="keep one of the two",
                source="Shell Command Language, 2.9.1",
            )
            first[each.scope, each.name] = each


def limits_crossed(subject: Subject) -> Iterator[Finding]:
    """Yield lower limits that stand above their upper ones."""
    for file, settings in subject.scopes():
        for what in ("NCHANNELS", "P2P_NCHANNELS", "CTAS"):
            low, high = settings.get(f"NCCL_MIN_{what}"), settings.get(f"NCCL_MAX_{what}")
            if low is None or high is None:
                continue
            least, most = integer_read(low.value or "")[0], integer_read(high.value or "")[0]
            if 0 < most < least:
                yield subject.finding(
                    file,
                    low,
                    Severity.HARMFUL,
                    rule="limits-crossed",
                    what=f"the least, {least}, is above the most, {most}",
                    todo=f"take both out, or set NCCL_MIN_{what} to at most {most}",
                    source=guide(f"NCCL_MIN_{what}"),
                )


def too_many_sockets(subject: Subject) -> Iterator[Finding]:
    """Yield threads and sockets per thread whose product is above 64."""
    for file, settings in subject.scopes():
        threads, sockets = settings.get("NCCL_SOCKET_NTHREADS"), settings.get("NCCL_NSOCKS_PERTHREAD")
        if threads is None or sockets is None:
            continue
        product = integer_read(threads.value or "")[0] * integer_read(sockets.value or "")[0]
        if product > 64:
            yield subject.finding(
                file,
                threads,
                Severity.NO_EFFECT,
                rule="too-many-sockets",
                what=f"times NCCL_NSOCKS_PERTHREAD it is {product}; NCCL cuts that to 64",
                todo="lower one of the two",
                source=guide("NCCL_SOCKET_NTHREADS"),
            )


def debug_file_names(subject: Subject) -> Iterator[Finding]:
    """Yield log files that all processes would write to."""
    for file, settings in subject.scopes():
        at = settings.get("NCCL_DEBUG_FILE")
        value = (at.value or "") if at is not None else ""
        if at is None or not value or value.startswith("/dev/"):
            continue
        if value.startswith("~"):
            what, todo = "begins with ~, which NCCL does not expand", "write the whole path"
        elif "%p" not in value and "$" not in value:
            what = "is one name for all processes: they overwrite one another"
            todo = "put %h (host) and %p (process) into the name"
        else:
            continue
        yield subject.finding(
            file,
            at,
            Severity.HARMFUL,
            rule="debug-file",
            what=what,
            todo=todo,
            source=guide("NCCL_DEBUG_FILE"),
        )
