"""One action about to be done: what it was decided on, and how it is written down."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass

from linkwise.rollout.carrying.ground import Ground, Loaded
from linkwise.rollout.store.decisions import Kind, LogHead
from linkwise.rollout.store.reading import Record
from linkwise.rollout.store.writing import Writing

__all__ = ["Acting"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Acting:
    """One action about to be done.

    Parameters
    ----------
    ground, loaded
        What it is done with, and the file it was decided on.
    record
        What the store held when it was decided; ``None`` before it began.
    token
        Of the lock that is held.
    """

    ground: Ground
    loaded: Loaded
    record: Record | None
    token: str

    @property
    def known(self) -> Record:
        """Return what the store held of a rollout that has begun."""
        if self.record is None:
            raise LookupError(f"{self.loaded.rollout.name!r} has not begun")
        return self.record

    def decide(
        self,
        kind: Kind,
        *,
        why: str,
        step: str = "",
        facts: Mapping[str, object] | None = None,
        texts: Mapping[str, str] | None = None,
        also: Callable[[Writing], None] | None = None,
    ) -> bool:
        """Append an entry if nothing was appended since it was decided, and return whether that was so.

        Parameters
        ----------
        kind, why, step, facts, texts
            As in `Writing.append`.
        also
            What else is written in the same transaction.
        """

        def write(writing: Writing) -> None:
            writing.append(
                kind,
                at=self.ground.clock(),
                by=self.ground.who,
                why=why,
                step=step,
                facts=facts,
                texts=texts,
            )
            if also is not None:
                also(writing)

        return self.write(write)

    def write(self, change: Callable[[Writing], None]) -> bool:
        """Write if nothing was appended since this was decided, and return whether that was so.

        Parameters
        ----------
        change
            What is written, in one transaction.
        """
        with self._writing() as writing:
            if writing.head() != (LogHead() if self.record is None else self.record.head):
                return False
            change(writing)
        return True

    def note(self, change: Callable[[Writing], None]) -> None:
        """Write what has happened, whatever was decided meanwhile.

        Parameters
        ----------
        change
            What is written, in one transaction.
        """
        with self._writing() as writing:
            change(writing)

    def _writing(self) -> AbstractContextManager[Writing]:
        return self.ground.store.writing(self.loaded.rollout.name, token=self.token)
