"""`linkwise lab slurm`: a real Slurm in an emulated cluster."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from linkwise.errors import InputError

if TYPE_CHECKING:
    from linkwise.lab.slurm import SlurmState

__all__ = ["slurm"]

_FORMAT = click.option(
    "--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True
)


@click.group(short_help="A real Slurm in a lab.")
def slurm() -> None:
    """Run a real Slurm in a lab: a controller, a slurmd on every node, null devices for GPUs.

    Its commands work in a shell on the head node of the lab, as after ssh to a login node. The Slurm of this
    machine, if it has one, is not touched.

    \b
    linkwise lab slurm up
    linkwise lab slurm shell sinfo
    linkwise lab slurm shell linkwise launch JOB CLUSTER --on slurm --device cpu
    linkwise lab slurm down
    """  # noqa: D301 (click reads \b as: do not wrap)


@slurm.command(short_help="Start a Slurm in a lab, or mend one that has gaps.")
@click.argument("name", required=False)
@_FORMAT
def up(name: str | None, form: str) -> None:
    """Start a Slurm in the lab NAME, or in the only one; one that has gaps is mended.

    Exit codes: 0 done, 2 no root, no lab, or no Slurm is installed.
    """
    from linkwise.lab.life import Ground
    from linkwise.lab.slurm import slurm_up

    _print(slurm_up(name, ground=Ground()), form)


@slurm.command()
@click.argument("name", required=False)
@_FORMAT
def status(name: str | None, form: str) -> None:
    """Say how the Slurm of the lab NAME, or of the only one, is.

    Exit codes: 0 all of it runs, 1 it is not up or has gaps, 2 wrong input.
    """
    from linkwise.errors import ExitCode
    from linkwise.lab.life import Ground
    from linkwise.lab.slurm import slurm_state

    state = slurm_state(name, ground=Ground())
    _print(state, form)
    if not state.is_up or state.missing:
        raise click.exceptions.Exit(ExitCode.AGAINST)


@slurm.command()
@click.argument("name", required=False)
def down(name: str | None) -> None:
    """End the Slurm of the lab NAME, or of the only one, with its jobs. The lab stays.

    Exit codes: 0 done, 2 wrong input.
    """
    from linkwise.lab.life import Ground
    from linkwise.lab.slurm import slurm_down

    click.echo(f"Slurm in lab {slurm_down(name, ground=Ground())} is down")


@slurm.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--name", help="Name of the lab; the only one without.")
@click.option("--node", type=click.IntRange(0), help="On this node, from 0, instead of on the head node.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def shell(name: str | None, node: int | None, command: tuple[str, ...]) -> None:
    """Run COMMAND, or a shell, where the lab's Slurm is.

    It sees the lab's networks, the names of its nodes and SLURM_CONF, and the files of this machine. Its exit
    code is that of COMMAND.

    \b
    linkwise lab slurm shell
    linkwise lab slurm shell srun -N2 hostname
    linkwise lab slurm shell --node 1 ip addr
    """  # noqa: D301 (click reads \b as: do not wrap)
    from linkwise.lab.life import Ground
    from linkwise.lab.slurm import shell_command

    argv, variables = shell_command(name, command, node=node, environ=os.environ, ground=Ground())
    if not command and sys.stderr.isatty():
        where = "the head node" if node is None else f"node n{node}"
        click.echo(f"linkwise: a shell on {where} of the lab; 'exit' leaves it", err=True)
    sys.stdout.flush()
    try:
        os.execvpe(argv[0], argv, variables)  # noqa: S606 (the user's own command)
    except OSError as error:
        raise InputError(f"{argv[0]}: {error.strerror}; install util-linux") from None


def _print(state: SlurmState, form: str) -> None:
    if form == "json":
        from linkwise.report.lab_slurm import lab_slurm_result
        from linkwise.report.results import published_json

        click.echo(published_json(lab_slurm_result(state)))
    else:
        from linkwise.report.lab_slurm import print_lab_slurm
        from linkwise.report.tables import console_for

        print_lab_slurm(state, console_for(sys.stdout))
