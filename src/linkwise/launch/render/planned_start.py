"""`planned_start`: a `Start` from an estimate, with its settings, time limit and steps."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from linkwise.errors import InputError
from linkwise.job.framework import FRAMEWORKS
from linkwise.launch.render.run_settings import run_settings
from linkwise.launch.render.start import Start

if TYPE_CHECKING:
    from linkwise.cluster import Cluster
    from linkwise.estimate import Estimate
    from linkwise.job import Job
    from linkwise.nccl.variables import Release
    from linkwise.settings.node import NodeFacts

__all__ = ["planned_start"]

_USUAL_LIMIT_S = 86_400
"""A day: within what partitions commonly allow, and long enough to see a step time settle [s]."""
_MARGIN = 1.2
"""The limit over the estimate of the whole training, for its start and checkpoints; assumed [1]."""
_START_S = 900
"""To load, compile and connect before the first step; assumed [s]."""
_STEPS = 100
"""Steps of a job whose length nobody states: enough for a median that no first step disturbs; assumed [1]."""


def planned_start(
    job: Job,
    cluster: Cluster,
    estimate: Estimate,
    *,
    target: str,
    release: Release,
    node: NodeFacts | None = None,
    dscp: int | None = None,
    time_limit_s: float | None = None,
    script: str | None = None,
    image: str | None = None,
    nic_resource: str | None = None,
) -> tuple[Start, tuple[str, ...]]:
    """Return what is to be started, and what hangs on facts that no document holds.

    Parameters
    ----------
    job, cluster
        What runs on what.
    estimate
        The layout, with its time.
    target
        What files are rendered for; where it is a framework, its settings are taken.
    release
        The release of NCCL.
    node
        Interfaces and RDMA devices of a node, where they are known.
    dscp
        The DSCP that the switches keep lossless, for RoCE.
    time_limit_s
        After this time the job is ended; a day, or less where the training is shorter, if absent [s].
    script, image, nic_resource
        As in `Start`.

    Raises
    ------
    InputError
        When no launcher can start it.
    """
    if script is not None and (not script.strip() or not script.isprintable() or script.startswith("-")):
        raise InputError(f"--script {script!r} is no name of a program; give a path, as in train.py")
    habits = replace(job, framework=target) if target in FRAMEWORKS else job
    settings, notes = run_settings(habits, cluster, estimate.layout, release=release, node=node, dscp=dscp)
    limit_s, why = _time_limit(job, estimate, time_limit_s)
    steps = job.steps
    start = Start(
        job=job,
        cluster=cluster,
        layout=estimate.layout,
        settings=settings,
        time_limit_s=limit_s,
        time_limit_reason=why,
        steps=_STEPS if steps is None else max(1, math.ceil(steps)),
        steps_reason=(
            "the job does not state tokens; that many are enough to measure a step"
            if steps is None
            else f"{job.tokens:.4g} tokens in steps of {job.tokens_per_step}"
        ),
        script=script,
        image=image,
        nic_resource=nic_resource,
    )
    return start, notes


def _time_limit(job: Job, estimate: Estimate, given_s: float | None) -> tuple[int, str]:
    steps = job.steps or _STEPS
    whole_s = _MARGIN * steps * estimate.step_time_s + _START_S
    longer = ""
    if whole_s > (given_s or _USUAL_LIMIT_S):
        longer = f"; {steps:.3g} steps take {whole_s / 3600:.3g} h with margin: go on from checkpoints"
    if given_s is not None:
        return max(1, math.ceil(given_s)), f"as given{longer}"
    if longer:
        return _USUAL_LIMIT_S, f"a day{longer}, or give --time-limit"
    return math.ceil(whole_s / 60) * 60, f"{_MARGIN} times the estimate of {steps:.3g} steps, and 15 minutes"
