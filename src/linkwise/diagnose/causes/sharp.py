"""Reduction in the switches of an InfiniBand network (SHARP) fails or is refused."""

from __future__ import annotations

from linkwise.diagnose.facts import Facts
from linkwise.diagnose.finding import Confidence, Finding, Severity, finding

__all__ = ["sharp"]


def sharp(facts: Facts) -> Finding | None:
    """Return the finding when SHARP was asked for and cannot be used.

    Parameters
    ----------
    facts
        What is known of the job.

    Notes
    -----
    Without NCCL_COLLNET_ENABLE, and without a warning, NCCL runs as it would anyway: then it is harmless.
    """
    lines = facts.warned("sharp_failed", "collnet_refused")
    asked = [each for each in facts.settings("NCCL_COLLNET_ENABLE") if each.fields.get("value") == "1"]
    if not lines:
        return None
    return finding(
        "sharp",
        Severity.BROKEN if facts.has_failed else Severity.SLOW if asked else Severity.HARMLESS,
        Confidence.HIGH,
        proof=[*lines, *asked],
        explanation=(
            "NCCL could not set up reduction in the switches, and goes over the network point to point. The"
            " aggregation manager is not running, refuses the job, or has no resources left."
        ),
        fix=(
            "start sharp_am beside the subnet manager, and on every host sharpd where the release needs it",
            "or unset NCCL_COLLNET_ENABLE",
        ),
        next_check="sharp_hello on a host; the log of sharp_am",
    )
