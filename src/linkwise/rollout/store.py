"""The evidence store: rollouts, their decision logs, and every run with all its samples.

What is written is written in transactions, one writer at a time; a log only grows.
"""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, Engine, RowMapping, delete, func, insert, select, update

from linkwise.errors import InputError, UnknownName
from linkwise.rollout.canonical import text_digest
from linkwise.rollout.decisions import Entry, Kind, LogHead, SealedEntry, Sign, head_of, seal
from linkwise.rollout.run_text import run_of_text, run_text
from linkwise.rollout.runs import StepRun
from linkwise.rollout.store_engine import connected, open_engine, told_errors
from linkwise.rollout.store_lock import HeldBy, Lock, lock_number, take_lock
from linkwise.rollout.store_tables import baselines, decisions, holders, kept, rollouts, runs
from linkwise.rollout.verification import RUN, LogContents, LogRow, read_log

__all__ = ["BaselineRow", "Record", "Store", "Writing"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """All that a store holds of one rollout, as it was written.

    Parameters
    ----------
    rollout
        Its name.
    log
        All entries.
    runs
        All runs, in the order they were started.
    kept
        Other texts by their digests.
    """

    rollout: str
    log: tuple[SealedEntry, ...]
    runs: tuple[StepRun, ...]
    kept: Mapping[str, str]

    @property
    def head(self) -> LogHead:
        """Return the end of its log."""
        return head_of(self.log)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Return what the log says."""
        return tuple(each.entry for each in self.log)


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineRow:
    """One run of a promoted configuration.

    Parameters
    ----------
    run_id
        Of the run.
    scope
        Where it ran: cluster and place.
    configuration
        Digest of the configuration.
    fingerprint
        Digest of what was seen of the cluster.
    target
        How much of the cluster it touched, in words.
    promoted
        When, in UTC.
    """

    run_id: str
    scope: str
    configuration: str
    fingerprint: str
    target: str
    promoted: str

    @property
    def columns(self) -> tuple[str, ...]:
        """Return its values in the order in which they are listed."""
        return (self.run_id, self.scope, self.configuration, self.fingerprint, self.target, self.promoted)


class Store:
    """A store, open.

    Parameters
    ----------
    where
        Path of a file of SQLite, or the address of a database of PostgreSQL.
    may_make
        Whether it is made where it is not there.
    sign
        The key that signs what is decided; ``None`` for none.

    Raises
    ------
    InputError
        When it cannot be opened, or is none of ours.
    """

    def __init__(self, where: str, *, may_make: bool = False, sign: Sign | None = None) -> None:
        self.where = where
        self._engine: Engine = open_engine(where, may_make=may_make)
        self._sign = sign

    def close(self) -> None:
        """Let go of it."""
        self._engine.dispose()

    def names(self) -> tuple[str, ...]:
        """Return the names of all rollouts in it."""
        with told_errors(self._engine.url), self._engine.connect() as connection:
            return tuple(connection.execute(select(rollouts.c.name).order_by(rollouts.c.name)).scalars())

    def contents(self, rollout: str) -> LogContents:
        """Return what lies in it of a rollout, not yet believed.

        Parameters
        ----------
        rollout
            Its name.

        Raises
        ------
        UnknownName
            When there is none of that name.
        """
        with told_errors(self._engine.url), self._engine.connect() as connection, connection.begin():
            found = _contents(connection, rollout)
        if found is None:
            raise UnknownName.among(self.names(), kind="rollout in this store", given=rollout)
        return found

    def record(self, rollout: str) -> Record:
        """Return all that it holds of a rollout.

        Parameters
        ----------
        rollout
            Its name.

        Raises
        ------
        InputError
            When there is none of that name, or its log was altered.
        """
        return _record(self.contents(rollout))

    def has(self, rollout: str) -> bool:
        """Return whether it holds a rollout.

        Parameters
        ----------
        rollout
            Its name.
        """
        return rollout in self.names()

    @contextlib.contextmanager
    def writing(self, rollout: str, *, token: str | None = None) -> Iterator[Writing]:
        """Yield what writes to the log of a rollout, in one transaction that nobody else writes into.

        Parameters
        ----------
        rollout
            Its name; one that is not there is begun.
        token
            That of the lock under which it is written; ``None`` for what needs no lock.

        Raises
        ------
        InputError
            When the lock has passed to somebody else.
        """
        with (
            told_errors(self._engine.url),
            self._engine.connect().execution_options(linkwise_write=True) as connection,
            connection.begin(),
        ):
            if connected(self._engine):
                connection.execute(select(func.pg_advisory_xact_lock(lock_number(f"write {rollout}"))))
            if token is not None:
                _check_holder(connection, rollout, token)
            yield Writing(connection, rollout, sign=self._sign)

    @contextlib.contextmanager
    def held(self, rollout: str, *, by: HeldBy) -> Iterator[Lock]:
        """Hold a rollout, so that nobody else carries it out.

        Parameters
        ----------
        rollout
            Its name.
        by
            Who holds it.

        Raises
        ------
        InputError
            When somebody holds it already; with who, where and since when.
        """
        with take_lock(self._engine, rollout, told=self.holder(rollout)) as lock:
            self._note_holder(rollout, by, lock)
            try:
                yield lock
            finally:
                with told_errors(self._engine.url), self._writing_connection() as connection:
                    mine = (holders.c.rollout == rollout) & (holders.c.token == lock.token)
                    connection.execute(delete(holders).where(mine))

    def holder(self, rollout: str) -> HeldBy | None:
        """Return who carries a rollout out, or was killed when doing so last.

        Parameters
        ----------
        rollout
            Its name.
        """
        with told_errors(self._engine.url), self._engine.connect() as connection:
            row = connection.execute(select(holders).where(holders.c.rollout == rollout)).mappings().first()
        if row is None:
            return None
        return HeldBy(
            who=row["who"],
            host=row["host"],
            process=row["process"],
            since=dt.datetime.fromisoformat(row["since"]),
        )

    def _note_holder(self, rollout: str, by: HeldBy, lock: Lock) -> None:
        values = {
            "token": lock.token,
            "who": by.who,
            "host": by.host,
            "process": by.process,
            "since": by.since.isoformat(),
        }
        with told_errors(self._engine.url), self._writing_connection() as connection:
            connection.execute(delete(holders).where(holders.c.rollout == rollout))
            connection.execute(insert(holders).values(rollout=rollout, **values))

    @contextlib.contextmanager
    def _writing_connection(self) -> Iterator[Connection]:
        with self._engine.connect().execution_options(linkwise_write=True) as connection, connection.begin():
            yield connection

    def baseline(
        self, *, scope: str, configuration: str, target: str
    ) -> tuple[tuple[BaselineRow, StepRun], ...]:
        """Return the runs of a promoted configuration that others may be compared with.

        Parameters
        ----------
        scope, configuration, target
            As in `BaselineRow`.

        Raises
        ------
        InputError
            When a stored run cannot be read.
        """
        query = (
            select(baselines, runs.c.text)
            .join(runs, (runs.c.rollout == baselines.c.rollout) & (runs.c.run_id == baselines.c.run_id))
            .where(
                baselines.c.scope == scope,
                baselines.c.configuration == configuration,
                baselines.c.target == target,
            )
            .order_by(baselines.c.promoted, baselines.c.run_id)
        )
        with told_errors(self._engine.url), self._engine.connect() as connection:
            rows = connection.execute(query).mappings().all()
        return tuple((_baseline_row(row), run_of_text(row["text"])) for row in rows)

    def promoted_in(self, configuration: str) -> str | None:
        """Return the rollout that promoted a configuration last; ``None`` where none did.

        Parameters
        ----------
        configuration
            Its digest.
        """
        query = (
            select(baselines.c.rollout)
            .where(baselines.c.configuration == configuration)
            .order_by(baselines.c.promoted.desc())
        )
        with told_errors(self._engine.url), self._engine.connect() as connection:
            row = connection.execute(query).first()
        return None if row is None else str(row[0])


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
        found = _contents(self._connection, self._rollout)
        return None if found is None else _record(found)

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
        head = self._head()
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

    def put_run(self, run: StepRun, *, at: dt.datetime, by: str, why: str) -> SealedEntry:
        """Write a run that starts, or its end, and the entry about it.

        Parameters
        ----------
        run
            The run; one that ended takes the place of what was written when it started.
        at, by, why
            As in `Entry`.
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
            facts={"run_id": run.run_id, "state": run.state.value},
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

    def _head(self) -> LogHead:
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


def _record(contents: LogContents) -> Record:
    log = read_log(contents)
    order = [each.entry.fact("run_id") for each in log if each.entry.kind is Kind.RUN_STARTED]
    return Record(
        rollout=contents.rollout,
        log=log,
        runs=tuple(run_of_text(contents.runs[run_id]) for run_id in order),
        kept=contents.kept,
    )


def _contents(connection: Connection, rollout: str) -> LogContents | None:
    head = connection.execute(
        select(rollouts.c.head_entries, rollouts.c.head_digest).where(rollouts.c.name == rollout)
    ).first()
    if head is None:
        return None
    rows = connection.execute(
        select(decisions.c.number, decisions.c.text, decisions.c.digest, decisions.c.signature)
        .where(decisions.c.rollout == rollout)
        .order_by(decisions.c.number)
    )
    return LogContents(
        rollout=rollout,
        head=LogHead(entries=head[0], digest=head[1]),
        rows=tuple(LogRow(number=row[0], text=row[1], digest=row[2], signature=row[3]) for row in rows),
        runs=_texts(connection.execute(select(runs.c.run_id, runs.c.text).where(runs.c.rollout == rollout))),
        kept=_texts(connection.execute(select(kept.c.digest, kept.c.text).where(kept.c.rollout == rollout))),
        baselines=tuple(
            _baseline_row(row).columns
            for row in connection.execute(
                select(baselines).where(baselines.c.rollout == rollout).order_by(baselines.c.run_id)
            ).mappings()
        ),
    )


def _texts(rows: Iterable[Sequence[str]]) -> dict[str, str]:
    return {row[0]: row[1] for row in rows}


def _baseline_row(row: RowMapping) -> BaselineRow:
    return BaselineRow(
        run_id=row["run_id"],
        scope=row["scope"],
        configuration=row["configuration"],
        fingerprint=row["fingerprint"],
        target=row["target"],
        promoted=row["promoted"],
    )


def _check_holder(connection: Connection, rollout: str, token: str) -> None:
    found = connection.execute(select(holders.c.token).where(holders.c.rollout == rollout)).scalar()
    if found != token:
        raise InputError(
            f"{rollout!r} has passed to somebody else while it was carried out here (the connection to the "
            "store was lost); nothing more is written"
        )
