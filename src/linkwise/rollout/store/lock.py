"""The lock under which one process carries a rollout out: it ends with its process, however that ends."""

from __future__ import annotations

import contextlib
import datetime as dt
import fcntl
import hashlib
import os
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Engine, func, select

from linkwise.errors import InputError
from linkwise.rollout.store.engine import connected, told_errors

__all__ = ["HeldBy", "Lock", "is_locked", "lock_number", "take_lock"]


_TRIES = 3
_TRY_S = 0.1
"""Whoever only looks whether it is held holds it for a moment [s]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldBy:
    """Who carries a rollout out.

    Parameters
    ----------
    who, host, process
        A person, where, and the number of the process.
    since
        When it began, in UTC.
    """

    who: str
    host: str
    process: int
    since: dt.datetime

    @property
    def words(self) -> str:
        """Return it for a message."""
        return f"{self.who} (process {self.process} on {self.host}) since {self.since:%Y-%m-%d %H:%M:%S} UTC"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lock:
    """A lock that is held.

    Parameters
    ----------
    token
        Unlike that of any other holder; writes under the lock are refused once another one is written down.
    """

    token: str


@contextlib.contextmanager
def take_lock(engine: Engine, rollout: str, *, told: HeldBy | None) -> Iterator[Lock]:
    """Hold a rollout.

    Parameters
    ----------
    engine
        An open store.
    rollout
        Name of the rollout.
    told
        Who wrote down last that he holds it.

    Raises
    ------
    InputError
        When somebody holds it.
    """
    with contextlib.ExitStack() as stack:
        for _ in range(_TRIES):
            how = _server_lock(engine, rollout) if connected(engine) else _file_lock(engine, rollout)
            trial = stack.enter_context(contextlib.ExitStack())
            if trial.enter_context(how):
                yield Lock(token=secrets.token_hex(16))
                return
            trial.close()
            time.sleep(_TRY_S)
    who = "another process" if told is None else told.words
    raise InputError(
        f"{rollout!r} is carried out by {who}; wait for it, or stop it with 'linkwise rollout suspend'"
    )


def is_locked(engine: Engine, rollout: str) -> bool:
    """Return whether somebody holds a rollout at this moment.

    Parameters
    ----------
    engine
        An open store.
    rollout
        Name of the rollout.
    """
    with _server_lock(engine, rollout) if connected(engine) else _file_lock(engine, rollout) as is_mine:
        return not is_mine


@contextlib.contextmanager
def _file_lock(engine: Engine, rollout: str) -> Iterator[bool]:
    path = Path(f"{engine.url.database}.{hashlib.sha256(rollout.encode()).hexdigest()[:12]}.lock")
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        # The file stays when it is let go: one that is taken away while another waits for it locks nothing.
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _server_lock(engine: Engine, rollout: str) -> Iterator[bool]:
    """Hold a lock of the session: the server lets go of it when the connection ends."""
    number = lock_number(f"hold {rollout}")
    with told_errors(engine.url):
        connection = engine.connect().execution_options(isolation_level="AUTOCOMMIT")
    try:
        with told_errors(engine.url):
            is_mine = bool(connection.execute(select(func.pg_try_advisory_lock(number))).scalar())
        yield is_mine
    finally:
        with contextlib.suppress(InputError), told_errors(engine.url):
            connection.execute(select(func.pg_advisory_unlock(number)))
        # Not back into the pool: whoever gets it next must not hold what was not let go of.
        connection.invalidate()
        connection.close()


def lock_number(name: str) -> int:
    """Return the number under which PostgreSQL locks a name: 63 bits of its SHA-256.

    Parameters
    ----------
    name
        What is locked.
    """
    return int.from_bytes(hashlib.sha256(f"linkwise {name}".encode()).digest()[:8], "big") >> 1
