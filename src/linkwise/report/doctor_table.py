"""A diagnosis as text: the verdict, what is in use with the line that proves it, the findings worst first."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from linkwise.diagnose.vocabulary import title_of
from linkwise.readers.job_log.lines import printable
from linkwise.report.tables import print_line, wrapped
from linkwise.report.wording import counted, gigabytes, three_digits

if TYPE_CHECKING:
    from rich.console import Console

    from linkwise.report.doctor import (
        BaselineResult,
        DoctorResult,
        EvidenceResult,
        FindingResult,
        ProofResult,
        ShortfallResult,
    )

__all__ = ["cited", "places", "print_doctor"]

_STYLES = {"broken": "bold red", "slow": "bold yellow", "healthy": "bold green", "cannot_tell": "bold"}
_LABELS = {
    "nccl_version": "NCCL",
    "cuda_version": "built for CUDA",
    "ranks": "ranks",
    "nodes": "nodes",
    "intra_node": "inside a node",
    "inter_node": "between nodes",
    "nics_per_node": "NICs per node",
    "nic_link": "link layer",
    "nic_gbit_per_s": "Gbit/s per NIC",
    "gpudirect_rdma": "GPUDirect RDMA",
    "nvls": "NVLS",
    "algorithms": "algorithm",
    "bootstrap_interface": "bootstrap over",
}
_ALL_HINTS = "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,GRAPH,P2P,SHM,NET,NVLS,TUNING"
"""What makes NCCL print all of these."""
_BUILD_PATH = re.compile(r"\[[^\]\s]{0,200}?\bgloo/(?=transport/)")
_AGENT = re.compile(r"^[EWI]\d{4} [\d:.]{8,16} \d+ torch/distributed/elastic/\S+\] ")
_CLOCK = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[.,]?\d* ")
"""What stands before the words that count: where torch was built, the place in torchrun, the time."""
_PREFIX = re.compile(
    r"^.*?(?P<host>[^\s:<>\[\]()|]+):\d+:\d+ (?:\[-?\d+\] )?(?:\S+:\d+ )?(?:\(\w+\) )?NCCL (?:INFO|WARN) "
)
_PLACES_SHOWN = 8
_EVIDENCE_SHOWN = 3


def print_doctor(result: DoctorResult, console: Console) -> None:
    """Print a diagnosis.

    Parameters
    ----------
    result
        What was found.
    console
        Where to.
    """
    _print_verdict(result, console)
    print_line(console)
    print_line(console, "In use", style="bold")
    values = {name: getattr(result.transport, name) for name in _LABELS}
    if all(value is None for value in values.values()):
        hint = f"nothing of it is visible in this log, set {_ALL_HINTS}"
        print_line(console, wrapped(hint, width=console.width, indent="  "))
        values = {}
    for name in values:
        if values[name] is None and not result.proof[name].hint:
            continue  # a job over gloo has no such thing
        label = _LABELS[name]
        _print_in_use(label, getattr(result.transport, name), result.proof[name], console)
    if result.shortfalls:
        print_line(console)
        print_line(console, "Against the cluster", style="bold")
    for each in result.shortfalls:
        print_line(console, wrapped(_lacking(each), width=console.width, indent="      ", first="  "))
    if result.baseline is not None:
        _print_baseline(result.baseline, console)
    for number, finding in enumerate(result.findings, start=1):
        print_line(console)
        _print_finding(number, finding, console)
    if result.unknown_warnings:
        print_line(console)
        print_line(console, "Warnings that are not known", style="bold")
    for line in result.unknown_warnings:
        print_line(console, cited(line, console.width, indent=2))


def _print_verdict(result: DoctorResult, console: Console) -> None:
    words = result.verdict.replace("_", " ")
    wrong = [each for each in result.findings if each.severity != "harmless"]
    if wrong:
        first = f"{title_of(wrong[0].cause)} ({wrong[0].cause})"
        more = f", and {counted(len(wrong) - 1, 'more finding')}" if len(wrong) > 1 else ""
        reason = first + more
    else:
        reason = result.reason
    text = wrapped(printable(f"{words}: {reason}"), width=console.width, indent="  ", first="")
    print_line(console, text, style=_STYLES[result.verdict])


def _print_in_use(label: str, value: object, proof: ProofResult, console: Console) -> None:
    shown = _shown(value, proof)
    print_line(console, f"  {label:<16}{shown}")
    if value is None and proof.hint:
        print_line(console, wrapped(proof.hint, width=console.width, indent=" " * 6))
    elif proof.evidence is not None:
        print_line(console, cited(proof.evidence, console.width, indent=6))


def _shown(value: object, proof: ProofResult) -> str:
    if value is None:
        return "?" if "NCCL_DEBUG" in proof.hint or "collective" in proof.hint else "-"
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def _lacking(each: ShortfallResult) -> str:
    text = (
        f"{each.what:<16}{each.used} of {each.there}"
        if each.there.isdigit()
        else f"{each.what:<16}{each.used}, not {each.there}"
    )
    there, used = each.busbw_there_bytes_per_s, each.busbw_used_bytes_per_s
    if there is not None and used is not None:
        text += _cost(gigabytes(used), gigabytes(there))
    if each.step_there_s is not None and each.step_used_s is not None:
        step = f"{three_digits(each.step_used_s)} s instead of {three_digits(each.step_there_s)} s"
        text += f"; a step about {step}"
    return f"{text} ({each.note})" if each.note else text


def _cost(used: str, there: str) -> str:
    if used == there:
        return f"; busbw of a large all-reduce stays about {there} GB/s, which other links limit"
    return f"; busbw of a large all-reduce about {used} GB/s instead of {there}"


def _print_baseline(baseline: BaselineResult, console: Console) -> None:
    print_line(console)
    print_line(console, "Against the good run", style="bold")
    for each in baseline.differences:
        text = printable(f"{each.what:<18}  {each.now}; was {each.good}")
        print_line(console, wrapped(text, width=console.width, indent=" " * 8, first="  "))
        if each.evidence is not None:
            print_line(console, cited(each.evidence, console.width, indent=6))
    if not baseline.differences:
        print_line(console, "  nothing differs in what both logs show")
    if baseline.also_found:
        words = f"found in the good run too: {', '.join(baseline.also_found)}"
        print_line(console, wrapped(words, width=console.width, indent="      ", first="  "))


def _print_finding(number: int, each: FindingResult, console: Console) -> None:
    width = console.width
    head = f"{number}. {each.cause}: {title_of(each.cause)}"
    print_line(console, wrapped(head, width=width, indent="   ", first=""), style=_STYLES.get(each.severity))
    print_line(console, f"   {each.severity}, confidence {each.confidence}")
    if each.where:
        print_line(console, wrapped(places(each.where), width=width, indent="   "))
    print_line(console, wrapped(each.explanation, width=width, indent="   "))
    print_line(console, "   seen in")
    for line in each.evidence[:_EVIDENCE_SHOWN]:
        print_line(console, cited(line, width, indent=6))
    if len(each.evidence) > _EVIDENCE_SHOWN:
        print_line(console, f"      and {counted(len(each.evidence) - _EVIDENCE_SHOWN, 'more line')}")
    print_line(console, "   to mend it")
    for fix in each.fix:
        print_line(console, wrapped(fix, width=width, indent="        ", first="      - "))
    print_line(console, wrapped(f"next check: {each.next_check}", width=width, indent="     ", first="   "))


def places(where: list[str]) -> str:
    """Return hosts and ranks in a few words.

    Parameters
    ----------
    where
        All of them.
    """
    more = f" and {len(where) - _PLACES_SHOWN} more" if len(where) > _PLACES_SHOWN else ""
    return f"on {', '.join(where[:_PLACES_SHOWN])}{more}"


def cited(line: EvidenceResult, width: int, *, indent: int) -> str:
    """Return the place and the message, on one row where both fit, else the message cut on a second.

    Parameters
    ----------
    line
        The line that proves something.
    width
        Columns of the terminal.
    indent
        Columns that stay blank.
    """
    blank = " " * indent
    place = f"{printable(line.file)}:{line.line}"
    text = _PREFIX.sub(r"\g<host>: ", line.text.strip()).replace("\t", " ")
    text = _AGENT.sub("torchrun: ", _CLOCK.sub("", _BUILD_PATH.sub("[gloo/", text)))
    if len(blank) + len(place) + 2 + len(text) <= width:
        return f"{blank}{place}  {text}"
    room = max(width - indent - 2, 20)
    shown = text if len(text) <= room else text[: room - 3] + "..."
    return f"{blank}{place}\n{blank}  {shown}"
