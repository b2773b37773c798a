"""`linkwise explain`: every term of one estimate, and what a tenth more of each figure would buy."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from linkwise.cli.job_and_cluster import job_and_cluster_arguments, read_job_and_cluster
from linkwise.errors import ExitCode, InputError, UnknownName

if TYPE_CHECKING:
    from linkwise.cluster import Cluster
    from linkwise.estimate import Estimate
    from linkwise.job import Job
    from linkwise.report.results import ExplainResult

__all__ = ["explain"]


@click.command()
@job_and_cluster_arguments
@click.option(
    "--layout",
    metavar="KEY=VALUE,...",
    help="The layout to explain, in the keys of a job document: tensor=8,pipeline=4,zero_stage=1.",
)
@click.option("--term", metavar="NAME", help="Explain this term alone, each input on its line.")
@click.option(
    "--against",
    "record",
    metavar="RECORD",
    help="Set a measured run beside the estimate: a record of launch or bench, a training log, or a trace of "
    "PyTorch's profiler.",
)
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
def explain(
    *,
    job: str | None,
    cluster: str | None,
    cluster_option: str | None,
    layout: str | None,
    term: str | None,
    record: str | None,
    form: str,
    **options: object,
) -> int:
    """Print every term of one estimate: formula, inputs, source and basis of each figure.

    JOB and CLUSTER are as in plan. The layout is that of --layout or of the job; without one the best is
    searched for. Exit code 5: the layout does not fit, or none does and the closest is explained.

    --against sets the steps of a log (Megatron-LM, NeMo, torchtitan, DeepSpeed), of a profiler's trace or of
    a run folder of linkwise launch beside the estimate of the layout that ran, phase by phase, and names the
    one that is off. Exit code 1: the run is slower than the interval of the estimate, or invalid, which is
    said and not averaged; 3: it cannot be compared.

    A record of linkwise bench (collectives or training) is of no job: name the CLUSTER alone.

    \b
    linkwise explain examples/llama-70b.yaml examples/h100-256.yaml
    linkwise explain examples/llama-70b.yaml dgx-h100:32 --layout tensor=8,pipeline=4 --term tensor_s
    linkwise explain job.yaml cluster.yaml --against train.log
    linkwise explain job.yaml cluster.yaml --against runs/my-job-20260301-101500
    linkwise explain dgx-h100:1 --against bench.json
    """  # noqa: D301 (click reads \b as: do not wrap)
    if record is not None and term is not None:
        raise InputError(
            "--term has no effect beside --against, which compares the whole step; leave one out"
        )
    file = None
    if record is not None:
        from linkwise.cli.explain_against import against_bench, against_run, is_of_bench, measured_file

        file = measured_file(record)
        if is_of_bench(file):
            given = {**options, "layout": layout}
            return against_bench(file, job, cluster, cluster_option, given, form=form)
    keys = None if layout is None else _layout_keys(layout)
    asked, there = read_job_and_cluster(job, cluster, cluster_option, options, layout=keys)
    if job is not None and keys is not None:
        asked = _with_layout(asked, keys, path=job)
    if file is not None:
        return against_run(asked, there, file, form=form, explained=_explained, estimated=_estimate)
    result = _explained(asked, there)
    if term is not None:
        result = _only(result, term)
    _print(result, form, alone=term is not None)
    return ExitCode.DONE if result.layout.short_bytes <= 0 else ExitCode.INFEASIBLE


def _explained(job: Job, cluster: Cluster) -> ExplainResult:
    from linkwise.estimate.estimate import assumptions_of
    from linkwise.estimate.trace import sensitivities, trace
    from linkwise.report.results import explain_result

    estimate = _estimate(job, cluster)
    return explain_result(
        estimate,
        job=job,
        cluster=cluster,
        terms=trace(job, cluster, estimate.layout),
        sensitivities=sensitivities(job, cluster, estimate.layout),
        assumptions=assumptions_of(job, cluster),
    )


def _estimate(job: Job, cluster: Cluster) -> Estimate:
    if job.layout is not None:
        from linkwise.estimate import estimate_layout

        return estimate_layout(job, cluster, job.layout)
    from linkwise.search import plan

    found = plan(job, cluster, top=1)
    best = found.layouts[0] if found.layouts else found.closest
    if best is None:
        raise InputError("no layout to explain; give one as --layout tensor=8,pipeline=4")
    return best


def _layout_keys(text: str) -> dict[str, object]:
    """Return the keys and values of ``tensor=8,recompute=selective``; what they mean is checked later."""
    keys: dict[str, object] = {}
    for part in text.split(","):
        key, equals, value = (word.strip() for word in part.partition("="))
        if not equals or not key or not value:
            raise InputError(f"--layout: {part!r} is not KEY=VALUE, such as tensor=8")
        if key in keys:
            raise InputError(f"--layout: {key} is given twice")
        keys[key] = _plain(value)
    return keys


def _plain(text: str) -> object:
    if text.isascii() and text.isdigit():
        return int(text)
    return {"true": True, "false": False}.get(text, text)


def _with_layout(job: Job, keys: dict[str, object], *, path: str) -> Job:
    from linkwise.job.reading import layout_from_options

    if job.layout is not None:
        raise InputError(
            f"--layout has no effect beside the layout that {path} fixes; "
            "write 'layout: search' there, or leave the option out"
        )
    return replace(job, layout=layout_from_options(keys))


def _only(result: ExplainResult, name: str) -> ExplainResult:
    chosen = [term for term in result.terms if term.name == name]
    if not chosen:
        error = UnknownName.among([term.name for term in result.terms], kind="term", given=name)
        raise error if error.nearest else InputError(f"{error}; without --term all of them are printed")
    return result.model_copy(update={"terms": chosen})


def _print(result: ExplainResult, form: str, *, alone: bool) -> None:
    if form == "json":
        from linkwise.report.results import published_json

        click.echo(published_json(result))
        return
    from linkwise.report.explain_table import print_explanation, print_term
    from linkwise.report.tables import console_for

    console = console_for(sys.stdout)
    if alone:
        print_term(result.terms[0], console)
    else:
        print_explanation(result, console)
