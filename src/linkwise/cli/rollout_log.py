"""`linkwise rollout log`: the decision log printed, verified, and written for others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from linkwise.cli.files import check_target, write_whole
from linkwise.cli.rollout_opened import file_and_store, is_file, now, open_rollout
from linkwise.errors import ExitCode, InputError

if TYPE_CHECKING:
    from linkwise.rollout.store.verification import LogContents

__all__ = ["log"]


@click.command()
@file_and_store
@click.option("--all", "is_all", is_flag=True, help="Every run that started and ended, too.")
@click.option("--verify", is_flag=True, help="Say whether the log and its evidence are as they were written.")
@click.option("--head", metavar="DIGEST", help="Digest that was noted down earlier; with --verify.")
@click.option(
    "--public-key",
    "keys",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Key in PEM of somebody who may sign, may be repeated; with --verify.",
)
@click.option(
    "--export",
    type=click.Choice(["json", "madr", "junit", "ctrf", "records"]),
    help="The log for programs or people, its verdicts for CI, or the runs for 'replay'.",
)
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="PATH", help="File, or folder.")
def log(
    *,
    file: str,
    store: str | None,
    form: str,
    is_all: bool,
    verify: bool,
    head: str | None,
    keys: tuple[Path, ...],
    export: str | None,
    output: Path | None,
) -> int:
    """Print the decision log of FILE: who decided what, when, why, and on which evidence.

    FILE may also be an export of a log, which is verified without any store. Each entry holds the digest of
    the one before; with --head or --public-key a log that was written anew shows, too.

    Exit codes: 0 done or as it was written, 1 it was altered, 2 wrong use.

    \b
    linkwise rollout log rollout.yaml
    linkwise rollout log rollout.yaml --verify --head 5c1f...
    linkwise rollout log rollout.yaml --export madr -o decisions
    """  # noqa: D301 (click reads \b as: do not wrap)
    for option, is_given in (("--head", head is not None), ("--public-key", bool(keys))):
        if is_given and not verify:
            raise InputError(f"{option} has no effect without --verify; give it, or leave {option} out")
    if verify and (export is not None or is_all):
        raise InputError("--verify prints flaws only; leave --export and --all out")
    if output is not None and export is None:
        raise InputError("-o has no effect without --export; give it, or leave -o out")
    exported = _export_of(file)
    if verify and isinstance(exported, InputError):
        click.echo(f"altered: {exported}")
        return ExitCode.AGAINST
    if isinstance(exported, InputError):
        raise exported
    contents = exported or _stored(file, store)
    if verify:
        return _verify(contents, head, keys)
    if export is not None:
        return _export(contents, export, output, file)
    return _print(contents, form, is_all=is_all)


def _export_of(file: str) -> LogContents | InputError | None:
    """Return the log of an export; ``None`` for a file that is none, and what is wrong with one that was."""
    from linkwise.rollout.exports.decision_log import LARGEST_BYTES, parse_log

    path = Path(file)
    if not path.is_file() or path.suffix in (".yaml", ".yml"):
        return None
    with path.open("rb") as opened:
        data = opened.read(LARGEST_BYTES + 1)
    if len(data) > LARGEST_BYTES:
        raise InputError(f"{file} is larger than 1 GiB; an export is not")
    if data.lstrip()[:1] != b"{" and path.suffix != ".json":
        return None
    try:
        return parse_log(data)
    except InputError as error:
        return InputError(f"{file}: {error}")


def _stored(file: str, store: str | None) -> LogContents:
    opened = open_rollout(file, store)
    return opened.store.contents(opened.name)


def _verify(contents: LogContents, head: str | None, keys: tuple[Path, ...]) -> int:
    from linkwise.rollout.store.signing import read_public_keys
    from linkwise.rollout.store.verification import flaws_of

    flaws = flaws_of(contents, head=head, keys=read_public_keys(keys) if keys else None)
    for flaw in flaws:
        click.echo(f"altered: {flaw}")
    if flaws:
        return ExitCode.AGAINST
    end = contents.head
    click.echo(
        f"{contents.rollout}: {end.entries} entries and {len(contents.runs)} runs are as they were written"
    )
    click.echo(f"head {end.digest}")
    if head is None and not keys:
        click.echo("a log written anew shows only with --head, a digest noted down earlier, or --public-key")
    return ExitCode.DONE


def _export(contents: LogContents, export: str, output: Path | None, file: str) -> int:
    from linkwise.rollout.exports.decision_log import log_json

    if export in ("madr", "records"):
        if output is None:
            raise InputError(f"--export {export} writes several files; give -o FOLDER")
        _export_folder(contents, export, output)
        return ExitCode.DONE
    text = log_json(contents) if export == "json" else _verdicts(contents, export, file)
    if output is None:
        click.echo(text, nl=False)
    else:
        check_target("-o", output)
        write_whole("-o", output, text)
    return ExitCode.DONE


def _export_folder(contents: LogContents, export: str, output: Path) -> None:
    from linkwise.rollout.carrying.progress import progress_of
    from linkwise.rollout.exports.madr import madr_files
    from linkwise.rollout.exports.records import write_records
    from linkwise.rollout.store.reading import record_of

    record = record_of(contents)
    if export == "records":
        count = write_records(record, progress_of(record.entries), output)
        click.echo(f"{count} results in {output}")
        return
    if output.exists() and not output.is_dir():
        raise InputError(f"-o {output} is a file; give the name of a folder")
    output.mkdir(parents=True, exist_ok=True)
    files = madr_files(record)
    for name, text in files.items():
        write_whole("-o", output / name, text)
    click.echo(f"{len(files)} files in {output}")


def _verdicts(contents: LogContents, export: str, file: str) -> str:
    """Return the verdicts of the log as a report of tests."""
    from linkwise.rollout.carrying.progress import progress_of
    from linkwise.rollout.document.loading import load_rollout
    from linkwise.rollout.exports.ctrf import verdicts_ctrf
    from linkwise.rollout.exports.junit import verdicts_junit
    from linkwise.rollout.store.reading import record_of
    from linkwise.rollout.store.verdict_text import verdict_of_text

    if not is_file(file) or Path(file).suffix == ".json":
        raise InputError(f"--export {export} needs the rollout file: give its path")
    record = record_of(contents)
    judged = progress_of(record.entries).judged
    rollout = load_rollout(file).rollout
    verdicts = [
        verdict_of_text(record.kept[judged[step.name].evidence["verdict"]])
        for step in rollout.steps
        if step.name in judged
    ]
    head = contents.head.digest
    if export == "junit":
        return verdicts_junit(rollout, verdicts, head=head)
    return verdicts_ctrf(rollout, verdicts, now=now(), head=head)


def _print(contents: LogContents, form: str, *, is_all: bool) -> int:
    if form == "json":
        return _export(contents, "json", None, "")
    from linkwise.report.rollout_log import print_log
    from linkwise.report.tables import console_for
    from linkwise.rollout.store.reading import record_of

    print_log(record_of(contents), console_for(), is_all=is_all)
    return ExitCode.DONE
