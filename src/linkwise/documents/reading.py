"""From the text of a document to its pydantic model, with every fault at its line."""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ValidationError

from linkwise.documents.fields import Misfits
from linkwise.documents.text import STANDARD_INPUT, read_text
from linkwise.documents.tree import KeyPath, Plain, Tree, parse_yaml
from linkwise.errors import DocumentError, Fault, nearest_names

if TYPE_CHECKING:
    from os import PathLike
    from typing import BinaryIO

    from pydantic_core import ErrorDetails

__all__ = ["HEADER_KEY", "faults_of_values", "json_schema", "parse_document", "read_document"]

HEADER_KEY = "linkwise"
"""The key whose value says what a document is: ``linkwise: cluster/1``."""

_Model = TypeVar("_Model", bound=BaseModel)
_HEADER = re.compile(r"([a-z]+)/(\d{1,4})")


def read_document(
    path: str | PathLike[str], model: type[_Model], header: str, *, stdin: BinaryIO | None = None
) -> _Model:
    """Return the document in a file.

    Parameters
    ----------
    path
        The file, or ``-`` for standard input.
    model
        What the document is read as. Its validators find the path in ``info.context["path"]``.
    header
        Kind and version it must state: ``"cluster/1"``.
    stdin
        What to read for ``-``; the standard input of the process if absent.

    Raises
    ------
    DocumentError
        With all faults of the file.
    """
    name = "<stdin>" if str(path) == STANDARD_INPUT else str(path)
    return parse_document(read_text(path, stdin=stdin), model, header, path=name)


def parse_document(text: str, model: type[_Model], header: str, *, path: str | None = None) -> _Model:
    """Return the document in `text`.

    Parameters
    ----------
    text
        YAML 1.2; JSON is a part of it.
    model
        What the document is read as.
    header
        Kind and version it must state.
    path
        The file it came from, for messages and for paths relative to it.

    Raises
    ------
    DocumentError
        With all faults of the text.
    """
    tree = parse_yaml(text, path=path)
    faults = list(tree.faults)
    if not isinstance(tree.value, dict):
        what = "is empty" if tree.value is None else "is not a mapping of keys to values"
        message = f"{what}; start it with '{HEADER_KEY}: {header}'"
        raise DocumentError([*faults, Fault(path=path, line=1, message=message)])
    stated = tuple(_header_faults(tree, header, path))
    if tree.value.get(HEADER_KEY) is not None and stated:
        raise DocumentError(
            [*faults, *stated]
        )  # another kind of document: its keys would all be called unknown
    faults += stated
    body = {key: value for key, value in tree.value.items() if key != HEADER_KEY}
    try:
        document = model.model_validate(body, context={"path": path})
    except ValidationError as error:
        faults += _validation_faults(error, model, tree, path)
    if faults:
        raise DocumentError(sorted(dict.fromkeys(faults), key=lambda fault: fault.line or 0))
    return document


def faults_of_values(
    error: ValidationError, model: type[BaseModel], values: Mapping[str, Any]
) -> tuple[Fault, ...]:
    """Return what is wrong with values that stood in no file, each with its key.

    Parameters
    ----------
    error
        What pydantic raised.
    model
        What the values were read as.
    values
        The values.
    """
    return tuple(_validation_faults(error, model, Tree(value=dict(values), lines={}), None))


def json_schema(model: type[BaseModel], header: str) -> dict[str, Any]:
    """Return the JSON Schema of a document, its header included.

    Parameters
    ----------
    model
        What the document is read as.
    header
        Kind and version it states.
    """
    schema = model.model_json_schema()
    stated = {"const": header, "description": "Kind and version of the document."}
    properties = {HEADER_KEY: stated, **schema.pop("properties", {})}
    required = [HEADER_KEY, *schema.pop("required", [])]
    schema.pop("title", None)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": header,
        **schema,
        "properties": properties,
        "required": required,
    }


