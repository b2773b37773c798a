"""What the kernel of a node shows of processes: what ranks were told, and with whom they are connected.

A copy of this file lies beside that of `node_agent` in the run folder; it imports the standard library alone.

References
----------
Linux, Documentation/networking/proc_net_tcp.rst; proc(5).
"""

from __future__ import annotations

import contextlib
import socket
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

__all__ = ["MOST_CONNECTIONS", "WATCHED", "addresses_of", "connections_of", "rank_of", "ranks_of"]

WATCHED = ("NCCL_", "GLOO_", "UCX_", "FI_", "CUDA_VISIBLE_DEVICES", "TORCH_", "MASTER_ADDR")
"""Beginnings of the variables that are written down; others may be secrets."""
MOST_CONNECTIONS = 256
"""Of one rank; more show nothing new [1]."""
_ESTABLISHED = "01"


def ranks_of(launcher: int, *, host: str, proc: Path = Path("/proc")) -> list[dict[str, Any]]:
    """Return what the ranks that a process started were given, as the kernel shows it.

    Parameters
    ----------
    launcher
        Process of torchrun.
    host
        Name of this node.
    proc
        Where the kernel shows processes.
    """
    found = []
    for entry in proc.iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError, ValueError, IndexError):
            status = (entry / "stat").read_text(encoding="utf-8", errors="replace")
            if int(status.rpartition(")")[2].split()[1]) != launcher:
                continue
            if (rank := rank_of(int(entry.name), host=host, proc=proc)) is not None:
                found.append(rank)
    return sorted(found, key=lambda each: each["rank"])


def rank_of(pid: int, *, host: str, proc: Path = Path("/proc")) -> dict[str, Any] | None:
    """Return what one process was told, as the kernel shows it; ``None`` where it is no rank.

    Parameters
    ----------
    pid
        The process.
    host
        Name of its node.
    proc
        Where the kernel shows processes.
    """
    try:
        words = (proc / str(pid) / "environ").read_bytes().decode(errors="replace").split("\0")
        given = dict(word.split("=", 1) for word in words if "=" in word)
        return {
            "rank": int(given["RANK"]),
            "ranks": int(given["WORLD_SIZE"]),
            "host": host,
            "pid": pid,
            "settings": {name: given[name] for name in sorted(given) if name.startswith(WATCHED)},
            "store_port": given.get("MASTER_PORT", ""),
        }
    except (OSError, KeyError, ValueError):
        return None


def addresses_of(pid: str, *, proc: Path = Path("/proc")) -> dict[str, str]:
    """Return the interfaces by their addresses, as a process sees them.

    Parameters
    ----------
    pid
        The process, or ``self``.
    proc
        Where the kernel shows processes.

    Notes
    -----
    The table of routes names the interface of every network, and the trie of the forwarding base every
    address of its own; an address is on the interface of the narrowest network that holds it.
    """
    found: dict[str, str] = {}
    for line in _lines_of(proc / pid / "net" / "if_inet6"):
        words = line.split()
        if len(words) == 6:
            found[socket.inet_ntop(socket.AF_INET6, bytes.fromhex(words[0]))] = words[5]
    own = _own_addresses(_lines_of(proc / pid / "net" / "fib_trie"))
    networks = sorted(_networks(_lines_of(proc / pid / "net" / "route")), reverse=True)
    for address in own:
        number = int.from_bytes(socket.inet_aton(address), "big")
        name = next((name for mask, net, name in networks if mask and number & mask == net), "")
        found[address] = "lo" if address.startswith("127.") else name
    return {address: name for address, name in found.items() if name}


def _lines_of(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return []


def _own_addresses(lines: Sequence[str]) -> set[str]:
    """Return the addresses below which the trie says that they are of this host."""
    found, last = set(), ""
    for line in lines:
        if "|-- " in line:
            last = line.rpartition("|-- ")[2].strip()
        elif "/32 host LOCAL" in line and last:
            found.add(last)
    return found


def _networks(lines: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    for line in lines[1:]:
        words = line.split()
        if len(words) >= 8:
            mask, net = (int.from_bytes(bytes.fromhex(words[at]), "little") for at in (7, 1))
            yield mask, net, words[0]


def connections_of(pid: int, *, without_port: str = "", proc: Path = Path("/proc")) -> list[list[str]]:
    """Return both ends of the connections that a process holds, as ``address:port``, its own end first.

    Parameters
    ----------
    pid
        The process.
    without_port
        Connections with this port at an end are left out: that of the store, at which ranks meet.
    proc
        Where the kernel shows processes.
    """
    held = set()
    with contextlib.suppress(OSError):
        for entry in (proc / str(pid) / "fd").iterdir():
            with contextlib.suppress(OSError):
                held.add(str(entry.readlink()))
    found = set()
    for name in ("tcp", "tcp6"):
        for line in _lines_of(proc / str(pid) / "net" / name)[1:]:
            words = line.split()
            if len(words) > 9 and words[3] == _ESTABLISHED and f"socket:[{words[9]}]" in held:
                found.add((_end(words[1]), _end(words[2])))
    store = f":{without_port}"
    found = {each for each in found if not any(end.endswith(store) for end in each)}
    return [list(each) for each in sorted(found)[:MOST_CONNECTIONS]]


def _end(text: str) -> str:
    """Return one end of a connection, of which the kernel writes words of four bytes in its own order."""
    written, _, port = text.partition(":")
    raw = bytes.fromhex(written)
    packed = b"".join(
        raw[at : at + 4][:: -1 if sys.byteorder == "little" else 1] for at in range(0, len(raw), 4)
    )
    if len(packed) == 16 and packed[:12] == b"\0" * 10 + b"\xff\xff":
        packed = packed[12:]  # an IPv4 address, as a socket of IPv6 holds it
    family = socket.AF_INET if len(packed) == 4 else socket.AF_INET6
    return f"{socket.inet_ntop(family, packed)}:{int(port, 16)}"
