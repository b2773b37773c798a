"""Isolation hides a device, a capability or a namespace that the job needs, or shows one it cannot use."""

from __future__ import annotations

from linkwise.diagnose.facts import Facts
from linkwise.diagnose.finding import Confidence, Finding, Severity, finding
from linkwise.diagnose.nvls import goes_on, lacks_capabilities, multicast_failures
from linkwise.diagnose.verbs import calls
from linkwise.readers.job_log.values import Evidence, Sighting

__all__ = ["container"]


def container(facts: Facts) -> Finding | None:
    """Return the finding when what the container shows differs from what it may use.

    Parameters
    ----------
    facts
        What is known of the job.
    """
    rules = (_without_capabilities, _foreign_devices, _without_gpus, _isolated_gpus)
    return next((found for rule in rules if (found := rule(facts)) is not None), None)


def _without_capabilities(facts: Facts) -> Finding | None:
    lines = multicast_failures(facts)
    if not lines or not lacks_capabilities(facts):
        return None
    shown: list[Sighting | Evidence] = [*lines, *(each.evidence for each in facts.commands("ls", "/dev"))]
    return _found(
        Severity.SLOW if goes_on(lines) and not facts.has_failed else Severity.BROKEN,
        Confidence.HIGH,
        shown,
        explanation="The container lacks /dev/nvidia-caps, through which multicast memory of NVLink SHARP"
        " is granted.",
        fix=(
            "give it NVIDIA_DRIVER_CAPABILITIES=all through the NVIDIA container toolkit",
            "or NCCL_NVLS_ENABLE=0",
        ),
        check="ls /dev/nvidia-caps inside the container and on the host",
    )


def _foreign_devices(facts: Facts) -> Finding | None:
    """Find RDMA devices that are listed, and of which the process has no address."""
    lines = calls(facts, "ibv_modify_qp", "No such device", "19")
    listed = {
        name
        for output in facts.commands("/sys/class/infiniband")
        for line in output.lines
        for name in line.split()
    }
    gids = list(facts.commands("show_gids"))
    usable = {
        line.split()[0]
        for output in gids
        for line in output.lines
        if line.split() and line.split()[0] in listed
    }
    if not lines or not gids or not listed - usable:
        return None
    return _found(
        Severity.BROKEN,
        Confidence.HIGH,
        [*lines, *(each.evidence for each in gids)],
        explanation=f"The container lists {len(listed)} RDMA devices and has an address on {len(usable)}:"
        " the others belong to other network namespaces, and NCCL picks them all the same.",
        fix=(
            f"NCCL_IB_HCA=={','.join(sorted(usable)) or 'DEVICE'}",
            "rdma system set netns exclusive on the host, so that a container lists its own alone",
        ),
        check="show_gids and ls /sys/class/infiniband, inside the container",
    )


def _without_gpus(facts: Facts) -> Finding | None:
    """Find CUDA's word that a process sees no GPU at all: cudaErrorNoDevice, 100."""
    lines = [
        each
        for each in (*facts.warned("cuda_failure"), *facts.seen("cuda_error"))
        if "no CUDA-capable device is detected" in each.fields.get("text", "")
    ]
    if not lines:
        return None
    return _found(
        Severity.BROKEN,
        Confidence.MEDIUM,
        list(lines),
        explanation="A process sees no GPU: its container was started without any, the launcher or"
        " CUDA_VISIBLE_DEVICES gives it none, or the driver of the host has lost them.",
        fix=(
            "start the container with its GPUs: --gpus all, or the resource nvidia.com/gpu on Kubernetes",
            "compare CUDA_VISIBLE_DEVICES and the GPUs per task that the launcher was asked for",
        ),
        check="nvidia-smi -L and env | grep VISIBLE_DEVICES, where the process runs; dmesg | grep NVRM",
    )


def _isolated_gpus(facts: Facts) -> Finding | None:
    """Find handles that cannot be imported although the ranks are taken for one node."""
    ordinals = [
        each
        for each in facts.warned("cuda_failure")
        if "invalid device ordinal" in each.fields.get("text", "")
    ]
    if ordinals:
        return _found(
            Severity.BROKEN,
            Confidence.MEDIUM,
            [*ordinals, *(each.evidence for each in facts.commands("ls", "/dev"))],
            explanation="A rank is told of a GPU of its node that its process cannot see: the containers of"
            " the node each have some of the GPUs, and NCCL takes them for one node.",
            fix=(
                "one container per node with all its GPUs, or all GPUs visible in each",
                "or a NCCL_HOSTID of its own in each container, so that they talk over the network",
            ),
            check="nvidia-smi -L in every container of the node",
        )
    lines = facts.warned("cumem_import", "ipc_failed")
    if not lines or facts.settings("NCCL_CUMEM_ENABLE") or facts.seen("mnnvl_fabric"):
        return None
    return _found(
        Severity.BROKEN,
        Confidence.LOW,
        list(lines),
        explanation="A rank cannot open memory of another rank of its node. Containers that each see one"
        " GPU, or have no common IPC namespace, do that.",
        fix=(
            "one container per node with all its GPUs, or --ipc=host --pid=host and all GPUs visible in each",
        ),
        check="nvidia-smi -L in every container of the node; NCCL_HOSTID set apart in each as a test",
    )


def _found(
    severity: Severity,
    confidence: Confidence,
    proof: list[Sighting | Evidence],
    *,
    explanation: str,
    fix: tuple[str, ...],
    check: str,
) -> Finding:
    return finding(
        "container", severity, confidence, proof=proof, explanation=explanation, fix=fix, next_check=check
    )
