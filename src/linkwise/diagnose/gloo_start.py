"""Why ranks of gloo find no address, or cannot reach one another at the start: the wrong interface."""

from __future__ import annotations

import ipaddress

from linkwise.diagnose.ends import Ends
from linkwise.diagnose.facts import Facts
from linkwise.diagnose.finding import Confidence, Finding, Severity, finding
from linkwise.readers.job_log.values import Sighting

__all__ = ["gloo_interface"]

_MOST_ON_A_HOST = 8
_NAMES_ONE = "GLOO_SOCKET_IFNAME takes the name of one interface, or several by commas"


def gloo_interface(facts: Facts) -> Finding | None:
    """Return the finding when gloo has no address of the interface or host it was given, or took loopback.

    Parameters
    ----------
    facts
        What is known of the job.

    Notes
    -----
    gloo binds to the interface that GLOO_SOCKET_IFNAME names, else to the address that the name of the host
    resolves to; Debian and Ubuntu write 127.0.1.1 for it into /etc/hosts. Where nothing resolves it takes
    loopback and warns. Ranks on one host reach each other by it, those elsewhere do not.
    """
    return _without_address(facts) or _by_loopback(facts) or _without_reason(facts)


def _without_address(facts: Facts) -> Finding | None:
    lines = facts.seen("gloo_no_address")
    if not lines:
        return None
    name, what = lines[0].fields["name"], lines[0].fields["what"]
    if what == "rp":
        return _found(
            Confidence.HIGH,
            list(lines),
            f"The name of the host, {name}, resolves to no address of this host, and gloo binds to that"
            " where no interface is named.",
        )
    if name.startswith("^"):
        why = f"{name}: the list of names to leave out is NCCL's grammar; {_NAMES_ONE}."
    elif _is_address(name):
        why = f"{name} is an address; {_NAMES_ONE}."
    else:
        why = f"No interface {name} with an address is on this host, and GLOO_SOCKET_IFNAME names it."
    return _found(Confidence.HIGH, list(lines), why)


def _by_loopback(facts: Facts) -> Finding | None:
    unconnected = facts.seen("gloo_unconnected")
    # Lines that were broken have the address on the next one.
    ends = facts.seen("gloo_peer") if unconnected else ()
    failed = [each for each in (*unconnected, *ends) if each.fields.get("peer", "").startswith("127.")]
    warned = facts.seen("gloo_loopback")
    chosen = [each for each in facts.seen("gloo_interface") if each.fields["name"] == "lo"]
    is_hosts_file = any(each.fields["peer"].startswith("127.0.1.") for each in failed)
    is_clear = bool(warned or chosen or is_hosts_file)
    if warned and unconnected:
        failed = failed or list(unconnected)
    if not failed or not (is_clear or _is_spread(facts) or _is_large(facts)):
        return None
    by = (
        "/etc/hosts gives the name of the host as 127.0.1.1"
        if is_hosts_file
        else "GLOO_SOCKET_IFNAME is lo, or the name of the host resolves to loopback"
    )
    return _found(
        Confidence.HIGH if is_clear else Confidence.MEDIUM if _is_spread(facts) else Confidence.LOW,
        [*failed, *warned, *chosen],
        f"Ranks told the others a loopback address, which on every host is the host itself: {by}.",
    )


def _without_reason(facts: Facts) -> Finding | None:
    """Find a connection that failed with no error of the system, as older releases of gloo tell it.

    Notes
    -----
    The peer gave an address that did not answer as gloo does. In public threads (sglang#3226, vllm#5094) it
    was the one of another interface; a filter that drops looks the same.
    """
    lines = [each for each in facts.seen("gloo_unconnected") if _says_nothing(each)]
    if not lines:
        return None
    return _found(
        Confidence.LOW,
        lines,
        "Ranks of gloo could not connect, and the system gave no error: the address that a rank told is"
        " likelier one of an interface that the others do not reach (socket_ifname) than behind a filter"
        " (firewall).",
    )


def _says_nothing(line: Sighting) -> bool:
    return line.fields.get("text", "").endswith("no error")


def _is_large(facts: Facts) -> bool:
    """Return whether there are more ranks than a host has GPUs, mostly: eight."""
    return any(int(each.fields["world"]) > _MOST_ON_A_HOST for each in facts.seen("gloo_world"))


def _is_spread(facts: Facts) -> bool:
    """Return whether ranks are on several hosts: by the words of launchers, or else by their files."""
    if Ends(facts=facts).own_errors:
        return False
    hosts = {each.fields["host"] for each in facts.seen("summary_host")}
    files = {each.evidence.file for each in facts.seen("gloo_unconnected")}
    return len(hosts) > 1 or (not hosts and len(files) > 1)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _found(confidence: Confidence, proof: list[Sighting], explanation: str) -> Finding:
    return finding(
        "socket_ifname",
        Severity.BROKEN,
        confidence,
        proof=proof,
        explanation=explanation,
        fix=(
            (
                "GLOO_SOCKET_IFNAME=NAME on every host, for the interface by which it reaches the others:"
                " the word after dev in ip route get ADDRESS_OF_RANK_0"
            ),
            "or have the name of every host resolve to that address: no 127.0.1.1 for it in /etc/hosts",
        ),
        next_check="ip -br addr; getent hosts $(hostname) on every host",
    )
