"""Files and pipes read as they grow, through rotation, truncation and late creation."""

from __future__ import annotations

import errno
import os
import select
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

__all__ = ["FileTail", "Piece", "PipeTail", "Tail"]

PIECE_BYTES = 1 << 20
"""Bytes read at a time [bytes]."""

_MARK_BYTES = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """What was added to an input.

    Parameters
    ----------
    name
        The input.
    data
        The bytes; may be empty where `is_restart`.
    is_restart
        Whether the input begins anew with them: its file was rotated or truncated.
    fault
        Why it cannot be read; empty where it can.
    """

    name: str
    data: bytes = b""
    is_restart: bool = False
    fault: str = ""


class Tail(Protocol):
    """One input that grows."""

    @property
    def is_over(self) -> bool:
        """Return whether nothing more can come."""

    def pieces(self, most_bytes: int) -> Iterator[Piece]:
        """Yield what was added since the last call, about `most_bytes` at most."""

    def close(self) -> None:
        """Let go of the file."""


@dataclass(slots=True)
class FileTail:
    """A file followed by its name.

    Parameters
    ----------
    name
        For messages and evidence.
    path
        The file, which need not exist yet.

    Notes
    -----
    A renamed file is read to its end, and left for the new one of its name once that holds something. A file
    is truncated when it is shorter than what was read of it, or when the bytes before that place are others.
    """

    name: str
    path: Path
    is_over: bool = False
    position: int = 0
    _descriptor: int | None = None
    _identity: tuple[int, int] | None = None
    _mark: bytes = b""
    _changed_ns: int = 0
    _fault: str = ""

    @property
    def identity(self) -> tuple[int, int] | None:
        """Return device and inode of the file that is open; ``None`` before it exists."""
        return self._identity

    def pieces(self, most_bytes: int) -> Iterator[Piece]:
        """Yield what was added since the last call.

        Parameters
        ----------
        most_bytes
            About how much of it [bytes].
        """
        try:
            if self._descriptor is None and not self._open():
                return
            yield from self._grown(most_bytes)
            if self._is_replaced():
                yield from self._grown(most_bytes)
                self.close()
                yield Piece(name=self.name, is_restart=True)
                if self._open():
                    yield from self._grown(most_bytes)
        except OSError as error:
            yield from self._failed(error)

    def close(self) -> None:
        """Let go of the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
        self._descriptor, self._identity, self.position, self._mark = None, None, 0, b""

    def _open(self) -> bool:
        try:
            self._descriptor = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)
        except FileNotFoundError:
            return False
        found = os.fstat(self._descriptor)
        self._identity = (found.st_dev, found.st_ino)
        return True

    def _grown(self, most_bytes: int) -> Iterator[Piece]:
        descriptor = self._descriptor
        if descriptor is None:
            return
        found = os.fstat(descriptor)
        if found.st_size == self.position and found.st_mtime_ns == self._changed_ns:
            return
        self._changed_ns = found.st_mtime_ns
        if found.st_size < self.position or self._is_rewritten(descriptor):
            self.position, self._mark = 0, b""
            yield Piece(name=self.name, is_restart=True)
        end = self.position + most_bytes
        while self.position < end and (data := os.pread(descriptor, PIECE_BYTES, self.position)):
            self.position += len(data)
            self._mark = (self._mark + data[-_MARK_BYTES:])[-_MARK_BYTES:]
            yield Piece(name=self.name, data=data)

    def _is_rewritten(self, descriptor: int) -> bool:
        return os.pread(descriptor, len(self._mark), self.position - len(self._mark)) != self._mark

    def _is_replaced(self) -> bool:
        """Return whether the name is of another file by now, and that has something to read."""
        try:
            found = self.path.stat()
        except FileNotFoundError:
            return False
        return (found.st_dev, found.st_ino) != self._identity and found.st_size > 0

    def _failed(self, error: OSError) -> Iterator[Piece]:
        text = f"cannot be read: {error.strerror or error}"
        if error.errno in {errno.EMFILE, errno.ENFILE}:
            text += "; raise the limit with 'ulimit -n'"
        elif error.errno == errno.ESTALE:
            self.close()  # a file server lost it; it is opened again by its name
        if text != self._fault:
            self._fault = text
            yield Piece(name=self.name, fault=text)


@dataclass(slots=True)
class PipeTail:
    """A pipe, such as standard input or the output of a process that was started.

    Parameters
    ----------
    name
        For messages and evidence.
    descriptor
        Its open end.
    """

    name: str
    descriptor: int
    is_over: bool = field(default=False)

    def pieces(self, most_bytes: int) -> Iterator[Piece]:
        """Yield what can be read without waiting.

        Parameters
        ----------
        most_bytes
            About how much of it [bytes].
        """
        left = most_bytes
        while left > 0 and not self.is_over and self._is_ready():
            try:
                data = os.read(self.descriptor, PIECE_BYTES)
            except BlockingIOError:
                return
            except OSError as error:
                self.is_over = True
                yield Piece(name=self.name, fault=f"cannot be read: {error.strerror or error}")
                return
            if not data:
                self.is_over = True
                return
            left -= len(data)
            yield Piece(name=self.name, data=data)

    def close(self) -> None:
        """Do nothing: whoever opened the pipe closes it."""

    def _is_ready(self) -> bool:
        if stat.S_ISREG(os.fstat(self.descriptor).st_mode):
            return True
        return bool(select.select([self.descriptor], [], [], 0)[0])
