"""What an incident needs, in one archive: decisions, runs, records, configurations, what was seen."""

from __future__ import annotations

import datetime as dt
import gzip
import hashlib
import io
import json
import tarfile
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from linkwise.errors import InputError
from linkwise.rollout.carrying.fingerprint import changed, mismatches, seen_by
from linkwise.rollout.carrying.ground import Loaded
from linkwise.rollout.carrying.progress import progress_of
from linkwise.rollout.carrying.redaction import Redactor
from linkwise.rollout.exports.decision_log import log_json
from linkwise.rollout.runs import Side
from linkwise.rollout.store.decisions import Kind
from linkwise.rollout.store.reading import Record
from linkwise.rollout.store.run_text import run_text
from linkwise.rollout.store.verification import LogContents

__all__ = ["Collected", "Gathering", "collect_incident", "redactor_of"]

_MOST_FILE_BYTES = 32 << 20
"""Of a longer file the end is taken, where the fault is [bytes]."""
_MOST_FILES = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathering:
    """What is gathered from, and how.

    Parameters
    ----------
    loaded
        The rollout file.
    contents, record
        Its log as it lies in the store, and what that says.
    runs
        Folder of the folders of runs.
    collect_host
        Gathers what explains this host's interconnect into a folder that does not exist yet, masked or not.
    redactor
        What takes names out; ``None`` to leave them in.
    now
        In UTC.
    """

    loaded: Loaded
    contents: LogContents
    record: Record
    runs: Path
    collect_host: Callable[[Path, bool], None]
    redactor: Redactor | None
    now: dt.datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """What came into an archive.

    Parameters
    ----------
    files
        Their names.
    left_out
        What did not, each with the reason.
    redacted
        By kind of name: how many, at how many places; ``None`` where names were left in.
    digest
        SHA-256 of the archive.
    """

    files: tuple[str, ...]
    left_out: tuple[tuple[str, str], ...]
    redacted: dict[str, dict[str, int]] | None
    digest: str


@dataclass(slots=True)
class _Archive:
    """The files of an archive while it is filled."""

    redactor: Redactor | None
    files: dict[str, bytes] = field(default_factory=dict)
    left_out: list[tuple[str, str]] = field(default_factory=list)

    def add(self, name: str, text: str) -> None:
        if self.redactor is not None:
            name, text = self._name(name), self.redactor.redact(text)
        self.files[name] = text.encode("utf-8", "surrogateescape")

    def leave_out(self, name: str, why: str) -> None:
        redact = str if self.redactor is None else self.redactor.redact
        self.left_out.append((self._name(name), redact(why)))

    def _name(self, name: str) -> str:
        """Return the name of a file: a log may be named for its host."""
        return name if self.redactor is None else "/".join(map(self.redactor.redact, name.split("/")))


def redactor_of(loaded: Loaded, record: Record, *, people: Iterable[str], hosts: Iterable[str]) -> Redactor:
    """Return what takes the names of a rollout out.

    Parameters
    ----------
    loaded, record
        The rollout: its log names people, its runs name hosts.
    people, hosts
        Others that are known.
    """
    rollout = loaded.rollout
    users = {*people, rollout.owner, *rollout.incident.page}
    machines = {*hosts, *(node for run in record.runs for node in run.nodes)}
    for entry in record.entries:
        name, _, host = entry.by.partition("@")
        users.add(name)
        machines.add(host)
        users.add(entry.fact("role"))
    users |= {objective.reason.by for objective in rollout.objectives}
    users |= {who for step in rollout.steps for who in step.approvals}
    return Redactor(known={"user": users, "host": {*machines, *(each.split(".")[0] for each in machines)}})


def collect_incident(gathering: Gathering, target: Path) -> Collected:
    """Write the archive that the rollout file asks for, and return what came into it.

    Parameters
    ----------
    gathering
        What is gathered from.
    target
        The archive; not there yet.

    Raises
    ------
    InputError
        When it cannot be written.
    """
    archive = _Archive(redactor=gathering.redactor)
    archive.add("rollout.yaml", gathering.loaded.text)
    for kind in gathering.loaded.rollout.incident.collect:
        _COLLECTORS[kind](gathering, archive)
    redacted = None if gathering.redactor is None else gathering.redactor.counts
    data = _packed(gathering, archive, redacted)
    try:
        with target.open("xb") as file:
            file.write(data)
    except OSError as error:
        raise InputError(f"{target}: cannot be written ({error.strerror})") from None
    return Collected(
        files=tuple(archive.files),
        left_out=tuple(archive.left_out),
        redacted=redacted,
        digest=hashlib.sha256(data).hexdigest(),
    )


def _decisions(gathering: Gathering, archive: _Archive) -> None:
    archive.add("decisions.json", log_json(gathering.contents))


def _runs(gathering: Gathering, archive: _Archive) -> None:
    archive.add("runs.jsonl", "".join(f"{run_text(run)}\n" for run in gathering.record.runs))


