"""`linkwise rollout gate` and `serve`: one gate for other programs, by exit code or HTTP status."""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from linkwise.errors import InputError

if TYPE_CHECKING:
    from linkwise.rollout.gates.gate import Gate
    from linkwise.rollout.plan import Rollout

__all__ = ["gate", "serve"]


def _evidence(command: Callable[..., Any]) -> Callable[..., Any]:
    records = click.option(
        "--records",
        type=click.Path(path_type=Path),
        metavar="DIR|FILE",
        help="Judge recorded runs, as replay does, instead of the decision log.",
    )
    store = click.option(
        "--store",
        metavar="PATH|URL",
        envvar="LINKWISE_ROLLOUT_STORE",
        help="The store with the decision log; .linkwise/rollout.sqlite beside FILE without.",
    )
    return click.argument("file")(records(store(command)))


@click.command()
@_evidence
@click.option("--step", required=True, metavar="NAME", help="Whose gate.")
@click.pass_obj
def gate(
    today: Callable[[], dt.date], *, file: str, records: Path | None, store: str | None, step: str
) -> int:
    """Say whether the gate of a step of FILE is open, on one line, and by the exit code.

    Made to be the job of a metric of Argo Rollouts, or a step of any pipeline. It measures nothing and
    changes nothing: it reads what the decision log says of the step or, with --records, judges recorded runs.
    A waiver opens no gate.

    Exit codes: 0 the step passed, and nothing else is 0; 1 it failed or was rolled back, 2 wrong use or
    input, 3 inconclusive, suspended or waiting, 4 nothing measured.

    \b
    linkwise rollout gate rollout.yaml --step one-node
    linkwise rollout gate rollout.yaml --step one-node --records records
    """  # noqa: D301 (click reads \b as: do not wrap)
    found = _asked(file, step, records=records, store=store, today=today())
    click.echo(f"{'open' if found.is_open else 'closed'}: {found.why}")
    return found.code


@click.command()
@_evidence
@click.option(
    "--bind", default="127.0.0.1:8080", show_default=True, metavar="HOST:PORT", help="Where to listen."
)
@click.pass_obj
def serve(
    today: Callable[[], dt.date], *, file: str, records: Path | None, store: str | None, bind: str
) -> int:
    """Answer http://HOST:PORT/gate/STEP: 200 where the gate of that step of FILE is open, else 409.

    Made for webhooks of Flagger (confirm-rollout, pre-rollout, rollout, confirm-promotion); never for its
    rollback hook, which rolls back on 200. FILE and evidence are read anew for every answer; nothing is
    changed, and whatever goes wrong is no 200. Ctrl-C ends it.

    Exit codes: 2 wrong use or input, 130 interrupted.
    """
    from linkwise.rollout.gates.gate_server import serve_gates

    host, _, port = bind.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise InputError(f"--bind {bind}: write host and port, such as 127.0.0.1:8080")
    _rollout(file)  # what is wrong with it is told before anybody asks

    def ask(step: str) -> Gate:
        return _asked(file, step, records=records, store=store, today=today())

    with serve_gates(ask, host=host.strip("[]"), port=int(port)) as server:
        click.echo(f"linkwise: answers http://{bind.rpartition(':')[0]}:{server.port}/gate/STEP", err=True)
        server.wait()
    return 0


def _rollout(file: str) -> Rollout:
    from linkwise.rollout.document.reading import read_rollout

    if file == "-":
        raise InputError("'-' cannot be read again for every question; name a file")
    return read_rollout(file)


def _asked(file: str, step: str, *, records: Path | None, store: str | None, today: dt.date) -> Gate:
    """Return the gate of a step, from records or from the log."""
    from linkwise.rollout.gates.gate import check_step, gate_of_log, gate_of_records

    rollout = _rollout(file)
    check_step(rollout, step)
    if records is not None:
        from linkwise.rollout.measuring.evidence_files import read_evidence

        return gate_of_records(rollout, step, read_evidence(records, rollout), today=today)
    from linkwise.rollout.carrying.progress import progress_of
    from linkwise.rollout.document.loading import place_of_store
    from linkwise.rollout.store.store import Store

    # Questions over HTTP come in threads of their own, where click has no context to close the store with.
    with contextlib.closing(Store(store or str(place_of_store(file)))) as opened:
        return gate_of_log(rollout, step, progress_of(opened.record(rollout.name).entries))
