"""Logs that grow while they are read: pieces in as they come, what was recognised out at any time."""

from __future__ import annotations

from dataclasses import dataclass, field

from linkwise.errors import DocumentError
from linkwise.readers.flight_recorder import (
    LARGEST_BYTES,
    FlightRecording,
    is_flight_recording,
    parse_flight_recording,
)
from linkwise.readers.job_log.reading import job_log_of, text_of
from linkwise.readers.job_log.recognise import Documents
from linkwise.readers.job_log.scan import Scan, Stream
from linkwise.readers.job_log.sources import Unusable, check_text
from linkwise.readers.job_log.values import JobLog, LogInput

__all__ = ["RunningLog"]

_HEAD_BYTES = 256 << 10
_MOST_HEADS_BYTES = 64 << 20


@dataclass(slots=True)
class RunningLog:
    """What was recognised so far in inputs that grow side by side.

    Memory is bounded as that of a scan; of each input the first quarter of a megabyte is kept, in which
    tables are looked for. `unread` says what was left out, `faults` what cannot be read at present.
    """

    scan: Scan = field(default_factory=Scan)
    unread: dict[str, str] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)
    recordings: dict[str, FlightRecording] = field(default_factory=dict)
    _streams: dict[str, Stream] = field(default_factory=dict)
    _dumps: dict[str, bytearray] = field(default_factory=dict)
    _heads: dict[str, bytearray] = field(default_factory=dict)
    _kept_bytes: int = 0

    def feed(self, name: str, data: bytes) -> None:
        """Take the next piece of an input.

        Parameters
        ----------
        name
            The input; a new name is a new one.
        data
            What was added to it, cut anywhere.
        """
        self.faults.pop(name, None)
        if name in self.unread:
            return
        if (dump := self._dumps.get(name)) is not None:
            self._extend_dump(name, dump, data)
            return
        if (stream := self._streams.get(name)) is None:
            if not self._begin(name, data):
                return
            stream = self._streams[name] = self.scan.open(name)
        head = self._heads.setdefault(name, bytearray())
        room = min(_HEAD_BYTES - len(head), _MOST_HEADS_BYTES - self._kept_bytes)
        if room > 0:
            head += data[:room]
            self._kept_bytes += min(room, len(data))
        self.scan.take(stream, data)

    def _begin(self, name: str, data: bytes) -> bool:
        """Return whether a new input is a log; a dump is kept apart, and what is neither is left out."""
        if data.startswith(b"\x1f\x8b"):
            self.refuse(name, "is gzip, which does not grow; unpack it, or read it without --follow")
            return False
        try:
            check_text(data)
        except Unusable as error:
            self.refuse(name, str(error))
            return False
        if is_flight_recording(data):
            self._extend_dump(name, self._dumps.setdefault(name, bytearray()), data)
            return False
        return True

    def _extend_dump(self, name: str, dump: bytearray, data: bytes) -> None:
        """Add to a dump, which is read as soon as it is whole; a rank writes its own within seconds."""
        if sum(map(len, self._dumps.values())) + len(data) > LARGEST_BYTES:
            self._dumps.clear()
            self.refuse(name, "is a dump, and too many are only half written; it is not read")
            return
        dump += data
        # Both forms end alike however they are written: a full stop, or the brace of the object.
        if dump.endswith((b".", b"}", b"}\n")):
            try:
                self.recordings[name] = parse_flight_recording(bytes(dump), path=name)
            except DocumentError:
                return
            dump.clear()

    def restart(self, name: str) -> None:
        """Begin an input anew, as its file was rotated or truncated; what was recognised of it stays.

        Parameters
        ----------
        name
            The input.
        """
        self.unread.pop(name, None)
        self._dumps.pop(name, None)
        if (stream := self._streams.pop(name, None)) is not None:
            self.scan.finish(stream)

    def refuse(self, name: str, message: str) -> None:
        """Leave an input out.

        Parameters
        ----------
        name
            The input.
        message
            What it seems to be.
        """
        self.unread.setdefault(name, f"{name}: {message}")

    @property
    def revision(self) -> tuple[int, ...]:
        """Return a value that differs when anything new was recognised."""
        scan = self.scan
        kept = (scan.kept, scan.channel_kinds, scan.channel_lines, len(scan.commands), scan.steps.count)
        return (*kept, len(self.recordings))

    def log(self, *, is_over: bool = False) -> JobLog:
        """Return all that was recognised so far.

        Parameters
        ----------
        is_over
            Whether nothing more will come, so that a last line without an end counts too.
        """
        if is_over:
            for stream in self._streams.values():
                self.scan.finish(stream)
            for name, dump in self._dumps.items():
                if dump:
                    self.refuse(name, "seems to be a dump that was not written to its end")
        documents = Documents(recordings=list(self.recordings.items()))
        inputs = [
            LogInput(
                name=name,
                kind=documents.take(name, text_of(self._heads[name])) if is_over else "",
                size_bytes=stream.size,
            )
            for name, stream in self._streams.items()
        ]
        unread = [*self.unread.values(), *(f"{name}: {text}" for name, text in self.faults.items())]
        return job_log_of(self.scan, documents, inputs=inputs, unread=unread)
