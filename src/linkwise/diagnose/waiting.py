"""What a collective that timed out tells by itself: the likelier of the program and the way of the data."""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.diagnose.facts import Facts
from linkwise.readers.job_log.values import Sighting

__all__ = ["timeout_reason"]

_WAY = "p2p, acs_iommu, socket_ifname, roce_gid"
_FABRIC = "ib_error, link_flap"
_PROGRAM = "desync, remote_exit"


def timeout_reason(facts: Facts) -> str | None:
    """Return what to say of a timeout that no finding explains; ``None`` where nothing timed out.

    Parameters
    ----------
    facts
        What is known of the job.

    Notes
    -----
    PyTorch counts the collectives of a group. Where none ever ended, the way between the GPUs never worked,
    or a rank never came; where many did, a rank that is late is far more frequent than a link that fell
    silent without a word of NCCL. Neither is proof, so that both are named.
    """
    lines = facts.seen("watchdog_timeout", "watchdog_failure") or facts.seen("watchdog_cut")
    if not lines:
        return None
    place = f"{lines[0].evidence.file}:{lines[0].evidence.line}"
    waiting = {each.rank for each in lines if each.rank is not None}
    is_first = _is_first(facts, lines)
    if facts.ranks is not None and len(waiting) >= facts.ranks > 1 and _is_one_call(lines):
        return (
            f"a collective timed out ({place}) in which all {facts.ranks} ranks wait, so that none is"
            f" missing: the data does not get through ({_WAY if is_first else _FABRIC}); test with"
            " NCCL_P2P_DISABLE=1 inside a node, with nccl-tests between nodes"
        )
    if is_first:
        return (
            f"the first collective timed out ({place}), and none ever ended: likelier the way between the"
            f" GPUs ({_WAY}; test with NCCL_P2P_DISABLE=1 and nccl-tests) than a rank that never came"
            f" ({_PROGRAM}); give the logs of all ranks"
        )
    return (
        f"a collective timed out ({place}) after others had ended, and what holds it is not here: likelier a"
        f" rank that is late, elsewhere or dead ({_PROGRAM}) than the network ({_FABRIC}); give the logs of"
        " all ranks"
    )


def _is_one_call(lines: Sequence[Sighting]) -> bool:
    calls = {(each.fields.get("group", ""), each.fields.get("sequence")) for each in lines}
    return len(calls) == 1 and all("sequence" in each.fields for each in lines)


def _is_first(facts: Facts, lines: Sequence[Sighting]) -> bool:
    """Return whether no collective ended before; ranks of several groups may count from one in each."""
    ended = [int(each.fields["completed"]) for each in facts.seen("watchdog_progress")]
    if ended:
        return max(ended) <= 0
    return all(int(each.fields.get("sequence", "2")) <= 1 for each in lines)
