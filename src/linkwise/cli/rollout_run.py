"""`linkwise rollout run` and `rollback`: a rollout carried on to its next gate, or back."""

from __future__ import annotations

import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from linkwise.cli.rollout_opened import (
    KEY,
    Opened,
    file_and_store,
    holder,
    now,
    open_rollout,
    print_standing,
    said_options,
    sign_of,
    who,
)
from linkwise.errors import ExitCode, InputError, UnknownName

if TYPE_CHECKING:
    from collections.abc import Callable

    from linkwise.rollout.carrying.ground import Ground
    from linkwise.rollout.measuring.measure import Measure

__all__ = ["measure_with", "rollback", "run"]

_CONFIG_OUT = click.option(
    "--config-out",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="File that launchers read: what is promoted; .linkwise/promoted.json beside FILE without.",
)

_LOST = click.option(
    "--lost-host",
    "lost",
    multiple=True,
    metavar="HOST",
    help="A host that will not come back: give up the run that it kept. May be repeated.",
)


def measure_with(file: str) -> Measure:
    """Return who measures: the commands of Linkwise itself.

    Parameters
    ----------
    file
        The rollout's; its commands run beside it.
    """
    from linkwise.rollout.measuring.own_commands import OwnCommands

    return OwnCommands(folder=Path(file).absolute().parent)


@click.command()
@file_and_store
@click.option("--steps", type=click.IntRange(1), metavar="N", help="Steps to carry out; 1 without.")
@click.option("--until", metavar="STEP", help="Go on until this step is behind.")
@click.option("--wait", is_flag=True, help="Sit out soaks and approvals instead of coming back.")
@_LOST
@_CONFIG_OUT
@KEY
def run(
    *,
    file: str,
    store: str | None,
    form: str,
    steps: int | None,
    until: str | None,
    wait: bool,
    lost: tuple[str, ...],
    config_out: Path | None,
    key: Path | None,
) -> int:
    """Carry out the next step of FILE, a rollout/1 document, and stop at its gate.

    Every run is in the store before it starts, every decision in the log. Killed at any moment, the next
    'run' goes on where this one was. Two at once: the second is refused.

    Exit codes: 0 the step is behind or all is promoted, 1 a gate failed, 2 wrong use, or somebody else
    carries it out, 3 suspended, inconclusive or waiting, 4 nothing could be measured, 130 interrupted.

    \b
    linkwise rollout run rollout.yaml
    linkwise rollout run rollout.yaml --until quarter --wait
    """  # noqa: D301 (click reads \b as: do not wrap)
    from linkwise.rollout.carrying.carrying import carry_out

    if steps is not None and until is not None:
        raise InputError("--steps and --until both say where to stop; give one of them")
    opened = open_rollout(file, store, may_make=True, sign=sign_of(key), needs_file=True)
    enough = _until(opened, until) if until is not None else _steps(steps or 1)
    try:
        carry_out(_ground(file, opened, config_out, lost), by=holder(), is_enough=enough, waits=wait)
    except KeyboardInterrupt:
        click.echo("nothing is lost: the next 'linkwise rollout run' goes on from here", err=True)
        raise
    return print_standing(opened, form)


def _steps(count: int) -> Callable[[tuple[str, ...]], bool]:
    return lambda passed: len(passed) >= count


def _until(opened: Opened, step: str) -> Callable[[tuple[str, ...]], bool]:
    names = [] if opened.loaded is None else [each.name for each in opened.loaded.rollout.steps]
    if step not in names:
        raise UnknownName.among(names, kind="step", given=step)
    if opened.store.has(opened.name):
        from linkwise.rollout.carrying.progress import progress_of

        if progress_of(opened.store.record(opened.name).entries).has_passed(step):
            raise InputError(f"--until {step}: that step is behind already; name a later one")
    return lambda passed: step in passed


@click.command()
@file_and_store
@_LOST
@_CONFIG_OUT
@KEY
@said_options
def rollback(
    *,
    file: str,
    store: str | None,
    form: str,
    lost: tuple[str, ...],
    config_out: Path | None,
    key: Path | None,
    by: str,
    reason: str,
) -> int:
    """Restore what was promoted before, and prove by its objectives that it works.

    The command of the rollback is run, the file that launchers read is written, and 'rollback.verify' is
    measured anew. Killed at any moment, calling it again goes on.

    Exit codes: 0 restored and proven, 1 not proven, 2 wrong use, 130 interrupted.

    \b
    linkwise rollout rollback rollout.yaml --by mira --reason 'all-reduce 8 % slow since noon'
    """  # noqa: D301 (click reads \b as: do not wrap)
    from linkwise.rollout.carrying.carrying import roll_back

    opened = open_rollout(file, store, sign=sign_of(key), needs_file=True)
    end = roll_back(_ground(file, opened, config_out, lost, person=by), by=holder(), why=reason)
    print_standing(opened, form)
    way = end.progress.rollback
    return ExitCode.DONE if way is not None and way.is_proven else ExitCode.AGAINST


def _ground(
    file: str, opened: Opened, config_out: Path | None, lost: tuple[str, ...], *, person: str = ""
) -> Ground:
    from linkwise.rollout.carrying.ground import Ground
    from linkwise.rollout.document.loading import load_rollout, place_of_store

    home = place_of_store(file).parent
    home.mkdir(parents=True, exist_ok=True)
    if config_out is not None and (config_out.is_dir() or not config_out.absolute().parent.is_dir()):
        raise InputError(f"--config-out {config_out}: give the name of a file in a directory that is there")
    return Ground(
        store=opened.store,
        load=lambda: load_rollout(file),
        measure=measure_with(file),
        who=person or who(),
        runs=home / "runs",
        promoted=config_out or home / "promoted.json",
        clock=now,
        sleep=time.sleep,
        tell=lambda line: click.echo(line, err=True),
        host=socket.gethostname(),
        lost_hosts=frozenset(lost),
    )
