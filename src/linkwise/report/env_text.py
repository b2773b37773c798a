"""Settings and findings for people: on a terminal, as shell exports, as an nccl.conf."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from linkwise.report.tables import print_line, wrapped
from linkwise.report.wording import counted

if TYPE_CHECKING:
    from rich.console import Console

    from linkwise.report.env_result import EnvResult, FindingResult

__all__ = ["conf_text", "print_check", "print_settings", "shell_text"]

_STYLES = {"harmful": "bold red", "no effect": "yellow", "advice": "cyan", "check": "dim"}
_HEADINGS = {
    "harmful": "Harmful",
    "no effect": "Without effect",
    "advice": "Advice",
    "check": "To check by hand: no setting shows it",
}
_WIDTH = 78


def print_settings(result: EnvResult, console: Console) -> None:
    """Print the settings that are needed, each with its reason and source.

    Parameters
    ----------
    result
        The settings.
    console
        Where to.
    """
    if not result.settings:
        print_line(console, f"{result.cluster} needs no setting: NCCL {result.nccl} does the rest by itself")
    for each in result.settings:
        print_line(console, f"{each.name}={_printable(each.value)}", style="bold")
        _paragraph(console, each.reason)
        _paragraph(console, f"{each.basis}; {each.source}", style="dim")
    if result.notes:
        print_line(console, "\nDepends on what no document says")
        for note in result.notes:
            print_line(console, wrapped(note, width=console.width, first="- ", indent="  "))
    print_line(console)
    print_line(console, wrapped(_release(result), width=console.width), style="dim")


def print_check(result: EnvResult, console: Console) -> None:
    """Print what is wrong with settings, the worst first.

    Parameters
    ----------
    result
        The findings.
    console
        Where to.
    """
    for severity, heading in _HEADINGS.items():
        found = [each for each in result.findings if each.severity == severity]
        if found:
            print_line(console, heading, style=_STYLES[severity])
        for each in found:
            print_line(console, wrapped(_place(each), width=console.width, indent="  ", first=""))
            _paragraph(console, each.what)
            _paragraph(console, f"-> {each.todo}")
            _paragraph(console, each.source, style="dim")
        if found:
            print_line(console)
    for line in _summary(result):
        print_line(console, wrapped(line, width=console.width))


def shell_text(result: EnvResult) -> str:
    """Return the settings as exports for a shell script.

    Parameters
    ----------
    result
        The settings.
    """
    return "".join(_lines(result, lambda name, value: f"export {name}={shlex.quote(value)}"))


def conf_text(result: EnvResult) -> str:
    """Return the settings as an nccl.conf: comments stand on lines of their own, values bare.

    Parameters
    ----------
    result
        The settings; those that NCCL does not read itself stand in comments.
    """
    return "".join(
        _lines(
            result,
            lambda name, value: (
                f"{name}={value}"
                if name.startswith("NCCL_")
                else f"# NCCL does not read this one; export {name}={shlex.quote(value)} in the job"
            ),
        )
    )


def _lines(result: EnvResult, write: Callable[[str, str], str]) -> Iterator[str]:
    yield f"# NCCL settings of {_printable(result.cluster or '')}\n"
    yield from _comment(_release(result))
    for each in result.settings:
        yield "\n"
        yield from _comment(each.reason)
        yield from _comment(f"({each.basis}; {each.source})")
        yield f"{write(each.name, each.value)}\n"
    for note in result.notes:
        yield "\n"
        yield from _comment(note)


def _comment(text: str) -> Iterator[str]:
    yield wrapped(text, width=_WIDTH, indent="# ") + "\n"


def _paragraph(console: Console, text: str, *, style: str | None = None) -> None:
    print_line(console, wrapped(_printable(text), width=console.width, indent="    "), style=style)


def _place(each: FindingResult) -> str:
    shown = (
        f"{each.name}={each.value}" if each.value and "--" not in each.name else f"{each.name} {each.value}"
    )
    place = ":".join(str(part) for part in (each.file, each.line) if part is not None)
    scope = f" ({each.scope})" if each.scope else ""
    return _printable(f"  {place}{': ' if place else ''}{shown.strip()}{scope}")


def _summary(result: EnvResult) -> Iterator[str]:
    for each in result.files:
        name = each.file or "the environment of this process"
        launches = f" and {counted(each.launches, 'launch', 'launches')}" if each.launches else ""
        yield _printable(f"Read {name} ({each.kind}): {counted(each.settings, 'setting')}{launches}")
    counts = [
        f"{sum(each.severity == severity for each in result.findings)} {severity}" for severity in _HEADINGS
    ]
    yield f"Found: {', '.join(counts)}"
    yield _release(result)


def _release(result: EnvResult) -> str:
    assumed = ", which is assumed; --nccl names yours" if result.nccl_assumed else ""
    return f"Judged for NCCL {result.nccl}{assumed}"


def _printable(text: str) -> str:
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)
