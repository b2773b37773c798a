"""`linkwise rollout status`: where a rollout stands, on what evidence, and what it cost."""

from __future__ import annotations

from linkwise.cli.rollout_opened import file_and_store, open_rollout, print_standing

import click  # isort: skip

__all__ = ["status"]


@click.command()
@file_and_store
def status(*, file: str, store: str | None, form: str) -> int:
    """Say where the rollout of FILE stands; with --store its name will do.

    The ledger has the GPU-hours that tests took, those lost to bad runs, and what decisions save or lose
    where that follows from measured step times. Note the head digest down: with it 'log --verify' sees a log
    that was cut or written anew.

    Exit codes: 0 under way or promoted, 1 a gate failed, 2 wrong use, 3 suspended or waiting, 4 nothing could
    be measured.

    \b
    linkwise rollout status rollout.yaml
    linkwise rollout status nccl-2.30 --store postgresql://ops@db/rollouts
    """  # noqa: D301 (click reads \b as: do not wrap)
    return print_standing(open_rollout(file, store), form)
