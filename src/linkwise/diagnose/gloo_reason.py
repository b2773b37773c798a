"""What to say of a job over gloo that failed, where no cause is found: the likelier places to look."""

from __future__ import annotations

from linkwise.diagnose.ends import Ends, is_gloo_job
from linkwise.diagnose.facts import Facts
from linkwise.readers.job_log.values import Sighting

__all__ = ["gloo_failure", "gloo_note"]

_MOST_TEXT = 100


def gloo_failure(facts: Facts) -> str | None:
    """Return what to say of a failure that no finding explains; ``None`` where nothing failed.

    Parameters
    ----------
    facts
        What is known of the job.
    """
    if not is_gloo_job(facts):
        return None
    ends = Ends(facts=facts)
    if ends.went_on:
        return None
    if ends.own_errors:
        return _of_program(ends.own_errors[0])
    if ends.timeouts:
        return _of_timeout(ends)
    if unconnected := facts.seen("gloo_unconnected"):
        text = unconnected[0].fields.get("text", "")[:_MOST_TEXT]
        return (
            f"ranks could not connect to one another at the start ({_place(unconnected[0])}): {text}; a rank"
            " that failed first, a filter, or the wrong interface (GLOO_SOCKET_IFNAME); give the output of"
            " all ranks"
        )
    if (closed := facts.seen("gloo_closed")) and not gloo_note(facts):
        return f"this is the echo of a fault elsewhere ({_place(closed[0])}); give the output of all ranks"
    return None


def gloo_note(facts: Facts) -> str:
    """Return what to add where the job was ended from outside, or was started again; empty elsewhere.

    Parameters
    ----------
    facts
        What is known of the job.
    """
    told = facts.seen("agent_told")
    signals = {each.fields["signal"].removeprefix("SIG") for each in told}
    if facts.seen("interrupted") or signals & {"2", "INT"}:
        return "; it was stopped by hand (Ctrl-C)"
    ends = Ends(facts=facts)
    if ends.errors and ends.went_on:
        line = min(ends.errors.values(), key=lambda each: each.order)
        return f"; it failed once ({_place(line)}), was started again and went on"
    return "; its launcher was told to end (SIGTERM)" if told else ""


def _of_program(line: Sighting) -> str:
    who = "a rank" if line.rank is None else f"rank {line.rank}"
    text = line.fields.get("text", "")[:_MOST_TEXT]
    return (
        f"the program of {who} ended with an error of its own ({_place(line)}): {line.fields['name']}"
        + (f": {text}" if text else "")
        + "; what others say of connections follows from that"
    )


def _of_timeout(ends: Ends) -> str:
    line = ends.timeouts[0]
    waiting = sorted({each.rank for each in ends.timeouts if each.rank is not None})
    shown = f" on rank{'s' if len(waiting) > 1 else ''} {', '.join(map(str, waiting[:8]))}" if waiting else ""
    if ends.is_whole and len(ends.hosts) == 1 and set(ends.errors) == set(ends.ranks):
        return (
            f"all ranks, on one host, waited in vain ({_place(line)}), so that no link between nodes is to"
            " blame: likelier they called different collectives (desync); compare the lines of their"
            " tracebacks"
        )
    return (
        f"a call of gloo timed out{shown} ({_place(line)}), and what it waited for is not here: a rank that"
        " is late, frozen or dead (desync, rank_frozen, rank_killed), a node that is gone (node_lost), or a"
        " link (link_down); give the output of all ranks and of their launchers"
    )


def _place(line: Sighting) -> str:
    return f"{line.evidence.file}:{line.evidence.line}"
