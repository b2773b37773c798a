"""`linkwise rollout approve`, `waive`, `suspend`, `resume`: what people decide."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING

import click

from linkwise.cli.rollout_opened import (
    KEY,
    file_and_store,
    now,
    open_rollout,
    print_standing,
    said_options,
    sign_of,
)
from linkwise.errors import ExitCode, InputError

if TYPE_CHECKING:
    from linkwise.rollout.carrying.deciding import Said

__all__ = ["approve", "resume", "suspend", "waive"]


@click.command()
@file_and_store
@click.option("--as", "role", default="", metavar="ROLE", help="As whom, of those that the file names.")
@KEY
@said_options
def approve(
    *, file: str, store: str | None, form: str, role: str, key: Path | None, by: str, reason: str
) -> int:
    """Approve the step of FILE that waits for it, on the evidence that 'status' shows.

    Exit codes: 0 written down, 2 no step waits for it.

    \b
    linkwise rollout approve rollout.yaml --by mira --as fabric-oncall --reason 'quarter looks clean'
    """  # noqa: D301 (click reads \b as: do not wrap)
    from linkwise.rollout.carrying.deciding import approve as write

    opened = open_rollout(file, store, sign=sign_of(key))
    write(opened.store, opened.name, _said(by, reason), role=role)
    print_standing(opened, form)
    return ExitCode.DONE


@click.command()
@file_and_store
@click.option("--until", required=True, metavar="DAY", help="Last day on which it holds, as 2027-02-20.")
@click.option("--step", default="", metavar="STEP", help="The step; the one that suspended it without.")
@KEY
@said_options
def waive(
    *,
    file: str,
    store: str | None,
    form: str,
    until: str,
    step: str,
    key: Path | None,
    by: str,
    reason: str,
) -> int:
    """Answer for a step that did not pass: the rollout goes on until the waiver ends.

    What was never measured cannot be waived. When the day is past before the rollout is promoted, it is
    suspended again.

    Exit codes: 0 written down, 2 nothing is to be waived.

    \b
    linkwise rollout waive rollout.yaml --by mira --reason 'known, CHG-120 mends it' --until 2027-02-20
    """  # noqa: D301 (click reads \b as: do not wrap)
    from linkwise.rollout.carrying.deciding import waive as write

    try:
        day = dt.date.fromisoformat(until)
    except ValueError:
        raise InputError(f"--until {until!r} is no day; write it as 2027-02-20") from None
    opened = open_rollout(file, store, sign=sign_of(key))
    write(opened.store, opened.name, _said(by, reason), until=day, step=step)
    print_standing(opened, form)
    return ExitCode.DONE


@click.command()
@file_and_store
@KEY
@said_options
def suspend(*, file: str, store: str | None, form: str, key: Path | None, by: str, reason: str) -> int:
    """Stop the rollout of FILE; one that is being carried out stops after its run.

    Exit codes: 0 suspended, also where it was before, 2 it is promoted.

    \b
    linkwise rollout suspend rollout.yaml --by mira --reason 'storage is down'
    """  # noqa: D301 (click reads \b as: do not wrap)
    from linkwise.rollout.carrying.deciding import suspend as write

    opened = open_rollout(file, store, sign=sign_of(key))
    if not write(opened.store, opened.name, _said(by, reason)):
        click.echo("linkwise: it is suspended already; nothing was added", err=True)
    print_standing(opened, form)
    return ExitCode.DONE


@click.command()
@file_and_store
@click.option("--accept-file", is_flag=True, help="Go on with the file as it is now, from its first step.")
@KEY
@said_options
def resume(
    *,
    file: str,
    store: str | None,
    form: str,
    accept_file: bool,
    key: Path | None,
    by: str,
    reason: str,
) -> int:
    """Let a suspended rollout go on, if something is another than when it stopped.

    A step that failed is not measured again until it passes: every run of a candidate counts. Change the
    candidate and give --accept-file, or waive the step. What was measured of the same candidate counts on.

    Exit codes: 0 written down, 2 it would stop again at once.

    \b
    linkwise rollout resume rollout.yaml --by mira --reason 'storage is back'
    linkwise rollout resume rollout.yaml --accept-file --by mira --reason 'NCCL 2.30.5 instead'
    """  # noqa: D301 (click reads \b as: do not wrap)
    from linkwise.rollout.carrying.resuming import accept_file as accept
    from linkwise.rollout.carrying.resuming import resume as write

    opened = open_rollout(file, store, sign=sign_of(key), needs_file=True)
    if opened.loaded is None:
        raise InputError("give the rollout file: what goes on is judged by it")
    (accept if accept_file else write)(opened.store, opened.loaded, _said(by, reason))
    print_standing(opened, form)
    return ExitCode.DONE


def _said(by: str, reason: str) -> Said:
    from linkwise.rollout.carrying.deciding import Said

    return Said(by=by, why=reason, at=now())
