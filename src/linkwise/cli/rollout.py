"""`linkwise rollout`: the table of what can be done with a rollout."""

from __future__ import annotations

import importlib

import click

from linkwise.errors import UnknownName

__all__ = ["COMMANDS", "rollout"]

COMMANDS: dict[str, tuple[str, str]] = {
    "check": ("rollout_check", "Lint a rollout file, its statistical power included."),
    "gate": ("rollout_gate", "Whether the gate of a step is open, for other programs; by the exit code."),
    "serve": ("rollout_gate", "The same over HTTP, for webhooks: 200 only where a gate is open."),
    "export": ("rollout_export", "Objectives that hold on after the rollout, as OpenSLO."),
    "replay": ("rollout_replay", "Judge recorded runs by the gates of a rollout, without a cluster."),
    "run": ("rollout_run", "Carry out the next step, and stop at its gate."),
    "status": ("rollout_status", "Where it stands, on what evidence, and what it cost."),
    "approve": ("rollout_decide", "Approve the step that waits for it."),
    "waive": ("rollout_decide", "Answer for a step that did not pass, until a day."),
    "suspend": ("rollout_decide", "Stop it."),
    "resume": ("rollout_decide", "Let it go on, if something is another than when it stopped."),
    "rollback": ("rollout_run", "Restore what was promoted before, and prove it."),
    "incident": ("rollout_incident", "What the file names, in one archive, names taken out."),
    "log": ("rollout_log", "Who decided what, when, why and on which evidence; verify and export."),
}
"""Commands: the module beside this one that has the function of that name, and what it does."""


class _Commands(click.Group):
    """A group that imports a command when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of that name, or ``None``."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"linkwise.cli.{COMMANDS[cmd_name][0]}")
        command = getattr(module, cmd_name.replace("-", "_"))
        return command if isinstance(command, click.Command) else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that is called; a name that is none gets the nearest one."""
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            raise UnknownName.among(COMMANDS, kind="command of rollout", given=args[0])
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands from the table, so that none is imported for a list."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, words) for name, (_, words) in COMMANDS.items()])


@click.group(cls=_Commands)
def rollout() -> None:
    """Carry a change out step by step: each step is a gate on measured evidence.

    \b
    linkwise init rollout
    linkwise rollout check rollout.yaml
    linkwise rollout run rollout.yaml
    linkwise rollout status rollout.yaml
    """  # noqa: D301 (click reads \b as: do not wrap)
