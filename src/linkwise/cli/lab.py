"""`linkwise lab`: a cluster emulated on this machine, and what runs on it."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from linkwise.cli.lab_slurm import slurm
from linkwise.cli.numbers import FiniteFloat, quantity_of
from linkwise.errors import InputError, UnknownName

if TYPE_CHECKING:
    from collections.abc import Sequence

    from linkwise.cluster import Cluster
    from linkwise.lab.bench import BenchRow, Host
    from linkwise.lab.design import LabDesign
    from linkwise.lab.faults import FaultRun
    from linkwise.lab.lab_job import LabJob
    from linkwise.lab.life import LabState
    from linkwise.lab.sweep import Sweep
    from linkwise.lab.training import RunResult

__all__ = ["lab"]

_FORMAT = click.option(
    "--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True
)
_PYTHON = click.option(
    "--python", default=sys.executable, metavar="PATH", help="A Python that has torch; this one without."
)
_MOST_SIZE_BYTES = 2**28


@click.group()
def lab() -> None:
    """Emulate a cluster on this machine: nodes as network namespaces, links between them shaped.

    Needs Linux, root and iproute2; jobs in it need torch. Nothing outside its namespaces is touched.

    \b
    linkwise lab up examples/lab-4x2.yaml
    linkwise lab status
    linkwise lab bench
    linkwise lab down
    """  # noqa: D301 (click reads \b as: do not wrap)


lab.add_command(slurm)


@lab.command(short_help="Build a cluster of up to 8 nodes of 4 GPUs.")
@click.argument("cluster")
@click.option(
    "--scale",
    default="AUTO",
    metavar="AUTO|FACTOR",
    show_default=True,
    help="Seconds here for one second of the cluster; every link is slower by it.",
)
@click.option("--name", help="Name of the lab; lab1, lab2... without.")
@_FORMAT
def up(cluster: str, scale: str, name: str | None, form: str) -> None:
    """Build CLUSTER, a cluster/1 document of up to 8 nodes of 4 GPUs or SYSTEM:NODES.

    What killed commands left behind is cleared first. Exit codes: 0 done, 2 wrong input.
    """
    from linkwise.cluster import load_cluster
    from linkwise.lab.design import design_of
    from linkwise.lab.life import Ground, lab_states, take_up

    ground = Ground()
    design = design_of(load_cluster(cluster), dilation=_scale(scale))
    design = replace(design, source=_source(cluster))
    made = take_up(design, name=name, ground=ground)
    _print([state for state in lab_states(ground) if state.name == made], form, is_explained=True)


@lab.command()
@_FORMAT
def status(form: str) -> None:
    """List the labs there are.

    Exit codes: 0 done, 1 something was left by a killed command, 2 no root.
    """
    from linkwise.errors import ExitCode
    from linkwise.lab.life import Ground, lab_states

    states = lab_states(Ground())
    _print(states, form, is_explained=False)
    if any(state.design is None and not state.is_busy for state in states):
        raise click.exceptions.Exit(ExitCode.AGAINST)


@lab.command(short_help="Take a lab down, with all that is in it.")
@click.argument("name", required=False)
@click.option("--all", "is_all", is_flag=True, help="Every lab, and what killed commands left.")
def down(name: str | None, is_all: bool) -> None:
    """Take the lab NAME down, or the only one: its processes, namespaces, links and files.

    What killed commands left behind is cleared as well. A lab in which a job runs is taken down, job and
    all, only by its NAME or with --all. Exit codes: 0 done, 2 wrong input, or busy.
    """
    from linkwise.lab.life import Ground, clear_leftovers, find_lab, lab_states, take_down

    if is_all and name is not None:
        raise InputError(f"--all takes every lab down; leave {name!r} or --all out")
    ground = Ground()
    cleared = clear_leftovers(ground)
    for each in cleared:
        click.echo(f"cleared what was left of lab {each}")
    if is_all:
        names = [state.name for state in lab_states(ground)]
    elif cleared and (name in cleared or (name is None and not lab_states(ground))):
        names = []
    else:
        names = [find_lab(name, ground=ground).name]
        if name is None and any(state.is_busy for state in lab_states(ground) if state.name in names):
            raise InputError(
                f"lab {names[0]} is busy, perhaps with the job of somebody else; to end that job too, name "
                f"the lab: linkwise lab down {names[0]}"
            )
    for each in names:
        ended = take_down(each, ground=ground)
        click.echo(f"lab {each} is down" + (f"; {ended} processes in it were ended" if ended else ""))


@lab.command(short_help="Collectives, predicted and measured.")
@click.argument("name", required=False)
@click.option("--operation", "operations", multiple=True, metavar="NAME", help="all_reduce...; all without.")
@click.option(
    "--size", "sizes", multiple=True, metavar="SIZE", help="Such as '4 MiB'; 256 KiB and 1 MiB without."
)
@click.option("--repeats", type=click.IntRange(1, 1000), default=3, show_default=True, help="Calls timed.")
@_PYTHON
@_FORMAT
def bench(
    name: str | None,
    *,
    operations: tuple[str, ...],
    sizes: tuple[str, ...],
    repeats: int,
    python: str,
    form: str,
) -> None:
    """Run collectives of torch over all ranks of the lab NAME, or of the only one.

    Prints predicted and measured times, and how far the bytes counted on its links are from those predicted.
    Exit codes: 0 done, 2 wrong input, 4 nothing was measured.

    \b
    linkwise lab bench --operation all_reduce --size '4 MiB'
    """  # noqa: D301 (click reads \b as: do not wrap)
    from linkwise.errors import ExitCode
    from linkwise.lab.bench import bench_request, bench_rows, host_of
    from linkwise.lab.job import run_job
    from linkwise.lab.life import Ground, lab_in_use
    from linkwise.network.gloo import GLOO_OPERATIONS

    sizes_bytes = [_size_bytes(each) for each in sizes or ("256 KiB", "1 MiB")]
    chosen = tuple(dict.fromkeys(operations)) or GLOO_OPERATIONS
    with lab_in_use(name, ground=Ground()) as (held, design):
        request = bench_request(
            design, operations=chosen, sizes_bytes=sizes_bytes, repeats=repeats, python=python
        )
        end = run_job(request, lab=held, design=design)
    if not end.is_done:
        click.echo(f"linkwise: nothing was measured: {end.reason}", err=True)
        raise click.exceptions.Exit(ExitCode.NOT_MEASURED)
    _print_bench(held, design, host_of(design, end), bench_rows(held, design, request, end), form)


@lab.command(short_help="A layout of a job, predicted and measured.")
@click.argument("job")
@click.argument("name", required=False)
@click.option("--steps", type=click.IntRange(1, 1000), default=5, show_default=True, help="Steps measured.")
@_PYTHON
@_FORMAT
def run(job: str, name: str | None, steps: int, python: str, form: str) -> None:
    """Run the layout of JOB, a job/1 document, for real in the lab NAME, or in the only one.

    A small model of the shape of Llama is trained by torch's own modules (DDP, FSDP2, tensor parallel, 1F1B);
    what a GPU of the cluster would compute is slept, times the dilation. Prints predicted and measured step
    time, and predicted and counted bytes. One more step is done before those measured.

    Exit codes: 0 done, 1 the job failed, 2 wrong input.

    \b
    linkwise lab run examples/lab-ddp.yaml
    """  # noqa: D301 (click reads \b as: do not wrap)
    from linkwise.errors import ExitCode
    from linkwise.job.reading import load_job
    from linkwise.lab.job import run_job
    from linkwise.lab.lab_job import lab_job
    from linkwise.lab.life import Ground, lab_in_use
    from linkwise.lab.training import run_request, run_result

    given = load_job(job)
    with lab_in_use(name, ground=Ground()) as (held, design):
        prepared = lab_job(given, _cluster_of(held, design), design)
        request = run_request(prepared, design, steps=steps, python=python)
        end = run_job(request, lab=held, design=design)
    if not end.is_done:
        click.echo(f"linkwise: the job failed: {end.reason}", err=True)
        raise click.exceptions.Exit(ExitCode.AGAINST)
    _print_run(held, prepared, run_result(held, prepared, design, end), form)


@lab.command(short_help="Several layouts of a job, and their order.")
@click.argument("job")
@click.argument("name", required=False)
@click.option("--layouts", metavar="FILE", help="A layouts/1 document; without, every cut that the lab runs.")
@click.option("--steps", type=click.IntRange(1, 1000), default=3, show_default=True, help="Steps measured.")
@_PYTHON
@click.option(
    "--format", "form", type=click.Choice(["table", "json", "csv"]), default="table", show_default=True
)
def sweep(job: str, name: str | None, *, layouts: str | None, steps: int, python: str, form: str) -> None:
    """Run several layouts of JOB in the lab NAME, or in the only one, and compare the two orders.

    JOB is a job/1 document without a layout. Each layout is predicted and measured as by `lab run`; the table
    is in the order measured, with the rank of each as predicted, Spearman's rank correlation of both orders,
    and what taking the layout predicted to be the best loses.

    Exit codes: 0 done, 1 a layout failed, 2 wrong input, 4 nothing was measured.

    \b
    linkwise lab sweep examples/lab-sweep.yaml --layouts examples/lab-sweep-layouts.yaml
    """  # noqa: D301 (click reads \b as: do not wrap)
    from functools import partial

    from linkwise.errors import ExitCode
    from linkwise.job.reading import load_job
    from linkwise.lab.layouts_document import read_layouts
    from linkwise.lab.life import Ground, lab_in_use
    from linkwise.lab.sweep import run_in_lab, sweep_jobs, swept

    given = load_job(job)
    if given.layout is not None:
        raise InputError(f"{job} states a layout, which a sweep would not use; write layout: search")
    wanted = () if layouts is None else read_layouts(layouts)
    with lab_in_use(name, ground=Ground()) as (held, design):
        runs = sweep_jobs(given, wanted, _cluster_of(held, design), design)
        one = partial(run_in_lab, lab=held, design=design, steps=steps, python=python)
        found = swept(runs, one, say=_progress)
    _print_sweep(held, design, found, form)
    failed = [row for row in found.rows if row.result is None]
    if failed:
        raise click.exceptions.Exit(
            ExitCode.NOT_MEASURED if len(failed) == len(found.rows) else ExitCode.AGAINST
        )


def _progress(words: str) -> None:
    if sys.stderr.isatty():
        click.echo(words, err=True)


@lab.command(short_help="Break something under a job, and ask the doctor.")
@click.argument("kind")
@click.argument("name", required=False)
@click.option("--job", help="A job/1 document with a layout; a small one of plain data parallelism without.")
@click.option("--node", type=click.IntRange(0), help="Which node, from 0; the last without.")
@click.option(
    "--at", "step", type=click.IntRange(1), default=2, show_default=True, help="Step it begins with."
)
@click.option("--steps", type=click.IntRange(2, 1000), default=5, show_default=True, help="Steps in all.")
@click.option(
    "--timeout",
    "timeout_s",
    type=FiniteFloat(1, 1800),
    default=15.0,
    show_default=True,
    help="Seconds one call may take; torch's own is 1800.",
)
@_PYTHON
@_FORMAT
def fault(  # noqa: PLR0917 (click passes all by name)
    kind: str,
    name: str | None,
    job: str | None,
    node: int | None,
    step: int,
    steps: int,
    timeout_s: float,
    python: str,
    form: str,
) -> None:
    """Put a fault into a job in the lab NAME, or the only one, and tell what the job did.

    KIND is link-down, link-flap, slow-link, slow-node, rank-killed, rank-frozen or node-lost. The doctor
    then sees the output of the job alone. The links are mended afterwards.

    Exit codes: 0 the fault was put in, whatever the job did; 2 wrong input.

    \b
    linkwise lab fault link-flap --node 1 --at 3
    """  # noqa: D301 (click reads \b as: do not wrap)
    from linkwise.job.reading import load_job
    from linkwise.lab.faults import FaultKind, Injection, fault_run, faulty_request
    from linkwise.lab.job import run_job
    from linkwise.lab.lab_job import lab_job, small_job
    from linkwise.lab.life import Ground, lab_in_use
    from linkwise.lab.training import run_request

    if kind not in list(FaultKind):
        raise UnknownName.among(list(FaultKind), kind="fault", given=kind)
    if step >= steps:
        raise InputError(f"--at {step} is not below the {steps} steps of the job; raise --steps")
    given = None if job is None else load_job(job)
    ground = Ground()
    with lab_in_use(name, ground=ground) as (held, design):
        chosen = design.nodes - 1 if node is None else node
        if chosen >= design.nodes:
            raise InputError(f"--node {node}: lab {held} has nodes 0 to {design.nodes - 1}")
        cluster = _cluster_of(held, design)
        prepared = lab_job(small_job(cluster) if given is None else given, cluster, design)
        put = Injection(
            kind=FaultKind(kind), node=chosen, step=step, lab=held, design=design, shell=ground.shell
        )
        request = run_request(prepared, design, steps=steps, python=python)
        try:
            end = run_job(
                faulty_request(request, put, timeout_s=timeout_s), lab=held, design=design, watch=put.watch
            )
        finally:
            put.mend()
    _print_fault(held, fault_run(put, end), form)


def _print_fault(held: str, result: FaultRun, form: str) -> None:
    from linkwise.report.lab_fault import lab_fault_result, print_lab_fault
    from linkwise.report.results import published_json
    from linkwise.report.tables import console_for

    published = lab_fault_result(held, result)
    if form == "json":
        click.echo(published_json(published))
    else:
        print_lab_fault(published, console_for(sys.stdout))


def _source(cluster: str) -> str:
    if cluster == "-":
        return ""
    path = Path(cluster)
    return str(path.resolve()) if path.exists() else cluster


def _cluster_of(held: str, design: LabDesign) -> Cluster:
    """Return the cluster that a lab was built from, if its document still says the same."""
    from linkwise.cluster import load_cluster
    from linkwise.lab.design import design_of

    again = f"build it again from a document: linkwise lab down {held}, linkwise lab up CLUSTER"
    if not design.source:
        raise InputError(f"lab {held} was built from standard input, and jobs need the cluster; {again}")
    cluster = load_cluster(design.source)
    if replace(design_of(cluster, dilation=design.dilation), source=design.source) != design:
        raise InputError(f"{design.source} has changed since lab {held} was built from it; {again}")
    return cluster


def _print_run(held: str, prepared: LabJob, result: RunResult, form: str) -> None:
    from linkwise.report.lab_run import lab_run_result, print_lab_run
    from linkwise.report.results import published_json
    from linkwise.report.tables import console_for

    published = lab_run_result(held, prepared, result)
    if form == "json":
        click.echo(published_json(published))
    else:
        print_lab_run(published, console_for(sys.stdout))


def _print_sweep(held: str, design: LabDesign, found: Sweep, form: str) -> None:
    import csv

    from linkwise.report.lab_sweep import lab_sweep_csv_rows, lab_sweep_result, print_lab_sweep
    from linkwise.report.results import published_json
    from linkwise.report.tables import console_for

    published = lab_sweep_result(held, design, found)
    if form == "json":
        click.echo(published_json(published))
    elif form == "csv":
        csv.writer(sys.stdout, lineterminator="\n").writerows(lab_sweep_csv_rows(published))
    else:
        print_lab_sweep(published, console_for(sys.stdout))


def _print_bench(held: str, design: LabDesign, host: Host, rows: Sequence[BenchRow], form: str) -> None:
    from linkwise.report.lab_bench import lab_bench_result, print_lab_bench
    from linkwise.report.results import published_json
    from linkwise.report.tables import console_for

    result = lab_bench_result(held, design, host, rows)
    if form == "json":
        click.echo(published_json(result))
    else:
        print_lab_bench(result, console_for(sys.stdout))


def _size_bytes(text: str) -> int:
    size_bytes = quantity_of(text, "bytes", option="--size", example="1 MiB")
    if not 4 <= size_bytes <= _MOST_SIZE_BYTES:
        raise InputError(f"--size {text[:40]}: the lab sends 4 B to 256 MiB; its links are slow")
    return int(size_bytes)


def _scale(text: str) -> float | None:
    if text.upper() == "AUTO":
        return None
    try:
        factor = float(text.replace(",", ""))
    except ValueError:
        factor = 0.0
    if not 1.0 <= factor <= 1e9:
        raise InputError(f"--scale {text[:40]} is no factor; give AUTO, or a number from 1 to 1e9")
    return factor


def _print(states: Sequence[LabState], form: str, *, is_explained: bool) -> None:
    from linkwise.report.lab import lab_result, print_labs
    from linkwise.report.tables import console_for

    if form == "json":
        from linkwise.report.results import published_json

        click.echo(published_json(lab_result(states)))
    else:
        print_labs(states, console_for(sys.stdout), is_explained=is_explained)
