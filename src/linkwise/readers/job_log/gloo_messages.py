"""Lines of gloo and of torchrun's agents: what ranks say when a peer is gone, and what ended them.

References
----------
gloo, gloo/transport/tcp/{pair,unbound_buffer,device}.cc, https://github.com/pytorch/gloo; PyTorch,
torch/csrc/distributed/c10d/ProcessGroupGloo.cpp and torch/distributed/elastic (agent/server/api.py,
multiprocessing/api.py, multiprocessing/errors), https://github.com/pytorch/pytorch; jobs of torch 2.13 under
faults, in tests/data/gloo_logs.
"""

from __future__ import annotations

from linkwise.readers.job_log.message import Message, message

__all__ = ["GLOO_MESSAGES"]

_RANK = r"^(?:.{0,120}?\[rank ?(?P<rank>\d{1,7})\])?"
"""What PyTorch writes before the lines of an uncaught exception, since 2.3."""

GLOO_MESSAGES: tuple[Message, ...] = (
    message(
        "gloo_closed",
        "Connection closed by peer",
        _RANK + r".*gloo/transport/\S+\] Connection closed by peer \[(?P<peer>[^\]]*)",
    ),
    # Read error since 1.5, writev and readv before.
    message(
        "gloo_closed",
        "gloo/transport/",
        _RANK
        + r".*gloo/transport/\S+\] (?:(?:Read|Write) error|readv|writev) \[(?P<peer>[^\]]*)\]\S* (?P<text>[^.]+)",
    ),
    message(
        "gloo_timeout",
        "operation to complete",
        _RANK + r".*Timed out waiting (?P<timeout_ms>\d+)ms for (?P<way>recv|send) operation to complete",
    ),
    message(
        "gloo_unconnected",
        "connectFullMesh failed",
        _RANK + r".*connectFullMesh failed with (?P<text>.+?(?:remote=\[(?P<peer>[^\]]*).*)?)$",
    ),
    message(
        "gloo_no_address",
        "Unable to find address for",
        _RANK + r".*\b(?P<what>ifa|rp) != nullptr\. ?Unable to find address for:? (?P<name>\S+)",
    ),
    message(
        "gloo_refused",
        "ERROR failed to connect, willRetry",
        r"rank=(?P<rank>\d+), size=(?P<world>\d+), local=\[(?P<local>[^\]]*).*remote=\[(?P<peer>[^\]]*)",
    ),
    message("gloo_loopback", "loopback address as fallback", _RANK + r".*Unable to resolve hostname"),
    message("gloo_interface", "GLOO_SOCKET_IFNAME=", r"GLOO_SOCKET_IFNAME=[\"']?(?P<name>[^\"'\s;]+)"),
    message(
        "rank_joined",
        "ranks over gloo",
        r"\[rank(?P<rank>\d+)\]: (?P<host>\S+): joined (?P<world>\d+) ranks over gloo on (?P<device>\S+)"
        r"(?: (?P<address>[\d.]+))? \(pid: (?P<pid>\d+)\)",
    ),
    message(
        "agent_exit",
        "failed (exitcode: ",
        r"failed \(exitcode: (?P<code>-?\d+)\) local_rank: (?P<local_rank>\d+) \(pid: (?P<pid>\d+)\)"
        r"(?: rank: (?P<rank>\d+) host: (?P<host>\S+))?",
    ),
    message("summary_host", "host      :", r"^\W*host +: (?P<host>\S+)"),
    message("summary_rank", "(local_rank: ", r"\brank +: (?P<rank>\d+) \(local_rank: (?P<local_rank>\d+)\)"),
    message("summary_exit", "exitcode  :", r"exitcode +: (?P<code>-?\d+) \(pid: (?P<pid>\d+)\)"),
    message(
        "agent_closing", "closing signal", r"Sending process (?P<pid>\d+) closing signal (?P<signal>[\w.]+)"
    ),
    message("agent_forced", "Unable to shutdown process", r"shutdown process (?P<pid>\d+) via"),
    message(
        "agent_told",
        "death signal, shutting down",
        r"(?:(?P<host>\S+): agent: )?Received (?:Signals\.)?(?P<signal>\w+) death signal",
    ),
    message("agent_restart", "will restart worker group", r"will restart worker group"),
    message("rendezvous_closed", "RendezvousClosedError", r"RendezvousClosedError"),
    message("interrupted", "KeyboardInterrupt", _RANK + r".*KeyboardInterrupt\s*$"),
    message("own_error", "Error: ", _RANK + r":? ?(?P<name>[A-Za-z_][\w.]*Error): (?P<text>.+)$"),
    message("own_error", "Exception: ", _RANK + r":? ?(?P<name>[A-Za-z_][\w.]*Exception): (?P<text>.+)$"),
    message("own_error", "AssertionError", _RANK + r":? ?(?P<name>AssertionError)\s*$"),
)
"""Such lines, each with the text it is found by."""