def _header_faults(tree: Tree, header: str, path: str | None) -> Iterator[Fault]:
    kind, version = header.split("/")
    given = tree.value.get(HEADER_KEY) if isinstance(tree.value, dict) else None
    line = tree.lines.get((HEADER_KEY,), 1)
    match = _HEADER.fullmatch(given) if isinstance(given, str) else None
    if given is None:
        message = f"the header is missing; start the document with '{HEADER_KEY}: {header}'"
    elif match is None:
        message = f"{given!r} is not a kind and a version; write '{HEADER_KEY}: {header}'"
    elif match[1] != kind:
        message = f"this document is a {given}, but a {header} is read here"
    elif int(match[2]) != int(version):
        message = f"{given} is not a version this Linkwise reads; it reads {header}"
    else:
        return
    yield Fault(path=path, line=line, key=HEADER_KEY, message=message)


def _validation_faults(
    error: ValidationError, model: type[BaseModel], tree: Tree, path: str | None
) -> Iterator[Fault]:
    for details in error.errors(include_url=False):
        yield from _faults_of(details, model, tree, path)


def _faults_of(
    details: ErrorDetails, model: type[BaseModel], tree: Tree, path: str | None
) -> Iterator[Fault]:
    at, models, missing = _place(details["loc"], model, tree.value)
    error = details.get("ctx", {}).get("error")
    pairs = error.pairs if isinstance(error, Misfits) else (("", _message(details, models)),)
    for key, message in pairs:
        named = (part for part in key.split(".") if part)
        below: KeyPath = (*at, *(int(part) if part.isdecimal() else part for part in named))
        shown = (*below, missing) if missing else below
        yield Fault(
            path=path, line=_line(tree, below), key=".".join(str(part) for part in shown), message=message
        )


def _place(
    location: KeyPath, model: type[BaseModel], value: Plain
) -> tuple[KeyPath, tuple[type[BaseModel], ...], str]:
    """Return the path in the document, the models whose keys are valid there, and the missing key if any.

    A location of pydantic has names of union branches in it that the document has not; they are passed over.
    """
    at: list[str | int] = []
    models: tuple[type[BaseModel], ...] = (model,)
    parents = models
    missing = ""
    for part in location:
        if isinstance(value, dict) and part in value:
            value = value[str(part)]
        elif isinstance(value, list) and isinstance(part, int) and part < len(value):
            value = value[part]
        else:
            missing = str(part) if part == location[-1] and _is_field(models, part) else ""
            continue
        at.append(part)
        parents, models = models, tuple(_models_below(models, part))
    return tuple(at), parents, missing


def _is_field(models: tuple[type[BaseModel], ...], part: str | int) -> bool:
    return any(part in model.model_fields for model in models)


def _models_below(models: tuple[type[BaseModel], ...], part: str | int) -> Iterator[type[BaseModel]]:
    if isinstance(part, int):
        yield from models
    for model in models:
        if part in model.model_fields:
            yield from _models_in(model.model_fields[str(part)].annotation)


def _models_in(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    elif isinstance(annotation, types.GenericAlias) or typing.get_origin(annotation) is not None:
        for argument in typing.get_args(annotation):
            yield from _models_in(argument)


def _message(details: ErrorDetails, models: tuple[type[BaseModel], ...]) -> str:
    kind, given = details["type"], details["input"]
    if kind == "missing":
        return "the key is required and missing"
    if kind == "extra_forbidden":
        valid = [name for model in models for name in model.model_fields]
        if details["loc"][-1] in valid:
            return "the key does not belong here, but in another form of what is described"
        near = nearest_names(str(details["loc"][-1]), valid, count=1)
        return (
            f"unknown key; did you mean {near[0]!r}?" if near else f"unknown key; valid: {', '.join(valid)}"
        )
    if kind == "value_error":
        return str(details["ctx"]["error"])
    if kind in ("model_type", "dict_type"):
        return f"{_shown(given)} is not accepted: write keys with their values below this one"
    if given is None:
        return "the key has no value; give one or leave the key out"
    return f"{_shown(given)} is not accepted: {_lower(details['msg'])}"


def _lower(message: str) -> str:
    return message[:1].lower() + message[1:]


def _shown(given: object) -> str:
    if isinstance(given, Mapping | list):
        return "a mapping" if isinstance(given, Mapping) else "a list"
    text = repr(given)
    return text if len(text) <= 80 else text[:77] + "..."


def _line(tree: Tree, at: KeyPath) -> int | None:
    while at and at not in tree.lines:
        at = at[:-1]
    return tree.lines.get(at)
