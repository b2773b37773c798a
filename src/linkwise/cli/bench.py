"""`linkwise bench`: collectives, pairs of nodes and small training jobs, measured here."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from linkwise.cli.bench_output import Progress, print_result
from linkwise.cli.collective_words import collective_named, size_of, sizes_of
from linkwise.cli.numbers import FiniteFloat, seconds_of
from linkwise.cli.places import BenchAsked, bench_place
from linkwise.errors import ExitCode, InputError

if TYPE_CHECKING:
    from linkwise.bench.collectives import CollectivesPlan, MeasuredSize
    from linkwise.bench.isolation import Isolation
    from linkwise.bench.pairs import PairsPlan
    from linkwise.bench.torch_run import TorchBench
    from linkwise.cluster import Cluster
    from linkwise.evidence.outliers import Fleet
    from linkwise.launch.run.job import FinishedRun
    from linkwise.launch.run.record import RunRecord
    from linkwise.report.bench_result import CollectivesResult

__all__ = ["bench"]

_Command = TypeVar("_Command", bound=Callable[..., object])

_WHERE = (
    click.option(
        "--on", "place", metavar="local|slurm|lab[:NAME]", help="Where it runs; on this machine by default."
    ),
    click.option("--ranks", type=int, metavar="N", help="Processes; one for each GPU by default, 2 on CPUs."),
    click.option("--nodes", type=click.IntRange(1, 65_536), metavar="N", help="slurm: how many."),
    click.option(
        "--sbatch", "options", metavar="OPTION", multiple=True, help="slurm: such as --partition=train."
    ),
    click.option(
        "--queue-within", metavar="TIME", help="slurm: until it leaves the queue; '24 h' by default."
    ),
    click.option(
        "--device", type=click.Choice(["cuda", "cpu"]), help="GPUs where there are some by default."
    ),
    click.option("--python", metavar="PATH", help="The Python that has torch; that of Linkwise by default."),
    click.option(
        "--patience",
        type=FiniteFloat(min=1, max=86_400),
        default=120,
        show_default=True,
        metavar="SECONDS",
        help="Stop a job that says nothing for so long.",
    ),
    click.option(
        "-o",
        "--output",
        type=click.Path(path_type=Path),
        metavar="DIR",
        help="Keep the record of the run, its samples and its output in a new folder.",
    ),
    click.option(
        "--format", "form", type=click.Choice(["table", "json", "csv"]), default="table", show_default=True
    ),
)
_SAMPLING = (
    click.option(
        "--repeats", type=int, default=9, show_default=True, metavar="N", help="Samples of each; 5 at least."
    ),
    click.option(
        "--warmup",
        type=click.IntRange(0, 10_000),
        default=5,
        show_default=True,
        metavar="N",
        help="Calls before the first that is timed.",
    ),
    click.option(
        "--calls",
        type=click.IntRange(1, 1_000_000),
        metavar="N",
        help="Calls that one sample times in a row; as many as last 10 ms by default.",
    ),
)


def _with(*options: Callable[[_Command], _Command]) -> Callable[[_Command], _Command]:
    def added(command: _Command) -> _Command:
        for option in reversed(options):
            command = option(command)
        return command

    return added


@click.group()
def bench() -> None:
    """Measure what this machine really does, with torch or nccl-tests.

    Jobs run under torchrun: NCCL where there are GPUs, gloo on CPUs. Linkwise itself needs no torch, only the
    Python that --python names does. A job that fails or is interrupted is stopped
    with all its processes.

    Exit codes: 0 measured, 1 wrong results, slow nodes or a job that failed, 2 wrong use, 3 cannot tell,
    4 nothing could be measured, 130 interrupted.
    """


@bench.command()
@click.argument("operations", nargs=-1, metavar="[OP]...")
@click.option("--sizes", default="1KiB:64MiB", show_default=True, metavar="SIZES", help="As for collective.")
@click.option(
    "--cluster", metavar="CLUSTER", help="Set what the model says of it beside; a file or SYSTEM:NODES."
)
@click.option(
    "--isolate",
    type=click.Choice(["network", "nvlink", "pcie"]),
    help="Force one path, and prove it by the log.",
)
@click.option(
    "--nccl-tests",
    "nccl_tests",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Run the programs of nccl-tests in DIR instead of torch, once for each repeat.",
)
@_with(*_SAMPLING, *_WHERE)
def collectives(
    *,
    operations: tuple[str, ...],
    sizes: str,
    cluster: str | None,
    isolate: str | None,
    nccl_tests: Path | None,
    repeats: int,
    warmup: int,
    calls: int | None,
    form: str,
    **where: Any,
) -> int:
    """Time collectives over sizes, and check every result.

    OP is all_reduce (the default), all_gather, reduce_scatter, all_to_all, broadcast, reduce or send_recv;
    several may be given. Times are medians of the repeats, with an interval of order statistics; JSON has
    every sample.

    \b
    linkwise bench collectives
    linkwise bench collectives all_reduce all_gather --sizes 1MiB:1GiB --cluster dgx-h100:1
    linkwise bench collectives --isolate network -o run-1
    """  # noqa: D301 (click reads \b as: do not wrap)
    from linkwise.bench.collectives import CollectivesPlan
    from linkwise.bench.sampling import Sampling

    if nccl_tests is not None and where["place"] not in (None, "local"):
        raise InputError("--on: no effect with --nccl-tests, which runs here; leave it out")
    plan = CollectivesPlan(
        operations=tuple(dict.fromkeys(map(collective_named, operations or ("all_reduce",)))),
        sizes_bytes=tuple(sizes_of(sizes)),
        sampling=Sampling(repeats=repeats, warmup=warmup, calls=calls),
    )
    if nccl_tests is not None and where["python"] is not None:
        raise InputError("--python: no effect with --nccl-tests, which needs no Python; leave it out")
    with _bench_of(needs_gpu=nccl_tests is not None, **where) as given:
        to, isolation = _isolated(given, isolate)
        there = None if cluster is None else _predictable(cluster, to.ranks)
        if nccl_tests is not None:
            runs, measured = _by_nccl_tests(nccl_tests, plan, to)
        else:
            runs, measured = _by_torch(plan, to)
    result = _collectives_result(
        runs, measured, to, there=there, isolation=isolation, is_torch=nccl_tests is None
    )
    code = print_result(result, form, has_samples=bool(measured))
    if wrong := sum(one.wrong or 0 for one in measured):
        click.echo(f"linkwise: {wrong:,} wrong elements in the results: do not trust this machine", err=True)
        return ExitCode.AGAINST
    if code == ExitCode.DONE and result.isolation is not None and not result.isolation.is_shown:
        return ExitCode.INCONCLUSIVE if result.isolation.is_shown is None else ExitCode.AGAINST
    return code


def _collectives_result(
    runs: tuple[FinishedRun, ...],
    measured: tuple[MeasuredSize, ...],
    to: TorchBench,
    *,
    there: Cluster | None,
    isolation: Isolation | None,
    is_torch: bool,
) -> CollectivesResult:
    from linkwise.bench.isolation import prove
    from linkwise.bench.prediction import predict_sizes
    from linkwise.network.setting import Launch
    from linkwise.report.bench_building import collectives_result

    launch = Launch.FRAMEWORK if is_torch else Launch.OWN_THREADS
    predicted = None if there is None else predict_sizes(there, measured, ranks=to.ranks, launch=launch)
    return collectives_result(
        measured,
        [run.record for run in runs],
        device=to.device,
        backend=None if is_torch else "nccl-tests",
        ranks=to.ranks,
        cluster=None if there is None else there.name,
        predictions=None if predicted is None else predicted[0],
        assumptions=() if predicted is None else predicted[1],
        isolated=None if isolation is None else (isolation, prove(isolation, _lines(runs))),
    )


def _isolated(to: TorchBench, isolate: str | None) -> tuple[TorchBench, Isolation | None]:
    """Return where the bench runs with the settings that force a path."""
    if isolate is None:
        return to, None
    from linkwise.bench.isolation import checked_isolation

    isolation = checked_isolation(isolate, device=to.device, ranks=to.ranks, environ=os.environ)
    return replace(to, settings={**to.settings, **isolation.settings}), isolation


def _lines(runs: tuple[FinishedRun, ...]) -> Iterator[str]:
    return (line for run in runs for line in run.log)


def _predictable(where: str, ranks: int) -> Cluster:
    """Return a cluster that has so many GPUs, or refuse it before anything is measured."""
    from linkwise.cluster import load_cluster
    from linkwise.network.cluster_setting import setting_of

    cluster = load_cluster(where)
    try:
        setting_of(cluster, gpus=ranks)
    except InputError as error:
        raise InputError(f"--cluster {where}: {error}") from None
    return cluster


def _by_torch(
    plan: CollectivesPlan, to: TorchBench
) -> tuple[tuple[FinishedRun, ...], tuple[MeasuredSize, ...]]:
    from linkwise.bench.collectives import measured_sizes
    from linkwise.bench.torch_run import run_torch

    with Progress() as progress:
        run = run_torch(to, "collectives", plan.told(to.ranks), on_event=progress.hear)
    return (run,), measured_sizes(run.events)


def _by_nccl_tests(
    directory: Path, plan: CollectivesPlan, to: TorchBench
) -> tuple[tuple[FinishedRun, ...], tuple[MeasuredSize, ...]]:
    from linkwise.bench.nccl_tests import run_nccl_tests

    with Progress() as progress:
        return run_nccl_tests(directory, plan, to, on_run=progress.count)


@bench.command()
@click.option("--rounds", type=int, metavar="N", help="Rounds of pairs; 5, or all there are, by default.")
@click.option(
    "--size", default="4MiB", show_default=True, metavar="SIZE", help="What each rank sends its partner."
)
@_with(*_SAMPLING, *_WHERE)
def pairs(
    *, rounds: int | None, size: str, repeats: int, warmup: int, calls: int | None, form: str, **where: Any
) -> int:
    """Find slow nodes by pairs that exchange data.

    All nodes meet in pairs, round after round, each once in a round, with all of their ranks at once; on this
    machine alone, ranks stand for nodes. A node that scores low meets good nodes in a second run, and is
    called slow if it is low again. Fewer than 8 nodes are no baseline: they are measured and not judged.

    \b
    linkwise bench pairs --on slurm --nodes 32 --ranks 256 --sbatch=--partition=train --size 64MiB
    linkwise bench pairs --ranks 8 --rounds 5 --size 16MiB
    """  # noqa: D301 (click reads \b as: do not wrap)
    from linkwise.bench.pairs import (
        PairsPlan,
        hosts_of,
        judged_nodes,
        measured_pairs,
        rounds_of,
    )
    from linkwise.bench.sampling import Sampling
    from linkwise.report.bench_building import pairs_result

    sampling = Sampling(repeats=repeats, warmup=warmup, calls=calls)
    size_bytes = max(1, size_of(size, "--size") // 4) * 4
    measured, records = [], []
    confirmed = None
    with _bench_of(needs_gpu=False, **where) as to:
        nodes = to.nodes or to.ranks
        plan = PairsPlan(
            rounds=rounds_of(nodes, rounds),
            size_bytes=size_bytes,
            ranks_per_node=to.ranks // nodes,
            sampling=sampling,
        )
        first = _one_run(to, plan, part="first")
        measured.append(measured_pairs(first.events))
        records.append(first.record)
        scores, fleet = judged_nodes(measured[0], plan.node_bytes) if _is_done(first.record) else ({}, None)
        if fleet is not None and fleet.low:
            second, confirmed = _met_again(to, plan, fleet, scores)
            measured.append(measured_pairs(second.events))
            records.append(second.record)
    result = pairs_result(
        measured,
        records,
        device=to.device,
        ranks=to.ranks,
        size_bytes=size_bytes,
        hosts=None if to.nodes is None else hosts_of(first.events, plan.ranks_per_node),
        nodes=nodes,
        scores=scores,
        fleet=fleet,
        confirmed=confirmed,
    )
    code = print_result(result, form, has_samples=any(measured))
    verdicts = {"alike": ExitCode.DONE, "slow nodes": ExitCode.AGAINST, "cannot tell": ExitCode.INCONCLUSIVE}
    return code if code != ExitCode.DONE else verdicts[result.verdict]


def _met_again(
    to: TorchBench, plan: PairsPlan, fleet: Fleet, scores: Mapping[int, float]
) -> tuple[FinishedRun, frozenset[int] | None]:
    """Return a run of the low nodes with good ones, and which are low again; ``None`` where it failed."""
    from linkwise.bench.pairs import confirming_rounds, judged_nodes, measured_pairs

    again = replace(plan, rounds=confirming_rounds(fleet.low, scores))
    second = _one_run(to, again, part="second")
    if not _is_done(second.record):
        return second, None
    low = judged_nodes(measured_pairs(second.events), plan.node_bytes)[1].low
    return second, frozenset(low) & frozenset(fleet.low)


def _one_run(to: TorchBench, plan: PairsPlan, *, part: str) -> FinishedRun:
    from linkwise.bench.torch_run import run_torch

    with Progress() as progress:
        return run_torch(to, "pairs", plan.told(), on_event=progress.hear, part=part)


@bench.command()
@click.argument("cuts", nargs=-1, metavar="[ddp|fsdp|tensor|pipeline]...")
@click.option(
    "--steps", type=click.IntRange(1, 100_000), default=10, show_default=True, help="Steps that are timed."
)
@click.option(
    "--batch", type=click.IntRange(1, 65_536), default=4, show_default=True, help="Sequences of a rank."
)
@click.option("--layers", type=click.IntRange(1, 10_000), default=4, show_default=True)
@click.option("--hidden", type=click.IntRange(1, 1_000_000), default=256, show_default=True)
@click.option("--heads", type=click.IntRange(1, 10_000), default=8, show_default=True)
@click.option("--sequence-length", type=click.IntRange(1, 10_000_000), default=128, show_default=True)
@_with(*_WHERE)
def training(
    *,
    cuts: tuple[str, ...],
    steps: int,
    batch: int,
    layers: int,
    hidden: int,
    heads: int,
    sequence_length: int,
    form: str,
    **where: Any,
) -> int:
    """Train a small transformer, cut in each way.

    A few steps of each, all four by default, each with torch's own module: DistributedDataParallel,
    fully_shard (FSDP2), tensor and pipeline (1F1B) parallelism. All start from the same weights and see the
    same tokens, so that their losses must agree.

    \b
    linkwise bench training
    linkwise bench training fsdp tensor --layers 8 --hidden 1024 --heads 16 --steps 20
    """  # noqa: D301 (click reads \b as: do not wrap)
    from linkwise.bench.torch_run import run_torch
    from linkwise.bench.training import CUTS, Shape, TrainingPlan, measured_cuts
    from linkwise.errors import UnknownName
    from linkwise.report.bench_building import training_result

    for cut in cuts:
        if cut not in CUTS:
            raise UnknownName.among(CUTS, kind="cut", given=cut)
    shape = Shape(layers=layers, hidden=hidden, heads=heads, sequence_length=sequence_length)
    plan = TrainingPlan(cuts=tuple(dict.fromkeys(cuts)) or CUTS, steps=steps, batch=batch, shape=shape)
    with _bench_of(needs_gpu=False, **where) as to, Progress() as progress:
        run = run_torch(to, "training", plan.told(to.ranks), on_event=progress.hear)
    measured = measured_cuts(run.events)
    result = training_result(measured, [run.record], plan, device=to.device, ranks=to.ranks)
    code = print_result(result, form, has_samples=bool(measured))
    if code == ExitCode.DONE and result.losses_agree is False:
        click.echo("linkwise: the losses of the cuts differ by more than 1 %: one computes wrongly", err=True)
        return ExitCode.AGAINST
    return code


@contextmanager
def _bench_of(
    *,
    ranks: int | None,
    device: str | None,
    python: str | None,
    patience: float,
    output: Path | None,
    needs_gpu: bool,
    place: str | None = None,
    nodes: int | None = None,
    options: tuple[str, ...] = (),
    queue_within: str | None = None,
) -> Iterator[TorchBench]:
    """Give where a bench runs; a lab is held as long."""
    from linkwise.bench.torch_run import TorchBench

    if output is not None and (not output.is_dir() or any(output.iterdir())) and output.exists():
        raise InputError(f"-o {output}: there is something already; name a folder that does not exist")
    asked = BenchAsked(
        ranks=ranks,
        nodes=nodes,
        device=device,
        options=options,
        queue_s=None if queue_within is None else seconds_of(queue_within, "--queue-within"),
        patience_s=patience / 2,
    )
    with bench_place(place or "local", asked) as there:
        chosen, count = (
            _devices(ranks, device, needs_gpu=needs_gpu) if there is None else (there.device, there.ranks)
        )
        to = TorchBench(
            device=chosen,
            ranks=count,
            python=python or sys.executable,
            folder=output,
            patience_s=patience,
        )
        yield to if there is None else replace(to, place=there.place, nodes=there.nodes, stage=there.stage)


def _devices(ranks: int | None, device: str | None, *, needs_gpu: bool) -> tuple[str, int]:
    from linkwise.bench.devices import chosen_device, chosen_ranks, visible_gpus

    gpus = visible_gpus(os.environ)
    if not needs_gpu:
        chosen = chosen_device(device, gpus=gpus)
        return chosen, chosen_ranks(ranks, device=chosen, gpus=gpus)
    # A program of nccl-tests says itself what it lacks; it may see GPUs without a device file here.
    if device == "cpu":
        raise InputError("--device cpu: nccl-tests has no CPUs to run on; leave the option out")
    if ranks is None and not gpus:
        raise InputError("--nccl-tests: no GPU to count here; say how many with --ranks")
    return "cuda", gpus if ranks is None else chosen_ranks(ranks, device="cpu", gpus=gpus)


def _is_done(record: RunRecord) -> bool:
    from linkwise.launch.run.ending import Outcome

    return record.ending.outcome is Outcome.DONE
