"""Rules on names: misspelt, unknown, of other releases, renamed, and lines that NCCL misreads."""

from __future__ import annotations

import re
from collections.abc import Iterator

from linkwise.nccl.variables import NEWEST, companion, nearest_variables, release_text, variables
from linkwise.readers.environment import Assignment
from linkwise.readers.settings_file import SettingsFile, SettingsKind
from linkwise.settings.finding import Finding, Severity, Subject

__all__ = ["conf_lines", "older_and_newer", "renamed", "unknown_names"]

_PARAM = "NVIDIA, NCCL, src/misc/param.cc"


def unknown_names(subject: Subject) -> Iterator[Finding]:
    """Yield names that nothing reads, with the nearest that something does."""
    for file in subject.files:
        for each in file.assignments:
            name = each.name.strip()
            if name in variables() or companion(name) is not None or not _is_spelled_for_nccl(name):
                continue
            near = nearest_variables(name, subject.release)
            todo = f"did you mean {' or '.join(near)}? Otherwise take it out" if near else "take it out"
            newer = f" (known are those up to {release_text(NEWEST)})" if subject.release > NEWEST else ""
            yield subject.finding(
                file,
                each,
                Severity.NO_EFFECT,
                rule="unknown-name",
                what=f"neither NCCL nor a library around it reads this name{newer}",
                todo=todo,
                source="NVIDIA, NCCL, src/ and user guide, all releases from 2.3.5",
            )


def older_and_newer(subject: Subject) -> Iterator[Finding]:
    """Yield variables that this release does not read yet, or no longer."""
    release = release_text(subject.release)
    for file, each, _ in subject.settings():
        variable = variables().get(each.name)
        if variable is None or variable.is_known(subject.release):
            continue
        if variable.is_gone(subject.release) and variable.until is not None:
            what = f"NCCL {release} no longer reads it; the last that did is {release_text(variable.until)}"
            todo = variable.misuse if " use " in variable.misuse else "take it out"
        else:
            since = release_text(variable.since or (2, 3, 5))
            what = f"NCCL {release} does not read it yet; {since} is the first that does"
            todo = "take it out, or use a newer NCCL"
        yield subject.finding(
            file,
            each,
            Severity.NO_EFFECT,
            rule="not-in-release",
            what=what,
            todo=todo,
            source=variable.source,
        )


def renamed(subject: Subject) -> Iterator[Finding]:
    """Yield names that have another one today."""
    for file, each, _ in subject.settings():
        found = companion(each.name)
        if found is not None and found.renamed:
            yield subject.finding(
                file,
                each,
                Severity.ADVICE,
                rule="renamed",
                what=f"is the old name of a variable of {found.owner}; NCCL itself does not read it",
                todo=f"write {found.renamed}",
                source=found.source,
            )


def conf_lines(subject: Subject) -> Iterator[Finding]:
    """Yield lines of an nccl.conf that NCCL takes otherwise than they look: it strips nothing."""
    for file in subject.files:
        if file.kind is SettingsKind.NCCL_CONF:
            for each in file.assignments:
                yield from _conf_line(subject, file, each)


def _conf_line(subject: Subject, file: SettingsFile, each: Assignment) -> Iterator[Finding]:
    value = each.value or ""
    what = None
    if each.name.startswith("export "):
        what = "the word export is taken as part of the name, so that nothing is set"
    elif each.name != each.name.strip():
        what = "the blanks before '=' are taken as part of the name, so that nothing is set"
    elif re.search(r"\s#", value):
        what = "the comment behind the value is taken as part of the value"
    elif value[:1] in ("'", '"'):
        what = "the quotes are taken as part of the value"
    elif value != value.strip():
        what = "the blanks around the value are taken as part of it"
    if what is not None:
        todo = "write NAME=VALUE alone on the line; a comment needs a line of its own that starts with #"
        yield subject.finding(
            file, each, Severity.HARMFUL, rule="conf-line", what=what, todo=todo, source=_PARAM
        )


def _is_spelled_for_nccl(name: str) -> bool:
    """Return whether a name can only have been meant for NCCL or PyTorch's use of it."""
    return bool(re.match(r"(?:N?C{1,3}L{1,2}|NC?L{1,2}C?|NNCCL|NVCCL|TORCH_NCCL)_", name, re.IGNORECASE))
