"""What NCCL says of NVLink SHARP's multicast memory, and what a container needs for it."""

from __future__ import annotations

from linkwise.diagnose.facts import Facts
from linkwise.readers.job_log.values import Sighting

__all__ = ["goes_on", "lacks_capabilities", "multicast_failures"]


def multicast_failures(facts: Facts) -> tuple[Sighting, ...]:
    """Return the lines that say that multicast memory cannot be made, bound or mapped.

    Parameters
    ----------
    facts
        What is known of the job.
    """
    # A buffer of the user that cannot be registered fails at the same call, and NCCL goes on without.
    is_of_user = bool(facts.seen("registration_failed"))
    named = (
        []
        if is_of_user
        else [each for each in facts.seen("cuda_failure", "cuda_driver_failure") if "nvls" in each.source]
    )
    return tuple(sorted([*facts.seen("nvls_bind"), *named], key=lambda each: each.order))


def goes_on(lines: tuple[Sighting, ...]) -> bool:
    """Return whether NCCL goes on without NVLS, as releases 2.27 and 2.28 do.

    Parameters
    ----------
    lines
        Lines of `multicast_failures`.
    """
    return all("goes_on" in each.fields or each.level == "INFO" for each in lines)


def lacks_capabilities(facts: Facts) -> bool:
    """Return whether a listing of devices shows GPUs and no capability devices.

    Parameters
    ----------
    facts
        What is known of the job.
    """
    for output in facts.commands("ls", "/dev"):
        names = " ".join(output.lines)
        if "nvidia0" in names or "nvidiactl" in names:
            return "nvidia-caps" not in names
        if "nvidia-caps" in output.command and "No such file" in names:
            return True
    return False
