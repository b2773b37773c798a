"""Whether a run was what was planned: world size, hosts, environment, transport, RDMA, each with its proof.

What is not seen is not proved: a run is valid only if every check says that it is as planned.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from linkwise.launch.render.run_settings import LOGS
from linkwise.launch.run.checks import Check, Expected, SeenRank, listed
from linkwise.launch.run.interface_proof import interface_check

if TYPE_CHECKING:
    from linkwise.diagnose.transport import Transport

__all__ = ["Check", "Expected", "SeenRank", "is_valid", "prove", "prove_start", "seen_rank", "strangers"]

MOVES_DATA = ("NCCL_", "GLOO_", "UCX_", "FI_")
"""Beginnings of the variables that change how data moves."""
_NETWORK = {
    "infiniband": ("NET/IB",),
    "roce": ("NET/IB",),
    "tcp": ("NET/Socket",),
    "efa": ("NET/OFI", "NET/AWS Libfabric", "NET/Libfabric"),
    "slingshot": ("NET/OFI", "NET/AWS Libfabric", "NET/Libfabric"),
    "tcpx": ("NET/GPUDirectTCPX",),
    "tcpxo": ("NET/FasTrak",),
}
"""How the log of NCCL names the network of a protocol."""


def seen_rank(told: object) -> SeenRank | None:
    """Return a rank as the agent of its node wrote it down; ``None`` where that is damaged.

    Parameters
    ----------
    told
        What was read.
    """
    if not isinstance(told, dict):
        return None
    values: dict[str, Any] = told
    settings = values.get("settings")
    try:
        return SeenRank(
            rank=int(values["rank"]),
            ranks=int(values["ranks"]),
            host=str(values["host"])[:255],
            settings={str(name): str(value) for name, value in settings.items()}
            if isinstance(settings, dict)
            else {},
            connections=tuple(_connections(values.get("connections"))),
        )
    except (KeyError, TypeError, ValueError):
        return None


def _connections(told: object) -> Iterator[tuple[str, str]]:
    for each in told if isinstance(told, list) else ():
        ends = tuple(map(str, each)) if isinstance(each, list) else ()
        if len(ends) == 2:
            yield ends[0], ends[1]


def is_valid(checks: Sequence[Check]) -> bool:
    """Return whether everything is proved to be as planned.

    Parameters
    ----------
    checks
        As `prove` gives them.
    """
    return bool(checks) and all(each.is_as_planned for each in checks)


def prove(
    expected: Expected,
    ranks: Sequence[SeenRank],
    *,
    transport: Transport | None,
    logged: Sequence[tuple[str, str]] = (),
    addresses: Mapping[str, Mapping[str, str]] | None = None,
) -> tuple[Check, ...]:
    """Return what was planned beside what was seen.

    Parameters
    ----------
    expected
        What was planned.
    ranks
        Those that were seen.
    transport
        What the log of NCCL shows; ``None`` where there is none.
    logged
        Variables that NCCL said it read, with their values.
    addresses
        Interfaces by address, for each host.
    """
    return (
        *prove_start(expected, ranks, logged=logged, addresses=addresses or {}),
        *(_of_gpus(expected, transport) if expected.device == "cuda" else _of_cpus(ranks, transport)),
    )


def prove_start(
    expected: Expected,
    ranks: Sequence[SeenRank],
    *,
    addresses: Mapping[str, Mapping[str, str]],
    logged: Sequence[tuple[str, str]] = (),
) -> tuple[Check, ...]:
    """Return what was planned beside what the kernel showed of ranks, without a log of NCCL.

    Parameters
    ----------
    expected, ranks, logged, addresses
        As for `prove`.
    """
    return (
        _world_size(expected, ranks),
        _hosts(expected, ranks),
        _environment(expected, ranks, logged),
        *interface_check(expected, ranks, addresses),
    )


def strangers(names: Sequence[str], planned: Mapping[str, str]) -> tuple[str, ...]:
    """Return the variables that move data and that no plan names.

    Parameters
    ----------
    names
        Variables.
    planned
        Settings of the plan.
    """
    return tuple(sorted({each for each in names if each.startswith(MOVES_DATA) and each not in planned}))


def _world_size(expected: Expected, ranks: Sequence[SeenRank]) -> Check:
    found = {each.rank for each in ranks}
    told = {each.ranks for each in ranks}
    is_whole = found == set(range(expected.ranks)) and told == {expected.ranks}
    seen = f"{len(found)} of {' or '.join(map(str, sorted(told)))}" if ranks else "no rank"
    return Check(
        what="world size",
        planned=str(expected.ranks),
        seen=str(expected.ranks) if is_whole else seen,
        is_as_planned=is_whole if ranks else None,
    )


def _hosts(expected: Expected, ranks: Sequence[SeenRank]) -> Check:
    counts: dict[str, int] = {}
    for each in {each.rank: each for each in ranks}.values():
        counts[each.host] = counts.get(each.host, 0) + 1
    is_even = set(counts.values()) == {expected.ranks_per_node} and len(counts) == expected.nodes
    named = not expected.hosts or set(counts) == set(expected.hosts)
    planned = listed(expected.hosts) if expected.hosts else f"{expected.nodes} of them"
    return Check(
        what="hosts",
        planned=f"{planned}, {expected.ranks_per_node} ranks each",
        seen=listed([f"{host} ({count})" for host, count in sorted(counts.items())]) or "none",
        is_as_planned=(is_even and named) if ranks else None,
    )


def _environment(expected: Expected, ranks: Sequence[SeenRank], logged: Sequence[tuple[str, str]]) -> Check:
    planned = {name: value for name, value in expected.settings.items() if name not in LOGS}
    wrong = dict(_unlike(planned, ranks))
    known = {**planned, **dict.fromkeys(LOGS, "")}
    for each in ranks:
        wrong |= {name: f"{name}={each.settings[name]} is not planned"
                  for name in strangers(tuple(each.settings), known)}  # fmt: skip
    for name, value in logged:
        if name.startswith(MOVES_DATA) and name not in LOGS and planned.get(name) != value:
            wrong.setdefault(name, f"{name}={value} by the log of NCCL")
    return Check(
        what="environment",
        planned=f"{len(planned)} variables on every rank, and none beside that moves data",
        seen=listed(list(wrong.values()), "; ") if wrong else ("as planned" if ranks else "no rank"),
        is_as_planned=not wrong if ranks else None,
    )


def _unlike(planned: Mapping[str, str], ranks: Sequence[SeenRank]) -> Iterator[tuple[str, str]]:
    for name, value in planned.items():
        others = {each.settings.get(name) for each in ranks if name.startswith(_WATCHED)} - {value}
        if others:
            shown = " or ".join(sorted("unset" if each is None else repr(each) for each in others))
            yield name, f"{name} is {shown}, not {value!r}"


_WATCHED = (*MOVES_DATA, "CUDA_VISIBLE_DEVICES", "TORCH_")
"""What the agent of a node writes down."""


def _of_gpus(expected: Expected, transport: Transport | None) -> Iterator[Check]:
    seen = None if transport is None else transport.ranks.value
    yield _shown("ranks of NCCL", str(expected.ranks), seen, seen == expected.ranks)
    if expected.ranks_per_node > 1 and expected.has_nvlink:
        inside = None if transport is None else transport.intra_node.value
        yield _shown(
            "inside a node", "P2P", inside, str(inside).startswith("P2P") and "SHM" not in str(inside)
        )
    if expected.nodes > 1:
        names = _NETWORK.get(expected.protocol, ())
        across = None if transport is None else transport.inter_node.value
        used = str(across).split(" and ")
        yield _shown("between nodes", " or ".join(names) or expected.protocol, across,
                     all(each.startswith(names) for each in used))  # fmt: skip
        if expected.protocol in ("infiniband", "roce"):
            direct = None if transport is None else transport.gpudirect_rdma.value
            yield _shown("GPUDirect RDMA", "yes", direct if direct is None else ("yes" if direct else "no"),
                         direct is True)  # fmt: skip


def _of_cpus(ranks: Sequence[SeenRank], transport: Transport | None) -> Iterator[Check]:
    hidden = [each.settings.get("CUDA_VISIBLE_DEVICES") == "" for each in ranks]
    has_nccl = transport is not None and transport.nccl_version.value is not None
    seen = "a log of NCCL" if has_nccl else "no GPU visible to any rank, no log of NCCL"
    yield Check(
        what="transport",
        planned="gloo over TCP: no GPU, no NCCL, no RDMA",
        seen=seen if ranks and all(hidden) else "GPUs visible to a rank" if ranks else "no rank",
        is_as_planned=(all(hidden) and not has_nccl) if ranks else None,
    )


def _shown(what: str, planned: str, seen: object, is_so: bool) -> Check:  # noqa: FBT001 (one word of a row)
    if seen is None:
        return Check(what=what, planned=planned, seen="not shown by the log of NCCL", is_as_planned=None)
    return Check(what=what, planned=planned, seen=str(seen), is_as_planned=is_so)
