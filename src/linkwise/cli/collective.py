"""`linkwise collective`: what nccl-tests would print on a cluster."""

from __future__ import annotations

import csv
import sys
from typing import TYPE_CHECKING

import click

from linkwise.cli.collective_words import collective_named, sizes_of
from linkwise.cli.job_and_cluster import CALIBRATION_OPTION, calibrated_clusters
from linkwise.errors import ExitCode, InputError, UnknownName

if TYPE_CHECKING:
    from linkwise.cluster import Cluster
    from linkwise.nccl.communicator import Limits
    from linkwise.readers.nccl_tests import NcclTestsRun
    from linkwise.report.collective_result import CollectiveResult

__all__ = ["collective"]


@click.command()
@click.argument("operation", metavar="OP")
@click.argument("cluster")
@click.option(
    "--gpus",
    type=click.IntRange(min=1),
    metavar="N",
    help="Use the first N GPUs; all by default, with a LOG those of it.",
)
@click.option(
    "--sizes",
    metavar="SIZES",
    help="FROM:TO, doubling, or sizes with commas between; 8B:16GiB by default, with --compare those of LOG.",
)
@click.option("--algorithm", metavar="NAME", help="Take ring, tree, nvls or nvls_tree instead of choosing.")
@click.option("--protocol", metavar="NAME", help="Take ll, ll128 or simple instead of choosing.")
@click.option(
    "--compare",
    "log",
    metavar="LOG",
    help="Set what nccl-tests printed, or wrote as JSON (-J), beside it; - is standard input.",
)
@click.option(
    "--measured",
    metavar="LOG",
    help="Take the times that nccl-tests measured, printed or as JSON (-J), before those of the model.",
)
@CALIBRATION_OPTION
@click.option(
    "--format", "form", type=click.Choice(["table", "json", "csv"]), default="table", show_default=True
)
def collective(
    *,
    operation: str,
    cluster: str,
    gpus: int | None,
    sizes: str | None,
    algorithm: str | None,
    protocol: str | None,
    log: str | None,
    measured: str | None,
    calibration: str | None,
    form: str,
) -> int:
    """Print time, algbw and busbw of a collective over sizes, as nccl-tests would.

    OP is all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, reduce or send_recv. CLUSTER is a
    cluster/1 document or SYSTEM:NODES; - is standard input. Algorithm and protocol are those that NCCL
    would choose; sizes count the full buffer.

    --compare says, size by size, how far a measured run is from what the cluster should give, and what
    would explain it. It leaves with 0 where the run is as it should be, 1 where it is below, and 3 where
    nothing can be told.

    --measured lays a run over the model: its sizes have the times measured, sizes between them are
    interpolated, and those outside scaled by the nearest; the column basis says which.

    \b
    linkwise collective all_reduce dgx-h100:4 --sizes 1MiB:1GiB
    linkwise collective all_gather dgx-a100:2 --algorithm ring --protocol simple
    linkwise collective all_reduce dgx-h100:2 --compare all_reduce.log
    linkwise collective all_reduce dgx-h100:2 --measured all_reduce.log --sizes 1MiB:16GiB
    """  # noqa: D301 (click reads \b as: do not wrap)
    from linkwise.cluster import load_cluster

    asked = collective_named(operation)
    limits = _limits(asked, algorithm, protocol)

    def there() -> Cluster:
        read = load_cluster(cluster)
        return read if calibration is None else calibrated_clusters([read], calibration, others=[cluster])[0]

    if measured is not None:
        _check_measured(cluster, measured, log, algorithm=algorithm, protocol=protocol)
        column = sizes_of("8B:16GiB" if sizes is None else sizes)
        _lay_over(asked, there(), column, measured, gpus=gpus, form=form)
        return ExitCode.DONE
    if log is None:
        column = sizes_of("8B:16GiB" if sizes is None else sizes)
        _predict(asked, there(), column, gpus=gpus, limits=limits, form=form)
        return ExitCode.DONE
    if sizes is not None:
        raise InputError("--sizes: no effect with --compare, whose log has sizes of its own; leave it out")
    if log == cluster == "-":
        raise InputError("CLUSTER and --compare cannot both be standard input; name a file for one of them")
    return _compare(asked, there(), log, gpus=gpus, limits=limits, form=form)


