"""The check of settings: all rules, and in which order their findings are told."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from linkwise.settings import (
    combination_rules,
    fabric_rules,
    launch_rules,
    name_rules,
    reach_rules,
    value_rules,
)
from linkwise.settings.finding import Finding, Severity, Subject

__all__ = ["MOST_FINDINGS", "RULES", "check"]

MOST_FINDINGS = 1000
"""Findings that are told; a file with more is no file of settings."""

RULES: tuple[Callable[[Subject], Iterator[Finding]], ...] = (
    name_rules.unknown_names,
    name_rules.older_and_newer,
    name_rules.renamed,
    name_rules.conf_lines,
    value_rules.outside_allowed,
    value_rules.risky_values,
    value_rules.defaults,
    value_rules.kept_from_debugging,
    combination_rules.pairs,
    combination_rules.set_twice,
    combination_rules.limits_crossed,
    combination_rules.too_many_sockets,
    combination_rules.debug_file_names,
    launch_rules.node_ranks,
    launch_rules.ranks_of_the_batch_script,
    launch_rules.localhost,
    launch_rules.processes_per_node,
    launch_rules.started_twice,
    launch_rules.tasks_per_node,
    launch_rules.node_counts,
    reach_rules.unreached,
    launch_rules.deprecated_launcher,
    launch_rules.shared_memory,
    fabric_rules.interfaces,
    fabric_rules.replaced_exclusions,
    fabric_rules.devices,
    fabric_rules.inexact_filters,
    fabric_rules.fewer_devices,
    fabric_rules.useless_on_fabric,
    fabric_rules.roce_settings,
    fabric_rules.roce_unseen,
)
"""All rules."""

_ORDER = {severity: place for place, severity in enumerate(Severity)}


def check(subject: Subject) -> tuple[Finding, ...]:
    """Return what is wrong with settings, the worst first, then by file and line.

    Parameters
    ----------
    subject
        The settings and where they apply.
    """
    found: dict[Finding, None] = {}
    for rule in RULES:
        for finding in rule(subject):
            if len(found) >= MOST_FINDINGS:
                break
            found[finding] = None
    places = {file.path: place for place, file in enumerate(subject.files)}
    return tuple(
        sorted(found, key=lambda each: (_ORDER[each.severity], places.get(each.path, 0), each.line or 0))
    )
