"""What `plan` and `explain` are given: JOB and CLUSTER as files, or a job as options."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

import click

from linkwise.errors import DocumentError, Fault, InputError

if TYPE_CHECKING:
    from linkwise.cluster import Cluster
    from linkwise.job import Job

__all__ = ["job_and_cluster_arguments", "read_job_and_cluster"]

_Command = TypeVar("_Command", bound=Callable[..., object])

JOB_OPTIONS = ("model", "sequence_length", "global_batch", "precision", "framework", "tokens")
"""Options that describe a job: keys of a `job/1` document."""

_PARAMETERS = (
    click.argument("job", required=False),
    click.argument("cluster", required=False),
    click.option("--model", metavar="MODEL", help="A model of the catalogue, or a config.json."),
    click.option("--cluster", "cluster_option", metavar="CLUSTER", help="A file, or SYSTEM:NODES."),
    click.option("--sequence-length", type=int, metavar="TOKENS", help="Tokens of one sequence."),
    click.option("--global-batch", type=int, metavar="SEQUENCES", help="Sequences per optimizer step."),
    click.option("--precision", metavar="WORD", help="bf16 (default), fp16, fp8, nvfp4 or tf32."),
    click.option("--framework", metavar="NAME", help="megatron (default), torchtitan, deepspeed, ddp..."),
    click.option("--tokens", type=float, metavar="TOKENS", help="Length of the whole training."),
)


def job_and_cluster_arguments(command: _Command) -> _Command:
    """Return `command` with the parameters that say what is planned.

    Parameters
    ----------
    command
        A function that takes `job`, `cluster`, `cluster_option` and `JOB_OPTIONS`.
    """
    for parameter in reversed(_PARAMETERS):
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
    _refuse_mixture(job, cluster, cluster_option, options)
    where = cluster if cluster_option is None else cluster_option
    if job == "-" and where == "-":
        raise InputError(
            "JOB and CLUSTER are both '-', but standard input can be read once; give one as a file"
        )

    def read_job() -> Job:
        from linkwise import job as room

        return room.read_job(job) if job is not None else room.job_from_options({**options, "layout": layout})

    def read_cluster() -> Cluster:
        from linkwise import cluster as room

        if where is None:
            raise InputError(_no_cluster(job))
        try:
            return room.load_cluster(where)
        except DocumentError:
            raise
        except InputError as error:
            key = "CLUSTER" if cluster_option is None else "--cluster"
            raise DocumentError([Fault(key=key, message=str(error))]) from None

    asked, there = _both(read_job, read_cluster)
    _warn_of_old_prices(there)
    return asked, there


def _warn_of_old_prices(cluster: Cluster) -> None:
    """Say on standard error how old the prices are, by the calendar that the command line was given."""
    if cluster.prices is None:
        return
    from linkwise.cluster.prices import age_warning

    warning = age_warning(cluster.prices, today=click.get_current_context().obj())
    if warning is not None:
        click.echo(f"linkwise: {warning}", err=True)


def _refuse_mixture(
    job: str | None, cluster: str | None, cluster_option: str | None, options: Mapping[str, object]
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
    if cluster is not None and cluster_option is not None:
        raise InputError(
            f"--cluster {cluster_option} has no effect beside the argument {cluster!r}; leave one of them out"
        )


def _no_cluster(job: str | None) -> str:
    if job is None:
        return "--cluster: the option is required and missing; give a file or SYSTEM:NODES, as in dgx-h100:32"
    return f"no CLUSTER beside the job {job!r}; give a file or SYSTEM:NODES, as in dgx-h100:32"


_First = TypeVar("_First")
_Second = TypeVar("_Second")


def _both(first: Callable[[], _First], second: Callable[[], _Second]) -> tuple[_First, _Second]:
    """Return what both give; if one fails, with the faults of the other too."""
    errors: list[InputError] = []
    read: list[object] = []
    for each in (first, second):
        try:
            read.append(each())
        except InputError as error:
            errors.append(error)
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise DocumentError(fault for error in errors for fault in _faults(error))
    return read[0], read[1]  # type: ignore[return-value]


def _faults(error: InputError) -> tuple[Fault, ...]:
    return error.faults if isinstance(error, DocumentError) else (Fault(message=str(error)),)


def _spelled(name: str) -> str:
    return "--" + name.replace("_", "-")
