"""`linkwise cluster`: cluster documents from what other programs print, and in their words."""

from __future__ import annotations

from pathlib import Path

import click

from linkwise.cli.files import check_target, write_whole
from linkwise.errors import DocumentError, Fault, InputError, UnknownName

__all__ = ["cluster"]

_LARGEST_BYTES = 64_000_000
"""Files larger than this are refused: the fabric of 10,000 nodes prints half of it [bytes]."""


@click.group()
def cluster() -> None:
    """Make cluster documents from what other programs print, and write them for other programs."""


@cluster.command(name="import", short_help="A cluster document from what other programs print.")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--system", metavar="NAME", help="The node, a system of the catalogue, as in dgx-h100.")
@click.option("--gpu", metavar="NAME", help="The GPU, where no file says it and no system fits.")
@click.option("--nodes", type=click.IntRange(1, 10_000_000), help="How many nodes there are.")
@click.option("--link", metavar="NAME", help="The link of the fabric, as in infiniband-ndr-400.")
@click.option("--name", metavar="NAME", help="What to call the cluster.")
@click.option("--output", metavar="PATH", help="Write to a new file; standard output if left out.")
def import_(
    *,
    files: tuple[str, ...],
    system: str | None,
    gpu: str | None,
    nodes: int | None,
    link: str | None,
    name: str | None,
    output: str | None,
) -> None:
    """Build a cluster document from FILEs that together describe one cluster.

    The format of each is told by its content; docs/formats.md lists them. What no file says is marked as
    assumed in a comment, or asked for. - is standard input.

    \b
    nvidia-smi topo -m | linkwise cluster import - --system dgx-h100 --nodes 32
    linkwise cluster import topo.txt topology.conf --output cluster.yaml
    """  # noqa: D301 (click reads \b as: do not wrap)
    from linkwise.cluster.importing import import_cluster

    target = None if output in (None, "-") else _free_path(str(output))
    texts, unreadable = _texts(files)
    imported = import_cluster(
        texts, name=name, nodes=nodes, system=system, gpu=gpu, link=link, unreadable=unreadable
    )
    for each in imported.read:
        click.echo(f"linkwise: read {each}", err=True)
    for each in imported.notes:
        click.echo(f"linkwise: {each}", err=True)
    if target is None:
        click.echo(imported.text, nl=False)
    else:
        write_whole("--output", target, imported.text)
        click.echo(f"linkwise: wrote {target}", err=True)


@cluster.command(name="export")
@click.argument("form", metavar="FORMAT")
@click.argument("source", metavar="CLUSTER")
@click.option("--output", metavar="PATH", help="Write to a new file; standard output if left out.")
def export(*, form: str, source: str, output: str | None) -> None:
    """Write a cluster for another program.

    FORMAT is nccl-xml (one node, for NCCL_TOPO_FILE), slurm-tree or slurm-block (topology.conf), slurm-yaml
    (topology.yaml), topograph (JSON), kueue (a Topology and node labels), containerlab, astra-sim or
    calculon. CLUSTER is a cluster/1 document or SYSTEM:NODES. What it does not say, such as the names of
    nodes, is assumed.

    \b
    linkwise cluster export slurm-tree dgx-h100:64 --output topology.conf
    linkwise cluster export kueue gb200-nvl72:36 | kubectl apply --server-side -f -
    """  # noqa: D301 (click reads \b as: do not wrap)
    from linkwise.cluster import load_cluster
    from linkwise.network.exports import EXPORTS

    if form not in EXPORTS:
        raise UnknownName.among(EXPORTS, kind="format", given=form)
    target = None if output in (None, "-") else _free_path(str(output))
    text = EXPORTS[form](load_cluster(source))
    if target is None:
        click.echo(text, nl=False)
    else:
        write_whole("--output", target, text)
        click.echo(f"linkwise: wrote {target}", err=True)


def _texts(files: tuple[str, ...]) -> tuple[dict[str, str], list[Fault]]:
    """Return the text of each file by its path, and the faults of those that cannot be read."""
    from linkwise.documents import read_text

    texts: dict[str, str] = {}
    faults: list[Fault] = []
    for path in files:
        name = "<stdin>" if path == "-" else path
        if name in texts:
            faults.append(Fault(path=name, message="is given twice; name each file once"))
            continue
        try:
            texts[name] = read_text(path, largest_bytes=_LARGEST_BYTES)
        except DocumentError as error:
            faults += error.faults
    return texts, faults


def _free_path(output: str) -> Path:
    target = Path(output)
    check_target("--output", target)
    if target.exists():
        raise InputError(f"{target} exists and is left alone; give another path")
    return target
