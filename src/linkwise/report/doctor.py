"""The published result `linkwise.doctor/1`: verdict, what is in use, findings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from linkwise.report.results import PublishedResult

if TYPE_CHECKING:
    from linkwise.diagnose.against_cluster import Shortfall
    from linkwise.diagnose.baseline import Comparison
    from linkwise.diagnose.doctor import Diagnosis
    from linkwise.diagnose.finding import Finding
    from linkwise.diagnose.transport import InUse
    from linkwise.readers.job_log.values import Evidence

__all__ = [
    "BaselineResult",
    "DifferenceResult",
    "DoctorResult",
    "EvidenceResult",
    "FindingResult",
    "ProofResult",
    "ShortfallResult",
    "TransportResult",
    "doctor_result",
    "finding_result",
]


class EvidenceResult(PublishedResult):
    """One line that proves something."""

    file: str
    line: int
    text: str


class ProofResult(PublishedResult):
    """How one thing in use is known."""

    evidence: EvidenceResult | None = None
    hint: str = Field(default="", description="Where the log does not show it: why, and what would.")


class TransportResult(PublishedResult):
    """What is in use; None where the log does not show it."""

    intra_node: str | None
    inter_node: str | None
    gpudirect_rdma: bool | None
    nvls: bool | None
    nics_per_node: int | None
    nccl_version: str | None
    cuda_version: str | None
    ranks: int | None
    nodes: int | None
    bootstrap_interface: str | None
    nic_link: str | None = Field(description="IB, RoCE, or both where devices are mixed.")
    nic_gbit_per_s: int | None = Field(description="Of one NIC, the slowest that is shown.")
    algorithms: str | None = Field(description="Of the largest call that is shown.")


class FindingResult(PublishedResult):
    """One cause of what is wrong."""

    cause: str
    family: str
    severity: Literal["broken", "slow", "harmless"]
    confidence: Literal["high", "medium", "low"]
    where: list[str] = Field(description="Hosts and ranks.")
    evidence: list[EvidenceResult]
    explanation: str
    fix: list[str]
    next_check: str


class ShortfallResult(PublishedResult):
    """What the cluster has and the job does not use; costs are predicted, None where there is none."""

    what: str
    there: str
    used: str
    evidence: EvidenceResult | None
    busbw_there_bytes_per_s: float | None = Field(description="All-reduce of 1 GiB over all GPUs, with all.")
    busbw_used_bytes_per_s: float | None
    step_there_s: float | None = Field(description="Best layout of the job, with all.")
    step_used_s: float | None
    note: str = Field(default="", description="What the costs rest on.")


class DifferenceResult(PublishedResult):
    """One thing that is not as in the good run."""

    what: str
    good: str
    now: str
    evidence: EvidenceResult | None


class BaselineResult(PublishedResult):
    """The run beside a good one."""

    differences: list[DifferenceResult] = Field(description="What matters most first.")
    also_found: list[str] = Field(description="Causes that are found in the good run too.")


class DoctorResult(PublishedResult):
    """The answer of `linkwise doctor`."""

    published: Literal["linkwise.doctor/1"] = Field(default="linkwise.doctor/1", alias="schema")
    verdict: Literal["healthy", "slow", "broken", "cannot_tell"]
    reason: str = Field(description="Why, where no finding says it.")
    transport: TransportResult
    proof: dict[str, ProofResult] = Field(description="Of each field of transport.")
    findings: list[FindingResult]
    shortfalls: list[ShortfallResult] = Field(description="Against the cluster that was given.")
    unknown_warnings: list[EvidenceResult] = Field(
        description="Warnings of NCCL that are there and that no finding reads, the first of each text."
    )
    unread: list[str] = Field(description="Inputs that could not be used, and why.")
    baseline: BaselineResult | None = Field(
        default=None, description="Against a good run; None without --baseline."
    )


def doctor_result(diagnosis: Diagnosis) -> DoctorResult:
    """Return a diagnosis as it is published.

    Parameters
    ----------
    diagnosis
        What was found.
    """
    transport = diagnosis.transport
    used: dict[str, InUse] = {name: getattr(transport, name) for name in TransportResult.model_fields}
    return DoctorResult(
        verdict=diagnosis.verdict.value,
        reason=diagnosis.reason,
        transport=TransportResult.model_validate({name: each.value for name, each in used.items()}),
        proof={name: _proof(each) for name, each in used.items()},
        findings=[finding_result(each) for each in diagnosis.findings],
        shortfalls=[_shortfall(each) for each in diagnosis.shortfalls],
        unknown_warnings=[_evidence(each) for each in diagnosis.unknown],
        unread=list(diagnosis.unread),
        baseline=None if diagnosis.comparison is None else _baseline(diagnosis.comparison),
    )


def _baseline(each: Comparison) -> BaselineResult:
    return BaselineResult(
        differences=[
            DifferenceResult(
                what=one.what,
                good=one.good,
                now=one.now,
                evidence=None if one.evidence is None else _evidence(one.evidence),
            )
            for one in each.differences
        ],
        also_found=list(each.also_found),
    )


def _proof(each: InUse) -> ProofResult:
    return ProofResult(
        evidence=None if each.evidence is None else _evidence(each.evidence),
        hint=each.hint if each.value is None else "",
    )


def _shortfall(each: Shortfall) -> ShortfallResult:
    return ShortfallResult(
        what=each.what,
        there=each.there,
        used=each.used,
        evidence=None if each.evidence is None else _evidence(each.evidence),
        busbw_there_bytes_per_s=each.busbw_there_bytes_per_s,
        busbw_used_bytes_per_s=each.busbw_used_bytes_per_s,
        step_there_s=each.step_there_s,
        step_used_s=each.step_used_s,
        note=each.note,
    )


def _evidence(each: Evidence) -> EvidenceResult:
    return EvidenceResult(file=each.file, line=each.line, text=each.text)


def finding_result(each: Finding) -> FindingResult:
    """Return a finding as it is published.

    Parameters
    ----------
    each
        What was found.
    """
    return FindingResult(
        cause=each.cause,
        family=each.family,
        severity=each.severity.value,
        confidence=each.confidence.value,
        where=list(each.where),
        evidence=[_evidence(line) for line in each.evidence],
        explanation=each.explanation,
        fix=list(each.fix),
        next_check=each.next_check,
    )
