"""A plug-in of NCCL (network, tuner, profiler) is broken, or another one is asked for than there is."""

from __future__ import annotations

from linkwise.diagnose.facts import Facts
from linkwise.diagnose.finding import Confidence, Finding, Severity, finding
from linkwise.readers.job_log.values import Evidence, Sighting

__all__ = ["plugin"]

_NAMED_BY = ("NCCL_NET_PLUGIN", "NCCL_TUNER_PLUGIN", "NCCL_PROFILER_PLUGIN", "NCCL_NET")


def plugin(facts: Facts) -> Finding | None:
    """Return the finding when a plug-in cannot be loaded for a missing symbol, or its network is not found.

    Parameters
    ----------
    facts
        What is known of the job.

    Notes
    -----
    That no plug-in is found is normal, as is the search for older interfaces of one; a symbol that the
    loader misses is
    not, nor is a name that was asked for.
    """
    symbols = facts.seen("plugin_symbol")
    unknown = facts.warned("network_unknown", "network_none")
    lost = _asked_and_missing(facts)
    if not symbols and not unknown and not lost:
        return None
    asked = facts.settings(*_NAMED_BY)
    proof: list[Sighting | Evidence] = [*unknown, *symbols, *lost, *asked]
    return finding(
        "plugin",
        Severity.BROKEN if unknown else Severity.SLOW,
        Confidence.HIGH if unknown or (symbols and asked) else Confidence.MEDIUM,
        proof=proof,
        explanation=_explanation(unknown, symbols),
        fix=(
            (
                "install the plug-in of the release that fits this NCCL, from one source with the libraries"
                " it needs"
            ),
            "or unset NCCL_NET, NCCL_NET_PLUGIN and NCCL_TUNER_PLUGIN, also in /etc/nccl.conf",
        ),
        next_check="ldd -r on the library of the plug-in: undefined symbols and missing libraries",
    )


def _asked_and_missing(facts: Facts) -> list[Sighting]:
    """Return the lines that say that a plug-in is not found which a variable names."""
    names = {each.fields.get("value", "") for each in facts.settings(*_NAMED_BY[:3])} - {"", "none"}
    return [
        each
        for each in facts.seen("plugin_missing")
        if any(name in each.evidence.text for name in names if "/" in name or name.endswith(".so"))
    ]


def _explanation(unknown: tuple[Sighting, ...], symbols: tuple[Sighting, ...]) -> str:
    if unknown and "name" not in unknown[0].fields:
        return (
            "No network can be set up, neither a plug-in's nor NCCL's own: the plug-ins that are found"
            " fail, and the names that are asked for leave out the rest."
        )
    if unknown:
        return (
            f"NCCL_NET asks for the network {unknown[0].fields['name']}, and no plug-in brings it: the"
            " plug-in is missing or failed to load. NCCL stops rather than take another network."
        )
    if symbols:
        return (
            "A plug-in is found and cannot be loaded: a symbol it needs is in no library. NCCL goes on"
            " without it, and with that without what it tunes or carries."
        )
    return "A plug-in that a variable names is not found. NCCL goes on without it."
