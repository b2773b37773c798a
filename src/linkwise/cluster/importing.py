"""From what other programs print to a `cluster/1` document: formats told apart, files put together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from linkwise import catalog
from linkwise.cluster.claims import Claim, Evidence, weigh
from linkwise.cluster.cluster import FabricKind
from linkwise.cluster.fabric_claims import slurm_claims
from linkwise.cluster.guess import NodeChoice, choose_node
from linkwise.cluster.imported_yaml import Line, imported_yaml
from linkwise.cluster.infiniband_claims import infiniband_claims
from linkwise.cluster.node_claims import matrix_claims, nccl_claims
from linkwise.cluster.placement_claims import lldp_claims, placement_claims
from linkwise.cluster.reading import parse_cluster
from linkwise.errors import DocumentError, Fault
from linkwise.readers import (
    iblinkinfo,
    ibnetdiscover,
    lldp,
    nccl_topology,
    placed_nodes,
    slurm_topology,
    topology_matrix,
)

__all__ = ["FORMATS", "Format", "Imported", "import_cluster"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One format that is read.

    Parameters
    ----------
    name
        What prints it.
    is_it
        Whether a text looks like it.
    parse
        From the text and its path to a value of `readers`.
    claims
        What that value says of a cluster.
    is_node
        Whether a file is of one node, so that several files are several nodes.
    largest_characters
        A longer text is refused before it is read.
    """

    name: str
    is_it: Callable[[str], bool]
    parse: Callable[..., Any]
    claims: Callable[[Any, str], Iterator[Claim]]
    is_node: bool = False
    largest_characters: int = 2_000_000


