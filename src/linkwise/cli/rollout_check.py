"""`linkwise rollout check`: what is wrong with a rollout before GPU-time is spent on it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from linkwise.errors import ExitCode, InputError, UnknownName

if TYPE_CHECKING:
    from linkwise.rollout.gates.checking_power import StatedNoise
    from linkwise.rollout.plan import Rollout

__all__ = ["check"]


@click.command()
@click.argument("file")
@click.option(
    "--noise",
    "noises",
    multiple=True,
    metavar="[NAME=]RATIO",
    help="Spread between runs, of all objectives or of one: '2 %', loss='0.1 %'; may be repeated.",
)
@click.option(
    "--records",
    type=click.Path(path_type=Path),
    metavar="DIR|FILE",
    help="Recorded runs, as for replay, whose spread is the noise.",
)
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
@click.pass_obj
def check(
    today: Callable[[], dt.date], *, file: str, noises: tuple[str, ...], records: Path | None, form: str
) -> int:
    """Lint FILE, a rollout/1 document; - is standard input.

    Finds gates that can never fail, metrics that nothing measures, steps that shrink, ways back that were
    never tried, numbers past their review. Simulates every bar with the judge of real rollouts: how often a
    healthy change passes and a bad one does, with the planned runs and the noise stated, recorded or else
    assumed (3 %).

    Exit codes: 0 no fault (there may be warnings), 1 a fault, 2 no rollout/1 document.

    \b
    linkwise rollout check rollout.yaml
    linkwise rollout check rollout.yaml --noise '1 %' --noise loss='0.1 %'
    """  # noqa: D301 (click reads \b as: do not wrap)
    from linkwise.cluster import load_cluster
    from linkwise.report.rollout_check import print_rollout_check, rollout_check_result
    from linkwise.rollout.document.reading import read_rollout
    from linkwise.rollout.gates.checking import check_rollout
    from linkwise.rollout.gates.checking_power import not_simulated, objective_powers, power_remarks
    from linkwise.rollout.gates.remark import Level

    rollout = read_rollout(file)
    cluster = load_cluster(rollout.scope.cluster)
    known, assumed = _noise(rollout, noises, records)
    powers = objective_powers(rollout, noise=known, assumed=assumed)
    remarks = (
        *check_rollout(rollout, cluster, today=today()),
        *not_simulated(rollout, known),
        *power_remarks(powers),
    )
    result = rollout_check_result(rollout, cluster, remarks, powers)
    if form == "json":
        from linkwise.report.results import published_json

        click.echo(published_json(result))
    else:
        from linkwise.report.tables import console_for

        print_rollout_check(result, console_for())
    is_faulty = any(remark.level is Level.FAULT for remark in remarks)
    return ExitCode.AGAINST if is_faulty else ExitCode.DONE


def _noise(
    rollout: Rollout, given: Sequence[str], records: Path | None
) -> tuple[dict[str, StatedNoise], StatedNoise]:
    """Return the noise by objective, stated over recorded, and that of all others."""
    from linkwise.rollout.gates.checking_power import ASSUMED_NOISE_FRACTION, StatedNoise, recorded_noise
    from linkwise.rollout.measuring.evidence_files import read_evidence
    from linkwise.rollout.metrics import parse_ratio

    found = {} if records is None else recorded_noise(rollout, read_evidence(records, rollout))
    assumed = StatedNoise(fraction=ASSUMED_NOISE_FRACTION, basis="assumed")
    names = [each.name for each in rollout.objectives]
    for text in given:
        name, is_named, number = text.rpartition("=")
        fraction = parse_ratio(_number(number))
        if not 0 <= fraction < 1:
            raise InputError(f"--noise {text}: a spread is from 0 to 100 %, such as '2 %'")
        stated = StatedNoise(fraction=fraction, basis="stated")
        if not is_named:
            assumed = stated
        elif name in names:
            found[name] = stated
        else:
            raise UnknownName.among(names, kind="objective", given=name)
    return found, assumed


def _number(text: str) -> str | float:
    try:
        return float(text)
    except ValueError:
        return text
