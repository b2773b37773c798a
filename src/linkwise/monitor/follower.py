"""A running job followed by its logs: what was added is read, and what is new of the diagnosis told."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from linkwise.diagnose.doctor import Diagnosis
from linkwise.diagnose.following import Change, Told
from linkwise.monitor.tail import Piece, Tail
from linkwise.readers.job_log.running import RunningLog
from linkwise.readers.job_log.values import JobLog

__all__ = ["Follower"]

_TURN_BYTES = 16 << 20
_FILE_BYTES = 4 << 20
_PAUSE_S = 0.1
_LOOK_S = 0.5
_PATIENCE = 3.0


@dataclass(slots=True)
class Follower:
    """A job that runs, as its inputs show it.

    Parameters
    ----------
    find
        Returns the inputs that appeared since it was last called.
    judge
        Makes a diagnosis of what was read.
    clock
        The time, which never goes back [s].
    hear
        Takes every piece beside the log that is diagnosed.
    log, told
        What was read and told so far.

    Notes
    -----
    A diagnosis of 1,024 ranks takes some 50 ms; one that takes long is made more seldom, so that reading
    keeps up with the log.
    """

    find: Callable[[], Iterable[Tail]]
    judge: Callable[[JobLog], Diagnosis]
    clock: Callable[[], float]
    hear: Callable[[Piece], None] = field(default=lambda _piece: None)
    log: RunningLog = field(default_factory=RunningLog)
    told: Told = field(default_factory=Told)
    _tails: list[Tail] = field(default_factory=list)
    _looked_s: float = float("-inf")
    _grew_s: float | None = None
    _due_s: float = float("-inf")
    _revision: tuple[int, ...] = ()
    _is_behind: bool = False

    def turn(self) -> tuple[Change, ...]:
        """Read what was added to the inputs, and return what that changes of the diagnosis."""
        now_s = self.clock()
        if now_s - self._looked_s >= _LOOK_S:
            self._looked_s = now_s
            self._tails.extend(self.find())
        read_bytes = self._read()
        if read_bytes or self._grew_s is None:
            self._grew_s = now_s
        if self.log.revision == self._revision or self.clock() < self._due_s:
            return ()
        return self._judged()

    def follow(
        self, wait: Callable[[float], bool], *, until_quiet_s: float | None = None
    ) -> Iterator[tuple[Change, ...]]:
        """Yield changes as they happen, until all inputs end or the wait is broken off.

        Parameters
        ----------
        wait
            Waits for some seconds and returns whether to end.
        until_quiet_s
            End when no input grew for so long; ``None`` for no such end [s].
        """
        while True:
            changes = self.turn()
            if changes:
                yield changes
            if not self._is_behind and (self.is_over or self._is_quiet(until_quiet_s)):
                return
            if wait(0 if self._is_behind else _PAUSE_S):
                return

    def finish(self, judge: Callable[[JobLog], Diagnosis] | None = None) -> Diagnosis:
        """Return the diagnosis of all, having read what is left and let go of the inputs.

        Parameters
        ----------
        judge
            What makes it; as before if absent.
        """
        for _ in range(64):
            if not self._read():
                break
        for each in self._tails:
            each.close()
        return (judge or self.judge)(self.log.log(is_over=True))

    def _judged(self) -> tuple[Change, ...]:
        self._revision = self.log.revision
        start_s = self.clock()
        changes, self.told = self.told.tell(self.judge(self.log.log()))
        end_s = self.clock()
        self._due_s = end_s + _PATIENCE * (end_s - start_s)
        return changes

    def _read(self) -> int:
        left = _TURN_BYTES
        self._is_behind = False
        for tail in self._tails:
            read_bytes = 0
            for piece in tail.pieces(min(_FILE_BYTES, left)):
                if piece.fault:
                    self.log.faults[piece.name] = piece.fault
                if piece.is_restart:
                    self.log.restart(piece.name)
                if piece.data:
                    read_bytes += len(piece.data)
                    self.log.feed(piece.name, piece.data)
                self.hear(piece)
            left -= read_bytes
            self._is_behind |= read_bytes >= _FILE_BYTES
            if left <= 0:
                self._is_behind = True
                # The next turn begins with those that had none of this one.
                at = self._tails.index(tail) + 1
                self._tails = [*self._tails[at:], *self._tails[:at]]
                break
        return _TURN_BYTES - left

    @property
    def is_behind(self) -> bool:
        """Return whether there was more to read in the last turn than one turn takes."""
        return self._is_behind

    @property
    def is_over(self) -> bool:
        """Return whether there are inputs and nothing more can come of any."""
        return bool(self._tails) and all(each.is_over for each in self._tails)

    def _is_quiet(self, until_quiet_s: float | None) -> bool:
        if until_quiet_s is None or self._grew_s is None:
            return False
        return self.clock() - self._grew_s >= until_quiet_s
