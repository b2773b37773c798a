"""Recorded logs as inputs of a watch: read at full speed, gzip or plain, side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from linkwise.monitor.tail import Piece
from linkwise.readers.job_log.sources import Source, Unusable, chunks_of, sources_of

__all__ = ["RecordingTail", "recordings"]


@dataclass(slots=True)
class RecordingTail:
    """One recorded log.

    Parameters
    ----------
    source
        The file, or standard input.

    Notes
    -----
    One chunk is given at a time whatever is asked for, so that the logs of ranks advance together.
    """

    source: Source
    is_over: bool = False
    _chunks: Iterator[bytes] | None = field(default=None)

    def pieces(self, most_bytes: int) -> Iterator[Piece]:  # noqa: ARG002 (as all tails)
        """Yield the next chunk.

        Parameters
        ----------
        most_bytes
            Not heeded.
        """
        if self.is_over:
            return
        if self._chunks is None:
            self._chunks = chunks_of(self.source)
        try:
            data = next(self._chunks, b"")
        except Unusable as error:
            self.is_over = True
            yield Piece(name=self.source.name, fault=str(error))
            return
        self.is_over = not data
        if data:
            yield Piece(name=self.source.name, data=data)

    def close(self) -> None:
        """Let go of the file, which the end of its chunks did."""


def recordings(paths: Sequence[str]) -> tuple[RecordingTail, ...]:
    """Return the recorded logs that `paths` name.

    Parameters
    ----------
    paths
        Files, folders, or ``-`` for standard input.

    Raises
    ------
    DocumentError
        With a fault for each that does not exist.
    """
    return tuple(RecordingTail(source=each) for each in sources_of(paths))
