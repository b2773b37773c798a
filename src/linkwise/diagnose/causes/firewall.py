"""A filter of a host or of the network rejects or drops TCP between the hosts."""

from __future__ import annotations

from linkwise.diagnose.addresses import address_of_peer, bootstrap_interfaces, is_link_local
from linkwise.diagnose.facts import Facts
from linkwise.diagnose.finding import Confidence, Finding, Severity, finding
from linkwise.readers.job_log.values import Evidence, Sighting

__all__ = ["firewall"]

_REJECTED = ("No route to host", "prohibited")
_DROPPED = ("timed out", "Software caused connection abort")


def firewall(facts: Facts) -> Finding | None:
    """Return the finding when connecting to an ordinary address of a host is rejected or never answered.

    Parameters
    ----------
    facts
        What is known of the job.
    """
    lines = [each for each in facts.warned("connect_failed") if _is_ordinary(facts, each)]
    if facts.seen("connect_given_up"):
        # The last line of these releases has no reason; those of the retries have.
        lines += facts.seen("connect_retried")
    gloo = [each for each in facts.seen("gloo_unconnected") if _is_ordinary(facts, each)]
    rejected = [each for each in (*lines, *gloo) if _says(each, _REJECTED)]
    dropped = [each for each in lines if _says(each, _DROPPED)]
    if not rejected and not dropped:
        return None
    answers = [
        output.evidence_at(number)
        for output in facts.commands("ping")
        for number, line in enumerate(output.lines)
        if "bytes from" in line
    ]
    proof: list[Sighting | Evidence] = [*rejected, *dropped, *answers, *_filters(facts)]
    aborted = all("abort" in each.fields.get("text", "") for each in (*rejected, *dropped))
    sure = Confidence.LOW if aborted else Confidence.MEDIUM
    return finding(
        "firewall",
        Severity.BROKEN,
        Confidence.HIGH if answers else sure,
        proof=proof,
        explanation=(
            "TCP to a port of the other host is "
            + ("rejected" if rejected else "not answered")
            + ", and NCCL, as gloo, needs all ports that its processes listen on, in both directions. A host"
            " firewall, a security group or a network policy filters them"
            + ("." if answers else "; so it looks too where no host is at the address (socket_ifname).")
        ),
        fix=(
            "let all TCP pass between the hosts of the job: firewall-cmd --zone=trusted --add-source=SUBNET",
            "or narrow the ports (sysctl net.ipv4.ip_local_port_range) and open those",
        ),
        next_check="nc -l 50007 on the one host, nc -vz HOST 50007 on the other, both ways; iptables -S",
    )


def _is_ordinary(facts: Facts, line: Sighting) -> bool:
    address = address_of_peer(line.fields.get("peer", ""))
    if address is None or is_link_local(address) or address.startswith("127.") or ":" in address:
        return False
    bad = {each.address for each in bootstrap_interfaces(facts) if each.is_virtual or each.is_loopback}
    return address not in bad


def _says(line: Sighting, words: tuple[str, ...]) -> bool:
    return any(word in line.evidence.text for word in words)


def _filters(facts: Facts) -> list[Evidence]:
    return [
        output.evidence_at(number)
        for word in ("firewall-cmd", "ufw", "iptables", "nft")
        for output in facts.commands(word)
        for number, line in enumerate(output.lines)
        if any(sign in line for sign in ("running", "active", "REJECT", "DROP", "reject", "drop"))
    ]
