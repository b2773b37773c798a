"""How a store is opened: SQLite in one file, or PostgreSQL by its address."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Engine, create_engine, event, insert, inspect, make_url, select
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, ProgrammingError

from linkwise.errors import InputError
from linkwise.rollout.store.tables import SCHEMA_VERSION, TABLES, meta

__all__ = ["connected", "open_engine", "told_errors"]

_KIND = ("kind", "linkwise rollout store")
_BUSY_S = 30.0
"""How long a write waits for another one to end; each takes milliseconds [s]."""
_IDLE_S = 10
"""After how long without an answer PostgreSQL asks whether a holder is still there [s]."""


def open_engine(where: str, *, may_make: bool) -> Engine:
    """Return what talks to a store, after its kind and version were looked at.

    Parameters
    ----------
    where
        Path of a file of SQLite, or the address of a database of PostgreSQL.
    may_make
        Whether it is made where it is not there.

    Raises
    ------
    InputError
        When it cannot be reached, is none of ours, or is of a later version.
    """
    url = _url_of(where)
    is_file = url.get_backend_name() == "sqlite"
    if is_file:
        _ready_file(Path(url.database or ""), may_make=may_make)
    with told_errors(url):
        engine = _sqlite(url) if is_file else create_engine(url, **_postgres())
        _check_kind(engine, url, may_make=may_make)
    return engine


def connected(engine: Engine) -> bool:
    """Return whether the store is a server that others reach too.

    Parameters
    ----------
    engine
        An open store.
    """
    return engine.dialect.name == "postgresql"


@contextlib.contextmanager
def told_errors(url: URL) -> Iterator[None]:
    """Turn what a database complains of into one sentence.

    Parameters
    ----------
    url
        Of the store; its password is not shown.

    Raises
    ------
    InputError
        When the database complains.
    """
    try:
        yield
    except DBAPIError as error:
        words = str(error.orig).strip().splitlines() or [type(error.orig).__name__]
        raise InputError(f"store {url.render_as_string()}: {words[0]}") from None
    except UnicodeDecodeError:
        # SQLite hands out whatever bytes lie in a damaged file.
        raise InputError(
            f"store {url.render_as_string()}: holds bytes that are no text: it is damaged; go on with a copy "
            "of it that 'linkwise rollout log --verify' finds whole"
        ) from None


def _url_of(where: str) -> URL:
    if "://" not in where:
        return URL.create("sqlite", database=where)
    try:
        url = make_url(where)
        backend = url.get_backend_name()
    except (ArgumentError, ValueError):
        raise InputError("the store is no path and no address such as postgresql://USER@HOST/NAME") from None
    if backend == "postgres":
        backend = "postgresql"
    if backend not in ("sqlite", "postgresql"):
        raise InputError(f"a store cannot be in {backend}; give a path, or postgresql://USER@HOST/NAME")
    if backend == "sqlite":
        if not url.database:
            raise InputError("a store in memory is gone when the command ends; give the path of a file")
        return URL.create("sqlite", database=url.database)
    return url.set(drivername="postgresql+psycopg")


def _ready_file(path: Path, *, may_make: bool) -> None:
    if path.is_dir():
        raise InputError(f"store {path} is a directory; give the name of a file")
    if not path.exists():
        if not may_make:
            raise InputError(
                f"there is no store at {path}; 'linkwise rollout run FILE' makes it, or give --store"
            )
        path.parent.mkdir(parents=True, exist_ok=True)


def _sqlite(url: URL) -> Engine:
    engine = create_engine(url, connect_args={"timeout": _BUSY_S, "isolation_level": None})

    @event.listens_for(engine, "connect")
    def _prepare(connection: Any, _record: Any) -> None:
        # Bytes that are no text come out as they are, so that an altered store can be read and told of.
        connection.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA foreign_keys=ON")

    @event.listens_for(engine, "begin")
    def _begin(connection: Any) -> None:
        # A transaction that begins by reading could not become one that writes when another wrote meanwhile.
        is_write = connection.get_execution_options().get("linkwise_write", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if is_write else "BEGIN")

    return engine


def _postgres() -> dict[str, Any]:
    try:
        import psycopg  # noqa: F401 (only whether it is there)
    except ImportError:
        raise InputError(
            "a store in PostgreSQL needs psycopg: pip install 'linkwise[postgres]'; or give a path"
        ) from None
    alive = {
        "keepalives": 1,
        "keepalives_idle": _IDLE_S,
        "keepalives_interval": _IDLE_S,
        "keepalives_count": 3,
    }
    return {"connect_args": {"connect_timeout": 10, **alive}, "pool_pre_ping": True}


def _check_kind(engine: Engine, url: URL, *, may_make: bool) -> None:
    shown = url.render_as_string()
    names = set(inspect(engine).get_table_names())
    if meta.name not in names:
        if names and not connected(engine):
            raise InputError(f"store {shown} is a database of something else; give another path")
        if not may_make:
            raise InputError(f"{shown} holds no store of rollouts; 'linkwise rollout run FILE' makes one")
        _make(engine)
    with engine.connect() as connection:
        found = {str(row[0]): str(row[1]) for row in connection.execute(select(meta.c.name, meta.c.value))}
    if found.get(_KIND[0]) != _KIND[1]:
        raise InputError(f"{shown} is no store of rollouts, or was altered")
    version = found.get("version", "")
    if version != str(SCHEMA_VERSION):
        raise InputError(
            f"store {shown} is of version {version!r}, and this Linkwise reads version {SCHEMA_VERSION}; "
            "use the Linkwise that wrote it"
        )


def _make(engine: Engine) -> None:
    rows = (_KIND, ("version", str(SCHEMA_VERSION)))
    with (
        contextlib.suppress(IntegrityError, ProgrammingError),  # two who make it at once: the other one did
        engine.connect().execution_options(linkwise_write=True) as connection,
        connection.begin(),
    ):
        TABLES.create_all(connection)
        if not connection.execute(select(meta.c.name)).first():
            connection.execute(insert(meta), [{"name": name, "value": value} for name, value in rows])