def _predict(
    operation: str, cluster: Cluster, sizes: list[int], *, gpus: int | None, limits: Limits, form: str
) -> None:
    import numpy as np

    from linkwise.network.cluster_setting import assumptions_of, setting_of
    from linkwise.network.collective_time import collective_times
    from linkwise.report.collective_result import collective_result

    setting = setting_of(cluster, gpus=gpus, limits=limits)
    result = collective_result(
        collective_times(operation, setting, np.array(sizes, dtype=np.float64)),
        operation=operation,
        cluster=cluster,
        setting=setting,
        assumptions=tuple(assumptions_of(cluster, setting, operation)),
    )
    _print(result, form)


def _check_measured(
    cluster: str, measured: str, log: str | None, *, algorithm: str | None, protocol: str | None
) -> None:
    """Refuse what has no effect beside measured times, and one standard input for two."""
    if log is not None:
        raise InputError("--measured and --compare: give one; a run is set beside the model, or laid over it")
    given = {"--algorithm": algorithm, "--protocol": protocol}
    if named := [name for name, word in given.items() if word is not None]:
        raise InputError(f"{' and '.join(named)}: no effect on times that were measured; leave it out")
    if measured == cluster == "-":
        raise InputError("CLUSTER and --measured cannot both be standard input; name a file for one of them")


def _lay_over(
    operation: str, cluster: Cluster, sizes: list[int], log: str, *, gpus: int | None, form: str
) -> None:
    import numpy as np

    from linkwise.network.cluster_setting import assumptions_of
    from linkwise.network.measured_collective import measured_collective, override_times
    from linkwise.report.collective_result import overridden_collective_result

    measured = measured_collective(operation, cluster, _run(log), gpus=gpus)
    found = override_times(measured, np.array(sizes, dtype=np.float64))
    assumptions = tuple(assumptions_of(cluster, measured.setting, operation))
    _print(overridden_collective_result(found, measured, cluster=cluster, assumptions=assumptions), form)


def _run(log: str) -> NcclTestsRun:
    from linkwise.documents.text import STANDARD_INPUT, read_text
    from linkwise.readers.nccl_tests import parse_nccl_tests

    return parse_nccl_tests(read_text(log), path="<stdin>" if log == STANDARD_INPUT else log)


def _compare(
    operation: str, cluster: Cluster, log: str, *, gpus: int | None, limits: Limits, form: str
) -> int:
    from linkwise.network.cluster_setting import assumptions_of
    from linkwise.network.collective_comparison import Verdict, compare_run
    from linkwise.report.collective_result import compared_collective_result

    found = compare_run(operation, cluster, _run(log), gpus=gpus, limits=limits)
    assumptions = tuple(assumptions_of(cluster, found.setting, operation))
    _print(compared_collective_result(found, cluster=cluster, assumptions=assumptions), form)
    codes = {
        Verdict.AS_IT_SHOULD_BE: ExitCode.DONE,
        Verdict.BELOW: ExitCode.AGAINST,
        Verdict.CANNOT_TELL: ExitCode.INCONCLUSIVE,
    }
    return codes[found.verdict]


def _limits(operation: str, algorithm: str | None, protocol: str | None) -> Limits:
    from linkwise.nccl.communicator import ALGORITHMS, PROTOCOLS, Limits
    from linkwise.network.setting import WITH_CHOICE

    given = {"--algorithm": algorithm, "--protocol": protocol}
    if operation not in WITH_CHOICE and (named := [name for name, word in given.items() if word is not None]):
        raise InputError(f"{' and '.join(named)}: no effect on {operation}, which has one form; leave it out")
    return Limits(
        algorithms=_named(algorithm, ALGORITHMS, "algorithm"),
        protocols=_named(protocol, PROTOCOLS, "protocol"),
    )


def _named(word: str | None, known: tuple[str, ...], kind: str) -> frozenset[str]:
    if word is None:
        return frozenset(known)
    plain = {name.replace("_", ""): name for name in known}
    try:
        return frozenset((plain[word.lower().replace("_", "").replace("-", "")],))
    except KeyError:
        raise UnknownName.among(known, kind=kind, given=word) from None


def _print(result: CollectiveResult, form: str) -> None:
    if form == "json":
        from linkwise.report.results import published_json

        click.echo(published_json(result))
    elif form == "csv":
        from linkwise.report.collective_result import collective_csv_rows

        csv.writer(sys.stdout, lineterminator="\n").writerows(collective_csv_rows(result))
    else:
        from linkwise.report.collective_result import (
            ComparedCollectiveResult,
            print_collective,
            print_compared_collective,
        )
        from linkwise.report.tables import console_for

        if isinstance(result, ComparedCollectiveResult):
            print_compared_collective(result, console_for())
        else:
            print_collective(result, console_for())
