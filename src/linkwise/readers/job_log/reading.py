"""Inputs of any kind, read in one pass each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import BinaryIO

from linkwise.errors import DocumentError, Fault
from linkwise.readers.flight_recorder import is_flight_recording
from linkwise.readers.job_log.lines import clean_text
from linkwise.readers.job_log.recognise import HEAD_BYTES, Documents
from linkwise.readers.job_log.scan import Scan
from linkwise.readers.job_log.sources import Unusable, chunks_of, sources_of
from linkwise.readers.job_log.values import CommandOutput, JobLog, LogInput

__all__ = ["job_log_of", "parse_job_log", "read_job_logs", "text_of", "unglued_hosts"]


def read_job_logs(paths: Sequence[str], *, stdin: BinaryIO | None = None) -> JobLog:
    """Return what logs and outputs of commands hold.

    Parameters
    ----------
    paths
        Files, folders, or ``-`` for standard input; each of any kind.
    stdin
        What to read for ``-``; the standard input of the process if absent.

    Raises
    ------
    DocumentError
        If one does not exist, or none of them can be used.
    """
    sources = sources_of(paths)
    unread: list[Fault] = []
    log = _read(((each.name, chunks_of(each, stdin=stdin)) for each in sources), unread)
    if not log.inputs:
        raise DocumentError(unread)
    return log


def parse_job_log(texts: Iterable[tuple[str, bytes]]) -> JobLog:
    """Return what texts that are at hand hold.

    Parameters
    ----------
    texts
        Name and bytes of each.
    """
    return _read(((name, iter([data])) for name, data in texts), [])


def _read(inputs: Iterable[tuple[str, Iterator[bytes]]], unread: list[Fault]) -> JobLog:
    scan, documents = Scan(), Documents()
    read: list[LogInput] = []
    for name, chunks in inputs:
        try:
            read.append(_read_one(name, chunks, scan, documents))
        except Unusable as error:
            unread.append(Fault(path=name, message=str(error)))
    return job_log_of(scan, documents, inputs=read, unread=map(str, unread))


def _read_one(name: str, chunks: Iterator[bytes], scan: Scan, documents: Documents) -> LogInput:
    first = next(chunks, b"")
    whole = chain([first], chunks)
    if is_flight_recording(first):
        size = documents.take_recording(name, whole)
        return LogInput(name=name, kind="Flight Recorder dump", size_bytes=size)
    head = bytearray()
    size = scan.feed(name, _copying(whole, head))
    return LogInput(name=name, kind=documents.take(name, text_of(head)), size_bytes=size)


def job_log_of(
    scan: Scan, documents: Documents, *, inputs: Iterable[LogInput], unread: Iterable[str]
) -> JobLog:
    """Return what was recognised so far as a value.

    Parameters
    ----------
    scan, documents
        What was recognised of lines, and of tables and files.
    inputs
        The inputs that were read.
    unread
        Messages on those that could not be.
    """
    hosts = unglued_hosts(scan.processes())
    return JobLog(
        sightings={
            what: tuple(replace(each, host=hosts.get(each.host, each.host)) for each in lines)
            if hosts
            else tuple(lines)
            for what, lines in scan.sightings.items()
        },
        channels=tuple(replace(each, host=hosts.get(each.host, each.host)) for each in scan.channels()),
        commands=tuple(map(_trimmed, scan.commands)),
        matrices=tuple(documents.matrices),
        topologies=tuple(documents.topologies),
        graphs=tuple(documents.graphs),
        tests=tuple(documents.tests),
        recordings=tuple(documents.recordings),
        rank_steps=tuple(scan.steps.ranks()),
        inputs=tuple(inputs),
        unread=(*unread, *documents.faults),
    )


def unglued_hosts(processes: Iterable[tuple[str, int]]) -> dict[str | None, str]:
    """Return the true name of hosts whose name has the end of another line glued before it.

    Parameters
    ----------
    processes
        Host and pid of all processes.

    Notes
    -----
    A line that lost its end runs into the next one, as in ``via P2P/CUMEMnode1:12:15``. A name is taken for
    such a
    one where the same pid is known under its shorter ending.
    """
    by_pid: dict[int, set[str]] = {}
    for host, pid in processes:
        by_pid.setdefault(pid, set()).add(host)
    return {
        longer: shorter
        for names in by_pid.values()
        for longer in names
        for shorter in names
        if longer != shorter and longer.endswith(shorter) and longer[: -len(shorter)].isalpha()
    }


def _trimmed(output: CommandOutput) -> CommandOutput:
    count = len(output.lines)
    while count and not output.lines[count - 1]:
        count -= 1
    return replace(output, lines=output.lines[:count])


def _copying(chunks: Iterator[bytes], head: bytearray) -> Iterator[bytes]:
    for chunk in chunks:
        if len(head) < HEAD_BYTES:
            head += chunk[: HEAD_BYTES - len(head)]
        yield chunk


def text_of(head: bytes | bytearray) -> str:
    """Return the start of an input as text, long lines cut.

    Parameters
    ----------
    head
        Its bytes.
    """
    return "\n".join(
        clean_text(line, most=2000) if len(line) > 2000 else line.decode("utf-8", "replace")
        for line in bytes(head).split(b"\n")
    )
