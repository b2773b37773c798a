"""Healthy step times that were recorded: which there are, and which the settings were chosen on."""

import gzip
from functools import cache
from pathlib import Path

from linkwise.monitor.drift import DriftKind, DriftWatch
from linkwise.monitor.job_steps import JobSteps

FOLDER = Path(__file__).parents[1] / "data" / "step_times"
HELD_OUT = tuple(sorted(path.name for path in FOLDER.glob("*-b.log.gz")))
"""Recorded after those that the settings were chosen on (``*-a.log.gz``)."""
CHOSEN_ON = tuple(sorted(path.name for path in FOLDER.glob("*-a.log.gz")))


@cache
def recorded_times(name):
    """Return the step times of a recording as a watch would judge them, and how many steps it has."""
    times = []
    steps = JobSteps(sink=lambda _number, time_s: times.append(time_s))
    steps.feed(name, gzip.decompress((FOLDER / name).read_bytes()), now_s=0.0)
    steps.finish(now_s=0.0)
    return times, steps.count


def drifts_in(times):
    """Return what is told of step times."""
    watch = DriftWatch()
    return [drift for at, time_s in enumerate(times) if (drift := watch.add(at, float(time_s))) is not None]


def alarms_in(drifts):
    """Return how many of them are alarms: a recovery is none."""
    return sum(each.kind is not DriftKind.RECOVERED for each in drifts)
