"""What fails in the verbs: completions with errors, calls that are refused, events of ports."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable

from linkwise.diagnose.facts import Facts
from linkwise.diagnose.transport import nics_of
from linkwise.readers.job_log.values import Evidence, Sighting

__all__ = [
    "LOCAL_PROTECTION",
    "RETRY_EXCEEDED",
    "active_ports",
    "calls",
    "completions",
    "first_failures",
    "has_mixed_link_layers",
    "is_roce",
    "mtu_of_hosts",
    "out_of_memory",
    "port_events",
    "unlike_subnets",
]

LOCAL_PROTECTION = 4
RETRY_EXCEEDED = 12
_FLUSHED = 5
_MAPPED = re.compile(r"^::ffff:(\d+\.\d+\.\d+\.\d+)$")


def completions(facts: Facts, *statuses: int) -> tuple[Sighting, ...]:
    """Return the completions with one of these statuses of `ibv_wc_status`.

    Parameters
    ----------
    facts
        What is known of the job.
    statuses
        Numbers as the verbs define them; all statuses if none is given.
    """
    lines = facts.warned("completion")
    return tuple(each for each in lines if not statuses or int(each.fields["status"]) in statuses)


def first_failures(facts: Facts) -> tuple[Sighting, ...]:
    """Return the completions that are no flush: a flush follows another fault of the same queue.

    Parameters
    ----------
    facts
        What is known of the job.
    """
    return tuple(each for each in completions(facts) if int(each.fields["status"]) != _FLUSHED)


def calls(facts: Facts, call: str, *words: str) -> tuple[Sighting, ...]:
    """Return the warnings of a verbs call that failed, with one of these words in its error.

    Parameters
    ----------
    facts
        What is known of the job.
    call
        Start of the name of the call.
    words
        Texts of the error, or its number; any error if none is given.
    """
    lines = (each for each in facts.warned("verbs") if each.fields["call"].startswith(call))
    return tuple(each for each in lines if not words or any(_has(each, word) for word in words))


def _has(line: Sighting, word: str) -> bool:
    return word == line.fields.get("errno") or word in line.fields.get("text", "")


def out_of_memory(facts: Facts) -> tuple[Sighting, ...]:
    """Return the calls that register memory or make queues and fail for want of memory.

    Parameters
    ----------
    facts
        What is known of the job.
    """
    named = ("ibv_reg_mr", "ibv_create_cq", "ibv_create_qp", "ibv_alloc_pd", "ibv_create_srq")
    found = [each for call in named for each in calls(facts, call, "Cannot allocate memory", "12")]
    # Older releases do not print the error of these two.
    bare = [each for each in calls(facts, "ibv_create_") if not each.fields.get("text", "").strip()]
    return tuple(sorted({id(each): each for each in [*found, *bare]}.values(), key=lambda each: each.order))


def active_ports(facts: Facts) -> list[Evidence]:
    """Return the lines of host commands that call an RDMA port active.

    Parameters
    ----------
    facts
        What is known of the job.
    """
    return [
        output.evidence_at(number)
        for name in ("ibstat", "ibv_devinfo", "rdma link")
        for output in facts.commands(name)
        for number, line in enumerate(output.lines)
        if any(sign in line for sign in ("State: Active", "PORT_ACTIVE", "4: ACTIVE", "state ACTIVE"))
    ]


def port_events(facts: Facts) -> tuple[Sighting, ...]:
    """Return the events that say that a port went down.

    Parameters
    ----------
    facts
        What is known of the job.
    """
    return tuple(each for each in facts.seen("async_event") if "port error" in each.fields.get("event", ""))


def is_roce(facts: Facts) -> bool:
    """Return whether devices in use are Ethernet ports.

    Parameters
    ----------
    facts
        What is known of the job.
    """
    return any("/RoCE" in name for each in facts.seen("ib_devices") for name in nics_of(each))


def has_mixed_link_layers(facts: Facts) -> bool:
    """Return whether devices of both link layers are in one list, so that unlike ports may be paired.

    Parameters
    ----------
    facts
        What is known of the job.
    """
    layers = {name.rsplit("/", 1)[-1] for each in facts.seen("ib_devices") for name in nics_of(each)}
    return any("RoCE" in each for each in layers) and any(each.startswith("IB") for each in layers)


def unlike_subnets(lines: tuple[Sighting, ...]) -> bool | None:
    """Return whether the two GIDs of failed connections lie in different networks of /24.

    Parameters
    ----------
    lines
        Warnings with a local and a remote GID.

    Returns
    -------
    bool or None
        ``None`` where no line shows two IPv4 GIDs. Rails of a node usually have a /24 or wider each; the
        mask is
        not printed, so that this is a strong hint and no proof.
    """
    pairs = [(each.fields.get("local", ""), each.fields.get("remote", "")) for each in lines]
    known = [(_network(a), _network(b)) for a, b in pairs if _network(a) and _network(b)]
    return any(a != b for a, b in known) if known else None


def _network(gid: str) -> str | None:
    found = _MAPPED.match(gid)
    if found is None:
        return None
    try:
        return str(ipaddress.ip_network(f"{found[1]}/24", strict=False))
    except ValueError:
        return None


def mtu_of_hosts(facts: Facts) -> dict[str, set[int]]:
    """Return the MTUs of ports in bytes by host, from NCCL's queue lines and from host commands.

    Parameters
    ----------
    facts
        What is known of the job.
    """
    found: dict[str, set[int]] = {}
    sources: tuple[tuple[str, Callable[[int], int]], ...] = (
        ("queue_pair", lambda code: 128 << code),
        ("port_state", lambda size: size),
    )
    for name, to_bytes in sources:
        for number, each in enumerate(facts.seen(name)):
            host = each.host or each.fields.get("host") or f"{each.evidence.file}#{number}"
            found.setdefault(host, set()).add(to_bytes(int(each.fields["mtu"])))
    return found
