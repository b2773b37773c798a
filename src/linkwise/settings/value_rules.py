"""Rules on single values: outside what is allowed, left over from debugging, harmful, or the default anyway.

Values that do harm stand in the table of `risks`.
"""

from __future__ import annotations

from collections.abc import Iterator

from linkwise.nccl.allowed import integer_read, misfit
from linkwise.nccl.variables import companion, release_text, variables
from linkwise.readers.environment import Assignment, Reach
from linkwise.readers.settings_file import SettingsFile
from linkwise.settings.finding import Finding, Severity, Subject, guide
from linkwise.settings.risks import RISKS, Risk

__all__ = ["defaults", "kept_from_debugging", "outside_allowed", "risky_values"]


def outside_allowed(subject: Subject) -> Iterator[Finding]:
    """Yield values that are not among those allowed."""
    for file, each, value in subject.settings():
        known = variables().get(each.name) or companion(each.name)
        if known is None or not value.strip() or "$" in value or "`" in value:
            continue
        why = misfit(known.allowed, value, subject.release)
        if why is not None:
            yield subject.finding(
                file,
                each,
                Severity.HARMFUL,
                rule="value-not-allowed",
                what=f"the value {why}",
                todo=f"write {_words(known.allowed)}, or take it out",
                source=known.source,
            )


def risky_values(subject: Subject) -> Iterator[Finding]:
    """Yield values of `RISKS`; those that a shell does not export do nothing."""
    for file, each, value in subject.settings():
        if each.reach is Reach.SHELL:
            continue
        for risk in RISKS:
            if risk.name == each.name and risk.is_risky(value) and _holds(risk, subject):
                if each.name == "NCCL_DEBUG" and _has_log_files(file, each):
                    continue
                yield subject.finding(
                    file,
                    each,
                    risk.severity,
                    rule="risky-value",
                    what=risk.what,
                    todo=risk.todo,
                    source=risk.source or guide(risk.name),
                )


def _has_log_files(file: SettingsFile, setting: Assignment) -> bool:
    """Return whether the log of every process goes to a file of its own."""
    names = [
        each.value or ""
        for each in file.assignments
        if each.name == "NCCL_DEBUG_FILE" and each.scope == setting.scope and each.reach is not Reach.SHELL
    ]
    return bool(names) and "%h" in names[-1] and "%p" in names[-1]


def defaults(subject: Subject) -> Iterator[Finding]:
    """Yield values that hold without the setting."""
    for file, each, value in subject.settings():
        variable = variables().get(each.name)
        if variable is None or not variable.is_known(subject.release):
            continue
        default = variable.default(subject.release)
        number, is_whole = integer_read(value)
        if value == default or (is_whole and default.lstrip("-").isdigit() and number == int(default)):
            yield subject.finding(
                file,
                each,
                Severity.NO_EFFECT,
                rule="default",
                what=f"is the default of NCCL {release_text(subject.release)}",
                todo="take it out",
                source=variable.source,
            )


_OF_A_SITE = (
    "NCCL_IB_QPS_PER_CONNECTION",
    "NCCL_IB_SPLIT_DATA_ON_QPS",
    "NCCL_IB_ADAPTIVE_ROUTING",
    "NCCL_IB_PCI_RELAXED_ORDERING",
    "NCCL_MNNVL_ENABLE",
    "NCCL_NVLS_ENABLE",
    "NCCL_RAS_ADDR",
)
"""Variables that the user guide sorts under debugging, and that depend on the site."""


def kept_from_debugging(subject: Subject) -> Iterator[Finding]:
    """Yield variables for debugging, and internal ones; those of `RISKS` have a finding of their own."""
    known = {risk.name for risk in RISKS} | set(_OF_A_SITE)
    for file, each, value in subject.settings():
        variable = variables().get(each.name)
        if variable is None or each.name in known or not variable.is_known(subject.release):
            continue
        if value == variable.default(subject.release):
            continue
        if variable.section == "debugging":
            what = "is for debugging: the user guide says not to keep it, as it may slow, crash or hang a job"
        elif not variable.section and variable.meaning == "internal":
            what = "is internal to NCCL and not documented"
        else:
            continue
        yield subject.finding(
            file,
            each,
            Severity.ADVICE,
            rule="kept-from-debugging",
            what=what,
            todo="take it out, unless it works around a fault that you know",
            source=variable.source,
        )


def _holds(risk: Risk, subject: Subject) -> bool:
    if not risk.since <= subject.release < risk.before:
        return False
    if risk.protocols and subject.protocol is not None and subject.protocol not in risk.protocols:
        return False
    cluster = subject.cluster
    return not risk.needs_nvlink or cluster is None or cluster.nvlink_domain_gpus > 1


def _words(allowed: str) -> str:
    """Return what is allowed in words."""
    kind, _, words = allowed.partition(" ")
    if kind == "int":
        low, _, high = words.partition("..")
        return f"a number from {low or 'any'}" + (f" to {high}" if high else " on") if low else "a number"
    if kind in ("one", "word"):
        return "one of " + ", ".join(words.split("|"))
    return {"list": "names of " + words.replace("|", ", "), "cidr": "a range such as 10.0.0.0/8"}.get(
        kind, "a value that NCCL knows"
    )
