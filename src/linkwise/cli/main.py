"""`linkwise`: the table of verbs, and how what goes wrong becomes a message and an exit code."""

from __future__ import annotations

import datetime as dt
import importlib
import io
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

import click

from linkwise import __version__
from linkwise.errors import DocumentError, ExitCode, LinkwiseError, NotKnown, nearest_names

__all__ = ["VERBS", "main", "run"]

VERBS: dict[str, str] = {
    "plan": "The best layouts of a job on a cluster: time, memory, and why the others lose.",
    "compare": "One job on several clusters: time, price, break-even, scaling to the network wall.",
    "explain": "Every term of one estimate, and what 10 % more of each part would buy.",
    "fabric": "Switches, cables, power, bisection, hash collisions and failures of a fabric.",
    "collective": "What nccl-tests would print: time, algbw and busbw of a collective over sizes.",
    "doctor": "What a job really runs on, what is wrong, the cause and the fix.",
    "env": "The NCCL settings that a cluster needs; with --check, what is wrong with those given.",
    "render": "Files that start a job: torchrun, Slurm, Kubernetes, Megatron-LM, torchtitan, DeepSpeed.",
    "launch": "Run a planned job, follow it, and prove that it ran as planned.",
    "watch": "Follow a run: step time and its drift, stalls, loss, interconnect, servers; metrics.",
    "bench": "Measure collectives, pairs of nodes and a small training job, for real.",
    "collect": "One read-only script that gathers on a node what explains its interconnect.",
    "calibrate": "Fit the model to what was measured on a cluster.",
    "validate": "Score the model against measurements.",
    "rollout": "A change that goes out step by step: gates on evidence, decisions on record, the way back.",
    "lab": "A cluster emulated on this machine: network namespaces, shaped links, real collectives.",
    "cluster": "Cluster documents from what other programs print, and written for them.",
    "catalog": "List hardware and models with their sources.",
    "init": "Write a commented template of a document.",
    "schema": "Print the JSON Schema of a document.",
}
"""Verbs and what each does. A verb is the function of its name in the module of its name beside this one."""


class _Verbs(click.Group):
    """A group that imports a verb when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all verbs."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the verb of that name, or ``None``."""
        if cmd_name not in VERBS:
            return None
        command = getattr(importlib.import_module(f"linkwise.cli.{cmd_name}"), cmd_name)
        return command if isinstance(command, click.Command) else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the verb that is called; a name that is none gets the nearest one."""
        if args and args[0] not in VERBS and not args[0].startswith("-"):
            near = nearest_names(args[0], VERBS, count=1)
            hint = f"did you mean {near[0]!r}?" if near else f"choose one of: {', '.join(VERBS)}"
            ctx.fail(f"unknown verb {args[0]!r}; {hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the verbs from the table, so that none is imported for a list."""
        with formatter.section("Verbs"):
            formatter.write_dl(list(VERBS.items()))


@click.command(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="linkwise")
def linkwise() -> None:
    """Choose interconnects and parallel layouts for training language models on GPU clusters.

    Exit codes: 0 done, 1 a judgement against, 2 wrong use or input, 3 cannot tell, 4 nothing could be
    measured, 5 no layout fits, 130 interrupted.
    """


def _today() -> dt.date:
    return dt.datetime.now(tz=dt.UTC).date()


def run(arguments: Sequence[str], *, today: Callable[[], dt.date] = _today) -> int:
    """Return the exit code of a command line, having printed what it prints.

    Parameters
    ----------
    arguments
        The words after ``linkwise``.
    today
        The calendar, by which old prices are warned about.
    """
    try:
        code = linkwise.main(list(arguments), prog_name="linkwise", standalone_mode=False, obj=today)
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit):
        # click and rich leave by SystemExit when their reader goes; nothing else here does.
        _write_nowhere()
        return ExitCode.DONE
    except (KeyboardInterrupt, click.Abort):
        _say("interrupted")
        return ExitCode.INTERRUPTED
    except click.ClickException as error:
        error.show(sys.stderr)
        return ExitCode.WRONG_INPUT
    except Exception as error:
        if os.environ.get("LINKWISE_DEBUG") == "1":
            raise
        _say(_told(error))
        if isinstance(error, OSError) and error.filename is None:
            _write_nowhere()
        return ExitCode.INCONCLUSIVE if isinstance(error, NotKnown) else ExitCode.WRONG_INPUT
    return code if isinstance(code, int) else ExitCode.DONE


def main() -> NoReturn:
    """Run the command line of this process and leave with its exit code."""
    _ready_streams()
    sys.exit(int(run(sys.argv[1:])))


def _told(error: Exception) -> str:
    if isinstance(error, DocumentError):
        return str(error)
    if isinstance(error, LinkwiseError):
        return f"linkwise: {error}"
    if isinstance(error, OSError) and error.strerror is not None:
        # What is opened has a name; a write that fails, as on a full disk, has none.
        return f"linkwise: {error.filename or 'cannot write'}: {error.strerror}"
    kind = type(error).__name__
    return f"linkwise: internal error, {kind}: {error}\nset LINKWISE_DEBUG=1 to see where; please report it"


def _say(message: str) -> None:
    click.echo(message, err=True)


def _write_nowhere() -> None:
    """Drop what is still buffered: it would fail again when Python closes the stream."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _ready_streams() -> None:
    """Give a process that was started without standard input or output (``>&-``) empty ones.

    Names that the output cannot spell (ASCII only, or a file name that is no text) are written with escapes.
    """
    if sys.stdin is None:
        sys.stdin = Path(os.devnull).open(encoding="utf-8")  # noqa: SIM115 (open to the end)
    if sys.stdout is None:
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 (open to the end)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
