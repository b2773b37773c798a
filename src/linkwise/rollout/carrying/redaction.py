"""Names taken out of evidence: hosts, people, addresses, paths and serial numbers, each by one pseudonym.

The same name gets the same pseudonym in every file of an archive, so that what happened where can still be
followed. Names that are known beforehand (hosts of runs, people in the log) are found wherever they stand;
the others by their form.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Redactor"]

_KEPT_NAMES = frozenset({"root", "localhost", "nobody", "slurm"})
"""Names that everybody has."""
_KEPT_PATHS = ("/usr", "/lib", "/lib64", "/bin", "/sbin", "/dev", "/proc", "/sys", "/etc", "/boot")
"""Parts of the system that are alike everywhere, and that a diagnosis needs."""
_KEPT_ADDRESSES = frozenset({"127.0.0.1", "0.0.0.0", "255.255.255.255", "::1", "::"})  # noqa: S104 (text)

_OCTET = r"(?:25[0-5]|2[0-4]\d|1?\d?\d)"
_HEX = r"[0-9a-fA-F]{1,4}"
_SECRETLY_NAMED = r"(?i:\b(?:\w*(?:token|secret|passw(?:or)?d|api_?key)\w*)\b[\"']?\s*[=:]\s*[\"']?)"
_TELLING = {
    "secret": re.compile(r"(?i)token$|secret|passw(or)?d|api_?key"),
    "serial": re.compile(r"(?i)serial"),
}
"""Keys of JSON whose values are names, whatever they look like."""
_ESCAPE = re.compile(r"(\\+(?:[nrtbf\"/]|u[0-9a-fA-F]{4}))")
_DOMAINS = "com|org|net|io|ai|edu|gov|local|lan|internal|intra|corp|cloud|cluster"
_FORMS = (
    _SECRETLY_NAMED + r"(?P<secret>[^\s\"',;}]+)",
    r"(?<=://)(?P<secret_1>[^\s/@:\"']+:[^\s/@\"']+)(?=@)",
    r"(?P<mail>\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b)",
    r"(?P<gpu>\b(?:GPU|MIG)-[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4,12}){1,4}\b)",
    r"(?i:\bserial(?:\s*(?:number|no\.?))?[\"']?\s*[=:]\s*[\"']?)(?P<serial>[\w-]{4,})",
    r"(?P<guid>\b0x[0-9a-fA-F]{16}\b|\b(?:[0-9a-fA-F]{4}:){3}[0-9a-fA-F]{4}\b(?!:\w))",
    r"(?P<mac>\b[0-9a-fA-F]{2}(?:[:-][0-9a-fA-F]{2}){5}(?:(?:[:-][0-9a-fA-F]{2}){2,14})?\b)",
    rf"(?P<address>(?<![\w.]){_OCTET}(?:\.{_OCTET}){{3}}(?![\w.]*\d))",
    rf"(?P<address_1>(?<![\w:.])(?:{_HEX}:){{7}}{_HEX}(?!\w|:\w|::))",
    rf"(?P<address_2>(?<![\w:.])(?:{_HEX}:){{1,6}}(?::{_HEX}){{1,6}}(?!\w|:\w|::))",
    rf"(?P<address_3>(?<![\w:.])::(?:{_HEX}:){{0,6}}{_HEX}(?!\w|:\w|::))",
    rf"(?P<address_4>(?<![\w:.])(?:{_HEX}:){{1,7}}:(?![\w:]))",
    r"(?P<path>(?<![\w./~\\])~?/(?:[\w.@+=,%-]+/)*[\w.@+=,%-]+/?)",
    r"(?m:^|(?<=[\[\s\"']))(?P<host>[A-Za-z][\w.-]*)(?=:\d+:\d+ \[)",
    rf"(?P<host_1>\b[A-Za-z][A-Za-z0-9-]*(?:\.[A-Za-z0-9-]+)*\.(?:{_DOMAINS})\b)",
)
"""Names by their form, in the order in which they are tried at a place; a group is named for the kind."""


@dataclass(slots=True)
class Redactor:
    """Replaces names by pseudonyms, and counts what it replaced.

    Parameters
    ----------
    known
        Names that are known beforehand, by their kind (``host``, ``user``).
    """

    known: Mapping[str, Iterable[str]] = field(default_factory=dict)
    pseudonyms: dict[tuple[str, str], str] = field(default_factory=dict)
    places: Counter[str] = field(default_factory=Counter)
    _pattern: re.Pattern[str] = field(init=False)
    _known: re.Pattern[str] = field(init=False)
    _kinds: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Compile what is looked for."""
        listed = {
            name: kind
            for kind, names in self.known.items()
            for name in names
            if name and name.casefold() not in _KEPT_NAMES
        }
        self._kinds = {name.casefold(): kind for name, kind in listed.items()}
        words = "|".join(re.escape(name) for name in sorted(listed, key=len, reverse=True))
        known = rf"(?P<known>(?<![\w-])(?i:{words})(?![\w-]))" if words else r"(?P<known>(?!))"
        self._known = re.compile(known)
        # A known name inside of an address of mail or a path is replaced with the whole of it.
        self._pattern = re.compile("|".join([*_FORMS, known]))

    def redact(self, text: str) -> str:
        """Return a text without names.

        Parameters
        ----------
        text
            The text. Where it is JSON, or lines of it, names are taken out of the values, so that none hides
            behind an escape; its blanks are not kept.
        """
        if text.lstrip()[:1] in ("{", "["):
            try:
                return self._json(text) + "\n" * text.endswith("\n")
            except (ValueError, RecursionError):
                lines = text.splitlines(keepends=True)
                if len(lines) > 1:
                    return "".join(map(self.redact, lines))
        # What looks like an escape in other text is a border, too: a log may hold a piece of JSON.
        parts = _ESCAPE.split(text)
        return "".join(
            part if place % 2 else self._pattern.sub(self._replaced, part) for place, part in enumerate(parts)
        )

    def _json(self, text: str) -> str:
        found = json.loads(text)
        return json.dumps(self._value(found))

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.redact(value)
        if isinstance(value, dict):
            return {self.redact(name): self._under(name, each) for name, each in value.items()}
        return [self._value(each) for each in value] if isinstance(value, list) else value

    def _under(self, name: str, value: Any) -> Any:
        """Return a value without names; that of a key which says what it is goes as a whole."""
        kind = next((kind for kind, keys in _TELLING.items() if keys.search(name)), None)
        if kind is None or not isinstance(value, str) or not value:
            return self._value(value)
        self.places[kind] += 1
        return self._pseudonym(kind, value)

    @property
    def counts(self) -> dict[str, dict[str, int]]:
        """Return by kind how many names there were, and at how many places."""
        names = Counter(kind for kind, _ in self.pseudonyms)
        return {kind: {"names": names[kind], "places": self.places[kind]} for kind in sorted(self.places)}

    @property
    def names(self) -> dict[str, str]:
        """Return the names by their pseudonyms: for whoever keeps them, not for the archive."""
        return {pseudonym: name for (_, name), pseudonym in self.pseudonyms.items()}

    def _replaced(self, match: re.Match[str]) -> str:
        group = match.lastgroup or ""
        kind, found = group.partition("_")[0], match[group]
        if kind == "known":
            kind = self._kinds[found.casefold()]
        if _is_kept(kind, found):
            return match[0] if group == "known" else self._known.sub(self._replaced, match[0])
        self.places[kind] += 1
        whole, begin = match[0], match.start(group) - match.start()
        return whole[:begin] + self._pseudonym(kind, found) + whole[begin + len(found) :]

    def _pseudonym(self, kind: str, name: str) -> str:
        key = (kind, name.casefold() if kind in ("host", "user", "mail", "guid", "mac") else name)
        if key not in self.pseudonyms:
            number = 1 + sum(known == kind for known, _ in self.pseudonyms)
            shape = "/{}-{}{}" if kind == "path" else "{}-{}{}"
            ending = re.search(r"\.[a-z0-9]{1,5}$", name) if kind == "path" else None
            self.pseudonyms[key] = shape.format(kind, number, ending[0] if ending else "")
        return self.pseudonyms[key]


def _is_kept(kind: str, found: str) -> bool:
    if kind == "path":
        is_system = any(found == part or found.startswith(f"{part}/") for part in _KEPT_PATHS)
        return is_system or "/" not in found[1:]
    if kind == "address":
        return found in _KEPT_ADDRESSES
    return found.casefold() in _KEPT_NAMES
