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
"""What PyTorch writes before the lines of an uncaught exception, but for older releases."""

GLOO_MESSAGES: tuple[Message, ...] = (
    message(
        "gloo_closed",
        "Connection closed by peer",
        _RANK + r".*gloo/transport/\S+\] Connection closed by peer \[(?P<peer>[^\]]*)",
    ),
    # Older releases write writev and readv.
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
        _RANK + r".*connectFullMesh failed(?: with|:)? ?(?P<text>.+?(?:remote=\[(?P<peer>[^\]]*).*)?)$",
    ),
    # So in older releases.
    message(
        "gloo_unconnected",
        "gloo/transport/",
        _RANK + r".*gloo/transport/\S+\] connect(?: \[(?P<peer>[^\]]*)\]:\d+: (?P<text>.+)|\s*$)",
    ),
    # The end of such lines where they were broken.
    message("gloo_peer", "[127.", r"^\s*\[(?P<peer>127\.[\d.]+)\]:\d+: Connection refused"),
    message("gloo_peer", "remote=[", r"^(?:.*SO_ERROR: .*?)?\s*remote=\[(?P<peer>[^\]]*)"),
    message("gloo_world", ", size=", r"\brank=(?P<rank>\d+), size=(?P<world>\d+)"),
    message(
        "gloo_no_address",
        "!= nullptr. Unable to find",
        _RANK
        + r".*\b(?P<what>ifa|rp) != nullptr\. ?Unable to find (?:address|interface) for:? (?P<name>\S+)",
    ),
    # Where the line was broken.
    message(
        "gloo_no_address",
        "Unable to find address for",
        _RANK + r"\s*(?P<what>ifa|rp) != nullptr\. ?Unable to find address for:? (?P<name>\S+)",
    ),
    message(
        "gloo_no_port", "gloo/transport/", r"gloo/transport/\S+\] (?:bind|listen): Address already in use"
    ),
    message(
        "gloo_refused",
        "ERROR failed to connect, willRetry",
        r"rank=(?P<rank>\d+), size=(?P<world>\d+), local=\[(?P<local>[^\]]*).*remote=\[(?P<peer>[^\]]*)",
    ),
    message(
        "gloo_loopback", "Unable to resolve hostname to a (local)", _RANK + r".*Unable to resolve hostname"
    ),
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
    message("agent_told", "SignalException: Process", r"Process \d+ got signal: (?P<signal>\w+)"),
    message(
        "store_left", "failed to shutdown the rendezvous", r"node '(?P<node>[^']*)' has failed to shutdown"
    ),
    message("launcher_exit", "exits with return code", r"exits with return code = (?P<code>-?\d+)"),
    message("ray_died", "worker process has died", r"because its worker process has died"),
    message("ray_died", "A worker died or was killed", r"A worker died or was killed while executing a task"),
    message("bus_error", "insufficient shared memory", r"(?P<certain>insufficient shared memory \(shm\))"),
    message("bus_error", "signal: Bus error", r"killed by signal: Bus error"),
    message("bus_error", "(Bus error: ", r"Caught signal 7 \(Bus error"),
    message("bus_error", "Bus error (signal 7)", r"Bus error \(signal 7\)"),
    message(
        "died_by", "terminated with signal SIG", r"process \d+ terminated with signal (?P<signal>SIG\w+)"
    ),
    message("died_by", "died with <Signals.", r"died with <Signals\.(?P<signal>SIG\w+)"),
    message("died_by", ") received by PID", r"Signal \d+ \((?P<signal>SIG\w+)\) received by PID"),
    message("agent_restart", "will restart worker group", r"will restart worker group"),
    message("rendezvous_closed", "RendezvousClosedError", r"RendezvousClosedError"),
    message("interrupted", "KeyboardInterrupt", _RANK + r".*KeyboardInterrupt\s*$"),
    message("own_error", "Error: ", _RANK + r":? ?(?P<name>[A-Za-z_][\w.]*Error): (?P<text>.+)$"),
    message("own_error", "Exception: ", _RANK + r":? ?(?P<name>[A-Za-z_][\w.]*Exception): (?P<text>.+)$"),
    message("own_error", "AssertionError", _RANK + r":? ?(?P<name>AssertionError)\s*$"),
)
"""Such lines, each with the text it is found by."""
