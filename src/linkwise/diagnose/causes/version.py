"""Different NCCL libraries on the ranks, or one too old for the GPU."""

from __future__ import annotations

from linkwise.diagnose.facts import Facts
from linkwise.diagnose.finding import Confidence, Finding, Severity, finding, first_of
from linkwise.readers.job_log.values import Sighting

__all__ = ["version"]


def version(facts: Facts) -> Finding | None:
    """Return the finding when versions differ and that shows, or the library does not know the GPU.

    Parameters
    ----------
    facts
        What is known of the job.
    """
    return first_of(_refused(facts), _differing(facts), _too_old(facts), _two_copies(facts))


def _two_copies(facts: Facts) -> Finding | None:
    """Find a communicator whose marks are not there: another copy of the library, or freed memory."""
    lines = facts.warned("comm_corrupt")
    if not lines:
        return None
    return finding(
        "version",
        Severity.BROKEN,
        Confidence.LOW,
        proof=lines,
        explanation=(
            "NCCL does not find the marks of its own release in a communicator. Two copies of the library in"
            " one process do that, as when two frameworks bring one each; so does a communicator that was"
            " destroyed before."
        ),
        fix=("load one NCCL per process: import one framework only, or make both use one libnccl.so.2",),
        next_check="grep libnccl /proc/PID/maps: one path only; frameworks that link it statically hide it",
    )


def _refused(facts: Facts) -> Finding | None:
    lines = facts.seen("version_mismatch")
    if lines:
        return _mixed(Confidence.HIGH, list(lines))
    compiled = facts.warned("version_compiled")
    if not compiled:
        return None
    named = compiled[0].fields
    return finding(
        "version",
        Severity.BROKEN,
        Confidence.HIGH,
        proof=compiled,
        explanation=(
            f"The program was built with NCCL {named['compiled']} and loads {named['loaded']}, and the two"
            " do not fit. Another libnccl stands first in the library path."
        ),
        fix=("load the NCCL that the program was built with, or build it with the one that is loaded",),
        next_check="ldd on the program, or /proc/PID/maps | grep libnccl; LD_LIBRARY_PATH and LD_PRELOAD",
    )


def _differing(facts: Facts) -> Finding | None:
    printed: dict[str, list[Sighting]] = {}
    for each in facts.seen("version"):
        if each.level != "LAST" and "NCCL error" not in each.evidence.text:
            printed.setdefault(each.fields["version"], []).append(each)
    empty = [each for each in facts.warned("address_family") if each.fields["family"] == "0"]
    crossed = facts.warned("wrong_handshake", "mismatch")
    if len(printed) > 1 and (empty or crossed or facts.stuck):
        first = [lines[0] for lines in printed.values()]
        more = [line for lines in printed.values() for line in lines[1:]]
        return _mixed(Confidence.HIGH, [*first, *empty, *crossed, *more])
    if empty:
        return _mixed(Confidence.LOW, empty)
    return None


def _mixed(confidence: Confidence, proof: list[Sighting]) -> Finding:
    return finding(
        "version",
        Severity.BROKEN,
        confidence,
        proof=proof,
        explanation=(
            "The ranks load different releases of NCCL, which do not understand each other's first message:"
            " the address of a peer then arrives empty. A second libnccl in a path or image is the usual"
            " reason."
        ),
        fix=(
            (
                "use one image or environment on all hosts; leave LD_LIBRARY_PATH and LD_PRELOAD without a"
                " libnccl"
            ),
            "pip install the same nvidia-nccl-cuXX on every host",
        ),
        next_check="NCCL_DEBUG=VERSION on every rank; ldd or /proc/PID/maps | grep libnccl",
    )


def _too_old(facts: Facts) -> Finding | None:
    small = facts.seen("shared_memory_size")
    image = facts.seen("kernel_image_none")
    launch = [each for each in facts.seen("cuda_failure", "cuda_error") if _is_launch(each)]
    if not image and not (small and (launch or facts.has_failed)):
        return None
    return finding(
        "version",
        Severity.BROKEN,
        Confidence.HIGH if image else Confidence.MEDIUM,
        proof=[*image, *small, *launch],
        explanation=(
            "This build of NCCL or of the framework has no kernels for the GPU: it is older than the GPU's"
            " architecture. What it launches fails."
        ),
        fix=("install a build for the CUDA release that introduced the GPU, and its NCCL",),
        next_check="python -c 'import torch; print(torch.cuda.get_arch_list(), torch.cuda.nccl.version())'",
    )


def _is_launch(line: Sighting) -> bool:
    return any(word in line.fields.get("text", "") for word in ("launch failure", "invalid device function"))
