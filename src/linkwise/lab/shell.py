"""Programs of the system that a lab runs: one function, passed in, so that tests can give their own."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence

from linkwise.errors import InputError

__all__ = ["Shell", "system_shell"]

Shell = Callable[[Sequence[str], str], str]
"""Runs a program on an input and returns its output; raises `InputError` where it fails."""

_TIMEOUT_S = 30.0


def system_shell(argv: Sequence[str], given: str = "") -> str:
    """Return what a program printed.

    Parameters
    ----------
    argv
        Program and arguments.
    given
        What it reads on standard input.

    Raises
    ------
    InputError
        If it is not there, fails, or takes longer than half a minute.
    """
    words = " ".join(argv)
    try:
        done = subprocess.run(  # noqa: S603 (words of our own, without a shell)
            list(argv), input=given, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except FileNotFoundError:
        raise InputError(f"the lab needs the program {argv[0]!r} of iproute2; install it") from None
    except subprocess.TimeoutExpired:
        raise InputError(f"'{words}' did not end in {_TIMEOUT_S:g} s") from None
    if done.returncode:
        said = " ".join(done.stderr.split())[:300]
        raise InputError(f"'{words}' failed: {said or f'exit code {done.returncode}'}")
    return done.stdout
