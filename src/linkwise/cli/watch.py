"""`linkwise watch`: a running job followed, or a recorded one read again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from linkwise.cli.numbers import seconds_of
from linkwise.errors import ExitCode, InputError

if TYPE_CHECKING:
    from linkwise.cli.watch_following import WatchRequest
    from linkwise.monitor.alert import Objective
    from linkwise.rollout.runs import StepRun

__all__ = ["watch"]


@click.command()
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option("--replay", is_flag=True, help="Read recorded logs at full speed, by their own clock.")
@click.option(
    "--endpoint",
    "endpoints",
    multiple=True,
    metavar="URL",
    help="Metrics of a server: vLLM, SGLang or the DCGM exporter. May be given again.",
)
@click.option("--host", is_flag=True, help="Watch the RDMA ports and the kernel log of this host too.")
@click.option(
    "--objectives", metavar="ROLLOUT", help="Hold the job to the objectives of this rollout/1 document."
)
@click.option("--name", metavar="RUN", help="What metrics and alerts call the job.")
@click.option("--until-quiet", metavar="TIME", help="End when no log grew for so long, such as '5 min'.")
@click.option("--stall", metavar="TIME", help="Call the job stalled after so long without a step.")
@click.option("--no-drift", is_flag=True, help="Look for no drift of the step time (that needs SciPy).")
@click.option(
    "--metrics", metavar="[ADDRESS:]PORT", help="Show metrics to Prometheus; on 127.0.0.1 if not said."
)
@click.option("--textfile", metavar="FILE", help="Write metrics to a file for node_exporter, every 15 s.")
@click.option("--alertmanager", metavar="URL", help="Send alerts to the API of this Alertmanager.")
@click.option("--write-rules", metavar="FILE", help="Write the alert rules for Prometheus; - prints them.")
@click.option("--write-dashboard", metavar="FILE", help="Write the dashboard for Grafana; - prints it.")
@click.option("--follow-json", is_flag=True, help="Print a line of JSON for each alert, and the result last.")
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
def watch(
    *,
    paths: tuple[str, ...],
    replay: bool,
    endpoints: tuple[str, ...],
    host: bool,
    objectives: str | None,
    name: str | None,
    until_quiet: str | None,
    stall: str | None,
    no_drift: bool,
    metrics: str | None,
    textfile: str | None,
    alertmanager: str | None,
    write_rules: str | None,
    write_dashboard: str | None,
    follow_json: bool,
    form: str,
) -> int:
    """Watch a job: step time and its drift, loss, stalls, ranks, restarts, interconnect, servers.

    PATH is the run folder of 'linkwise launch', a folder of logs, a log that need not be there yet, or - for
    standard input. Steps of Megatron-LM, torchtitan, DeepSpeed, NeMo and of rendered programs are read; lines
    of NCCL are read as by 'linkwise doctor'. It tells each alert once, and once more when it is over, until
    Ctrl-C, SIGTERM or the end of standard input; then it gives the verdict.

    Exit codes: 0 healthy, 1 an alert was told, 2 wrong use or input, 3 cannot tell, 4 nothing could be
    measured.

    \b
    linkwise watch runs/llama
    torchrun ... 2>&1 | linkwise watch - --metrics 9400
    linkwise watch --replay logs/ --format json
    linkwise watch --endpoint http://server:8000/metrics --alertmanager http://localhost:9093
    linkwise watch --write-rules rules.yml --write-dashboard dashboard.json
    """  # noqa: D301 (click reads \b as: do not wrap)
    from linkwise.cli.watch_following import WatchRequest, watch_job

    if _write_files(write_rules, write_dashboard) and not (paths or endpoints or host):
        return ExitCode.DONE
    request = WatchRequest(
        paths=paths,
        is_replay=replay,
        endpoints=endpoints,
        is_host_watched=host,
        run=name,
        until_quiet_s=_duration_s("--until-quiet", until_quiet),
        stall_s=_duration_s("--stall", stall),
        finds_drift=not no_drift,
        metrics=_address(metrics),
        textfile=None if textfile is None else Path(textfile),
        alertmanager=alertmanager,
        prints_lines=follow_json,
        form=form,
        objectives=() if objectives is None else _objectives(objectives),
    )
    _check(request)
    return watch_job(request)


def _objectives(file: str) -> tuple[Objective, ...]:
    """Return the objectives of a rollout that a watched job can be held to, and say which it cannot."""
    from linkwise.rollout.document.loading import place_of_store
    from linkwise.rollout.document.reading import read_rollout
    from linkwise.rollout.gates.watched import watched_objectives

    rollout = read_rollout(file)
    where = place_of_store(file)
    runs: tuple[StepRun, ...] = ()
    if where.exists():
        from linkwise.rollout.store.store import Store

        store = Store(str(where))
        runs = store.record(rollout.name).runs if store.has(rollout.name) else ()
        store.close()
    found, left_out = watched_objectives(rollout, runs)
    for words in left_out:
        click.echo(f"linkwise: objective {words}", err=True)
    if not found:
        raise InputError(f"--objectives {file}: a watched job can be held to none of them")
    return found


def _write_files(rules: str | None, dashboard: str | None) -> bool:
    if rules is None and dashboard is None:
        return False
    from linkwise.cli.files import write_whole
    from linkwise.monitor.alerting import dashboard_json, rules_yaml

    for option, target, text in (
        ("--write-rules", rules, rules_yaml),
        ("--write-dashboard", dashboard, dashboard_json),
    ):
        if target == "-":
            click.echo(text(), nl=False)
        elif target is not None:
            write_whole(option, Path(target), text())
    return True


def _check(request: WatchRequest) -> None:
    if not (request.paths or request.endpoints or request.is_host_watched):
        raise InputError("there is nothing to watch: give a log, a folder, --endpoint or --host")
    if request.paths.count("-") > 1:
        raise InputError("'-' is given twice, but standard input can be read once; name files")
    if request.is_replay:
        live = (request.endpoints, request.is_host_watched, request.until_quiet_s)
        if any(live):
            raise InputError(
                "--endpoint, --host and --until-quiet are for a running job, and have no effect with --replay"
            )
    for url in (*request.endpoints, *filter(None, (request.alertmanager,))):
        if not url.startswith(("http://", "https://")):
            raise InputError(f"{url}: write an address that begins with http:// or https://")


def _duration_s(option: str, text: str | None) -> float | None:
    return None if text is None else seconds_of(text, option)


def _address(text: str | None) -> tuple[str, int] | None:
    if text is None:
        return None
    host, colon, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > 65535:
        raise InputError(f"--metrics {text}: write ADDRESS:PORT, or a port from 0 to 65535")
    return (host.strip("[]") if colon else "127.0.0.1") or "0.0.0.0", int(port)  # noqa: S104 (asked for as :PORT)