def _records(gathering: Gathering, archive: _Archive) -> None:
    count = 0
    for run in gathering.record.runs:
        folders = sorted(gathering.runs.glob(f"{run.run_id}*"))
        if not folders:
            archive.leave_out(f"records/{run.run_id}", "there is no folder of this run here")
        for path in (path for folder in folders for path in sorted(folder.rglob("*"))):
            name = f"records/{path.relative_to(gathering.runs)}"
            count += 1
            if count > _MOST_FILES:
                archive.leave_out("records", f"more than {_MOST_FILES} files: the rest is left out")
                return
            _add_file(archive, name, path)


def _add_file(archive: _Archive, name: str, path: Path) -> None:
    """Add a file of a run; what is no plain text would carry names that nobody can find."""
    if path.is_symlink() or not path.is_file():
        if not path.is_dir() or path.is_symlink():
            archive.leave_out(name, "a link, a pipe or a device")
        return
    try:
        with path.open("rb") as file:
            size = file.seek(0, io.SEEK_END)
            file.seek(max(0, size - _MOST_FILE_BYTES))
            data = file.read(_MOST_FILE_BYTES)
    except OSError as error:
        archive.leave_out(name, f"cannot be read ({error.strerror})")
        return
    if b"\0" in data:
        archive.leave_out(name, "is no text")
        return
    if size > _MOST_FILE_BYTES:
        archive.leave_out(name, f"the first {size - _MOST_FILE_BYTES} bytes: the file is large")
    archive.add(name, data.decode("utf-8", "replace"))


def _configurations(gathering: Gathering, archive: _Archive) -> None:
    kept = gathering.record.kept
    for entry in gathering.record.entries:
        for name in ("candidate", "control", "configuration"):
            if name in entry.evidence and entry.kind in (
                Kind.BEGUN,
                Kind.FILE_ACCEPTED,
                Kind.RESTORED,
                Kind.PROMOTED,
            ):
                text = json.dumps(json.loads(kept[entry.evidence[name]]), indent=2)
                word = "restored" if name == "configuration" else name
                archive.add(f"configurations/{entry.number:04d}-{word}.json", text + "\n")


def _fingerprint(gathering: Gathering, archive: _Archive) -> None:
    wanted = dict(gathering.loaded.rollout.scope.fingerprint)
    runs = gathering.record.runs
    sides = {side.value: seen_by([run for run in runs if run.side is side]) for side in Side}
    seen = seen_by(runs)
    found = {
        "wanted": wanted,
        "seen": {side: values for side, values in sides.items() if values},
        "mismatches": list(mismatches(wanted, seen)),
        "not_seen": sorted(wanted.keys() - seen.keys()),
        "candidate_unlike_control": list(changed(sides["control"], sides["candidate"])),
        "candidate": progress_of(gathering.record.entries).candidate,
    }
    archive.add("fingerprint.json", json.dumps(found, indent=2) + "\n")


def _host(gathering: Gathering, archive: _Archive) -> None:
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "host"
        try:
            gathering.collect_host(target, gathering.redactor is not None)
        except InputError as error:
            archive.leave_out("host", str(error))
        for path in sorted(target.rglob("*")):
            _add_file(archive, f"host/{path.relative_to(target)}", path)


_COLLECTORS: dict[str, Callable[[Gathering, _Archive], None]] = {
    "decisions": _decisions,
    "runs": _runs,
    "records": _records,
    "configurations": _configurations,
    "fingerprint": _fingerprint,
    "host": _host,
}
"""What gathers each kind of evidence of `plan.COLLECTED`."""


def _packed(gathering: Gathering, archive: _Archive, redacted: dict[str, dict[str, int]] | None) -> bytes:
    """Return the archive: a manifest with digests first, then the files."""
    head = gathering.record.head
    manifest = {
        "schema": "linkwise.rollout-incident/1",
        "rollout": gathering.record.rollout,
        "collected": gathering.now.isoformat(timespec="seconds"),
        "head": {"entries": head.entries, "digest": head.digest},
        "redacted": redacted,
        "files": [
            {"name": name, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
            for name, data in archive.files.items()
        ],
        "left_out": [{"name": name, "why": why} for name, why in archive.left_out],
    }
    files = {"MANIFEST.json": (json.dumps(manifest, indent=2) + "\n").encode(), **archive.files}
    buffer = io.BytesIO()
    stamp = int(gathering.now.timestamp())
    with (
        gzip.GzipFile(fileobj=buffer, mode="wb", mtime=stamp) as packed,
        tarfile.open(fileobj=packed, mode="w") as tar,
    ):
        for name, data in files.items():
            info = tarfile.TarInfo(f"incident-{gathering.record.rollout}/{name}")
            info.size, info.mtime, info.mode = len(data), stamp, 0o644
            tar.addfile(info, io.BytesIO(data))
    return buffer.getvalue()
