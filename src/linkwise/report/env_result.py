"""The published result `linkwise.env/1`: settings that are needed, or what is wrong with settings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from linkwise.report.results import PublishedResult

if TYPE_CHECKING:
    from linkwise.settings.finding import Finding, Subject
    from linkwise.settings.recommended import Recommendation

__all__ = [
    "EnvResult",
    "FileResult",
    "FindingResult",
    "SettingResult",
    "check_result",
    "env_csv_rows",
    "recommendation_result",
]


class SettingResult(PublishedResult):
    """One setting that is needed."""

    name: str
    value: str
    reason: str
    source: str
    basis: str = Field(description="datasheet, derived or assumed.")


class FindingResult(PublishedResult):
    """One thing that is wrong with a setting or a launch."""

    severity: str = Field(description="harmful, no effect, advice, or check (no setting shows it).")
    rule: str
    file: str | None = Field(default=None, description="None for the environment of this process.")
    line: int | None = None
    name: str
    value: str = ""
    scope: str = Field(default="", description="The container, in a manifest.")
    what: str
    todo: str
    source: str


class FileResult(PublishedResult):
    """What was read of one file."""

    file: str | None = None
    kind: str = Field(description="environment, nccl.conf, script or manifest.")
    settings: int
    launches: int


class EnvResult(PublishedResult):
    """Settings, or findings on settings."""

    published: Literal["linkwise.env/1"] = Field(default="linkwise.env/1", alias="schema")
    mode: Literal["recommend", "check"]
    nccl: str = Field(description="The release of NCCL that was judged for.")
    nccl_assumed: bool = Field(description="Whether nobody named that release.")
    cluster: str | None = None
    settings: list[SettingResult] = Field(default_factory=list)
    notes: list[str] = Field(default_factory=list, description="What hangs on facts that no document holds.")
    files: list[FileResult] = Field(default_factory=list)
    findings: list[FindingResult] = Field(default_factory=list, description="The worst first.")


def recommendation_result(found: Recommendation, *, cluster: str, nccl: str, is_assumed: bool) -> EnvResult:
    """Return settings as they are published.

    Parameters
    ----------
    found
        The settings.
    cluster
        What they are for.
    nccl
        The release of NCCL.
    is_assumed
        Whether nobody named it.
    """
    return EnvResult(
        mode="recommend",
        nccl=nccl,
        nccl_assumed=is_assumed,
        cluster=cluster,
        settings=[
            SettingResult(
                name=each.name, value=each.value, reason=each.reason, source=each.source, basis=each.basis
            )
            for each in found.settings
        ],
        notes=list(found.notes),
    )


def check_result(
    subject: Subject, findings: tuple[Finding, ...], *, nccl: str, is_assumed: bool
) -> EnvResult:
    """Return findings as they are published.

    Parameters
    ----------
    subject
        What was judged.
    findings
        What was found.
    nccl
        The release of NCCL.
    is_assumed
        Whether nobody named it.
    """
    return EnvResult(
        mode="check",
        nccl=nccl,
        nccl_assumed=is_assumed,
        cluster=None if subject.cluster is None else subject.cluster.name,
        files=[
            FileResult(
                file=each.path, kind=each.kind, settings=len(each.assignments), launches=len(each.launches)
            )
            for each in subject.files
        ],
        findings=[
            FindingResult(
                severity=each.severity,
                rule=each.rule,
                file=each.path,
                line=each.line,
                name=each.name,
                value=each.value,
                scope=each.scope,
                what=each.what,
                todo=each.todo,
                source=each.source,
            )
            for each in findings
        ],
    )


def env_csv_rows(result: EnvResult) -> Iterator[list[object]]:
    """Yield a heading and a row for each setting, or for each finding.

    Parameters
    ----------
    result
        The result.
    """
    kind = SettingResult if result.mode == "recommend" else FindingResult
    names = list(kind.model_fields)
    yield list(names)
    for row in result.settings if result.mode == "recommend" else result.findings:
        yield ["" if (value := getattr(row, name)) is None else value for name in names]
