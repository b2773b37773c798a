"""GPUs whose NVLinks or PCIe link are fewer or narrower than those of their peers on the host."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from linkwise.diagnose.facts import Facts
from linkwise.diagnose.finding import Confidence, Finding, Severity, finding
from linkwise.readers.job_log.values import Sighting

__all__ = ["degraded"]


@dataclass(slots=True)
class _Device:
    """A device as one tool lists it, with the lines below its own."""

    head: Sighting
    lines: list[Sighting] = field(default_factory=list)

    def of(self, what: str) -> list[Sighting]:
        return [each for each in self.lines if each.what == what]


def degraded(facts: Facts) -> Finding | None:
    """Return the finding when a GPU of a host has fewer links than most of the others there.

    Parameters
    ----------
    facts
        What is known of the job.

    Notes
    -----
    Equal GPUs say nothing, whatever their links: boards without NVLink list all of them as inactive, and a
    slot may have fewer lanes than the card. The speed of a PCIe link is left out, as it falls when idle.
    """
    nvlinks = [line for each in _short_of_nvlinks(facts) for line in each]
    narrow = [line for each in _narrow(facts) for line in each]
    if not nvlinks and not narrow:
        return None
    lines = [*nvlinks, *narrow]
    what = "NVLinks" if nvlinks else "PCIe lanes"
    return finding(
        "gpu_hw",
        Severity.SLOW,
        Confidence.MEDIUM,
        proof=lines,
        where=[_name(each) for each in lines if each.what in {"nvlink_gpu", "pci_device"}],
        explanation=(
            f"A GPU has fewer {what} in use than the others of its host. Every collective goes at the rate"
            " of that GPU."
        ),
        fix=(
            "reset the GPU (nvidia-smi --gpu-reset), or power-cycle the host and seat the board anew",
            "have the board replaced where the links stay down",
        ),
        next_check="nvidia-smi nvlink -s; nvidia-smi nvlink -e; lspci -vvv | grep -E '^[0-9a-f]|LnkSta:'",
    )


def _short_of_nvlinks(facts: Facts) -> Iterator[list[Sighting]]:
    for listed in _devices(facts, "nvlink_gpu", ("nvlink_active", "nvlink_inactive")):
        gpus = [each for each in listed if each.lines]
        yield from _unlike(gpus, "nvlink_inactive")


def _narrow(facts: Facts) -> Iterator[list[Sighting]]:
    for listed in _devices(facts, "pci_device", ("pci_narrow",)):
        gpus = [each for each in listed if _is_gpu(each.head)]
        yield from _unlike(gpus, "pci_narrow")


def _is_gpu(head: Sighting) -> bool:
    return head.fields.get("kind") == "3D controller" and "NVIDIA" in head.fields.get("name", "")


def _unlike(gpus: Sequence[_Device], what: str) -> Iterator[list[Sighting]]:
    """Yield the lines of the GPUs that have more of something than most have."""
    counts = Counter(len(each.of(what)) for each in gpus)
    if len(counts) < 2:
        return
    usual, of_them = counts.most_common(1)[0]
    for each in gpus if 2 * of_them > len(gpus) else ():
        if len(each.of(what)) > usual:
            yield [each.head, *each.of(what)]


def _devices(facts: Facts, head: str, below: tuple[str, ...]) -> Iterator[list[_Device]]:
    """Yield the devices of each input, with the lines between each and the next."""
    inputs: dict[str, list[Sighting]] = {}
    for each in facts.seen(head, *below):
        inputs.setdefault(each.evidence.file, []).append(each)
    for lines in inputs.values():
        found: list[_Device] = []
        for each in lines:
            if each.what == head:
                found.append(_Device(each))
            elif found:
                found[-1].lines.append(each)
        yield found


def _name(head: Sighting) -> str:
    return f"GPU {head.fields['index']}" if head.what == "nvlink_gpu" else f"GPU at PCI {head.fields['bus']}"
