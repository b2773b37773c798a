"""`linkwise launch`: run a planned job, follow it, and say whether the run was what was planned."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from linkwise.cli.job_and_cluster import job_and_cluster_arguments, read_job_and_cluster
from linkwise.cli.numbers import FiniteFloat
from linkwise.errors import ExitCode, InputError

if TYPE_CHECKING:
    from linkwise.cli.places import LaunchGround
    from linkwise.cluster import Cluster
    from linkwise.estimate import Estimate
    from linkwise.job import Job
    from linkwise.launch.run.launch_record import LaunchRecord
    from linkwise.launch.run.launching import LaunchPatience
    from linkwise.launch.run.prepared import Prepared

__all__ = ["launch"]

_START_S = 600.0
"""Until all ranks are there: imports on a cold file system take minutes; assumed [s]."""
_QUEUE_S = 86_400.0
"""In the queue of Slurm; assumed [s]."""
_SILENCE_S = 3600.0
"""Longer than torch lets a collective hang (10 min with NCCL, 30 min with gloo), so that its own words are
heard first; assumed [s]."""


@click.command()
@job_and_cluster_arguments
@click.option(
    "--on", "where", metavar="local|slurm|lab[:NAME]", help="Where it runs; on this machine by default."
)
@click.option("--script", metavar="PATH", help="What to start instead of the framework's usual program.")
@click.option("--device", type=click.Choice(["cuda", "cpu"]), help="cpu: a trial with gloo, without GPUs.")
@click.option("--python", metavar="PATH", help="The Python that has torch; that of Linkwise by default.")
@click.option(
    "--set", "given", metavar="NAME=VALUE", multiple=True, help="One more setting; may be repeated."
)
@click.option(
    "--restarts", type=click.IntRange(0, 1000), help="local: start all ranks again after a failure."
)
@click.option(
    "--sbatch", "options", metavar="OPTION", multiple=True, help="slurm: such as --partition=train."
)
@click.option("--time-limit", type=FiniteFloat(), metavar="HOURS", help="When the job is ended.")
@click.option("--start-within", metavar="TIME", help="Until all ranks have started; '10 min' by default.")
@click.option(
    "--patience",
    metavar="TIME",
    help="Stop a job whose output and logs have not grown for so long; '1 h' by default, longer than torch "
    "lets a collective hang.",
)
@click.option("--queue-within", metavar="TIME", help="slurm: until it leaves the queue; '24 h' by default.")
@click.option("--nccl", metavar="RELEASE", help="The release of NCCL, such as 2.27; the newest if left out.")
@click.option(
    "-o", "--output", "output", type=click.Path(path_type=Path), metavar="DIR", help="The run folder."
)
@click.option("--attach", type=click.Path(path_type=Path), metavar="RUN", help="Follow a run that goes on.")
@click.option("--dry-run", is_flag=True, help="Print exactly what would be submitted, and start nothing.")
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
def launch(
    *,
    job: str | None,
    cluster: str | None,
    cluster_option: str | None,
    where: str | None,
    attach: Path | None,
    output: Path | None,
    dry_run: bool,
    form: str,
    **options: Any,
) -> int:
    """Run a job on a cluster as 'plan' and 'render' would have it, and prove that it ran as planned.

    Every node is looked at first (GPUs, /dev/shm, locked memory, port, interfaces, versions, disk). Then
    torchrun or sbatch runs the job, the doctor follows its logs, and the run folder gets a record. A run is
    valid if world size, hosts, environment, transport and RDMA are seen to be those planned; one that
    is not says so, and has no median. Ctrl-C ends the job; when its launcher is lost it goes on,
    and --attach follows it.

    Exit codes: 0 ended well and valid, 1 failed or invalid, 2 wrong use or a node that lacks something,
    5 no layout fits, 130 interrupted.

    \b
    linkwise launch job.yaml cluster.yaml --on slurm --sbatch --partition=train --script train.py
    linkwise launch job.yaml cluster.yaml --device cpu --dry-run
    linkwise launch --attach runs/gpt-2-node-20260301-101500
    """  # noqa: D301 (click reads \b as: do not wrap)
    if attach is not None:
        given = {**options, "on": where, "job": job, "cluster": cluster or cluster_option, "output": output}
        _refuse_with_attach(given, is_dry=dry_run)
        return _attach(attach, form)
    place = where or "local"
    _refuse_without_effect(place, options)
    own = ("script", "device", "python", "given", "restarts", "options", "time_limit", "start_within",
           "queue_within", "patience", "nccl")  # fmt: skip
    choices = {name: options.pop(name) for name in own}
    asked, there = read_job_and_cluster(job, cluster, cluster_option, options)
    return _launch(asked, there, place, choices, output=output, is_dry=dry_run, form=form)


def _refuse_with_attach(given: dict[str, Any], *, is_dry: bool) -> None:
    found = [name for name, value in given.items() if value not in (None, ())]
    if is_dry:
        found.append("dry_run")
    if found:
        words = {"given": "--set", "options": "--sbatch", "job": "JOB", "cluster": "CLUSTER"}
        first = words.get(found[0], f"--{found[0].replace('_', '-')}")
        raise InputError(f"{first} has no effect with --attach: the run is as it was launched; leave it out")


def _refuse_without_effect(place: str, options: dict[str, Any]) -> None:
    if place != "slurm":
        for name, word in (("options", "--sbatch"), ("queue_within", "--queue-within")):
            if options[name]:
                raise InputError(f"{word} has no effect without --on slurm; leave it out")
    if place != "local" and options["restarts"]:
        raise InputError(
            f"--restarts has no effect with --on {place}: its nodes meet at a fixed address, and torchrun "
            "does not recover there; leave it out"
        )
    if place not in ("local", "slurm") and options["device"] == "cuda":
        raise InputError(f"--device cuda: nodes of --on {place} have no GPUs; leave the option out")
    for each in options["options"]:
        if not each.startswith("-") or not each.isprintable():
            raise InputError(f"--sbatch {each!r}: write an option of sbatch, such as --partition=train")
    limit = options["time_limit"]
    if limit is not None and not 0 < limit <= 8760:
        raise InputError(f"--time-limit {limit:g} is not between 0 and 8760 hours")


def _launch(
    asked: Job,
    there: Cluster,
    place: str,
    choices: dict[str, Any],
    *,
    output: Path | None,
    is_dry: bool,
    form: str,
) -> int:
    from linkwise.search import plan

    if place == "local" and there.nodes_in_use > 1:
        raise InputError(
            f"{there.name} has {there.nodes_in_use} nodes, and --on local runs on this machine alone: give "
            "--on slurm or --on lab, or a cluster of one node"
        )
    found = plan(asked, there, top=1)
    if not found.layouts:
        short = (
            "" if found.closest is None else f"; the closest lacks {found.closest.short_bytes / 1e9:.3g} GB"
        )
        click.echo(f"linkwise: no layout fits{short}; nothing was started", err=True)
        return ExitCode.INFEASIBLE
    from linkwise.cli.launch_following import audience_of, dry_run
    from linkwise.cli.places import launch_ground
    from linkwise.launch.run.whole import LaunchSite, run_launch

    with launch_ground(place, there, options=choices["options"]) as ground:
        prepared = _prepared(asked, there, found.layouts[0], ground, choices)
        folder = output or _folder_for(prepared)
        if is_dry:
            dry_run(prepared, ground.place, folder.absolute(), form=form)
            return ExitCode.DONE
        site = LaunchSite(
            place=ground.place,
            python=choices["python"] or sys.executable,
            patience=_patience(choices),
            looks=ground.looks,
            notes=ground.notes,
        )
        record = run_launch(prepared, site, folder, audience_of(ground.place.name))
        return _shown(record, folder, form)


def _patience(choices: dict[str, Any]) -> LaunchPatience:
    from linkwise.launch.run.launching import LaunchPatience

    return LaunchPatience(
        queue_s=_seconds("--queue-within", choices["queue_within"], _QUEUE_S),
        start_s=_seconds("--start-within", choices["start_within"], _START_S),
        silence_s=_seconds("--patience", choices["patience"], _SILENCE_S),
    )


def _prepared(
    asked: Job, there: Cluster, found: Estimate, ground: LaunchGround, choices: dict[str, Any]
) -> Prepared:
    from linkwise.launch.run.prepared import LaunchChoices, given_settings, prepared_launch
    from linkwise.nccl.variables import NEWEST, parse_release

    limit_h, script = choices["time_limit"], choices["script"]
    if script is not None and script.strip() and not Path(script).is_absolute():
        if not Path(script).is_file():
            raise InputError(f"--script {script}: is no file here; name one, or its whole path on the nodes")
        script = str(Path(script).absolute())  # the job runs in the run folder
    return prepared_launch(
        asked,
        there,
        found,
        LaunchChoices(
            device=choices["device"] or ground.device,
            script=script,
            given=given_settings(choices["given"]),
            restarts=choices["restarts"] or 0,
            time_limit_s=None if limit_h is None else limit_h * 3600,
            release=NEWEST if choices["nccl"] is None else parse_release(choices["nccl"]),
            look_s=_seconds("--start-within", choices["start_within"], _START_S) / 2,
        ),
        target=ground.target,
        inherited=os.environ,
        of_place=ground.settings,
        hosts=ground.hosts,
        more_files=ground.files,
    )


def _folder_for(prepared: Prepared) -> Path:
    import datetime as dt

    return Path("runs") / f"{prepared.name}-{dt.datetime.now(tz=dt.UTC):%Y%m%d-%H%M%S}"


def _seconds(option: str, text: str | None, usual_s: float) -> float:
    from linkwise.cli.numbers import seconds_of

    return usual_s if text is None else seconds_of(text, option)


def _attach(folder: Path, form: str) -> int:
    from linkwise.cli.launch_following import audience_of
    from linkwise.cli.places import place_again
    from linkwise.launch.run.launching import LaunchPatience
    from linkwise.launch.run.whole import LaunchSite, follow_launch
    from linkwise.report.launch_result import read_launch

    record = read_launch(folder)
    if not record.is_over:
        patience = LaunchPatience(queue_s=_QUEUE_S, start_s=_START_S, silence_s=_SILENCE_S)
        site = LaunchSite(place=place_again(record.place), python=sys.executable, patience=patience)
        record = follow_launch(record, site, folder, audience_of(record.place))
    return _shown(record, folder, form)


def _shown(record: LaunchRecord, folder: Path, form: str) -> int:
    from linkwise.launch.run.ending import Outcome
    from linkwise.report.launch_result import launch_json, launch_result

    if form == "json":
        click.echo(launch_json(record))
    else:
        from linkwise.report.launch_table import print_launch
        from linkwise.report.tables import console_for

        print_launch(launch_result(record), str(folder), console_for())
    is_good = record.ending.outcome is Outcome.DONE and record.is_valid
    return ExitCode.DONE if is_good else ExitCode.AGAINST
