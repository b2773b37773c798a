"""What is wrong with a rollout before it starts: gates that cannot fail or be measured, ways back untried."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

from linkwise.cluster import Cluster
from linkwise.errors import InputError, NotKnown
from linkwise.rollout.gates.checking_floors import floor_remarks
from linkwise.rollout.gates.checking_objectives import objective_remarks
from linkwise.rollout.gates.remark import Level, Remark
from linkwise.rollout.plan import Rollout, Severity
from linkwise.rollout.targets import target_nodes, target_words

__all__ = ["check_rollout"]

_SEEN = frozenset({"gpu", "nccl", "driver", "torch"})
"""What runs of `linkwise bench` and `linkwise launch` tell of a cluster."""
_LARGE_START_FRACTION = 0.25
"""A first step that touches more is told of [1]."""


def check_rollout(rollout: Rollout, cluster: Cluster, *, today: dt.date) -> tuple[Remark, ...]:
    """Return what is wrong with a rollout, in the order of its document.

    Parameters
    ----------
    rollout
        As its document says; that its parts fit together was checked when it was read.
    cluster
        That of its scope.
    today
        The calendar, by which numbers grow old.
    """
    has_prices = bool(rollout.scope.prices) or cluster.prices is not None
    return (
        *_of_scope(rollout),
        *_of_configurations(rollout),
        *objective_remarks(rollout, has_prices=has_prices, today=today),
        *floor_remarks(rollout, cluster),
        *_of_steps(rollout, cluster),
        *_of_rollback(rollout, today),
    )


def _of_scope(rollout: Rollout) -> Iterator[Remark]:
    if not rollout.scope.fingerprint:
        yield Remark(
            level=Level.WARNING,
            key="scope.fingerprint",
            text="is empty: the file would judge any cluster; say at least the GPU and the NCCL it is for",
        )
    seen = ", ".join(sorted(_SEEN))
    for name in sorted(rollout.scope.fingerprint.keys() - _SEEN):
        yield Remark(
            level=Level.WARNING,
            key=f"scope.fingerprint.{name}",
            text=f"no run tells it, so that it keeps no cluster out; runs tell {seen}",
        )


def _of_configurations(rollout: Rollout) -> Iterator[Remark]:
    if rollout.candidate.digest == rollout.control.digest:
        yield Remark(
            level=Level.FAULT,
            key="candidate",
            text="is equal to control, files and all: nothing would change, and every gate would pass",
        )


def _of_steps(rollout: Rollout, cluster: Cluster) -> Iterator[Remark]:
    """Yield remarks on steps: what they judge, and how much they touch."""
    touched: list[int] = []
    for place, step in enumerate(rollout.steps):
        key = f"steps.{place}"
        objectives = [rollout.objective(name) for name in step.objectives]
        if not any(each.severity is Severity.MUST for each in objectives):
            yield Remark(
                level=Level.FAULT,
                key=f"{key}.objectives",
                text=f"step {step.name!r} judges nothing that must hold: it can never fail",
            )
        try:
            nodes = target_nodes(step.target, cluster)
        except InputError as error:
            level = Level.WARNING if isinstance(error, NotKnown) else Level.FAULT
            yield Remark(level=level, key=f"{key}.target", text=str(error))
            continue
        yield from _of_size(rollout, place, nodes, touched, cluster)
        touched.append(nodes)


def _of_size(
    rollout: Rollout, place: int, nodes: int, before: list[int], cluster: Cluster
) -> Iterator[Remark]:
    step, most = rollout.steps[place], rollout.limits.most_nodes
    key = f"steps.{place}.target"
    what = f"{target_words(step.target)}"
    if before and nodes < before[-1]:
        text = f"{what} are {nodes} nodes, fewer than the {before[-1]} of the step before: nothing is learned"
        yield Remark(level=Level.WARNING, key=key, text=text)
    if most is not None and nodes > most:
        text = f"is {most}, and step {step.name!r} needs {nodes}: the rollout would stop there"
        yield Remark(level=Level.FAULT, key="limits.nodes", text=text)
    if not before and len(rollout.steps) > 1 and nodes > max(1, _LARGE_START_FRACTION * cluster.nodes_in_use):
        text = f"the first step touches {nodes} of {cluster.nodes_in_use} nodes; begin with one"
        yield Remark(level=Level.WARNING, key=key, text=text)


def _of_rollback(rollout: Rollout, today: dt.date) -> Iterator[Remark]:
    rollback = rollout.rollback
    if rollback.rehearsed is None:
        text = "the way back was never tried; try it, then write down the day"
        yield Remark(level=Level.WARNING, key="rollback.rehearsed", text=text)
    elif rollback.rehearsed > today:
        text = f"{rollback.rehearsed} is not yet: write the day on which the way back was tried"
        yield Remark(level=Level.FAULT, key="rollback.rehearsed", text=text)
    if not rollback.verify:
        text = "is empty: nothing would show that the way back led back; name an objective"
        yield Remark(level=Level.WARNING, key="rollback.verify", text=text)
    for place, name in enumerate(rollback.verify):
        if rollout.objective(name).severity is Severity.WATCH:
            text = f"{name!r} is only watched, it proves nothing; name an objective that must hold"
            yield Remark(level=Level.WARNING, key=f"rollback.verify.{place}", text=text)
