"""One estimate taken apart, on a terminal: terms with formula, inputs and source; what a tenth more buys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from linkwise.report.plan_table import job_and_cluster_lines, lacking_words, print_layouts
from linkwise.report.tables import Column, print_line, split_table, wrapped
from linkwise.report.wording import percent, three_digits, with_unit

if TYPE_CHECKING:
    from rich.console import Console

    from linkwise.report.results import ExplainResult, InputResult, SensitivityResult, TermResult

__all__ = ["print_explanation", "print_term"]

GROUPS = ("compute", "communication", "data_parallel", "schedule", "memory", "energy", "goodput", "money")
"""Order in which the groups of terms are printed."""


def print_explanation(result: ExplainResult, console: Console) -> None:
    """Print every term of an estimate, its figures, and what more of each would buy.

    Parameters
    ----------
    result
        The estimate as it is published.
    console
        Where to.
    """
    for line in job_and_cluster_lines(result.job, result.cluster):
        print_line(console, wrapped(line, width=console.width))
    print_line(console)
    if result.layout.short_bytes > 0:
        words = f"The layout does not fit. It {lacking_words(result.layout)}; times are as if it did."
        print_line(console, wrapped(words, width=console.width) + "\n", style="bold red")
    print_layouts([result.layout], console, cost=result.bill)
    for group in GROUPS:
        terms = [term for term in result.terms if term.group == group]
        if terms:
            print_line(console, f"\n{group.replace('_', ' ').upper()}", style="bold")
        for term in terms:
            _print_block(term, console)
    print_line(console, "\nFIGURES", style="bold")
    _print_figures(_figures(result.terms), console)
    print_line(console, "\nWHAT A TENTH BUYS", style="bold")
    _print_sensitivities(result.sensitivities, console)
    for number, assumption in enumerate(result.assumptions):
        if number == 0:
            print_line(console, "\nTaken for granted:")
        print_line(console, wrapped(assumption, width=console.width, indent="    ", first="  - "))


def print_term(term: TermResult, console: Console) -> None:
    """Print one term with each of its inputs on a line of its own.

    Parameters
    ----------
    term
        The term as it is published.
    console
        Where to.
    """
    print_line(console, f"{term.name} = {with_unit(term.value, term.unit)}", style="bold")
    for words in (f"formula: {term.formula}", f"source: {term.source}", f"part of: {term.group}"):
        print_line(console, wrapped(words, width=console.width, indent="    ", first="  "))
    if not term.inputs:
        return
    key = Column(heading="input", cells=tuple(each.name for each in term.inputs), justify="left")
    print_line(console)
    for table in split_table(_input_columns(term.inputs), key=key, width=console.width):
        console.print(table, crop=False)
    for source in dict.fromkeys(each.source for each in term.inputs if each.source):
        cited = [each.name for each in term.inputs if each.source == source]
        words = f"{', '.join(cited)}: {source}"
        print_line(console, wrapped(words, width=console.width, indent="    ", first="  "))


def _print_block(term: TermResult, console: Console) -> None:
    width = console.width
    print_line(console, f"{term.name} = {with_unit(term.value, term.unit)}", style="green")
    print_line(console, wrapped(term.formula, width=width, indent="    "))
    if term.inputs:
        inputs = ", ".join(f"{each.name} {_value_and_origin(each)}" for each in term.inputs)
        print_line(console, wrapped(f"of {inputs}", width=width, indent="       ", first="    "))
    print_line(console, wrapped(f"[{term.source}]", width=width, indent="     ", first="    "), style="dim")


def _value_and_origin(each: InputResult) -> str:
    value = with_unit(each.value, each.unit)
    return value if each.origin == "term" else f"{value} ({each.basis or each.origin})"


def _input_columns(inputs: Sequence[InputResult]) -> list[Column]:
    def column(heading: str, cells: Iterable[str], *, left: bool = True) -> Column:
        return Column(heading=heading, cells=tuple(cells), justify="left" if left else "right", group=heading)

    return [
        column("value", (with_unit(each.value, each.unit) for each in inputs), left=False),
        column("from", (each.origin for each in inputs)),
        column("basis", (each.basis or "" for each in inputs)),
        column("layer", (each.layer or "" for each in inputs)),
    ]


def _figures(terms: Iterable[TermResult]) -> list[InputResult]:
    """Return each figure once, in the order of first use."""
    found: dict[str, InputResult] = {}
    for term in terms:
        for each in term.inputs:
            if each.origin == "figure":
                found.setdefault(each.name, each)
    return list(found.values())


def _print_figures(figures: Sequence[InputResult], console: Console) -> None:
    for each in figures:
        words = ", ".join(word for word in (each.basis, each.layer) if word)
        print_line(console, f"{each.name} = {with_unit(each.value, each.unit)} ({words})")
        if each.source:
            print_line(console, wrapped(each.source, width=console.width, indent="    "), style="dim")


def _print_sensitivities(sensitivities: Sequence[SensitivityResult], console: Console) -> None:
    key = Column(
        heading="figure",
        cells=tuple(f"{each.change}: {each.figure}" for each in sensitivities),
        justify="left",
    )
    for table in split_table(list(_sensitivity_columns(sensitivities)), key=key, width=console.width):
        console.print(table, crop=False)


def _sensitivity_columns(sensitivities: Sequence[SensitivityResult]) -> Iterator[Column]:
    steps = tuple(three_digits(each.step_time_s) for each in sensitivities)
    saved = tuple(with_unit(each.saved_s, "s") for each in sensitivities)
    shares = tuple(percent(each.saved_fraction) for each in sensitivities)
    yield Column(heading="step time [s]", cells=steps)
    yield Column(heading="saved", cells=saved)
    yield Column(heading="saved [%]", cells=shares)
