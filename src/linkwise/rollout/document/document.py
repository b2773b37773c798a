"""The `rollout/1` document: its keys, and which of their values fit together."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Annotated, Self

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, field_validator, model_validator

from linkwise.documents import Count, Document, Misfits, Seconds
from linkwise.errors import InputError, UnknownName, nearest_names
from linkwise.rollout.document.configuration import ConfigurationDocument, ScopeDocument
from linkwise.rollout.document.fields import Argv, Day, GpuTime, Name, PositiveRatio, Word, Words
from linkwise.rollout.document.objective import ObjectiveDocument
from linkwise.rollout.plan import COLLECTED, PROOFS, Reaction, TargetKind

__all__ = ["HEADER", "RolloutDocument", "StepDocument"]

HEADER = "rollout/1"


def _check_of(given: str) -> str:
    if given not in PROOFS:
        raise UnknownName.among(PROOFS, kind="check of a run", given=given)
    return given


def _collected(given: str) -> str:
    if given not in COLLECTED:
        raise UnknownName.among(COLLECTED, kind="kind of evidence", given=given)
    return given


class ChangeDocument(Document):
    """What goes out."""

    what: Word = Field(description="In words.")
    kind: Word = Field(description="Such as nccl, driver, firmware, topology, layout, scale.")
    reference: Word | None = Field(default=None, description="Of a ticket.")


class ValidRunDocument(Document):
    """What a run must show to count. Every check is on unless it is left out, with the reason."""

    left_out: dict[
        Annotated[str, AfterValidator(_check_of), WithJsonSchema({"enum": list(PROOFS)})], Word
    ] = Field(default_factory=dict, description="Checks that need not be met, each with the reason.")
    most_noise: PositiveRatio | None = Field(
        default=None, description="Spread within a run over its median, above which the run does not count."
    )
    least_valid: PositiveRatio = Field(
        default=0.8, le=1, description="Of all runs, those that must count; with fewer nothing is judged."
    )


class SamplingDocument(Document):
    """How often each objective is measured. The sample is the run, not the call in it."""

    repeats: Annotated[int, Field(strict=True, ge=5, le=200)] = Field(
        default=5, description="Runs at first; with fewer than five there is no interval."
    )
    most_repeats: Annotated[int, Field(strict=True, ge=5, le=200)] = Field(
        default=15, description="Runs at most, where the first do not decide."
    )
    warmup: Annotated[int, Field(strict=True, ge=0, le=100)] = Field(
        default=1, description="Runs before the first that counts."
    )
    budget: GpuTime | None = Field(default=None, description="GPU-time that one step may spend on tests.")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.most_repeats < self.repeats:
            message = f"{self.most_repeats} is less than repeats ({self.repeats}); give as many at least"
            raise Misfits([("most_repeats", message)])
        return self


class TargetDocument(Document):
    """How much of the cluster a step touches: one of these."""

    gpus: Count | None = Field(default=None, description="GPUs of one node.")
    nodes: Count | None = None
    pairs: Count | None = Field(default=None, description="Pairs of nodes.")
    leaves: Count | None = Field(default=None, description="Leaf switches with all their nodes.")
    fraction: PositiveRatio | None = Field(default=None, description="Of all nodes, rounded up.")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        given = self.model_dump(exclude_none=True)
        if len(given) != 1:
            words = ", ".join(given) if given else "nothing"
            raise InputError(f"says {words}; give exactly one of {', '.join(type(self).model_fields)}")
        if self.fraction is not None and self.fraction > 1:
            raise Misfits([("fraction", f"{100 * self.fraction:g} % is more than there is")])
        return self

    def value(self) -> tuple[TargetKind, float]:
        """Return in what the target is counted, and how many."""
        kind = next(each for each in TargetKind if getattr(self, each.value) is not None)
        return kind, float(getattr(self, kind.value))


class StepDocument(Document):
    """One step, which is a gate."""

    name: Name
    target: TargetDocument
    objectives: Annotated[list[Name], Field(min_length=1)] = Field(
        description="Names of those that are judged."
    )
    soak: Seconds | None = Field(default=None, description="How long it runs before it is judged.")
    approvals: list[Word] = Field(default_factory=list, description="Who must approve, by role or name.")


class ReactionsDocument(Document):
    """What follows from each verdict that is no pass."""

    fail: Reaction = Reaction.SUSPEND
    inconclusive: Reaction = Reaction.SUSPEND
    error: Reaction = Reaction.SUSPEND
    no_data: Reaction = Reaction.SUSPEND


class LimitsDocument(Document):
    """What the rollout may not exceed."""

    nodes: Count | None = Field(default=None, description="Nodes touched in all.")
    failures: Count | None = Field(default=None, description="Failed runs, after which nothing is started.")
    within: Seconds | None = Field(default=None, description="The time in which failures count.")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if (self.failures is None) != (self.within is None):
            missing = "within" if self.within is None else "failures"
            raise Misfits([(missing, "is missing: failures and within say together when to stop")])
        return self


_WAY_BACK = r"^(control|[0-9a-f]{64})$"


def _way_back(given: object) -> object:
    if isinstance(given, str) and re.search(_WAY_BACK, given) is None:
        raise InputError(
            f"{given[:80]!r} is no way back; write control, or the 64 digits of a configuration as "
            "'linkwise rollout status --format json' prints them"
        )
    return given


class RollbackDocument(Document):
    """The way back."""

    to: Annotated[str, BeforeValidator(_way_back), Field(pattern=_WAY_BACK)] = Field(
        default="control", description="The word control, or the digest of a configuration that was promoted."
    )
    command: Argv | None = Field(default=None, description="What restores it, where settings are not all.")
    rehearsed: Day | None = Field(default=None, description="The day it was tried.")
    verify: list[Name] = Field(default_factory=list, description="Objectives that prove it.")


class IncidentDocument(Document):
    """What is ready for the worst."""

    page: Words = Field(description="Whom to call.")
    runbook: Word = Field(description="Where the steps are written down.")
    collect: list[Annotated[str, AfterValidator(_collected), WithJsonSchema({"enum": list(COLLECTED)})]] = (
        Field(description="What goes into the archive.")
    )


class RolloutDocument(Document):
    """A change that goes out step by step, each step a gate."""

    name: Name
    owner: Word = Field(description="Who answers for the change.")
    change: ChangeDocument
    scope: ScopeDocument
    control: ConfigurationDocument = Field(description="What is in force today.")
    candidate: ConfigurationDocument = Field(description="What shall replace it.")
    objectives: Annotated[list[ObjectiveDocument], Field(min_length=1)]
    valid_run: ValidRunDocument = Field(default_factory=ValidRunDocument)
    sampling: SamplingDocument = Field(default_factory=SamplingDocument)
    steps: Annotated[list[StepDocument], Field(min_length=1)]
    when: ReactionsDocument = Field(default_factory=ReactionsDocument)
    limits: LimitsDocument = Field(default_factory=LimitsDocument)
    rollback: RollbackDocument
    incident: IncidentDocument

    @field_validator("objectives", "steps", mode="after")
    @classmethod
    def _has_each_name_once(
        cls, given: list[ObjectiveDocument] | list[StepDocument]
    ) -> list[ObjectiveDocument] | list[StepDocument]:
        faults = list(_repeated(each.name for each in given))
        if faults:
            raise Misfits(faults)
        return given

    @model_validator(mode="after")
    def _fits(self) -> Self:
        faults = [*self._unknown_objectives(), *self._unused_objectives(), *self._without_job()]
        if faults:
            raise Misfits(faults)
        return self

    def _unknown_objectives(self) -> Iterator[tuple[str, str]]:
        known = [each.name for each in self.objectives]
        lists = [(f"steps.{place}.objectives", step.objectives) for place, step in enumerate(self.steps)]
        for key, names in (*lists, ("rollback.verify", self.rollback.verify)):
            for place, name in enumerate(names):
                if name not in known:
                    near = nearest_names(name, known, count=1)
                    hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(known)}"
                    yield f"{key}.{place}", f"there is no objective {name!r}; {hint}"
                elif name in names[:place]:
                    yield f"{key}.{place}", f"{name!r} stands here twice; keep one"

    def _unused_objectives(self) -> Iterator[tuple[str, str]]:
        used = {*self.rollback.verify, *(name for step in self.steps for name in step.objectives)}
        for place, objective in enumerate(self.objectives):
            if objective.name not in used:
                message = f"no step judges {objective.name!r}; name it in a step, or leave it out"
                yield f"objectives.{place}", message

    def _without_job(self) -> Iterator[tuple[str, str]]:
        needing = next((each.name for each in self.objectives if each.workload.kind == "job"), None)
        for side in ("control", "candidate") if needing else ():
            if getattr(self, side).job is None:
                yield side, f"names no job, and the objective {needing!r} runs one; add job: PATH"


def _repeated(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    seen: Counter[str] = Counter()
    for place, name in enumerate(names):
        if seen[name]:
            yield f"{place}.name", f"{name!r} is the name of another one too; give each its own"
        seen[name] += 1
