"""One measured run beside its estimate, phase by phase: which is off, and what would explain it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from linkwise.calibrate.site_run import SiteRun

if TYPE_CHECKING:
    from linkwise.estimate import Estimate

__all__ = ["Against", "Phase", "against"]

_COMPUTE = ("compute", "optimizer")
_EXPOSED = ("tensor", "context", "expert", "pipeline", "data")
_REST = ("bubble", "overhead")
_PASSES = ("compute", "tensor", "context", "expert", "pipeline", "bubble")
OFF_SHARE = 0.05
"""A phase is off from this share of the step on [1]."""

_TIMERS: Mapping[str, tuple[tuple[str, tuple[str, ...], tuple[tuple[str, ...], ...]], ...]] = {
    "deepspeed": (
        ("forward and backward", (*_PASSES, "data"), (("fwd", "bwd"), ("forward", "backward"))),
        ("optimizer", ("optimizer",), (("step",),)),
    ),
    "megatron": (
        (
            "forward and backward",
            _PASSES,
            (("forward-backward",), ("forward-compute", "backward-compute")),
        ),
        (
            "gradients",
            ("data",),
            (("all-grads-sync",), ("grads-all-reduce",), ("backward-params-all-reduce",)),
        ),
        ("optimizer", ("optimizer",), (("optimizer",),)),
    ),
    "linkwise bench": (
        ("forward and backward", (*_PASSES, "data"), (("forward", "backward"), ("schedule",))),
        ("optimizer", ("optimizer",), (("optimizer",),)),
    ),
}
"""Phase, parts of the estimate, and the timers that tell it, by framework."""

_SLOWER: Mapping[str, str] = {
    "computing": "GPUs below their clock or power, other kernels than the framework's usual ones, or more "
    "recomputation than the layout says; look at nvidia-smi -q -d CLOCK,POWER,PERFORMANCE while it runs",
    "exposed communication": "a network or NVLink below what it should give, or less overlap than is usual; "
    "run nccl-tests and set them beside the model: linkwise collective --compare",
    "idle": "the host does not keep up (data, launches, logging, checkpoints) or waits for a slower rank; "
    "profile the slowest rank, and look at the input pipeline",
    "forward and backward": "slow kernels or exposed communication inside the passes; a trace of the "
    "profiler tells the two apart",
    "gradients": "the reduction of gradients is not hidden, or its network is slow; check the overlap "
    "settings, and the transport with nccl-tests and linkwise collective --compare",
    "optimizer": "an optimizer that is not fused or partly on the host, or one that waits for gathers of "
    "parameters",
}
_FASTER: Mapping[str, str] = {
    "computing": "faster kernels than the fit has seen, a cheaper attention, or less recomputation than the "
    "layout says",
    "exposed communication": "more overlap than is usual for the framework",
    "idle": "fewer stragglers than is usual",
    "forward and backward": "faster kernels or more overlap than the fit has seen",
    "gradients": "the reduction is hidden behind the passes, or timed apart from them",
    "optimizer": "an optimizer that is fused, or sharded further than the layout says",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """One phase of a step.

    Attributes
    ----------
    name
        What it is.
    parts
        Parts of the estimate that it holds.
    predicted_s, measured_s
        Its time [s].
    """

    name: str
    parts: tuple[str, ...]
    predicted_s: float
    measured_s: float

    @property
    def longer_s(self) -> float:
        """Return by how much it is longer than predicted [s]."""
        return self.measured_s - self.predicted_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Against:
    """A measured run beside its estimate.

    Attributes
    ----------
    source
        What told it.
    steps, left_out
        Steps that count, and those at the start that do not [1].
    predicted_s, low_s, high_s
        Time of a step, and its 80 % interval [s].
    measured_s
        Median time of a step [s].
    phases
        What the record tells apart; empty where it tells the step alone.
    off
        The phase that is off most; ``None`` where none is.
    reason
        What would explain it, or what to record; a sentence without its stop, empty where nothing is off.
    """

    source: str
    steps: int
    left_out: int
    predicted_s: float
    low_s: float
    high_s: float
    measured_s: float
    phases: tuple[Phase, ...]
    off: str | None
    reason: str

    @property
    def is_slower(self) -> bool:
        """Return whether the run is slower than its interval."""
        return self.measured_s > self.high_s

    @property
    def is_expected(self) -> bool:
        """Return whether the run is within its interval."""
        return self.low_s <= self.measured_s <= self.high_s


def against(estimate: Estimate, run: SiteRun) -> Against:
    """Return a run beside its estimate.

    Parameters
    ----------
    estimate
        What the layout that ran should take.
    run
        What it took.
    """
    phases = tuple(_phases(estimate, run))
    off = _off(phases, estimate, run)
    return Against(
        source=run.source,
        steps=len(run.step_times_s),
        left_out=run.left_out,
        predicted_s=estimate.step_time_s,
        low_s=estimate.step_time_low_s,
        high_s=estimate.step_time_high_s,
        measured_s=run.step_time_s,
        phases=phases,
        off=None if off is None else off.name,
        reason=_reason(estimate, run, off),
    )


def _phases(estimate: Estimate, run: SiteRun) -> Iterator[Phase]:
    def predicted(parts: tuple[str, ...]) -> float:
        return sum(estimate.parts[part] for part in parts)

    if run.trace is not None:
        seen: tuple[tuple[str, tuple[str, ...], float], ...] = (
            ("computing", _COMPUTE, run.trace.compute_s),
            ("exposed communication", _EXPOSED, run.trace.exposed_s),
            ("idle", _REST, run.trace.idle_s),
        )
        for name, parts, measured in seen:
            yield Phase(name=name, parts=parts, predicted_s=predicted(parts), measured_s=measured)
        return
    told = dict(run.phases_s)
    for name, parts, choices in _TIMERS.get(run.source, ()):
        timers = next((each for each in choices if all(timer in told for timer in each)), None)
        if timers is not None:
            measured = sum(told[timer] for timer in timers)
            yield Phase(name=name, parts=parts, predicted_s=predicted(parts), measured_s=measured)


def _off(phases: tuple[Phase, ...], estimate: Estimate, run: SiteRun) -> Phase | None:
    """Return the phase that moves the step most in the direction in which the step is off."""
    sign = 1.0 if run.step_time_s >= estimate.step_time_s else -1.0
    most = max(phases, key=lambda phase: sign * phase.longer_s, default=None)
    if most is None or sign * most.longer_s < OFF_SHARE * run.step_time_s:
        return None
    return most


def _reason(estimate: Estimate, run: SiteRun, off: Phase | None) -> str:
    if off is not None:
        return (_SLOWER if off.longer_s > 0 else _FASTER)[off.name]
    if estimate.step_time_low_s <= run.step_time_s <= estimate.step_time_high_s:
        return ""
    return (
        "the record tells no phase that is off; a trace of PyTorch's profiler over a few steps tells "
        "computing, communication and idle time apart"
    )
