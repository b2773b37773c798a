"""From a `rollout/1` document to a `Rollout`, with the digests of what it says and of the files it names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from linkwise.documents import parse_document, read_text
from linkwise.rollout.digests import digest_of, digest_of_bytes
from linkwise.rollout.document.configuration import ConfigurationDocument, ScopeDocument, named_file
from linkwise.rollout.document.document import (
    HEADER,
    IncidentDocument,
    LimitsDocument,
    RolloutDocument,
    SamplingDocument,
    StepDocument,
    ValidRunDocument,
)
from linkwise.rollout.document.objective import (
    CollectivesWorkload,
    ComparisonDocument,
    EndpointWorkload,
    ObjectiveDocument,
    PairsWorkload,
    bar_of,
)
from linkwise.rollout.metrics import find_metric
from linkwise.rollout.plan import (
    PROOFS,
    Change,
    Comparison,
    Configuration,
    Incident,
    Limits,
    Objective,
    Reactions,
    Reason,
    Rollback,
    Rollout,
    Sampling,
    Scope,
    Step,
    Target,
    ValidRun,
    Workload,
    WorkloadKind,
)

if TYPE_CHECKING:
    from os import PathLike
    from typing import BinaryIO

__all__ = ["parse_rollout", "read_rollout"]


def read_rollout(path: str | PathLike[str], *, stdin: BinaryIO | None = None) -> Rollout:
    """Return the rollout that a document describes.

    Parameters
    ----------
    path
        The file, or ``-`` for standard input. Files that it names are looked for beside it.
    stdin
        What to read for ``-``.

    Raises
    ------
    DocumentError
        With all faults of the document.
    """
    name = "<stdin>" if str(path) == "-" else str(path)
    return parse_rollout(read_text(path, stdin=stdin), path=name)


def parse_rollout(text: str, *, path: str | None = None) -> Rollout:
    """Return the rollout that the text of a document describes.

    Parameters
    ----------
    text
        The document.
    path
        The file it came from, for messages and for the files it names.

    Raises
    ------
    DocumentError
        With all faults of the document.
    """
    document = parse_document(text, RolloutDocument, HEADER, path=path)
    candidate = _configuration(document.candidate, path)
    control = _configuration(document.control, path)
    scope = _scope(document.scope, path)
    return Rollout(
        name=document.name,
        owner=document.owner,
        change=Change(
            what=document.change.what, kind=document.change.kind, reference=document.change.reference or ""
        ),
        scope=scope,
        candidate=candidate,
        control=control,
        objectives=tuple(_objective(each) for each in document.objectives),
        steps=tuple(_step(each) for each in document.steps),
        sampling=_sampling(document.sampling),
        valid_run=_valid_run(document.valid_run),
        reactions=Reactions(**document.when.model_dump()),
        limits=_limits(document.limits),
        rollback=Rollback(
            to=document.rollback.to,
            command=tuple(document.rollback.command or ()),
            rehearsed=document.rollback.rehearsed,
            verify=tuple(document.rollback.verify),
        ),
        incident=_incident(document.incident),
        digest=digest_of(
            {
                "document": document.model_dump(mode="json", exclude_defaults=True),
                "configurations": [control.digest, candidate.digest],
                "files": [_contents(each) for each in (scope.cluster, scope.prices)],
            }
        ),
    )


def _scope(document: ScopeDocument, path: str | None) -> Scope:
    file = named_file(document.cluster, path)
    fingerprint = document.fingerprint.model_dump(exclude_none=True)
    return Scope(
        cluster=str(file) if file.is_file() else document.cluster,
        place=document.place,
        device=document.device,
        prices=_absolute(document.prices, path),
        fingerprint={name: str(value) for name, value in fingerprint.items()},
    )


def _configuration(document: ConfigurationDocument, path: str | None) -> Configuration:
    """Return a configuration whose digest hangs on what its files hold, not on where they lie.

    What is not said is left out, so that a key of a later release does not change the digests of today.
    """
    job, script = _absolute(document.job, path), _absolute(document.script, path)
    command = tuple(document.command or ())
    held = {
        "settings": document.settings,
        "job": _contents(job),
        "model": [_contents(each) for each in _model_files(job)],
        "layout": document.layout,
        "script": _contents(script),
        "python": document.python or "",
        "command": command,
        "command_files": [_contents(str(named_file(word, path))) for word in command],
    }
    return Configuration(
        settings=dict(document.settings),
        job=job,
        layout=dict(document.layout),
        script=script,
        python=document.python or "",
        command=command,
        digest=digest_of({name: value for name, value in held.items() if any(value)}),
    )


def _model_files(job: str) -> Iterator[str]:
    """Yield the file of the model where a job names one."""
    from linkwise.documents.tree import parse_yaml

    tree = parse_yaml(read_text(job)).value if job else None
    model = tree.get("model") if isinstance(tree, dict) else None
    if isinstance(model, str):
        yield str(Path(job).parent / model)


def _absolute(given: str | None, path: str | None) -> str:
    return str(named_file(given, path)) if given else ""


def _contents(file: str) -> str:
    """Return the digest of a file; empty for what is none, such as a program that is found on the path."""
    where = Path(file)
    return digest_of_bytes(where.read_bytes()) if file and where.is_file() else ""


def _objective(document: ObjectiveDocument) -> Objective:
    metric = find_metric(document.metric)
    return Objective(
        name=document.name,
        dimension=document.dimension,
        metric=document.metric,
        workload=_workload(document),
        aggregate=document.aggregate,
        comparisons=tuple(
            Comparison(against=each.to, bar=bar_of(each, metric), is_least=_is_least(each))
            for each in document.compare
        ),
        severity=document.severity,
        reason=Reason(why=document.why, by=document.by, review_by=document.review_by),
    )


def _is_least(document: ComparisonDocument) -> bool:
    return document.at_least is not None


def _workload(document: ObjectiveDocument) -> Workload:
    given = document.workload
    kind = WorkloadKind(given.kind)
    if isinstance(given, CollectivesWorkload):
        sizes = tuple(round(size) for size in given.sizes)
        return Workload(kind=kind, operations=tuple(given.operations), sizes_bytes=sizes)
    if isinstance(given, PairsWorkload):
        return Workload(kind=kind, sizes_bytes=(round(given.size),), rounds=given.rounds)
    if isinstance(given, EndpointWorkload):
        return Workload(kind=kind, endpoint=given.url)
    return Workload(kind=kind, cut=getattr(given, "cut", ""), steps=given.steps)


def _step(document: StepDocument) -> Step:
    kind, amount = document.target.value()
    return Step(
        name=document.name,
        target=Target(kind=kind, amount=amount),
        objectives=tuple(document.objectives),
        soak_s=document.soak or 0.0,
        approvals=tuple(document.approvals),
    )


def _sampling(document: SamplingDocument) -> Sampling:
    return Sampling(
        repeats=document.repeats,
        most_repeats=document.most_repeats,
        warmup=document.warmup,
        budget_gpu_s=document.budget,
    )


def _valid_run(document: ValidRunDocument) -> ValidRun:
    return ValidRun(
        checks=tuple(words for name, words in PROOFS.items() if name not in document.left_out),
        left_out={PROOFS[name]: reason for name, reason in document.left_out.items()},
        most_noise_fraction=document.most_noise,
        least_valid_fraction=document.least_valid,
    )


def _limits(document: LimitsDocument) -> Limits:
    return Limits(most_nodes=document.nodes, most_failures=document.failures, within_s=document.within)


def _incident(document: IncidentDocument) -> Incident:
    return Incident(page=tuple(document.page), runbook=document.runbook, collect=tuple(document.collect))
