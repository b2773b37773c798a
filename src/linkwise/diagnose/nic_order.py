"""Which GPU of a host uses which NIC, host by host."""

from __future__ import annotations

from linkwise.diagnose.facts import Facts
from linkwise.readers.job_log.values import Evidence

__all__ = ["unlike_order"]


def unlike_order(facts: Facts) -> list[Evidence]:
    """Return lines on which GPUs of one number use NICs of different numbers on different hosts.

    Parameters
    ----------
    facts
        What is known of the job.

    Notes
    -----
    Only GPUs that use one NIC each are compared, on hosts that use the same NICs: rings and trees alone make
    no GPU
    of a host use another NIC than its twin elsewhere. Sends that another rank forwards (PXN) are left out.
    """
    used: dict[str, dict[int, dict[str, list[Evidence]]]] = {}
    for each in facts.net_channels:
        if each.host is None or each.device is None or each.is_forwarded:
            continue
        used.setdefault(each.host, {}).setdefault(each.device, {}).setdefault(each.nic, []).extend(each.lines)
    hosts = {host: _single(devices) for host, devices in used.items()}
    for first, ours in hosts.items():
        for second, theirs in hosts.items():
            unlike = [each for each in ours if each in theirs and ours[each][0] != theirs[each][0]]
            alike_nics = {number for number, _ in ours.values()} == {number for number, _ in theirs.values()}
            if first < second and alike_nics and len(unlike) > 1:
                return [line for device in unlike for side in (ours, theirs) for line in side[device][1]]
    return []


def _single(devices: dict[int, dict[str, list[Evidence]]]) -> dict[int, tuple[str, list[Evidence]]]:
    return {device: next(iter(nics.items())) for device, nics in devices.items() if len(nics) == 1}