FORMATS: tuple[Format, ...] = (
    Format(
        name="nvidia-smi topo -m",
        is_it=topology_matrix.is_topology_matrix,
        parse=topology_matrix.parse_topology_matrix,
        claims=matrix_claims,
        is_node=True,
    ),
    Format(
        name="NCCL topology XML",
        is_it=nccl_topology.is_nccl_topology,
        parse=nccl_topology.parse_nccl_topology,
        claims=nccl_claims,
        is_node=True,
        largest_characters=20_000_000,
    ),
    Format(
        name="Slurm topology.conf",
        is_it=slurm_topology.is_slurm_topology,
        parse=slurm_topology.parse_slurm_topology,
        claims=slurm_claims,
    ),
    Format(
        name="Slurm topology.yaml",
        is_it=slurm_topology.is_slurm_topology_yaml,
        parse=slurm_topology.parse_slurm_topology_yaml,
        claims=slurm_claims,
    ),
    Format(
        name="ibnetdiscover",
        is_it=ibnetdiscover.is_ibnetdiscover,
        parse=ibnetdiscover.parse_ibnetdiscover,
        claims=infiniband_claims,
        largest_characters=64_000_000,
    ),
    Format(
        name="iblinkinfo",
        is_it=iblinkinfo.is_iblinkinfo,
        parse=iblinkinfo.parse_iblinkinfo,
        claims=infiniband_claims,
        largest_characters=64_000_000,
    ),
    Format(
        name="Kubernetes nodes (kubectl get nodes -o json)",
        is_it=placed_nodes.is_kubernetes_nodes,
        parse=placed_nodes.parse_kubernetes_nodes,
        claims=placement_claims,
        largest_characters=64_000_000,
    ),
    Format(
        name="topograph JSON",
        is_it=placed_nodes.is_topograph,
        parse=placed_nodes.parse_topograph,
        claims=placement_claims,
        largest_characters=64_000_000,
    ),
    Format(
        name="LLDP JSON (lldpctl -f json)",
        is_it=lldp.is_lldp,
        parse=lldp.parse_lldp,
        claims=lldp_claims,
        is_node=True,
    ),
)
"""The formats, in the order in which a text is tried on them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """A cluster that was put together.

    Parameters
    ----------
    text
        The `cluster/1` document.
    read
        What each file was read as.
    notes
        What the files say and the document cannot hold.
    """

    text: str
    read: tuple[str, ...]
    notes: tuple[str, ...]


def import_cluster(
    files: Mapping[str, str],
    *,
    name: str | None = None,
    nodes: int | None = None,
    system: str | None = None,
    gpu: str | None = None,
    link: str | None = None,
) -> Imported:
    """Return the cluster that some files describe together.

    Parameters
    ----------
    files
        Text by path.
    name
        What its owner calls it.
    nodes
        How many nodes there are; goes before what files say.
    system, gpu, link
        Names of the catalogue for what the files do not say; `link` goes before what files say.

    Raises
    ------
    DocumentError
        With all faults of all files, what was read and what was not; also where files contradict, or do not
        say what cannot be assumed.
    UnknownName
        If an option names nothing of the catalogue.
    """
    system = None if system is None else catalog.system(system).name
    gpu = None if gpu is None else catalog.gpu(gpu).name
    link = None if link is None else catalog.link(link).name
    claims, read = _read_all(files)
    evidence = weigh(claims, settled={"nodes": nodes, "link": link, "system": system, "gpu": gpu})
    if link is not None:
        stated = Claim(key="link", value=link, path="--link", why="as the option says")
        evidence = Evidence(
            claims={**evidence.claims, "link": stated}, notes=evidence.notes, faults=evidence.faults
        )
    node = choose_node(evidence, system=system, gpu=gpu) if not evidence.faults else NodeChoice()
    faults = (*evidence.faults, *node.faults)
    if faults:
        raise DocumentError([*faults, _what_was_read(read, ())])
    lines = _lines(evidence, node, name=name, nodes=nodes)
    notes = (*evidence.notes, *node.notes)
    text = imported_yaml(lines, read=read, notes=notes)
    _check(text, read)
    return Imported(text=text, read=read, notes=notes)


def _read_all(files: Mapping[str, str]) -> tuple[list[Claim], tuple[str, ...]]:
    """Return the claims of all files and what each was read as; the faults of all files together."""
    claims: list[Claim] = []
    formats: dict[str, Format] = {}
    faults: list[Fault] = []
    for path, text in files.items():
        try:
            found = _format_of(text, path)
            claims += found.claims(found.parse(text, path=path), path)
            formats[path] = found
        except DocumentError as error:
            faults += error.faults
    read = tuple(f"{path} as {found.name}" for path, found in formats.items())
    if faults:
        raise DocumentError([*faults, _what_was_read(read, [path for path in files if path not in formats])])
    return [*claims, *_files_of_nodes(formats)], read


def _files_of_nodes(formats: Mapping[str, Format]) -> Iterator[Claim]:
    """Yield how many nodes there are if each file of one format is of another node."""
    counts = Counter(found.name for found in formats.values() if found.is_node)
    name, count = max(counts.items(), key=lambda each: each[1], default=("", 0))
    if count > 1:
        path = next(path for path, found in formats.items() if found.name == name)
        why = f"{count} files of {name}, of one node each"
        yield Claim(key="nodes", value=count, path=path, why=why, assumed=True)


def _format_of(text: str, path: str) -> Format:
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise DocumentError([Fault(path=path, line=line, message="is not text: it holds zero bytes")])
    for each in FORMATS:
        if each.is_it(text):
            if len(text) > each.largest_characters:
                most = f"{each.largest_characters // 1_000_000} million characters"
                message = f"looks like {each.name}, but is longer than {most}"
                raise DocumentError([Fault(path=path, message=message)])
            return each
    what = "is empty" if not text.strip() else "is in no format that is read"
    names = "; ".join(each.name for each in FORMATS)
    raise DocumentError([Fault(path=path, line=1, message=f"{what}; read are: {names}")])


def _what_was_read(read: Sequence[str], failed: Sequence[str]) -> Fault:
    parts = [f"read: {', '.join(read) or 'nothing'}"]
    if failed:
        parts.append(f"not read: {', '.join(failed)}")
    return Fault(message=f"nothing was written; {'; '.join(parts)}")


def _lines(evidence: Evidence, node: NodeChoice, *, name: str | None, nodes: int | None) -> list[Line]:
    lines = [] if name is None else [Line(key="name", value=name)]
    lines.append(_nodes_line(evidence, nodes))
    lines.append(Line(key="node", value=node.system or node.described, comment=node.comment))
    return [*lines, *_fabric_lines(evidence, node, int(str(lines[-2].value)))]


def _nodes_line(evidence: Evidence, nodes: int | None) -> Line:
    claim = evidence.claims.get("nodes")
    if nodes is not None:
        return Line(key="nodes", value=nodes, comment="as the option says")
    if claim is None:
        return Line(key="nodes", value=1, comment="assumed: no file says how many; give --nodes")
    words = f"{claim.path}: {claim.why}"
    return Line(key="nodes", value=claim.value, comment=f"assumed: {words}" if claim.assumed else words)


def _fabric_lines(evidence: Evidence, node: NodeChoice, nodes: int) -> Iterator[Line]:
    """Yield the keys of the fabric: those that files state, and defaults of the system that say so."""
    system = catalog.system(node.system) if node.system is not None else None
    has_nics = system.nics if system is not None else node.described.get("nics")
    if system is None and not has_nics:
        if nodes == 1:
            yield Line(key="fabric.kind", value="none", comment="assumed: one node, and no NIC is known")
        return
    kind = _kind(evidence, system.nics >= system.gpus_per_node if system is not None else None, nodes)
    if kind is not None:
        yield kind
    link = evidence.claims.get("link")
    if link is not None:
        yield _claimed("link", link)
    elif system is not None and system.link is not None:
        yield Line(key="fabric.link", value=system.link, comment=f"assumed: the link of {system.name}")
    chosen = link.value if link is not None else system.link if system is not None else None
    switch = evidence.claims.get("switch")
    if switch is not None:
        yield _claimed("switch", switch)
    elif system is not None and system.switch is not None and chosen == system.link:
        yield Line(key="fabric.switch", value=system.switch, comment=f"assumed: the switch of {system.name}")
    if "oversubscription" in evidence.claims:
        yield _claimed("oversubscription", evidence.claims["oversubscription"])


def _claimed(key: str, claim: Claim) -> Line:
    words = claim.why if claim.path.startswith("--") else f"{claim.path}: {claim.why}"
    return Line(
        key=f"fabric.{key}", value=claim.value, comment=f"assumed: {words}" if claim.assumed else words
    )


def _kind(evidence: Evidence, has_rails: bool | None, nodes: int) -> Line | None:  # noqa: FBT001 (a fact)
    claim = evidence.claims.get("kind")
    if claim is not None:
        return _claimed("kind", claim)
    if nodes == 1 and has_rails is None:
        return None
    kind = FabricKind.RAIL_OPTIMIZED if has_rails else FabricKind.LEAF_SPINE
    reason = "a NIC for each GPU" if has_rails else "fewer NICs than GPUs, or not known"
    return Line(
        key="fabric.kind", value=str(kind), comment=f"assumed: {reason}; no file says how it is wired"
    )


def _check(text: str, read: Sequence[str]) -> None:
    """Raise what the document that was put together lacks, in words of the options that supply it."""
    try:
        parse_cluster(text)
    except DocumentError as error:
        faults = [Fault(key=each.key, message=f"{each.message}{_option(each.key)}") for each in error.faults]
        raise DocumentError([*faults, _what_was_read(read, ())]) from None


def _option(key: str) -> str:
    options = {"fabric": "--link", "fabric.link": "--link", "node": "--system or --link", "nodes": "--nodes"}
    return f" (with {options[key]})" if key in options else ""
