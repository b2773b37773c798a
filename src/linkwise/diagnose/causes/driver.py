"""The CUDA driver is too old or does not match what runs on it."""

from __future__ import annotations

from linkwise.diagnose.facts import Facts
from linkwise.diagnose.finding import Confidence, Finding, Severity, finding
from linkwise.readers.job_log.values import Sighting

__all__ = ["driver"]


def driver(facts: Facts) -> Finding | None:
    """Return the finding when CUDA itself says so.

    Parameters
    ----------
    facts
        What is known of the job.
    """
    lines = facts.seen("cuda_driver_old", "cuda_combination")
    insufficient = [
        each for each in facts.seen("cuda_failure", "cuda_error", "nvml_failed") if _is_of_driver(each)
    ]
    if not lines and not insufficient:
        return _library_missing(facts)
    return finding(
        "driver",
        Severity.BROKEN,
        Confidence.HIGH,
        proof=[*lines, *insufficient, *facts.seen("driver_version")],
        explanation=(
            "The NVIDIA driver of the host is older than the CUDA runtime in use needs, or the"
            " compatibility libraries do not fit it. Nothing can run on the GPU, so what follows is an"
            " echo."
        ),
        fix=(
            "update the driver to the release that the CUDA runtime names, on every host",
            "or use an image with an older CUDA",
        ),
        next_check="nvidia-smi (CUDA Version at the top right is the most the driver takes)",
    )


def _library_missing(facts: Facts) -> Finding | None:
    """Find that the driver's libraries are not where the process runs; NCCL can go on without some."""
    lines = facts.warned("driver_library_missing")
    if not lines:
        return None
    without = any("nvidia-ml" in each.fields["library"] for each in lines)
    names = ", ".join(dict.fromkeys(each.fields["library"] for each in lines))
    return finding(
        "driver",
        Severity.BROKEN if facts.has_failed or without else Severity.HARMLESS,
        Confidence.MEDIUM,
        proof=lines,
        explanation=(
            f"NCCL does not find {names} of the NVIDIA driver where the process runs: it is not in the"
            " container, not in the library path, or the driver is too old to have it."
        ),
        fix=(
            "start the container with --gpus all and NVIDIA_DRIVER_CAPABILITIES=compute,utility",
            "under WSL, put /usr/lib/wsl/lib into LD_LIBRARY_PATH",
        ),
        next_check="ldconfig -p | grep -E 'libcuda|libnvidia-ml', where the job runs; nvidia-smi",
    )


_TEXTS = (
    "driver version is insufficient",
    "unsupported display driver / cuda driver combination",
    "forward compatibility was attempted",
    "compiled with an unsupported toolchain",
    "Driver/library version mismatch",
)


def _is_of_driver(line: Sighting) -> bool:
    return any(word in line.fields.get("text", "") for word in _TEXTS)
