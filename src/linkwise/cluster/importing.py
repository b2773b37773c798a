"""From what other programs print to a `cluster/1` document: formats told apart, files put together."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from linkwise import catalog
from linkwise.catalog import System
from linkwise.cluster.claims import Claim, Evidence, counted, weigh
from linkwise.cluster.cluster import FabricKind
from linkwise.cluster.document import MOST_CHANGES
from linkwise.cluster.fabric_claims import slurm_claims
from linkwise.cluster.guess import NodeChoice, choose_node
from linkwise.cluster.imported_yaml import Line, imported_yaml
from linkwise.cluster.infiniband_claims import infiniband_claims
from linkwise.cluster.node_claims import matrix_claims, nccl_claims
from linkwise.cluster.parts import fabric_switch_misfits
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


_SEARCHED = 1_000_000
"""Characters at the start of a text by which its format is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One format that is read.

    Parameters
    ----------
    name
        What prints it.
    is_it
        Whether the start of a text looks like it.
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
    unreadable: Sequence[Fault] = (),
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
    unreadable
        Faults of files that could not be opened, to be told with those of the others.

    Raises
    ------
    DocumentError
        With all faults of all files, what was read and what was not; also where files contradict, or do not
        say what cannot be assumed.
    UnknownName
        If an option names nothing of the catalogue.
    """
    options = tuple(_options(system=system, gpu=gpu, link=link))
    claims, read = _read_all(files, unreadable)
    evidence = weigh([*options, *claims], nodes=nodes)
    node = choose_node(evidence) if not evidence.faults else NodeChoice()
    faults = (*evidence.faults, *node.faults)
    if faults:
        raise DocumentError([*faults, _what_was_read(read, ())])
    lines = _lines(evidence, node, name=name)
    changes, unplaced = _changes(evidence, node, lines)
    notes = (*evidence.notes, *node.notes, *unplaced)
    text = imported_yaml(lines, read=read, notes=notes, changes=changes)
    _check(text, read)
    return Imported(text=text, read=read, notes=notes)


def _options(**given: str | None) -> Iterator[Claim]:
    """Yield what options say, by the names of the catalogue; that of a link goes before every file."""
    for key, name in given.items():
        if name is not None:
            found = catalog.entry(key, name).name
            yield Claim(key=key, value=found, path=f"--{key}", why=found, settled=key == "link")


def _read_all(files: Mapping[str, str], unreadable: Sequence[Fault]) -> tuple[list[Claim], tuple[str, ...]]:
    """Return the claims of all files and what each was read as; the faults of all files together."""
    claims: list[Claim] = []
    formats: dict[str, Format] = {}
    faults = list(unreadable)
    for path, text in files.items():
        try:
            found = _format_of(text, path)
            said = found.claims(found.parse(text, path=path), path)
            nth = sum(each is found for each in formats.values()) if found.is_node else 0
            claims += [_of_node(claim, nth) for claim in said]
            formats[path] = found
        except DocumentError as error:
            faults += error.faults
    read = tuple(f"{path} as {found.name}" for path, found in formats.items())
    if faults:
        failed = [each.path or "" for each in unreadable] + [path for path in files if path not in formats]
        raise DocumentError([*faults, _what_was_read(read, failed)])
    return [*claims, *_files_of_nodes(formats)], read


def _of_node(claim: Claim, nth: int) -> Claim:
    """Return a claim of the nth file of one node each: its changes are of the nth node."""
    if claim.key != "change" or not nth:
        return claim
    selector = re.sub(r"^node (\d+)", lambda found: f"node {int(found[1]) + nth}", claim.value["nics"])
    return replace(claim, value={**claim.value, "nics": selector})


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
    start = text[:_SEARCHED]
    for each in FORMATS:
        if each.is_it(start):
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


def _lines(evidence: Evidence, node: NodeChoice, *, name: str | None) -> list[Line]:
    named = [] if name is None else [Line(key="name", value=name)]
    count = _nodes_line(evidence)
    described = Line(key="node", value=node.system or node.described, comment=node.comment)
    return [*named, count, described, *_fabric_lines(evidence, node, one_node=count.value == 1)]


def _changes(
    evidence: Evidence, node: NodeChoice, lines: Sequence[Line]
) -> tuple[list[Line], tuple[str, ...]]:
    """Return the entries of `changes`, or why there are none although files tell of some."""
    stated = [claim for claim in evidence.changes if not claim.assumed]
    claims = stated or list(evidence.changes)
    if not claims:
        return [], ()
    values = {line.key: line.value for line in lines}
    nics = catalog.system(node.system).nics if node.system is not None else node.described["nics"]
    fits = evidence.value("nics") == nics
    if stated:
        counted_as = evidence.value("nodes"), evidence.value("link")
        of_options = any(evidence.where(key).startswith("--") for key in ("nodes", "link"))
        fits = fits and not of_options and counted_as == (values.get("nodes"), values.get("fabric.link"))
    if not fits or "fabric.link" not in values:
        files = ", ".join(dict.fromkeys(claim.path for claim in claims))
        why = "the document has another number of nodes or NICs, or another link, than the file"
        return [], (f"{files}: {counted(len(claims), 'slow or missing NIC')} not written as changes: {why}",)
    more = (f"{len(claims) - MOST_CHANGES:,} slow or missing NICs more than a document holds are left out",)
    kept = claims[:MOST_CHANGES]
    lines_of = [Line(key="", value=claim.value, comment=claim.why) for claim in kept]
    return lines_of, more if len(claims) > MOST_CHANGES else ()


def _nodes_line(evidence: Evidence) -> Line:
    claim = evidence.claims.get("nodes")
    if claim is None:
        return Line(key="nodes", value=1, comment="assumed: no file says how many; give --nodes")
    return _claimed("nodes", claim)


def _fabric_lines(evidence: Evidence, node: NodeChoice, *, one_node: bool) -> Iterator[Line]:
    """Yield the keys of the fabric: those that files state, and defaults of the system that say so."""
    system = catalog.system(node.system) if node.system is not None else None
    nics = system.nics if system is not None else int(node.described["nics"])
    gpus = system.gpus_per_node if system is not None else int(node.described["gpus_per_node"])
    link = _part("link", evidence, system.link if system is not None else None, node.system)
    if one_node and link is None:
        return
    if not nics:
        if one_node:
            yield Line(key="fabric.kind", value="none", comment="assumed: one node, and no NIC is known")
        return
    yield _kind_line(evidence, rails=nics >= gpus > 1)
    if link is not None:
        yield link
        yield from _switch_lines(evidence, str(link.value), system)
    if "oversubscription" in evidence.claims:
        yield _claimed("fabric.oversubscription", evidence.claims["oversubscription"])


def _part(key: str, evidence: Evidence, default: str | None, owner: str | None) -> Line | None:
    """Return the line of a part that a file states, or else that is the default of the system."""
    claim = evidence.claims.get(key)
    if claim is not None:
        return _claimed(f"fabric.{key}", claim)
    if default is None:
        return None
    return Line(key=f"fabric.{key}", value=default, comment=f"assumed: the {key} of {owner}")


def _switch_lines(evidence: Evidence, link: str, system: System | None) -> Iterator[Line]:
    """Yield the switch, but for one that cannot carry the link."""
    default = system.switch if system is not None and system.link == link else None
    line = _part("switch", evidence, default, system.name if system is not None else None)
    if line is not None and [*fabric_switch_misfits(str(line.value), link)] and default is not None:
        line = Line(key="fabric.switch", value=default, comment=f"assumed: the switch for {link}")
    if line is not None and not [*fabric_switch_misfits(str(line.value), link)]:
        yield line


def _kind_line(evidence: Evidence, *, rails: bool) -> Line:
    claim = evidence.claims.get("kind")
    if claim is not None:
        return _claimed("fabric.kind", claim)
    kind = FabricKind.RAIL_OPTIMIZED if rails else FabricKind.LEAF_SPINE
    reason = "a NIC for each GPU" if rails else "not a NIC for each GPU"
    comment = f"assumed: {reason}; no file says how it is wired"
    return Line(key="fabric.kind", value=str(kind), comment=comment)


def _claimed(key: str, claim: Claim) -> Line:
    words = "as the option says" if claim.path.startswith("--") else f"{claim.path}: {claim.why}"
    return Line(key=key, value=claim.value, comment=f"assumed: {words}" if claim.assumed else words)


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
