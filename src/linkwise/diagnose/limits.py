"""Limits of a process, as `ulimit` and /proc print them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from linkwise.diagnose.facts import Facts
from linkwise.readers.job_log.values import Evidence

__all__ = ["Limit", "locked_memory", "open_files"]

_VALUE = re.compile(r"^\s*(unlimited|\d+)\s*$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """One limit.

    Parameters
    ----------
    value
        As printed; ``None`` where there is none.
    evidence
        The line.
    """

    value: int | None
    evidence: Evidence

    @property
    def is_unlimited(self) -> bool:
        """Return whether there is no limit."""
        return self.value is None


def locked_memory(facts: Facts) -> Limit | None:
    """Return the limit of locked memory; ``None`` where no input shows it.

    Parameters
    ----------
    facts
        What is known of the job.
    """
    return _limit(facts, "memlock_limit", "-l")


def open_files(facts: Facts) -> Limit | None:
    """Return the limit of open files; ``None`` where no input shows it.

    Parameters
    ----------
    facts
        What is known of the job.
    """
    return _limit(facts, "files_limit", "-n")


def _limit(facts: Facts, message: str, option: str) -> Limit | None:
    for each in facts.seen(message):
        word = each.fields.get("value", "")
        if _VALUE.match(word):
            return Limit(value=None if word == "unlimited" else int(word), evidence=each.evidence)
    for output in facts.commands("ulimit"):
        if output.command.split()[-1:] != [option]:
            continue
        for number, line in enumerate(output.lines):
            if found := _VALUE.match(line):
                word = found[1]
                return Limit(
                    value=None if word == "unlimited" else int(word), evidence=output.evidence_at(number)
                )
    return None
