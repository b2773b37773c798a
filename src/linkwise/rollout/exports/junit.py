"""Verdicts as JUnit XML: a suite for each step, a case for each objective.

What must or should hold and is no pass is a failure (missed, or not told yet) or an error (not measured).
What is only watched is skipped with its sentence, for the format knows no warning.

References
----------
Jenkins xUnit plugin, junit-10.xsd, the schema that readers of the format agree on.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree as ET

from linkwise.rollout.plan import Rollout, Severity
from linkwise.rollout.verdicts import ObjectiveVerdict, Outcome, StepVerdict

__all__ = ["verdicts_junit"]

_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that no XML may hold; messages of jobs have them."""
_ERRORS = (Outcome.ERROR, Outcome.NO_DATA)


def verdicts_junit(rollout: Rollout, verdicts: Sequence[StepVerdict], *, head: str = "") -> str:
    """Return the text of a JUnit file.

    Parameters
    ----------
    rollout
        Whose verdicts they are.
    verdicts
        Of steps, in order.
    head
        Digest of the last entry of the decision log; empty where there is none.
    """
    root = ET.Element("testsuites", name=rollout.name)
    for verdict in verdicts:
        suite = ET.SubElement(root, "testsuite", name=verdict.step)
        properties = ET.SubElement(suite, "properties")
        for name, value in (
            ("digest", rollout.digest),
            ("candidate", rollout.candidate.digest),
            ("control", rollout.control.digest),
            ("outcome", str(verdict.outcome)),
            *((("head", head),) if head else ()),
        ):
            ET.SubElement(properties, "property", name=name, value=value)
        for each in verdict.objectives:
            _add_case(suite, f"{rollout.name}.{verdict.step}", each)
        _count(suite)
    _count(root)
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _add_case(suite: ET.Element, classname: str, verdict: ObjectiveVerdict) -> None:
    case = ET.SubElement(suite, "testcase", classname=classname, name=verdict.objective, time="0")
    sentence = _NO_XML.sub("\N{REPLACEMENT CHARACTER}", verdict.sentence)
    if verdict.outcome is not Outcome.PASS:
        if verdict.severity is Severity.WATCH:
            ET.SubElement(case, "skipped", message=f"only watched, {verdict.outcome}: {sentence}")
        else:
            tag = "error" if verdict.outcome in _ERRORS else "failure"
            told = ET.SubElement(case, tag, type=str(verdict.outcome), message=sentence)
            told.text = _details(verdict)
    out = ET.SubElement(case, "system-out")
    out.text = f"{verdict.severity}, {verdict.outcome}: {sentence}\n{_details(verdict)}"


def _details(verdict: ObjectiveVerdict) -> str:
    values = (("value", verdict.value), ("low", verdict.low), ("high", verdict.high), ("bar", verdict.bar))
    numbers = [f"{name} {value!r}" for name, value in values if value is not None]
    coverage = f"planned {verdict.planned}, executed {verdict.executed}, judged {verdict.judged}"
    samples = " ".join(repr(each) for each in verdict.values)
    return "\n".join([*numbers, coverage, f"values {samples}"])


def _count(element: ET.Element) -> None:
    """Write how many cases below ended how."""
    cases = list(element.iter("testcase"))
    element.set("tests", str(len(cases)))
    for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        if element.tag == "testsuites" and name == "skipped":
            continue  # the schema knows it for suites only
        element.set(name, str(sum(case.find(tag) is not None for case in cases)))
