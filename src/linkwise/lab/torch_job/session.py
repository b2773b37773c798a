"""One rank of a job: joins the others, reads the counters of links, says what it saw."""

from __future__ import annotations

import datetime as dt
import fcntl
import json
import os
import socket
import struct
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist

__all__ = ["MARK", "Session", "host_of", "join", "print_line", "say"]

MARK = "@linkwise "
"""What a line starts with that is meant for Linkwise."""
_ADDRESS_OF_DEVICE = 0x8915
"""SIOCGIFADDR of Linux."""
_MOST_BYTES = 4000
"""A line below the atomic write of a pipe (4096 bytes) is never mixed with that of another rank [bytes]."""


def say(event: str, **values: object) -> None:
    """Write one line for Linkwise.

    Parameters
    ----------
    event
        What happened.
    values
        What is to be said of it.
    """
    line = MARK + json.dumps({"event": event, **values}) + "\n"
    data = line.encode("ascii")
    if len(data) > _MOST_BYTES:
        data = (MARK + json.dumps({"event": "too long", "of": event}) + "\n").encode("ascii")
    os.write(1, data)


def print_line(text: str) -> None:
    """Write one line of the job's own output.

    Parameters
    ----------
    text
        The line.
    """
    os.write(2, f"{text[:_MOST_BYTES]}\n".encode("utf-8", "replace"))


def host_of(rank: int, plan: Mapping[str, Any]) -> str:
    """Return the name of the node that a rank is on.

    Parameters
    ----------
    rank
        The rank.
    plan
        As `start` reads it.
    """
    return str(plan["ranks"][rank]["namespace"]).rpartition("-")[2]


def join(rank: int, plan: Mapping[str, Any]) -> Session:
    """Return this rank, joined with the others.

    Parameters
    ----------
    rank
        Its number.
    plan
        As `start` reads it.
    """
    os.environ["GLOO_SOCKET_IFNAME"] = str(plan["ranks"][rank]["device"])
    torch.set_num_threads(1)
    ranks = len(plan["ranks"])
    dist.init_process_group(
        "gloo",
        init_method=f"tcp://{plan['address']}:{plan['port']}",
        rank=rank,
        world_size=ranks,
        timeout=dt.timedelta(seconds=float(plan["timeout_s"])),
    )
    session = Session(rank=rank, ranks=ranks, plan=plan)
    session.tell("joined", torch=torch.__version__)
    device = str(plan["ranks"][rank]["device"])
    session.print(f"joined {ranks} ranks over gloo on {device} {_address_of(device)} (pid: {os.getpid()})")
    return session


def _address_of(device: str) -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        found = fcntl.ioctl(asked.fileno(), _ADDRESS_OF_DEVICE, struct.pack("256s", device.encode()[:15]))
    return socket.inet_ntoa(found[20:24])


@dataclass(frozen=True)
class Session:
    """One rank of a job.

    Parameters
    ----------
    rank, ranks
        Its number, and how many there are [1].
    plan
        What is to be done.
    """

    rank: int
    ranks: int
    plan: Mapping[str, Any]

    def tell(self, event: str, **values: object) -> None:
        """Say something once, as the first rank."""
        if self.rank == 0:
            say(event, **values)

    def print(self, text: str) -> None:
        """Print a line with the rank and the host before it."""
        print_line(f"[rank{self.rank}]: {host_of(self.rank, self.plan)}: {text}")

    def span(self, begin_s: float, end_s: float, value: float = 0.0) -> tuple[float, float]:
        """Return the time from the first rank's begin to the last one's end, and the largest of their values.

        All ranks are on one machine and read the same clock.
        """
        told = torch.tensor([-begin_s, end_s, value], dtype=torch.float64)
        dist.all_reduce(told, op=dist.ReduceOp.MAX)
        first, last, largest = told.tolist()
        return first + last, largest

    def counters(self) -> dict[str, list[int]]:
        """Return bytes and packets that each link has carried, read at rank 0 while all wait.

        Notes
        -----
        Shaped links count what their class of htb let through, with the headers of every packet on the wire;
        a loopback counts what was handed to it.
        """
        dist.barrier()
        found: dict[str, list[int]] = {}
        if self.rank == 0:
            for namespace, devices in self.plan["counters"].items():
                found |= _shaped(namespace, devices) if devices else {}
                if namespace in self.plan["loopbacks"]:
                    found[f"{namespace} lo"] = _loopback(namespace)
        dist.barrier()
        return found

    def leave(self) -> None:
        """Wait for the others and part."""
        dist.barrier()
        self.tell("done")
        dist.destroy_process_group()


def _shaped(namespace: str, devices: list[str]) -> dict[str, list[int]]:
    """Return bytes and packets by device; each is asked for alone, as JSON of several does not name them."""
    found = {}
    for device in devices:
        shown = _shown("tc", "-n", namespace, "-s", "-j", "qdisc", "show", "dev", device)
        root = next(each for each in shown if each.get("kind") == "htb")
        found[f"{namespace} {device}"] = [int(root["bytes"]), int(root["packets"])]
    return found


def _loopback(namespace: str) -> list[int]:
    sent = _shown("ip", "-n", namespace, "-s", "-j", "link", "show", "lo")[0]["stats64"]["tx"]
    return [int(sent["bytes"]), int(sent["packets"])]


def _shown(*argv: str) -> list[dict[str, Any]]:
    done = subprocess.run(  # noqa: S603 (words of our own, without a shell)
        argv, capture_output=True, text=True, timeout=30, check=True
    )
    shown: list[dict[str, Any]] = json.loads(done.stdout)
    return shown
