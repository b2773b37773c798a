"""`linkwise rollout incident`: what the file names, in one archive, with the names taken out."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import click

from linkwise.cli.collect import gather_host
from linkwise.cli.files import check_target, write_whole
from linkwise.cli.rollout_opened import KEY, now, open_rollout, sign_of, who
from linkwise.errors import ExitCode, InputError

if TYPE_CHECKING:
    from linkwise.cli.rollout_opened import Opened
    from linkwise.rollout.carrying.incident import Collected

__all__ = ["incident"]


@click.command()
@click.argument("file")
@click.option("--store", metavar="PATH|URL", envvar="LINKWISE_ROLLOUT_STORE", help="As for 'run'.")
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="PATH", help="The archive.")
@click.option("--no-redact", is_flag=True, help="Leave the names of hosts, people, paths and addresses in.")
@click.option(
    "--names",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Write which name each pseudonym stands for; keep it, it does not go into the archive.",
)
@KEY
def incident(
    *,
    file: str,
    store: str | None,
    output: Path | None,
    no_redact: bool,
    names: Path | None,
    key: Path | None,
) -> int:
    """Collect what 'incident.collect' of FILE names into one archive, and say whom to call.

    Hosts, people, addresses, paths, secrets and serial numbers are replaced by pseudonyms, the same in every
    file; MANIFEST.json counts them. A redacted decision log does not verify any more: the manifest has its
    head. Look into the archive before you give it away: names in free text are found by their form only.

    Exit codes: 0 done, 2 wrong use.

    \b
    linkwise rollout incident rollout.yaml -o incident.tar.gz --names names.json
    """  # noqa: D301 (click reads \b as: do not wrap)
    if no_redact and names is not None:
        raise InputError("--names has no effect with --no-redact: there are no pseudonyms")
    opened = open_rollout(file, store, sign=sign_of(key), needs_file=True)
    target = output or Path(f"incident-{opened.name}-{now():%Y%m%dT%H%M%SZ}.tar.gz")
    for option, path in (("-o", target), ("--names", names)):
        if path is not None:
            check_target(option, path)
    if target.exists():
        raise InputError(f"-o {target} exists and is left alone; give another name")
    collected = _collect(file, opened, target, is_redacted=not no_redact, names=names)
    _tell(opened, target, collected)
    return ExitCode.DONE


def _collect(file: str, opened: Opened, target: Path, *, is_redacted: bool, names: Path | None) -> Collected:
    from linkwise.rollout.carrying.incident import Gathering, collect_incident, redactor_of
    from linkwise.rollout.document.loading import place_of_store
    from linkwise.rollout.store.decisions import Kind
    from linkwise.rollout.store.reading import record_of

    if opened.loaded is None:
        raise InputError("give the rollout file: it names what is collected")
    contents = opened.store.contents(opened.name)
    record = record_of(contents)
    host = socket.gethostname()
    redactor = redactor_of(opened.loaded, record, people=[who().partition("@")[0]], hosts=[host])
    gathering = Gathering(
        loaded=opened.loaded,
        contents=contents,
        record=record,
        runs=place_of_store(file).parent / "runs",
        collect_host=lambda folder, is_masked: gather_host(folder, is_masked=is_masked),
        redactor=redactor if is_redacted else None,
        now=now(),
    )
    collected = collect_incident(gathering, target)
    if names is not None:
        write_whole("--names", names, json.dumps(redactor.names, indent=2) + "\n")
        names.chmod(0o600)
    with opened.store.writing(opened.name) as writing:
        writing.append(
            Kind.COLLECTED,
            at=now(),
            by=who(),
            why=f"{len(collected.files)} files for an incident",
            facts={"sha256": collected.digest, "is_redacted": is_redacted},
        )
    return collected


_PLURALS = {"address": "addresses"}


def _tell(opened: Opened, target: Path, collected: Collected) -> None:
    from linkwise.report.wording import counted

    click.echo(f"{target}: {len(collected.files)} files, sha256 {collected.digest}")
    if collected.redacted is None:
        click.echo("names were left in: keep it inside the house")
    else:
        counts = ", ".join(
            f"{counted(each['names'], kind, _PLURALS.get(kind))} at {counted(each['places'], 'place')}"
            for kind, each in collected.redacted.items()
        )
        click.echo(f"taken out: {counts or 'nothing'}")
    for name, why in collected.left_out:
        click.echo(f"left out: {name}: {why}")
    if opened.loaded is not None:
        plan = opened.loaded.rollout.incident
        click.echo(f"call {', '.join(plan.page)}; runbook {plan.runbook}")
