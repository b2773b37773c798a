"""The evidence store: rollouts, their decision logs, and every run with all its samples.

What is written is written in transactions, one writer at a time; a log only grows.
"""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Iterator

from sqlalchemy import Connection, Engine, delete, func, insert, select

from linkwise.errors import InputError, UnknownName
from linkwise.rollout.runs import StepRun
from linkwise.rollout.store.decisions import Sign
from linkwise.rollout.store.engine import connected, open_engine, told_errors
from linkwise.rollout.store.lock import HeldBy, Lock, is_locked, lock_number, take_lock
from linkwise.rollout.store.reading import Record, baseline_row, contents_of, record_of
from linkwise.rollout.store.run_text import run_of_text
from linkwise.rollout.store.tables import baselines, holders, rollouts, runs
from linkwise.rollout.store.verification import LogContents
from linkwise.rollout.store.writing import Writing

__all__ = ["Store"]


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

    @property
    def shown(self) -> str:
        """Return where it is, without a password."""
        url = self._engine.url
        is_file = url.get_backend_name() == "sqlite"
        return str(url.database) if is_file else url.render_as_string(hide_password=True)

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
            found = contents_of(connection, rollout)
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
        return record_of(self.contents(rollout))

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

    def holder_now(self, rollout: str) -> HeldBy | None:
        """Return who carries a rollout out at this moment; ``None`` for nobody.

        Parameters
        ----------
        rollout
            Its name.
        """
        told = self.holder(rollout)
        return told if told is not None and is_locked(self._engine, rollout) else None

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

    def baseline(self, *, scope: str, target: str) -> tuple[StepRun, ...]:
        """Return the runs of what was promoted last somewhere, on as much of the cluster.

        Parameters
        ----------
        scope, target
            As in `BaselineRow`.

        Raises
        ------
        InputError
            When a stored run cannot be read.
        """
        query = (
            select(baselines, runs.c.text)
            .join(runs, (runs.c.rollout == baselines.c.rollout) & (runs.c.run_id == baselines.c.run_id))
            .where(baselines.c.scope == scope, baselines.c.target == target)
        )
        with told_errors(self._engine.url), self._engine.connect() as connection:
            rows = [(baseline_row(row), row["text"]) for row in connection.execute(query).mappings()]
        last = max((row.promoted for row, _ in rows), default="")
        found = [run_of_text(text) for row, text in rows if row.promoted == last]
        return tuple(sorted(found, key=lambda run: (run.started, run.run_id)))

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


def _check_holder(connection: Connection, rollout: str, token: str) -> None:
    found = connection.execute(select(holders.c.token).where(holders.c.rollout == rollout)).scalar()
    if found != token:
        raise InputError(
            f"{rollout!r} has passed to somebody else while it was carried out here (the connection to the "
            "store was lost); nothing more is written"
        )
