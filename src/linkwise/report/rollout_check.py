"""What a check of a rollout says, as it is published, `linkwise.rollout-check/1`, and on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from linkwise.errors import InputError
from linkwise.report.results import PublishedResult
from linkwise.report.tables import print_line, wrapped
from linkwise.report.wording import counted
from linkwise.rollout.gates.remark import Level, Remark
from linkwise.rollout.plan import Against, Severity
from linkwise.rollout.targets import target_gpus, target_nodes, target_words

if TYPE_CHECKING:
    from rich.console import Console

    from linkwise.cluster import Cluster
    from linkwise.rollout.gates.checking_power import ObjectivePower
    from linkwise.rollout.gates.power import GatePower
    from linkwise.rollout.plan import Rollout, Target

__all__ = ["RolloutCheckResult", "print_rollout_check", "rollout_check_result"]


class RemarkResult(PublishedResult):
    """One thing that the check says."""

    level: Level
    key: str = Field(description="Of the document.")
    text: str


class StepResult(PublishedResult):
    """One step, and how much it touches."""

    name: str
    target: str = Field(description="In words.")
    nodes: int | None = Field(description="null where the cluster cannot say.")
    gpus: int | None
    objectives: list[str]


class PowerResult(PublishedResult):
    """How often one bar says what, by simulation with the judge itself."""

    objective: str
    key: str = Field(description="Of the bar in the document.")
    against: Against
    severity: Severity
    noise_fraction: float = Field(description="Standard deviation between runs, over their mean.")
    noise_basis: str = Field(description="stated, recorded or assumed.")
    healthy_truth: float = Field(description="Ratio to what it is compared with; to the bar for a floor.")
    bad_truth: float
    healthy_passes_fraction: float
    healthy_fails_fraction: float
    bad_passes_fraction: float
    bad_fails_fraction: float
    healthy_mean_runs: float = Field(description="Runs of the candidate until it is decided.")
    trials: int
    enough_repeats: int | None = Field(description="A most_repeats that would do, where this does not.")
    sentence: str


class RolloutCheckResult(PublishedResult):
    """What a check of a rollout says."""

    published: Literal["linkwise.rollout-check/1"] = Field(default="linkwise.rollout-check/1", alias="schema")
    name: str
    digest: str = Field(description="SHA-256 of the document and of the files it names.")
    candidate: str = Field(description="Digest of the configuration.")
    control: str
    steps: list[StepResult]
    power: list[PowerResult]
    healthy_passes_all_fraction: float | None = Field(
        description="How often a healthy change passes all simulated bars that must hold, in all steps."
    )
    remarks: list[RemarkResult]


def rollout_check_result(
    rollout: Rollout, cluster: Cluster, remarks: Sequence[Remark], powers: Sequence[ObjectivePower]
) -> RolloutCheckResult:
    """Return a check as it is published.

    Parameters
    ----------
    rollout
        What was checked.
    cluster
        That of its scope.
    remarks
        What the check says.
    powers
        How often its bars say what.
    """
    return RolloutCheckResult(
        name=rollout.name,
        digest=rollout.digest,
        candidate=rollout.candidate.digest,
        control=rollout.control.digest,
        steps=[
            StepResult(
                name=step.name,
                target=target_words(step.target),
                nodes=_or_none(target_nodes, step.target, cluster),
                gpus=_or_none(target_gpus, step.target, cluster),
                objectives=list(step.objectives),
            )
            for step in rollout.steps
        ],
        power=[_power_result(each) for each in powers],
        healthy_passes_all_fraction=_passes_all(rollout, powers),
        remarks=[RemarkResult(level=each.level, key=each.key, text=each.text) for each in remarks],
    )


def _power_result(power: ObjectivePower) -> PowerResult:
    trials = power.healthy.trials
    return PowerResult(
        objective=power.objective,
        key=power.key,
        against=power.comparison.against,
        severity=power.severity,
        noise_fraction=power.noise.fraction,
        noise_basis=power.noise.basis,
        healthy_truth=power.healthy_truth,
        bad_truth=power.bad_truth,
        healthy_passes_fraction=power.healthy.passed / trials,
        healthy_fails_fraction=power.healthy.failed / trials,
        bad_passes_fraction=power.bad.passed / trials,
        bad_fails_fraction=power.bad.failed / trials,
        healthy_mean_runs=power.healthy.mean_runs,
        trials=trials,
        enough_repeats=power.enough_repeats,
        sentence=_power_sentence(power),
    )


def _power_sentence(power: ObjectivePower) -> str:
    """Return the power of a bar in words."""
    healthy, bad, against = power.healthy, power.bad, power.comparison.against
    is_known = against in (Against.CONTROL, Against.BASELINE)
    change = f"one as good as the {against}" if is_known else f"a change {_off(power.healthy_truth)} the bar"
    worse = f"one {_off(power.bad_truth)} {'it' if is_known else 'the bar'}"
    open_share = healthy.trials - healthy.passed - healthy.failed
    noise = f"{100 * power.noise.fraction:.3g} % ({power.noise.basis})"
    return (
        f"{power.objective} against {against}, noise {noise}: "
        f"{change} passes in {_of_100(healthy.passed, healthy)} of 100 cases, fails in "
        f"{_of_100(healthy.failed, healthy)} and stays open in {_of_100(open_share, healthy)}, after "
        f"{healthy.mean_runs:.1f} runs; {worse} passes in {_of_100(bad.passed, bad)} and fails in "
        f"{_of_100(bad.failed, bad)}"
    )


def _off(truth: float) -> str:
    return f"{100 * abs(truth - 1):.3g} % {'below' if truth < 1 else 'above'}"


def _of_100(count: int, power: GatePower) -> str:
    return f"{100 * count / power.trials:.3g}"


def _passes_all(rollout: Rollout, powers: Sequence[ObjectivePower]) -> float | None:
    """Return how often a healthy change passes all bars that must hold; steps are taken as independent."""
    product, is_any = 1.0, False
    for name in (name for step in rollout.steps for name in step.objectives):
        for power in powers:
            if power.objective == name and power.severity is Severity.MUST:
                product *= power.healthy.passed / power.healthy.trials
                is_any = True
    return product if is_any else None


def _or_none(count: Callable[[Target, Cluster], int], target: Target, cluster: Cluster) -> int | None:
    try:
        return count(target, cluster)
    except InputError:
        return None


def _print_power(result: RolloutCheckResult, console: Console) -> None:
    for power in result.power:
        print_line(console, wrapped(power.sentence, width=console.width, indent="  ", first=""))
    if result.healthy_passes_all_fraction is not None:
        share = f"{100 * result.healthy_passes_all_fraction:.3g} of 100"
        line = f"in all, a healthy change passes the simulated bars of all steps in {share} cases"
        print_line(console, wrapped(line, width=console.width, indent="  ", first=""))
    if result.power:
        print_line(console)


def print_rollout_check(result: RolloutCheckResult, console: Console) -> None:
    """Print a check.

    Parameters
    ----------
    result
        The check.
    console
        Where to.
    """
    print_line(console, f"{result.name}: {counted(len(result.steps), 'step')}, digest {result.digest[:12]}")
    for step in result.steps:
        size = "" if step.nodes is None else f", {counted(step.nodes, 'node')}"
        size = "" if size == f", {step.target}" else size
        line = f"{step.name}: {step.target}{size}; {', '.join(step.objectives)}"
        print_line(console, wrapped(line, width=console.width, indent="    ", first="  "))
    print_line(console)
    _print_power(result, console)
    for level in Level:
        for remark in (each for each in result.remarks if each.level is level):
            line = f"{level}: {remark.key}: {remark.text}"
            print_line(console, wrapped(line, width=console.width, indent="  ", first=""))
    faults = sum(each.level is Level.FAULT for each in result.remarks)
    print_line(console, f"{counted(faults, 'fault')}" if faults else "no fault")
