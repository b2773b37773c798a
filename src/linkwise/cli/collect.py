"""`linkwise collect`: print the script that gathers what explains a node's interconnect, or run it here."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.resources import as_file, files
from pathlib import Path

import click

from linkwise.errors import ExitCode, InputError

__all__ = ["LONGEST_S", "collect", "gather_host"]

LONGEST_S = 45
"""The script takes 30 s at most; a program that the kernel does not let go may take longer [s]."""


@click.command()
@click.option("-o", "--output", metavar="DIR", help="Run it here, into a new folder, or DIR.tar.gz.")
@click.option("--mask", is_flag=True, help="Mask addresses, host name, serial numbers and secrets.")
def collect(*, output: str | None, mask: bool) -> int:
    """Print one POSIX shell script that gathers on a node what explains its interconnect.

    It reads only, needs standard tools alone, skips those that are missing and says so, and takes 30 s at
    most. Copy it to a node and run it there, or run it here with -o. Variables that have nothing to do with
    communication are not gathered. --node of 'linkwise env' takes the folder.

    Exit codes: 0 done, 2 wrong input, 4 it did not come to its end.

    \b
    linkwise collect > collect.sh; scp collect.sh node7: && ssh node7 sh collect.sh -o facts.tar.gz -m
    linkwise collect -o facts
    """  # noqa: D301 (click reads \b as: do not wrap)
    source = files("linkwise.cli").joinpath("collect.sh")
    if output is None:
        text = source.read_text(encoding="utf-8")
        click.echo(text.replace("\nmask=0\n", "\nmask=1\n", 1) if mask else text, nl=False)
        return ExitCode.DONE
    target = Path(output)
    if target.exists():
        raise InputError(f"-o {target} exists and is left alone; give another name")
    if not target.parent.is_dir():
        raise InputError(f"-o {target}: there is no directory {target.parent}")
    shell = shutil.which("sh")
    if shell is None:
        raise InputError("there is no shell (sh) here; print the script and run it on the node")
    with as_file(source) as script:
        return _run([shell, str(script), "-o", str(target.absolute()), *(["-m"] if mask else [])])


def _run(command: list[str]) -> int:
    try:
        done = subprocess.run(  # noqa: S603 (our own script)
            command, capture_output=True, text=True, errors="replace", timeout=LONGEST_S, check=False
        )
    except subprocess.TimeoutExpired:
        click.echo(f"linkwise: the script did not end within {LONGEST_S} s; see what it left", err=True)
        return ExitCode.NOT_MEASURED
    sys.stderr.write(done.stderr)
    if done.returncode:
        return ExitCode.WRONG_INPUT
    click.echo(f"linkwise: wrote {done.stdout.strip()}", err=True)
    return ExitCode.DONE


def gather_host(folder: Path, *, is_masked: bool) -> None:
    """Run the script here, into a new folder.

    Parameters
    ----------
    folder
        Where to; not there yet.
    is_masked
        Whether names and secrets are masked.

    Raises
    ------
    InputError
        When it did not come to its end.
    """
    mask = ["-m"] if is_masked else []
    with as_file(files("linkwise.cli").joinpath("collect.sh")) as script:
        try:
            done = subprocess.run(  # noqa: S603 (our own script)
                ["/bin/sh", str(script), "-o", str(folder.absolute()), *mask],
                capture_output=True,
                text=True,
                errors="replace",
                timeout=LONGEST_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise InputError(f"what this host says of itself could not be gathered: {error}") from None
    if done.returncode:
        raise InputError(f"what this host says of itself could not be gathered: {done.stderr.strip()[-300:]}")
