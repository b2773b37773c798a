"""Which transports a run used, from what NCCL logged."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["transports_of"]


def transports_of(log: Iterable[str]) -> dict[str, int]:
    """Return the transports between ranks that NCCL logged, with how many lines of channels each.

    Parameters
    ----------
    log
        Lines of NCCL at INFO.

    Notes
    -----
    A transport is its kind and what carries it, such as ``P2P/CUMEM`` or ``NET/IB``, without the number of
    the NIC and GPUDirect.
    """
    from linkwise.readers.job_log.reading import parse_job_log

    seen: dict[str, int] = {}
    for each in parse_job_log([("log", "\n".join(log).encode())]).channels:
        _, *carriers = each.transport.split("/")
        name = "/".join((each.kind, *carriers[:1]))
        seen[name] = seen.get(name, 0) + each.count
    return dict(sorted(seen.items()))
