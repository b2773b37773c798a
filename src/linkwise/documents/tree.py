"""YAML 1.2 to plain values, with the line of every key.

Documents come from strangers, so the tree is built from the parser's events under limits: nesting, and number
of values once aliases are expanded. Scalars follow the core schema of YAML 1.2: `yes`, `on`
and `1_000` are text. Tags that would construct objects are refused.

References
----------
YAML Language Development Team, "YAML Ain't Markup Language version 1.2", revision 1.2.2, 2021, chapter 10.3.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from linkwise.errors import DocumentError, Fault

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruamel.yaml.events import Event

__all__ = ["Plain", "Tree", "parse_yaml"]

KeyPath = tuple[str | int, ...]
Plain = None | bool | int | float | str | list["Plain"] | dict[str, "Plain"]

DEEPEST = 40
MOST_VALUES = 20_000

_NULL = re.compile(r"(?:null|Null|NULL|~|)")
_TRUE = re.compile(r"(?:true|True|TRUE)")
_FALSE = re.compile(r"(?:false|False|FALSE)")
_INTEGER = re.compile(r"[-+]?[0-9]{1,30}|0o[0-7]{1,30}|0x[0-9a-fA-F]{1,30}")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]{1,60}|[0-9]{1,60}(?:\.[0-9]{0,60})?)(?:[eE][-+]?[0-9]{1,4})?")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """The values of one document and where they stand.

    Parameters
    ----------
    value
        The document as plain values.
    lines
        Line of each value by its path of keys and indices; the line of the key for a value of a mapping.
    faults
        What is wrong with the YAML as such, duplicate keys among it.
    """

    value: Plain
    lines: dict[KeyPath, int]
    faults: tuple[Fault, ...] = ()


def parse_yaml(text: str, *, path: str | None = None) -> Tree:
    """Return the tree of the one YAML document in `text`.

    Parameters
    ----------
    text
        The document.
    path
        The file it came from, for messages.

    Raises
    ------
    DocumentError
        If the text is not YAML, holds several documents, or passes a limit.
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    builder = _Builder(path=path, events=iter(YAML(typ="safe", pure=True).parse(text)))
    try:
        return builder.build()
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark is not None else None
        message = f"not valid YAML: {error.problem or error.context}"
    except (YAMLError, RecursionError, ValueError, OverflowError) as error:
        if isinstance(error, DocumentError):
            raise
        place = getattr(error, "position", None)  # of a character that no YAML may hold
        line = text.count("\n", 0, place) + 1 if isinstance(place, int) else None
        message = f"not valid YAML: {str(error).splitlines()[0] if str(error) else 'cannot be read'}"
    raise DocumentError([*builder.faults, Fault(path=path, line=line, message=message)])


@dataclass(slots=True, kw_only=True)
class _Builder:
    """Builds the tree from events, and counts."""

    path: str | None
    events: Iterator[Event]
    lines: dict[KeyPath, int] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    anchors: dict[str, tuple[Plain, int]] = field(default_factory=dict)
    size: int = 0

    def build(self) -> Tree:
        from ruamel.yaml import events as kinds

        value: Plain = None
        documents = 0
        for event in self.events:
            if isinstance(event, kinds.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise self.refusal(event, "a second document starts here; keep one document in a file")
                value = self.value(next(self.events), (), _line(event))
        return Tree(value=value, lines=self.lines, faults=tuple(self.faults))

    def value(self, event: Event, at: KeyPath, line: int) -> Plain:
        """Return the value that starts with `event`."""
        from ruamel.yaml import events as kinds

        if isinstance(event, kinds.AliasEvent):
            return self.expand(event, at, line)
        self.count(event, 1)
        if len(at) > DEEPEST:
            raise self.refusal(event, f"nested more than {DEEPEST} levels deep")
        self.lines[at] = line
        before = self.size
        value: Plain
        if isinstance(event, kinds.MappingStartEvent):
            self.check_tag(event, at)
            value = self.mapping(at)
        elif isinstance(event, kinds.SequenceStartEvent):
            self.check_tag(event, at)
            value = self.sequence(at)
        else:
            value = self.scalar(event, at)
        if event.anchor:  # type: ignore[attr-defined]
            self.anchors[event.anchor] = value, self.size - before + 1  # type: ignore[attr-defined]
        return value

    def mapping(self, at: KeyPath) -> dict[str, Plain]:
        from ruamel.yaml import events as kinds

        values: dict[str, Plain] = {}
        for event in self.events:
            if isinstance(event, kinds.MappingEndEvent):
                break
            if not isinstance(event, kinds.ScalarEvent):
                raise self.refusal(event, "a key must be a word, not a list, a mapping or an alias")
            key = event.value
            if key in values:
                first = self.lines[(*at, key)]
                self.fault(event, (*at, key), f"the key stands here and in line {first}; keep one")
                self.value(next(self.events), (*at, f"{key} (again)"), _line(event))
            else:
                values[key] = self.value(next(self.events), (*at, key), _line(event))
        return values

    def sequence(self, at: KeyPath) -> list[Plain]:
        from ruamel.yaml import events as kinds

        values: list[Plain] = []
        for event in self.events:
            if isinstance(event, kinds.SequenceEndEvent):
                break
            values.append(self.value(event, (*at, len(values)), _line(event)))
        return values

    def scalar(self, event: Event, at: KeyPath) -> Plain:
        text: str = event.value  # type: ignore[attr-defined]
        tag = str(event.tag) if event.tag is not None else None  # type: ignore[attr-defined]
        if tag in ("tag:yaml.org,2002:str", "!"):
            return text
        self.check_tag(event, at)
        return text if event.style else _plain_scalar(text)  # type: ignore[attr-defined]

    def expand(self, event: Event, at: KeyPath, line: int) -> Plain:
        """Return the value an alias stands for."""
        anchored = self.anchors.get(event.anchor)  # type: ignore[attr-defined]
        if anchored is None:
            raise self.refusal(event, f"the alias *{event.anchor} has no finished anchor above it")  # type: ignore[attr-defined]
        value, size = anchored
        self.count(event, size)
        self.lines[at] = line
        return value

    def check_tag(self, event: Event, at: KeyPath) -> None:
        tag = event.tag  # type: ignore[attr-defined]
        if tag is not None and str(tag) != "!":
            self.fault(event, at, f"the tag {str(tag)!r} is not read here; write the plain value")

    def count(self, event: Event, values: int) -> None:
        self.size += values
        if self.size > MOST_VALUES:
            raise self.refusal(
                event, f"more than {MOST_VALUES:,} values (aliases count each time they are used)"
            )

    def fault(self, event: Event, at: KeyPath, message: str) -> None:
        key = ".".join(str(part) for part in at)
        self.faults.append(Fault(path=self.path, line=_line(event), key=key, message=message))

    def refusal(self, event: Event, message: str) -> DocumentError:
        return DocumentError([*self.faults, Fault(path=self.path, line=_line(event), message=message)])


def _line(event: Event) -> int:
    return int(event.start_mark.line) + 1


def _plain_scalar(text: str) -> Plain:
    if _NULL.fullmatch(text):
        return None
    if _TRUE.fullmatch(text):
        return True
    if _FALSE.fullmatch(text):
        return False
    if _INTEGER.fullmatch(text):
        return int(text, 8 if text.startswith("0o") else 16 if text.startswith("0x") else 10)
    if _FLOAT.fullmatch(text) or _NOT_FINITE.fullmatch(text):
        return float(
            text.replace(".inf", "inf").replace(".nan", "nan") if _NOT_FINITE.fullmatch(text) else text
        )
    return text
