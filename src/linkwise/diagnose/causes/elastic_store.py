"""A job over gloo that torchrun starts again reads the addresses of the processes that are gone."""

from __future__ import annotations

from linkwise.diagnose.ends import is_gloo_job
from linkwise.diagnose.facts import Facts
from linkwise.diagnose.finding import Confidence, Finding, Severity, finding
from linkwise.readers.job_log.values import Sighting

__all__ = ["elastic_store"]


def elastic_store(facts: Facts) -> Finding | None:
    """Return the finding when ranks cannot build their mesh after torchrun started them again.

    Parameters
    ----------
    facts
        What is known of the job.

    Notes
    -----
    torchrun lends ranks the store of its own agents, in which each attempt finds what the one before has
    left: torch 2.13, in jobs of two nodes, restarts so fail until no attempt is left. With the variable each
    attempt has a store of its own, and such a job went on 13 s after a rank was killed.

    References
    ----------
    PyTorch, torch/distributed/elastic/rendezvous/dynamic_rendezvous.py (``use_agent_store``).
    """
    if not is_gloo_job(facts):
        return None
    failed = [each for each in facts.seen("gloo_unconnected") if _is_after_a_failure(each, facts)]
    if not failed:
        return None
    restarts = facts.seen("agent_restart")
    return finding(
        "elastic_store",
        Severity.BROKEN,
        Confidence.HIGH if restarts else Confidence.MEDIUM,
        proof=[*failed, *restarts, *facts.seen("rendezvous_closed")],
        explanation=(
            "torchrun started the ranks again after a failure, and they could not connect to one another:"
            " gloo found the addresses of the ended processes, which torchrun's shared store keeps from one"
            " attempt to the next. Every attempt fails so, whatever the first failure was."
        ),
        fix=(
            (
                "TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 in the environment of torchrun on every node, with"
                " --rdzv-backend c10d (a static rendezvous does not start again over nodes)"
            ),
        ),
        next_check="what ended the first attempt: the first error above, and dmesg on the host of its rank",
    )


def _is_after_a_failure(line: Sighting, facts: Facts) -> bool:
    """Return whether agents of the same file had ended processes before, as before a later attempt."""
    before = facts.seen("agent_closing", "agent_exit", "agent_restart")
    return any(each.evidence.file == line.evidence.file and each.order < line.order for each in before)
