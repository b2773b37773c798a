"""What a rollout is carried out with: the store, who measures, the clock, and where files go."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from linkwise.rollout.measuring.measure import Measure
from linkwise.rollout.plan import Rollout
from linkwise.rollout.store.store import Store

__all__ = ["Ground", "Loaded", "StepSize"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSize:
    """How much of the cluster a step touches.

    Parameters
    ----------
    nodes, gpus
        How many [1].
    words
        As the file says it.
    """

    nodes: int
    gpus: int
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A rollout file as it is now.

    Parameters
    ----------
    rollout
        The plan.
    text
        The document.
    path
        Where it lies.
    scope
        Name of the cluster and the place, under which baselines are kept.
    sizes
        By name of the step.
    """

    rollout: Rollout
    text: str
    path: Path
    scope: str
    sizes: Mapping[str, StepSize]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What a rollout is carried out with.

    Parameters
    ----------
    store
        Where evidence and decisions are kept.
    load
        Reads the rollout file; asked before every action, so that an edit is noticed.
    measure
        Who measures.
    who
        The person at the command line, and the host.
    runs
        Folder in which every run gets one of its own.
    promoted
        File that launchers read: the configuration that is in force.
    clock
        Returns the time in UTC.
    sleep
        Waits for a number of seconds.
    tell
        Takes a line of progress.
    host
        Name of this host: folders of runs lie where they were measured.
    lost_hosts
        Those that will not come back: runs that they kept are given up.
    """

    store: Store
    load: Callable[[], Loaded]
    measure: Measure
    who: str
    runs: Path
    promoted: Path
    clock: Callable[[], dt.datetime]
    sleep: Callable[[float], None]
    tell: Callable[[str], None]
    host: str = ""
    lost_hosts: frozenset[str] = frozenset()
