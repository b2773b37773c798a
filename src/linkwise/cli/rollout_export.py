"""`linkwise rollout export`: objectives of a rollout for other programs."""

from __future__ import annotations

import re

import click

from linkwise.errors import ExitCode, InputError

__all__ = ["export"]

_WINDOW = re.compile(r"[1-9]\d{0,3}[mhdwMQY]")


@click.command()
@click.argument("kind", type=click.Choice(["openslo"]), expose_value=False)
@click.argument("file")
@click.option(
    "--target", required=True, metavar="RATIO", help="Share of the window in which each must be kept: '99 %'."
)
@click.option("--window", default="28d", show_default=True, metavar="DURATION", help="Rolling: 28d, 4w, 12h.")
def export(file: str, target: str, window: str) -> int:
    """Write the objectives of FILE that hold on after the rollout as KIND: openslo, a document each.

    They are those with a floor that linkwise watch shows to Prometheus; the others are named on standard
    error with the reason. FILE says no share of time, so that --target must.

    Exit codes: 0 done, 2 wrong use or input, 4 no objective can be said so.

    \b
    linkwise rollout export openslo rollout.yaml --target '99 %' > slo.yaml
    """  # noqa: D301 (click reads \b as: do not wrap)
    from linkwise.rollout.document.reading import read_rollout
    from linkwise.rollout.exports.openslo import openslo
    from linkwise.rollout.metrics import parse_ratio

    try:
        fraction = parse_ratio(float(target) if _is_number(target) else target)
    except ValueError as error:
        raise InputError(f"--target: {error}") from None
    if not 0 < fraction < 1:
        raise InputError(f"--target {target}: OpenSLO takes a share above 0 and below 1, such as '99 %'")
    if _WINDOW.fullmatch(window) is None:
        raise InputError(f"--window {window}: write a number and one of m h d w M Q Y, such as 28d")
    found = openslo(read_rollout(file), target_fraction=fraction, window=window)
    for each in found.left_out:
        click.echo(f"linkwise: left out: {each}", err=True)
    click.echo(found.text, nl=False)
    if not found.text:
        click.echo("linkwise: no objective is left, and nothing is written; give one a floor", err=True)
    return ExitCode.DONE if found.text else ExitCode.NOT_MEASURED


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
