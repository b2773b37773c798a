"""From a `job/1` document or the options of a command to a `Job`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from linkwise.documents import parse_document, read_text
from linkwise.errors import DocumentError, Fault
from linkwise.job.document import HEADER, JobDocument, LayoutDocument, folder_of
from linkwise.job.job import Job
from linkwise.layout import ContextExchange, Layout, RankOrder, Recompute, Schedule
from linkwise.model import load_model

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike
    from typing import BinaryIO

__all__ = ["job_from_options", "layout_from_options", "layout_of", "load_job", "parse_job", "read_job"]


def load_job(text: str, *, stdin: BinaryIO | None = None) -> Job:
    """Return the job that a command was given as a path, ``-`` for standard input.

    Parameters
    ----------
    text
        The path.
    stdin
        What to read for ``-``.

    Raises
    ------
    DocumentError
        With all faults of the document.
    """
    return read_job(text, stdin=stdin)


def read_job(path: str | PathLike[str], *, stdin: BinaryIO | None = None) -> Job:
    """Return the job that a `job/1` document describes.

    Parameters
    ----------
    path
        The file, or ``-`` for standard input. A model given as a path is looked for beside it.
    stdin
        What to read for ``-``.

    Raises
    ------
    DocumentError
        With all faults of the document.
    """
    name = "<stdin>" if str(path) == "-" else str(path)
    return parse_job(read_text(path, stdin=stdin), path=name)


def parse_job(text: str, *, path: str | None = None) -> Job:
    """Return the job that the text of a `job/1` document describes.

    Parameters
    ----------
    text
        The document.
    path
        The file it came from, for messages and for the path of a model.

    Raises
    ------
    DocumentError
        With all faults of the document.
    """
    return _job(parse_document(text, JobDocument, HEADER, path=path), folder=folder_of(path))


def job_from_options(options: Mapping[str, object]) -> Job:
    """Return the job that options of a command describe.

    Parameters
    ----------
    options
        Keys of a `job/1` document with their values; those that are ``None`` are left out.

    Raises
    ------
    DocumentError
        With all faults; their keys are spelled as options: ``--sequence-length``.
    """
    from pydantic import ValidationError

    from linkwise.documents.reading import faults_of_values

    given = {key: value for key, value in options.items() if value is not None}
    try:
        return _job(JobDocument.model_validate(given, context={"path": None}), folder=Path())
    except ValidationError as error:
        faults = faults_of_values(error, JobDocument, given)
    raise DocumentError(_as_option(fault) for fault in faults)


def layout_from_options(options: Mapping[str, object]) -> Layout:
    """Return the layout that the option ``--layout`` of a command describes.

    Parameters
    ----------
    options
        Keys below `layout` of a `job/1` document with their values.

    Raises
    ------
    DocumentError
        With all faults; their keys are spelled as options: ``--layout tensor``.
    """
    from pydantic import ValidationError

    from linkwise.documents.reading import faults_of_values

    try:
        return layout_of(LayoutDocument.model_validate(dict(options)))
    except ValidationError as error:
        faults = faults_of_values(error, LayoutDocument, options)
    raise DocumentError(_as_option(replace(fault, key=f"layout.{fault.key}")) for fault in faults)


_Choice = TypeVar("_Choice", Recompute, Schedule, RankOrder, ContextExchange)


def _choice(choices: type[_Choice], word: str) -> _Choice:
    return next(choice for choice in choices if choice.word == word)


def _as_option(fault: Fault) -> Fault:
    key = "--" + fault.key.replace("_", "-").replace(".", " ")
    return Fault(key=key, message=fault.message.replace("the key", "the option"))


def _job(document: JobDocument, *, folder: Path) -> Job:
    return Job(
        model=load_model(document.model, folder=folder),
        sequence_length=document.sequence_length,
        global_batch=document.global_batch,
        precision=document.precision,
        framework=document.framework,
        tokens=document.tokens,
        layout=layout_of(document.layout) if isinstance(document.layout, LayoutDocument) else None,
        kind=document.kind,
    )


def layout_of(document: LayoutDocument) -> Layout:
    """Return the layout that a part of a document describes.

    Parameters
    ----------
    document
        As it was read.
    """
    degrees = document.model_dump(exclude={"recompute", "schedule", "rank_order", "context_exchange"})
    return Layout(
        **degrees,
        recompute=_choice(Recompute, document.recompute),
        schedule=_choice(Schedule, document.schedule),
        rank_order=_choice(RankOrder, document.rank_order),
        context_exchange=_choice(ContextExchange, document.context_exchange),
    )
