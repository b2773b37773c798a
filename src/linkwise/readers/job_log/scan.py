"""The scan of logs: chunks of bytes in, recognised lines out, in memory that does not grow with the log.

Notes
-----
NCCL's lines are found by splitting a chunk at the word NCCL, which runs at memory speed; what is left of each
is looked up by its first bytes. Channel lines, most of a verbose log, are counted by process and transport
without parsing again. All else is found by a set of literals at once (Aho-Corasick), and only lines that were
hit meet a regular expression. Of each message and process the first few lines are kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING

from linkwise.readers.job_log.last_error import WORDS, line_below, text_beside, without_tail
from linkwise.readers.job_log.lines import (
    LONGEST_LINE,
    Prefix,
    clean_text,
    line_bounds,
    line_end,
    parse_prefix,
    printable,
    unescaped,
)
from linkwise.readers.job_log.messages import (
    ALARMING,
    BORING_HEADS,
    HOST_MESSAGES,
    INFO_MESSAGES,
    NCCL_MESSAGES,
    matches,
    unprefixed,
)
from linkwise.readers.job_log.rank_steps import STEP_WORD, StepLines
from linkwise.readers.job_log.values import ChannelUse, CommandOutput, Evidence, Sighting

if TYPE_CHECKING:
    from ahocorasick_rs import BytesAhoCorasick

__all__ = ["Scan", "Stream"]

_WORD = b"NCCL "
_NEWLINE = 10
_DIGITS = b"0123456789abcdef"
_SHAPE_LOOKS = 24
_BORING_LOOKS = 200
_MOST_SHAPES = 400_000
_KEPT_PER_PROCESS = 12
_MOST_KEPT = 200_000
_MOST_CHANNEL_KEYS = 200_000
_CHANNEL_LINES = 32
_MOST_CHANNEL_LINES = 4000
_ANCHOR_LOOKS = 4000
_NO_PREFIX = Prefix()
_SECTION_LINES = 400
_SECTION_BYTES = 64 * 1024
_MOST_SECTIONS = 500
_LONGEST_REST = 1 << 20

_CHANNEL = re.compile(
    r"(?:Channel|Ring) \d+(?:/\d+)? : (?P<rank>\d+)(?:\[\w+\])? -> (?P<peer>\d+)(?:\[\w+\])?"
    r"(?: \[(?P<direction>send|receive)\])? via (?P<transport>"
    # Another line may be glued to the end, so that a transport is read by its grammar where it has one.
    r"P2P/(?:IPC|CUMEM|MNNVL|direct pointer|indirect/\d+\[\w+\])(?:/(?:read|CE))*|direct shared memory"
    r"|SHM(?:/(?:direct|CE))*|(?:NET|COLLNET)/[^/\r\n]{1,40}/\d+(?:\(\d+\))?(?:/GDRDMA(?:\(PCI\))?)?(?:/Shared)?"
    r"|[^\x1b\r\n]*)"
)
_GLUED = re.compile(rb"(?:[^\s:]+:\d+:\d+ )?(?:\[-?\d+\] )?(?:\S+:\d+ )?\bNCCL (?:INFO|WARN|CALL|TRACE) ")
_ALARMED = re.compile(r"\b(?:WARN|ERROR|FATAL)\b")
_PROMPT = re.compile(rb"^(?:\$|\S{1,64}@\S{1,64} ?[^$#\n]{0,200}[$#]) +(?P<command>[a-z./][^\n]*)$")
_PROMPT_ANCHORS = (b"\n$ ", b"~$ ", b"~# ")
"""A prompt at the start of a chunk has no line break before it; it is looked for apart."""


@cache
def _host_anchors() -> tuple[BytesAhoCorasick, ...]:
    from ahocorasick_rs import BytesAhoCorasick, MatchKind

    words = [*dict.fromkeys(each.literal.encode() for each in HOST_MESSAGES), *_PROMPT_ANCHORS, STEP_WORD]
    # Sets of about thirty run several times faster than all at once: they are looked for with vector
    # instructions.
    return tuple(
        BytesAhoCorasick(words[at : at + 30], matchkind=MatchKind.LeftmostFirst)
        for at in range(0, len(words), 30)
    )


@dataclass(slots=True)
class _Place:
    """Where a pass over a chunk is, to know the line of a position without counting from the start."""

    chunk: bytes
    first_line: int
    at: int = 0
    line: int = 0

    def line_of(self, position: int) -> int:
        if position < self.at:
            return self.first_line + self.chunk.count(b"\n", 0, position)
        self.line += self.chunk.count(b"\n", self.at, position)
        self.at = position
        return self.first_line + self.line


@dataclass(slots=True)
class _Channels:
    """Channel lines of one process and transport."""

    count: int
    prefix: Prefix
    direction: str
    transport: str
    rank: int
    peer: int
    lines: list[Evidence]


@dataclass(slots=True)
class Stream:
    """How far the scan of one input is; inputs that grow side by side have one each.

    Parameters
    ----------
    name
        The input, for evidence.
    number
        Of the input, for the order of sightings.
    size, lines
        Bytes and lines taken so far.
    rest
        The start of a line whose end is not here yet.
    """

    name: str
    number: int
    size: int = 0
    lines: int = 0
    rest: bytes = b""
    open_output: int | None = None
    is_after_last_error: bool = False


@dataclass(slots=True)
class Scan:
    """What was recognised so far; feed it inputs one after the other, or streams piece by piece."""

    sightings: dict[str, list[Sighting]] = field(default_factory=dict)
    commands: list[CommandOutput] = field(default_factory=list)
    kept: int = 0
    channel_lines: int = 0
    steps: StepLines = field(default_factory=StepLines)
    _channels: dict[tuple[bytes, bytes], _Channels] = field(default_factory=dict)
    _shapes: dict[tuple[bytes, bytes], int] = field(default_factory=dict)
    _per_process: dict[tuple[str, str | None, int | None], int] = field(default_factory=dict)
    _boring_looks: dict[bytes, int] = field(default_factory=dict)
    _anchors: dict[bytes, int] = field(default_factory=dict)
    _stream: Stream = field(default_factory=lambda: Stream(name="", number=0))
    _inputs: int = 0

    def feed(self, name: str, chunks: Iterable[bytes]) -> int:
        """Scan one input and return its bytes.

        Parameters
        ----------
        name
            The input, for evidence.
        chunks
            Its bytes in order.
        """
        stream = self.open(name)
        for chunk in chunks:
            self.take(stream, chunk)
        self.finish(stream)
        return stream.size

    def open(self, name: str) -> Stream:
        """Return a new stream, for an input that comes piece by piece.

        Parameters
        ----------
        name
            The input, for evidence.
        """
        self._inputs += 1
        return Stream(name=name, number=self._inputs)

    def take(self, stream: Stream, data: bytes) -> None:
        """Scan the lines that end in the next piece of a stream; a line longer than a megabyte is cut.

        Parameters
        ----------
        stream
            The stream.
        data
            The piece.
        """
        end = data.rfind(b"\n") + 1
        if end:
            self._take_chunk(stream, stream.rest + data[:end])
            stream.rest = data[end:]
        elif len(stream.rest) + len(data) > _LONGEST_REST:
            self._take_chunk(stream, stream.rest + data)
            stream.rest = b""
        else:
            stream.rest += data

    def finish(self, stream: Stream) -> None:
        """Scan the line of a stream that has no end, as nothing more will come.

        Parameters
        ----------
        stream
            The stream.
        """
        if stream.rest:
            self._take_chunk(stream, stream.rest)
            stream.rest = b""

    def _take_chunk(self, stream: Stream, chunk: bytes) -> None:
        import numpy as np

        self._stream, read = stream, len(chunk)
        chunk = unescaped(chunk)
        self._scan_nccl(chunk, stream.lines + 1, stream.size)
        self._scan_host(chunk, stream.lines + 1, stream.size)
        stream.size += read
        # Several times faster than bytes.count where lines are short.
        stream.lines += int(np.count_nonzero(np.frombuffer(chunk, np.uint8) == _NEWLINE))

    @property
    def channel_kinds(self) -> int:
        """Return how many distinct pairs of process and transport were seen."""
        return len(self._channels)

    def channels(self) -> Iterator[ChannelUse]:
        """Yield what each process uses, merged over its threads."""
        merged: dict[tuple[object, ...], list[_Channels]] = {}
        for each in self._channels.values():
            key = (each.prefix.host, each.prefix.pid, each.prefix.device, each.direction, each.transport)
            merged.setdefault(key, []).append(each)
        for same in merged.values():
            first = same[0]
            yield ChannelUse(
                host=first.prefix.host,
                pid=first.prefix.pid,
                device=first.prefix.device,
                direction=first.direction,
                transport=first.transport,
                rank=first.rank,
                peer=first.peer,
                count=sum(each.count for each in same),
                lines=tuple(line for each in same for line in each.lines),
            )

    def processes(self) -> set[tuple[str, int]]:
        """Return host and pid of all processes that printed a line."""
        prefixes = [each.prefix for each in self._channels.values()]
        found = {(each.host, each.pid) for each in prefixes if each.host is not None and each.pid is not None}
        return found | {
            (host, pid) for _, host, pid in self._per_process if host is not None and pid is not None
        }

    def _scan_nccl(self, chunk: bytes, first_line: int, base: int) -> None:
        """Find NCCL's lines of a chunk; the loop is the hot path and therefore in one piece."""
        pieces = iter(chunk.split(_WORD))
        previous = next(pieces)
        position = len(previous)
        place = _Place(chunk=chunk, first_line=first_line)
        channels, boring_looks, boring = self._channels, self._boring_looks, BORING_HEADS
        for piece in pieces:
            head = piece[5:13]
            if head in boring and piece[:4] != b"WARN":
                if (looks := boring_looks.get(head, 0)) < _BORING_LOOKS:
                    boring_looks[head] = looks + 1
                    self._take_line(place, position, base)
                position += 5 + len(piece)
                previous = piece
                continue
            start = previous.rfind(b" ", 0, previous.rfind(b" ", 0, -1)) + 1
            prefix = previous[previous.rfind(b"\n", start) + 1 or start :]
            if (head == b"Channel " or head[:5] == b"Ring ") and (via := piece.find(b" via ", 18, 200)) > 0:
                end = piece.find(b"\n", via)
                key = (prefix, piece[via - 3 : end if end > 0 else len(piece)])
                if (found := channels.get(key)) is not None:
                    found.count += 1
                    if found.count <= _CHANNEL_LINES and self.channel_lines < _MOST_CHANNEL_LINES:
                        self._keep_channel_line(found, place, position)
                else:
                    self._take_channel(key, place, position)
            else:
                if piece[:4] == b"WARN":  # a source file stands between the process and the word
                    prefix = previous[previous.rfind(b"\n") + 1 :]
                self._take_shape((prefix, piece[:40].translate(None, _DIGITS)), place, position, base)
            position += 5 + len(piece)
            previous = piece

    def _take_shape(self, shape: tuple[bytes, bytes], place: _Place, position: int, base: int) -> None:
        seen = self._shapes.get(shape, 0)
        if seen >= _SHAPE_LOOKS:
            return
        if not seen and len(self._shapes) >= _MOST_SHAPES:
            return
        self._shapes[shape] = seen + 1
        self._take_line(place, position, base)

    def _take_channel(self, key: tuple[bytes, bytes], place: _Place, position: int) -> None:
        start, end = line_bounds(place.chunk, position)
        found = _CHANNEL.search(place.chunk[position:end].decode("utf-8", "replace"))
        if found is None or len(self._channels) >= _MOST_CHANNEL_KEYS:
            return
        self._channels[key] = _Channels(
            count=1,
            prefix=parse_prefix(place.chunk[start:position]),
            direction=found["direction"] or "",
            transport=printable(found["transport"].split("#012")[0]).strip(),
            rank=int(found["rank"]),
            peer=int(found["peer"]),
            lines=[self._evidence(place, start, end)],
        )

    def _keep_channel_line(self, found: _Channels, place: _Place, position: int) -> None:
        self.channel_lines += 1
        found.lines.append(self._evidence(place, *line_bounds(place.chunk, position)))

    def _take_line(self, place: _Place, position: int, base: int) -> None:
        chunk = place.chunk
        start, end = line_bounds(chunk, position)
        raw = chunk[position:end]
        if raw.startswith((b"NCCL INFO NCCL version ", b"NCCL WARN NCCL version ")) or not raw.startswith(
            (b"NCCL INFO ", b"NCCL WARN ", b"NCCL version ", b"NCCL ABORT ", b"NCCL TRACE ")
        ):
            return
        glued = _GLUED.search(raw, 10) if raw.find(_WORD, 10) > 0 else None
        raw = raw[: glued.start()] if glued else raw
        text = clean_text(raw.split(b"#012", 1)[0], most=LONGEST_LINE)
        before = chunk[start:position]
        level = "WARN" if raw.startswith(b"NCCL WARN") else "INFO"
        evidence: Evidence | None = None
        prefix: Prefix | None = None
        known = False
        for message, fields in matches(text, NCCL_MESSAGES if level == "WARN" else INFO_MESSAGES):
            prefix = prefix or parse_prefix(before)
            evidence = evidence or self._evidence(place, start, end)
            known = True
            self._keep(
                message.name, fields, prefix=prefix, level=level, evidence=evidence, offset=base + position
            )
        if level == "WARN" and not known:
            evidence = self._evidence(place, start, end)
            self._keep(
                "warning",
                {"text": text[10:]},
                prefix=parse_prefix(before),
                level=level,
                evidence=evidence,
                offset=base + position,
            )

    def _scan_host(self, chunk: bytes, first_line: int, base: int) -> None:
        place = _Place(chunk=chunk, first_line=first_line)
        self._continue(place, base)
        hits: set[int] = set()
        for searcher in _host_anchors():
            for _, at, after in searcher.find_matches_as_indexes(chunk):
                word = chunk[at:after]
                if word == STEP_WORD:
                    self._take_step(place, at)
                    continue
                seen = self._anchors.get(word, 0)
                if seen < _ANCHOR_LOOKS:
                    self._anchors[word] = seen + 1
                    hits.add(
                        chunk.rfind(b"\n", 0, after) + 1
                        if word[:1] == b"\n"
                        else chunk.rfind(b"\n", 0, at) + 1
                    )
        for start in sorted(hits):
            end = line_end(chunk, start)
            if self._take_prompt(place, start):
                continue
            text = clean_text(chunk[start:end], most=LONGEST_LINE)
            if "NCCL INFO " in text or "NCCL WARN " in text:
                continue
            self._take_host_line(text, place, start, end, base)

    def _take_step(self, place: _Place, position: int) -> None:
        start, end = line_bounds(place.chunk, position)
        self.steps.take(clean_text(place.chunk[start:end]), self._evidence(place, start, end))

    def _continue(self, place: _Place, base: int) -> None:
        """Take up what the chunk before left open."""
        if self._stream.open_output is not None:
            self._take_output(place.chunk, 0, self._stream.open_output)
        self._take_prompt(place, 0)
        if self._stream.is_after_last_error:
            self._stream.is_after_last_error = False
            self._take_last_error(place, 0, base, b"")

    def _take_host_line(self, text: str, place: _Place, start: int, end: int, base: int) -> None:
        for message, fields in matches(text, HOST_MESSAGES):
            evidence = self._evidence(place, start, end)
            level = "WARN" if message.literal in ALARMING or _ALARMED.search(text) else ""
            self._keep(message.name, fields, level=level, evidence=evidence, offset=base + start)
            if message.name == "last_error" and (beside := text_beside(text)):
                self._take_repeated(beside, evidence, base + start)
            elif message.name == "last_error":
                mark = place.chunk[start:end].partition(WORDS.encode())[0]
                self._take_last_error(place, end + 1, base, mark)
            if message.name == "last_error_quoted":
                self._take_repeated(fields["text"], evidence, base + start)

    def _take_last_error(self, place: _Place, start: int, base: int, mark: bytes) -> None:
        if (below := line_below(place.chunk, start, mark)) is None:
            self._stream.is_after_last_error = True
            return
        text = without_tail(clean_text(place.chunk[slice(*below)], most=LONGEST_LINE))
        self._take_repeated(text, self._evidence(place, *below), base + below[0])

    def _take_repeated(self, text: str, evidence: Evidence, offset: int) -> None:
        """Take what a framework repeats of NCCL's last warning."""
        known = tuple(unprefixed(text))
        for message, fields in known:
            self._keep(message.name, fields, level="LAST", evidence=evidence, offset=offset)
        if not known and text.strip():
            self._keep("warning", {"text": text}, level="LAST", evidence=evidence, offset=offset)

    def _take_prompt(self, place: _Place, start: int) -> bool:
        chunk = place.chunk
        end = line_end(chunk, start)
        found = _PROMPT.match(chunk[start:end].rstrip(b"\r"))
        if found is None or len(self.commands) >= _MOST_SECTIONS:
            return False
        evidence = self._evidence(place, start, end)
        self.commands.append(CommandOutput(command=clean_text(found["command"]), lines=(), evidence=evidence))
        self._take_output(chunk, end + 1, len(self.commands) - 1)
        return True

    def _take_output(self, chunk: bytes, start: int, number: int) -> None:
        """Add lines to a command until another prompt, a line of NCCL, or the bound."""
        last = self.commands[number]
        block = chunk[start : start + _SECTION_BYTES]
        lines = block.split(b"\n")
        output = list(last.lines)
        self._stream.open_output = number if start + len(block) >= len(chunk) else None
        for at, raw in enumerate(lines):
            is_end = at == len(lines) - 1 and not raw
            if _PROMPT.match(raw) or b" NCCL " in raw or len(output) >= _SECTION_LINES:
                self._stream.open_output = None
                break
            if not is_end:
                output.append(clean_text(raw))
        self.commands[number] = replace(last, lines=tuple(output))

    def _evidence(self, place: _Place, start: int, end: int) -> Evidence:
        return Evidence(
            file=self._stream.name, line=place.line_of(start), text=clean_text(place.chunk[start:end])
        )

    def _keep(
        self,
        what: str,
        fields: dict[str, str],
        *,
        prefix: Prefix = _NO_PREFIX,
        level: str = "",
        evidence: Evidence,
        offset: int,
    ) -> None:
        key = (what, prefix.host, prefix.pid)
        count = self._per_process.get(key, 0)
        limit = _KEPT_PER_PROCESS * (1 if prefix.host is not None else 200)
        if what in {"setting", "init", "version"}:
            limit *= 20
        if count >= limit or self.kept >= _MOST_KEPT:
            return
        self._per_process[key] = count + 1
        self.kept += 1
        self.sightings.setdefault(what, []).append(
            Sighting(
                what=what,
                host=prefix.host,
                pid=prefix.pid,
                device=prefix.device,
                rank=int(fields["rank"]) if fields.get("rank", "").isdigit() else None,
                level=level,
                source=prefix.source,
                fields=fields,
                evidence=evidence,
                order=(self._stream.number << 48) + offset,
            )
        )
