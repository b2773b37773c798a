"""Hosts with eight GPUs behind NVLink switches, a class that is built with a NIC for RDMA beside each GPU."""

from __future__ import annotations

from linkwise.diagnose.facts import Facts
from linkwise.diagnose.peers import nvlinks_per_gpu
from linkwise.readers.job_log.values import Sighting

__all__ = ["many_gpu_lines", "nvlink_lines"]

_GPUS = 8


def many_gpu_lines(facts: Facts) -> list[Sighting]:
    """Return the lines that show a host with eight ranks of one job, one on each of its GPUs; empty without.

    Parameters
    ----------
    facts
        What is known of the job.
    """
    told = [each for each in facts.seen("size") if int(each.fields["local_ranks"]) >= _GPUS]
    if told:
        return told[:1]
    devices: dict[str, dict[int, Sighting]] = {}
    for each in facts.seen("init"):
        if each.host is not None and each.device is not None:
            devices.setdefault(each.host, {}).setdefault(each.device, each)
    full = next((found for found in devices.values() if len(found) >= _GPUS), {})
    return [full[max(full)]] if full else []


def nvlink_lines(facts: Facts) -> list[Sighting]:
    """Return the lines that show NVLink between the GPUs of a host: multicast, or rings of that kind of link.

    Parameters
    ----------
    facts
        What is known of the job.
    """
    multicast = [each for each in facts.seen("nvls") if "absent" not in each.fields]
    multicast += [each for each in facts.seen("channel_counts") if int(each.fields.get("nvls", "0")) > 0]
    graph = [each for each in facts.seen("graph_pattern") if each.fields["type"].startswith("NVL")]
    found = (multicast or graph)[:1]
    if not found and nvlinks_per_gpu(facts):
        found = many_gpu_lines(facts)
    return found
