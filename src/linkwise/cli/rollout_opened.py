"""What the verbs of a rollout share: which rollout, in which store, and who is asking."""

from __future__ import annotations

import datetime as dt
import functools
import getpass
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from linkwise.errors import InputError

if TYPE_CHECKING:
    from linkwise.rollout.carrying.ground import Loaded
    from linkwise.rollout.store.decisions import Sign
    from linkwise.rollout.store.lock import HeldBy
    from linkwise.rollout.store.store import Store

__all__ = [
    "KEY",
    "Opened",
    "file_and_store",
    "holder",
    "is_file",
    "now",
    "open_rollout",
    "print_standing",
    "said_options",
    "sign_of",
    "who",
]

KEY = click.option(
    "--key",
    type=click.Path(path_type=Path),
    metavar="PATH",
    envvar="LINKWISE_ROLLOUT_KEY",
    help="Private key in PEM (Ed25519) that signs what is decided.",
)

_FORMAT = click.option(
    "--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A rollout and its store.

    Parameters
    ----------
    name
        Of the rollout.
    store
        Open.
    loaded
        Its file; ``None`` where only its name was given.
    """

    name: str
    store: Store
    loaded: Loaded | None


def file_and_store(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the arguments by which a rollout is found.

    Parameters
    ----------
    command
        Takes ``file``, ``store`` and ``form``.
    """
    store = click.option(
        "--store",
        metavar="PATH|URL",
        envvar="LINKWISE_ROLLOUT_STORE",
        help="A file of SQLite or postgresql://...; .linkwise/rollout.sqlite beside FILE without.",
    )
    return click.argument("file")(store(_FORMAT(command)))


def said_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the person who decides, and the reason.

    Parameters
    ----------
    command
        Takes ``by`` and ``reason``.
    """
    by = click.option("--by", required=True, metavar="NAME", help="Who decides.")
    reason = click.option("--reason", required=True, metavar="WORDS", help="Why; it stays in the log.")

    @functools.wraps(command)
    def checked(*, by: str, reason: str, **options: Any) -> Any:
        for option, words in (("--by", by), ("--reason", reason)):
            if not words.strip() or not words.isprintable() or len(words) > 2000:
                raise InputError(f"{option} is empty, too long or no line of text; say it in words")
        return command(by=by.strip(), reason=reason.strip(), **options)

    return by(reason(checked))


def is_file(file: str) -> bool:
    """Return whether what was given is the path of a file, and not the name of a rollout in a store.

    Parameters
    ----------
    file
        As it was given.
    """
    return Path(file).exists() or "/" in file or file.endswith((".yaml", ".yml"))


def open_rollout(
    file: str,
    store: str | None,
    *,
    may_make: bool = False,
    sign: Sign | None = None,
    needs_file: bool = False,
) -> Opened:
    """Return the rollout that was named, and its store.

    Parameters
    ----------
    file
        Path of the rollout file; with a store its name will do.
    store
        As it was given.
    may_make
        Whether the store is made where it is not there.
    sign
        The key that signs.
    needs_file
        Whether the file itself is needed.

    Raises
    ------
    InputError
        When there is no such file or store.
    """
    from linkwise.rollout.document.loading import load_rollout, place_of_store
    from linkwise.rollout.store.store import Store

    loaded = None
    if needs_file or store is None or is_file(file):
        loaded = load_rollout(file)
    made = Store(store or str(place_of_store(file)), may_make=may_make, sign=sign)
    click.get_current_context().call_on_close(made.close)
    return Opened(name=file if loaded is None else loaded.rollout.name, store=made, loaded=loaded)


def sign_of(key: Path | None) -> Sign | None:
    """Return the key that signs; ``None`` for none.

    Parameters
    ----------
    key
        Path of it.
    """
    if key is None:
        return None
    from linkwise.rollout.store.signing import read_private_key

    return read_private_key(key)


def who() -> str:
    """Return the person at this command line, and the host."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        name = str(os.getuid())
    return f"{name}@{socket.gethostname()}"


def holder() -> HeldBy:
    """Return how this process signs what it holds."""
    from linkwise.rollout.store.lock import HeldBy

    return HeldBy(who=who(), host=socket.gethostname(), process=os.getpid(), since=now())


def now() -> dt.datetime:
    """Return the time in UTC."""
    return dt.datetime.now(tz=dt.UTC)


def print_standing(opened: Opened, form: str) -> int:
    """Print where a rollout stands, and return the exit code that says so.

    Parameters
    ----------
    opened
        The rollout.
    form
        ``table`` or ``json``.
    """
    from linkwise.report.rollout_status import StatusInput, rollout_result
    from linkwise.rollout.carrying.carrying import situation_of
    from linkwise.rollout.carrying.next_action import next_action

    record = opened.store.record(opened.name)
    action = None
    if opened.loaded is not None:
        action = next_action(situation_of(opened.store, opened.loaded, record, now=now()))
    incident = None if opened.loaded is None else opened.loaded.rollout.incident
    result = rollout_result(
        StatusInput(
            record=record,
            store=opened.store.shown,
            action=action,
            file="" if opened.loaded is None else opened.loaded.rollout.digest,
            holder=opened.store.holder_now(opened.name),
            page=() if incident is None else incident.page,
            runbook="" if incident is None else incident.runbook,
            now=now(),
        )
    )
    if form == "json":
        from linkwise.report.results import published_json

        click.echo(published_json(result))
    else:
        from linkwise.report.rollout_status_text import print_rollout
        from linkwise.report.tables import console_for

        print_rollout(result, console_for())
    return result.exit_code
