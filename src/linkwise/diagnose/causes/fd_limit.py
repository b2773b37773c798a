"""Too many open files."""

from __future__ import annotations

from linkwise.diagnose.facts import Facts
from linkwise.diagnose.finding import Confidence, Finding, Severity, finding
from linkwise.diagnose.limits import open_files

__all__ = ["fd_limit"]


def fd_limit(facts: Facts) -> Finding | None:
    """Return the finding when a call fails for want of file descriptors.

    Parameters
    ----------
    facts
        What is known of the job.
    """
    lines = facts.warned("files_open")
    if not lines:
        return None
    limit = open_files(facts)
    shown = "" if limit is None or limit.value is None else f" The limit is {limit.value} here."
    return finding(
        "fd_limit",
        Severity.BROKEN,
        Confidence.HIGH,
        proof=[*lines, *([] if limit is None else [limit.evidence])],
        where=[each.host for each in lines if each.host],
        explanation=(
            "A process has as many files and sockets open as it may. NCCL opens sockets per peer, channel"
            f" and thread, so large jobs and all-to-all need thousands.{shown}"
        ),
        fix=(
            "ulimit -n 1048576 in the job script; LimitNOFILE=1048576 in the unit of slurmd or containerd",
            "fewer sockets: lower NCCL_SOCKET_NTHREADS and NCCL_NSOCKS_PERTHREAD",
        ),
        next_check="cat /proc/PID/limits | grep 'open files'; ls /proc/PID/fd | wc -l",
    )
