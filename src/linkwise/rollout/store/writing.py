"""One transaction on the log of a rollout: what is appended, and what is kept with it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, delete, insert, select, update

from linkwise.rollout.canonical import text_digest
from linkwise.rollout.runs import StepRun
from linkwise.rollout.store.decisions import Entry, Kind, LogHead, SealedEntry, Sign, seal
from linkwise.rollout.store.reading import BaselineRow, Record, contents_of, record_of
from linkwise.rollout.store.run_text import run_text
from linkwise.rollout.store.tables import baselines, decisions, kept, rollouts, runs
from linkwise.rollout.store.verification import RUN

__all__ = ["Writing"]


class Writing:
    """One transaction on the log of a rollout.

    Parameters
    ----------
    connection
        In a transaction that nobody else writes into.
    rollout
        Name of the rollout.
    sign
        The key that signs; ``None`` for none.
    """

    def __init__(self, connection: Connection, rollout: str, *, sign: Sign | None) -> None:
        self._connection = connection
        self._rollout = rollout
        self._sign = sign

    def record(self) -> Record | None:
        """Return all that the store holds of the rollout; ``None`` where it holds none."""
        found = contents_of(self._connection, self._rollout)
        return None if found is None else record_of(found)

    def append(
        self,
        kind: Kind,
        *,
        at: dt.datetime,
        by: str,
        why: str,
        step: str = "",
        facts: Mapping[str, object] | None = None,
        texts: Mapping[str, str] | None = None,
        evidence: Mapping[str, str] | None = None,
    ) -> SealedEntry:
        """Append an entry, and return it.

        Parameters
        ----------
        kind, at, by, why, step, facts
            As in `Entry`.
        texts
            Evidence that is kept with it, by name.
        evidence
            Digests of what is kept already, by name.
        """
        head = self.head()
        digests = {name: self._keep(text) for name, text in (texts or {}).items()}
        sealed = seal(
            Entry(
                number=head.entries,
                rollout=self._rollout,
                kind=kind,
                at=at,
                by=by,
                why=why,
                step=step,
                evidence={**(evidence or {}), **digests},
                facts=facts or {},
                previous=head.digest,
            ),
            sign=self._sign,
        )
        row = {"number": head.entries, "text": sealed.text, "digest": sealed.digest}
        self._connection.execute(
            insert(decisions).values(rollout=self._rollout, signature=sealed.signature, **row)
        )
        self._connection.execute(
            update(rollouts)
            .where(rollouts.c.name == self._rollout)
            .values(head_entries=head.entries + 1, head_digest=sealed.digest)
        )
        return sealed

    def put_run(self, run: StepRun, *, at: dt.datetime, by: str, why: str, host: str = "") -> SealedEntry:
        """Write a run that starts, or its end, and the entry about it.

        Parameters
        ----------
        run
            The run; one that ended takes the place of what was written when it started.
        at, by, why
            As in `Entry`.
        host
            Where it is kept; its folder is there alone.
        """
        text = run_text(run)
        mine = (runs.c.rollout == self._rollout) & (runs.c.run_id == run.run_id)
        if run.ended is None:
            self._connection.execute(insert(runs).values(rollout=self._rollout, run_id=run.run_id, text=text))
        else:
            self._connection.execute(update(runs).where(mine).values(text=text))
        return self.append(
            Kind.RUN_STARTED if run.ended is None else Kind.RUN_ENDED,
            at=at,
            by=by,
            why=why,
            step=run.step,
            facts={"run_id": run.run_id, "state": run.state.value, **({"host": host} if host else {})},
            evidence={RUN: text_digest(text)},
        )

    def put_baseline(self, rows: Sequence[BaselineRow]) -> None:
        """Write which runs others are compared with from now on.

        Parameters
        ----------
        rows
            Of the configuration that is promoted.
        """
        self._connection.execute(delete(baselines).where(baselines.c.rollout == self._rollout))
        names = ("run_id", "scope", "configuration", "fingerprint", "target", "promoted")
        for row in rows:
            values = dict(zip(names, row.columns, strict=True))
            self._connection.execute(insert(baselines).values(rollout=self._rollout, **values))

    def head(self) -> LogHead:
        """Return the end of the log."""
        query = select(rollouts.c.head_entries, rollouts.c.head_digest).where(
            rollouts.c.name == self._rollout
        )
        row = self._connection.execute(query).first()
        if row is None:
            empty = LogHead()
            self._connection.execute(
                insert(rollouts).values(
                    name=self._rollout, head_entries=empty.entries, head_digest=empty.digest
                )
            )
            return empty
        return LogHead(entries=row[0], digest=row[1])

    def _keep(self, text: str) -> str:
        digest = text_digest(text)
        mine = (kept.c.rollout == self._rollout) & (kept.c.digest == digest)
        if self._connection.execute(select(kept.c.digest).where(mine)).first() is None:
            self._connection.execute(insert(kept).values(rollout=self._rollout, digest=digest, text=text))
        return digest
