"""What `plan`, `explain` and `compare` are given: JOB and CLUSTER as files, or a job as options."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import click

from linkwise.cli.numbers import FiniteFloat
from linkwise.errors import DocumentError, Fault, InputError

if TYPE_CHECKING:
    from linkwise.cluster import Cluster
    from linkwise.cluster.variants import VariantAxes
    from linkwise.job import Job

__all__ = [
    "CALIBRATION_OPTION",
    "calibrated_clusters",
    "job_and_cluster_arguments",
    "job_and_clusters_arguments",
    "read_job_and_cluster",
    "read_job_and_clusters",
]

_Command = TypeVar("_Command", bound=Callable[..., object])

JOB_OPTIONS = ("model", "sequence_length", "global_batch", "precision", "framework", "tokens")
"""Options that describe a job: keys of a `job/1` document."""

CALIBRATION_OPTION = click.option(
    "--calibration",
    metavar="FILE",
    help="Lay what linkwise calibrate found on this hardware over the model.",
)
_JOB_PARAMETERS = (
    CALIBRATION_OPTION,
    click.option("--model", metavar="MODEL", help="A model of the catalogue, or a config.json."),
    click.option("--sequence-length", type=int, metavar="TOKENS", help="Tokens of one sequence."),
    click.option("--global-batch", type=int, metavar="SEQUENCES", help="Sequences per optimizer step."),
    click.option("--precision", metavar="WORD", help="bf16 (default), fp16, fp8, nvfp4 or tf32."),
    click.option("--framework", metavar="NAME", help="megatron (default), torchtitan, deepspeed, ddp..."),
    click.option("--tokens", type=FiniteFloat(), metavar="TOKENS", help="Length of the whole training."),
)
_ONE_CLUSTER = (
    click.argument("job", required=False),
    click.argument("cluster", required=False),
    click.option("--cluster", "cluster_option", metavar="CLUSTER", help="A file, or SYSTEM:NODES."),
)
_CLUSTERS = (
    click.argument("job", required=False),
    click.argument("clusters", nargs=-1, metavar="[CLUSTER]..."),
    click.option(
        "--cluster",
        "cluster_options",
        metavar="CLUSTER",
        multiple=True,
        help="A file, or SYSTEM:NODES; may be given again.",
    ),
)


def job_and_cluster_arguments(command: _Command) -> _Command:
    """Return `command` with the parameters that say what is planned.

    Parameters
    ----------
    command
        A function that takes `job`, `cluster`, `cluster_option` and `JOB_OPTIONS`.
    """
    return _with_parameters(command, (*_ONE_CLUSTER, *_JOB_PARAMETERS))


def job_and_clusters_arguments(command: _Command) -> _Command:
    """Return `command` with the parameters that say which job is compared on which clusters.

    Parameters
    ----------
    command
        A function that takes `job`, `clusters`, `cluster_options` and `JOB_OPTIONS`.
    """
    return _with_parameters(command, (*_CLUSTERS, *_JOB_PARAMETERS))


def _with_parameters(command: _Command, parameters: Sequence[Callable[[_Command], _Command]]) -> _Command:
    for parameter in reversed(parameters):
        command = parameter(command)
    return command


def read_job_and_cluster(
    job: str | None,
    cluster: str | None,
    cluster_option: str | None,
    options: Mapping[str, object],
    *,
    layout: Mapping[str, object] | None = None,
) -> tuple[Job, Cluster]:
    """Return what is planned, from files or options.

    Parameters
    ----------
    job, cluster
        The arguments JOB and CLUSTER.
    cluster_option
        The option that stands for CLUSTER.
    options
        The values of `JOB_OPTIONS`; ``None`` where not given.
    layout
        Degrees of a fixed layout, for a job that is given as options.

    Raises
    ------
    InputError
        With every fault of the job and of the cluster; also when an option would have no effect.
    """
    clusters = () if cluster is None else (cluster,)
    cluster_options = () if cluster_option is None else (cluster_option,)
    asked, (there,) = read_job_and_clusters(job, clusters, cluster_options, options, layout=layout)
    return asked, there


def read_job_and_clusters(
    job: str | None,
    clusters: Sequence[str],
    cluster_options: Sequence[str],
    options: Mapping[str, object],
    *,
    layout: Mapping[str, object] | None = None,
    axes: VariantAxes | None = None,
) -> tuple[Job, tuple[Cluster, ...]]:
    """Return a job and the clusters it is put on, from files or options.

    Parameters
    ----------
    job, clusters
        The arguments JOB and CLUSTER.
    cluster_options
        The options that stand for CLUSTER.
    options
        The values of `JOB_OPTIONS`; ``None`` where not given.
    layout
        Degrees of a fixed layout, for a job that is given as options.
    axes
        What to vary of the one cluster that is given.

    Raises
    ------
    InputError
        With every fault of the job and of the clusters; also when an option would have no effect.
    """
    _refuse_mixture(job, clusters, cluster_options, options)
    places = [*clusters, *cluster_options]
    if [job, *places].count("-") > 1:
        raise InputError(
            "JOB and CLUSTER are both '-', but standard input can be read once; give one as a file"
            if job == "-"
            else "two clusters are '-', but standard input can be read once; give one as a file"
        )

    def read_job() -> Job:
        from linkwise import job as room

        return (
            room.read_job(job)
            if job is not None
            else room.job_from_options({**job_options, "layout": layout})
        )

    def no_cluster() -> tuple[Cluster, ...]:
        raise InputError(_no_cluster(job))

    key = "CLUSTER" if clusters else "--cluster"
    calibration = options.get("calibration")
    job_options = {name: options[name] for name in JOB_OPTIONS}
    readers: list[Callable[[], object]] = [read_job]
    readers += [partial(_read_clusters, where, key, axes) for where in places] or [no_cluster]
    asked, *found = _all_read(readers)
    there = tuple(each for variants in found for each in variants)
    if isinstance(calibration, str):
        there = calibrated_clusters(there, calibration, others=places)
    warn_of_old_prices(there)
    return asked, there


def calibrated_clusters(
    clusters: Sequence[Cluster], path: str, *, others: Sequence[str] = ()
) -> tuple[Cluster, ...]:
    """Return clusters with the calibration in a file on those whose hardware it is of.

    Parameters
    ----------
    clusters
        What there is.
    path
        The value of --calibration.
    others
        Other files that are read, which cannot be standard input too.

    Raises
    ------
    InputError
        If the file cannot be used, is stale, or is of other hardware than all of the clusters.
    """
    from linkwise.cluster.calibration import calibrated
    from linkwise.cluster.calibration_document import read_calibration
    from linkwise.estimate.constants import constants_digest

    if path == "-" and "-" in others:
        raise InputError("--calibration and CLUSTER cannot both be standard input; name a file for one")
    calibration = read_calibration(path, constants=constants_digest())
    laid: list[Cluster] = []
    refusals: list[str] = []
    for each in clusters:
        try:
            laid.append(calibrated(each, calibration))
        except InputError as error:
            laid.append(each)
            refusals.append(str(error))
    if len(refusals) == len(clusters):
        raise InputError(f"--calibration: {refusals[0]}")
    for refusal in refusals:
        click.echo(f"linkwise: --calibration not taken: {refusal.partition('; run ')[0]}", err=True)
    return tuple(laid)


def _read_clusters(where: str, key: str, axes: VariantAxes | None) -> tuple[Cluster, ...]:
    """Return the cluster at one place, or its variants."""
    from linkwise.cluster.reading import load_document
    from linkwise.cluster.variants import VariantAxes, cluster_variants

    try:
        document = load_document(where)
    except DocumentError:
        raise
    except InputError as error:
        raise DocumentError([Fault(key=key, message=str(error))]) from None
    try:
        return cluster_variants(document, axes or VariantAxes())
    except DocumentError as error:
        raise DocumentError(replace(fault, key=_spelled(fault.key)) for fault in error.faults) from None


def warn_of_old_prices(clusters: Sequence[Cluster]) -> None:
    """Say on standard error how old the prices are, by the calendar that the command line was given.

    Parameters
    ----------
    clusters
        Clusters with prices or without.
    """
    from linkwise.cluster.prices import age_warning

    today = click.get_current_context().obj
    for prices in dict.fromkeys(each.prices for each in clusters if each.prices is not None):
        warning = age_warning(prices, today=today())
        if warning is not None:
            click.echo(f"linkwise: {warning}", err=True)


def _refuse_mixture(
    job: str | None, clusters: Sequence[str], cluster_options: Sequence[str], options: Mapping[str, object]
) -> None:
    given = [_spelled(name) for name in JOB_OPTIONS if options[name] is not None]
    if job is None and not given:
        raise InputError(
            "no job: give JOB and CLUSTER, or --model, --sequence-length, --global-batch and --cluster"
        )
    if job is not None and given:
        many = len(given) > 1
        raise InputError(
            f"{', '.join(given)} {'have' if many else 'has'} no effect beside the job file {job!r}; "
            f"write {'them' if many else 'it'} into the file, or leave the file out "
            "(and give the cluster as --cluster)"
        )
    if clusters and cluster_options:
        raise InputError(
            f"--cluster {cluster_options[0]} has no effect beside the argument {clusters[0]!r}; "
            "leave one of them out"
        )


def _no_cluster(job: str | None) -> str:
    if job is None:
        return "--cluster: the option is required and missing; give a file or SYSTEM:NODES, as in dgx-h100:32"
    return f"no CLUSTER beside the job {job!r}; give a file or SYSTEM:NODES, as in dgx-h100:32"


def _all_read(readers: Sequence[Callable[[], Any]]) -> list[Any]:
    """Return what all give; if any fail, with the faults of each."""
    errors: list[InputError] = []
    read: list[Any] = []
    for each in readers:
        try:
            read.append(each())
        except InputError as error:
            errors.append(error)
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise DocumentError(dict.fromkeys(fault for error in errors for fault in _faults(error)))
    return read


def _faults(error: InputError) -> tuple[Fault, ...]:
    return error.faults if isinstance(error, DocumentError) else (Fault(message=str(error)),)


def _spelled(name: str) -> str:
    return "--" + name.replace("_", "-")
