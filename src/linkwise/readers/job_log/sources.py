"""The inputs of a diagnosis: files, folders, gzip and standard input, as chunks of bytes within bounds."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from linkwise.documents.text import nearest_file
from linkwise.errors import DocumentError, Fault
from linkwise.readers.plain_pickle import is_pickle

__all__ = ["CHUNK_BYTES", "Source", "Unusable", "check_text", "chunks_of", "files_in", "sources_of"]

CHUNK_BYTES = 1 << 17
"""Bytes read at a time: what fits a cache beside what is found in it [bytes]."""

_MOST_FILES = 20_000
_DEEPEST = 6
_GZIP = b"\x1f\x8b"
_BOMB_FLOOR_BYTES = 256 << 20
_BOMB_RATIO = 400
_CONTROLS = bytes(byte for byte in range(32) if byte not in b"\t\n\r\f\b\x1b") + b"\x7f"
_MAGIC = (
    (b"\x7fELF", "an ELF program or library"),
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"%PDF", "a PDF document"),
    (b"PK\x03\x04", "a zip archive (perhaps of torch.save); unpack it and give the files in it"),
    (b"\xfd7zXZ", "xz-compressed; unpack it with 'xz -d' first"),
    (b"BZh", "bzip2-compressed; unpack it with 'bunzip2' first"),
    (b"\x28\xb5\x2f\xfd", "zstd-compressed; unpack it with 'zstd -d' first"),
    (b"SQLite format 3", "an SQLite database, such as an export of Nsight Systems"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"\xff\xfe", "UTF-16 text; save it as UTF-8"),
    (b"\xfe\xff", "UTF-16 text; save it as UTF-8"),
)
_TAR_MAGIC, _TAR_MAGIC_AT = b"ustar", 257
"""POSIX.1-1988, ustar interchange format: the magic of the header block."""


class Unusable(Exception):
    """An input cannot be used; the message says what it seems to be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One input.

    Parameters
    ----------
    name
        For evidence and messages.
    path
        The file; ``None`` for standard input.
    """

    name: str
    path: Path | None


def sources_of(paths: Sequence[str]) -> tuple[Source, ...]:
    """Return the inputs that `paths` name, folders as the files in them.

    Parameters
    ----------
    paths
        Files, folders, or ``-`` for standard input.

    Raises
    ------
    DocumentError
        With a fault for each that does not exist.
    """
    faults: list[Fault] = []
    found: dict[str, Source] = {}
    for given in paths:
        if given == "-":
            found["<stdin>"] = Source(name="<stdin>", path=None)
            continue
        path = Path(given)
        if path.is_dir():
            files = tuple(files_in(path))[:_MOST_FILES]
            if not files:
                faults.append(
                    Fault(path=given, message="the folder holds no file; give the one with the logs")
                )
            found |= {str(each): Source(name=str(each), path=each) for each in files}
        elif path.exists():
            found[given] = Source(name=given, path=path)
        else:
            faults.append(Fault(path=given, message=f"no such file{nearest_file(path)}"))
    if faults:
        raise DocumentError(faults)
    return tuple(found.values())


def chunks_of(source: Source, *, stdin: BinaryIO | None = None) -> Iterator[bytes]:
    """Yield the bytes of an input, decompressed where it is gzip.

    Parameters
    ----------
    source
        The input.
    stdin
        What to read for standard input; that of the process if absent.

    Raises
    ------
    Unusable
        If it cannot be read, is empty, is no text, or swells out of all proportion.
    """
    try:
        if source.path is None:
            yield from _checked(stdin or sys.stdin.buffer)
        elif not source.path.is_file() and not source.path.is_fifo():
            raise Unusable("is neither a file nor a pipe; give a log")
        else:
            with source.path.open("rb") as file:
                yield from _checked(file)
    except OSError as error:
        raise Unusable(f"cannot be read: {error.strerror or error}") from None


def _checked(file: BinaryIO) -> Iterator[bytes]:
    first = file.read(CHUNK_BYTES)
    if not first:
        raise Unusable("is empty; the job printed nothing there")
    if first.startswith(_GZIP):
        yield from _unzipped(first, file)
        return
    check_text(first)
    yield first
    while chunk := file.read(CHUNK_BYTES):
        yield chunk


def _unzipped(first: bytes, file: BinaryIO) -> Iterator[bytes]:
    packed = unpacked = 0
    opener = zlib.decompressobj(wbits=31)
    chunk = first
    try:
        while chunk:
            packed += len(chunk)
            waiting = chunk
            while waiting:
                text = opener.decompress(waiting, CHUNK_BYTES)
                if not unpacked:
                    check_text(text)
                unpacked += len(text)
                if unpacked > _BOMB_FLOOR_BYTES and unpacked > _BOMB_RATIO * packed:
                    raise Unusable(
                        "swells more than 400-fold when unpacked, which no log does; it is not read"
                    )
                if text:
                    yield text
                waiting = opener.unconsumed_tail
                if opener.eof:
                    waiting = opener.unused_data if opener.unused_data.startswith(_GZIP) else b""
                    opener = zlib.decompressobj(wbits=31)
            chunk = file.read(CHUNK_BYTES)
    except zlib.error:
        raise Unusable("is damaged gzip; unpack it with 'gzip -d' to see where") from None
    if not unpacked:
        raise Unusable("is gzip that is cut short or holds nothing; unpack it with 'gzip -d' to see")


def check_text(start: bytes) -> None:
    """Check that an input may be a log by its start.

    Parameters
    ----------
    start
        Its first bytes.

    Raises
    ------
    Unusable
        If it is no text; the message says what it seems to be.
    """
    if is_pickle(start):
        return  # perhaps a dump of the Flight Recorder, which only its reader can tell
    for magic, name in _MAGIC:
        if start.startswith(magic):
            raise Unusable(f"seems to be {name}; no log")
    if start[_TAR_MAGIC_AT:].startswith(_TAR_MAGIC):
        raise Unusable("seems to be a tar archive; unpack it with 'tar -xf' and give the folder")
    head = start[:65536]
    controls = len(head) - len(head.translate(None, delete=_CONTROLS))
    if controls * 20 > len(head):
        raise Unusable("seems to be binary data, not a log; give what the job printed")


def files_in(folder: Path, depth: int = 0) -> Iterator[Path]:
    """Yield the files of a folder and of those in it, to a bounded depth; hidden ones are left out.

    Parameters
    ----------
    folder
        The folder.
    depth
        How deep it is below the one that was named.
    """
    for each in sorted(folder.iterdir()):
        if each.name.startswith("."):
            continue
        if each.is_dir() and not each.is_symlink() and depth < _DEEPEST:
            yield from files_in(each, depth + 1)
        elif each.is_file():
            yield each
