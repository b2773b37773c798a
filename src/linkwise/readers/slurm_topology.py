"""Slurm's `topology.conf` (tree and block) and `topology.yaml`: which nodes hang on which switch or block.

Notes
-----
`LinkSpeed` is informative only and not read. Of several topologies in a `topology.yaml` the one with
`cluster_default` is read, or the first that is no flat one.

References
----------
SchedMD, "Slurm Workload Manager", manual pages topology.conf(5) and topology.yaml(5), 2025.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter

from linkwise.documents.tree import KeyPath, Plain, Tree, parse_yaml
from linkwise.errors import InputError
from linkwise.readers.faults import Faults, excerpt
from linkwise.readers.hostlist import MOST_NAMES, expand_hostlist

__all__ = [
    "SlurmTopology",
    "SwitchGroup",
    "is_slurm_topology",
    "is_slurm_topology_yaml",
    "parse_slurm_topology",
    "parse_slurm_topology_yaml",
]

_LINE = re.compile(r"^[ \t]*(?:SwitchName|BlockName|BlockSizes)[ \t]*=", re.IGNORECASE | re.MULTILINE)
_YAML = re.compile(r"^[ \t]*(?:-[ \t]*)?topology[ \t]*:", re.MULTILINE)
_TYPES = re.compile(r"^[ \t-]*(?:tree|block|flat)[ \t]*:", re.MULTILINE)
_PAIR = re.compile(r"(?<![A-Za-z])([A-Za-z]{1,40})\s*=\s*(\S+)")
_NAMES = ("switchname", "blockname")
_LISTS = ("nodes", "switches")
_IGNORED = ("linkspeed",)
_MOST_IN_ALL = 5 * MOST_NAMES


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchGroup:
    """One switch of a tree, or one block.

    Parameters
    ----------
    name
        Its name.
    nodes
        Nodes directly on it.
    children
        Switches below it; none for a block.
    """

    name: str
    nodes: tuple[str, ...] = ()
    children: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmTopology:
    """What Slurm knows of the network.

    Parameters
    ----------
    switches
        The switches of a tree; empty for blocks.
    blocks
        The blocks; empty for a tree.
    block_sizes
        Nodes of a block and of what is planned as one; the first is that of a block.
    tiers
        Switches on the way from a node to the top of the tree; 0 for blocks.
    """

    switches: tuple[SwitchGroup, ...] = ()
    blocks: tuple[SwitchGroup, ...] = ()
    block_sizes: tuple[int, ...] = ()
    tiers: int = 0

    @property
    def nodes(self) -> frozenset[str]:
        """Return the names of all nodes."""
        return frozenset(node for group in (*self.switches, *self.blocks) for node in group.nodes)


@dataclass(slots=True, kw_only=True)
class _Groups:
    """Switches and blocks as they are read, and what is wrong with them."""

    faults: Faults
    switches: dict[str, SwitchGroup] = field(default_factory=dict)
    blocks: dict[str, SwitchGroup] = field(default_factory=dict)
    lines: dict[str, int | None] = field(default_factory=dict)
    sizes: tuple[int, ...] = ()
    names: int = 0

    def add(self, kind: str, lists: Mapping[str, str], *, name: str, line: int | None) -> None:
        """Keep one switch or block with the lists that its keys hold."""
        expanded = {key: self.expand(text, line) for key, text in lists.items()}
        groups = self.blocks if kind == "block" else self.switches
        named = self.expand(name, line)
        self.count(len(named) * sum(map(len, expanded.values())), line)
        for each in named:
            if each in groups:
                here = f"the {kind} {excerpt(each)} is here and in line {self.lines[each]}"
                self.faults.add(f"{here}; keep one", line=line)
                continue
            self.lines[each] = line
            groups[each] = SwitchGroup(
                name=each, nodes=expanded.get("nodes", ()), children=expanded.get("switches", ())
            )

    def expand(self, text: str, line: int | None) -> tuple[str, ...]:
        """Return the names of a hostlist."""
        try:
            names = expand_hostlist(text)
        except InputError as error:
            self.faults.add(str(error), line=line)
            return ()
        self.count(len(names), line)
        return names

    def count(self, names: int, line: int | None) -> None:
        """Bound the names of a file together; a list may stand for the switches of a list, too."""
        self.names += names
        if self.names > _MOST_IN_ALL:
            raise self.faults.refusal(f"stands for more than {_MOST_IN_ALL:,} names in all", line=line)

    def finish(self) -> SlurmTopology:
        """Return the topology, having raised what is wrong with it."""
        self.check_tree()
        self.check_blocks()
        if not self.faults.found and not any(
            group.nodes for group in (*self.switches.values(), *self.blocks.values())
        ):
            self.faults.add("no switch and no block has nodes")
        tiers = self.count_tiers()
        self.faults.raise_any()
        return SlurmTopology(
            tiers=tiers,
            switches=tuple(self.switches.values()),
            blocks=tuple(self.blocks.values()),
            block_sizes=self.sizes,
        )

    def check_tree(self) -> None:
        """Note children that are not there."""
        for switch in self.switches.values():
            for child in switch.children:
                if child not in self.switches:
                    missing = f"{switch.name} has the child {excerpt(child)}, which has no line of its own"
                    todo = "the file is cut short or misspelt"
                    self.faults.add(f"{missing}; {todo}", line=self.lines[switch.name])

    def count_tiers(self) -> int:
        """Return the number of tiers of the tree; a circle is a fault."""
        try:
            return _tiers(self.switches)
        except CycleError as error:
            name = str(error.args[1][0])
            message = f"the switch {excerpt(name)} is above itself"
            raise self.faults.refusal(message, line=self.lines.get(name)) from None

    def check_blocks(self) -> None:
        """Note nodes that two blocks claim; switches may share nodes (a rail each)."""
        owner: dict[str, str] = {}
        for block in self.blocks.values():
            for node in block.nodes:
                first = owner.setdefault(node, block.name)
                if first != block.name:
                    both = f"the node {excerpt(node)} is in the blocks {first} and {block.name}"
                    self.faults.add(f"{both}; keep one", line=self.lines[block.name])
        if self.blocks and self.switches:
            self.faults.add("has switches and blocks; a file is for the tree or for the block plugin")


def _tiers(switches: Mapping[str, SwitchGroup]) -> int:
    """Return the number of switches on the longest way down; `CycleError` where it has no end."""
    below = {
        name: [child for child in switch.children if child in switches] for name, switch in switches.items()
    }
    tiers: dict[str, int] = {}
    for name in TopologicalSorter(below).static_order():
        tiers[name] = 1 + max((tiers[child] for child in below[name]), default=0)
    return max(tiers.values(), default=0)


def is_slurm_topology(text: str) -> bool:
    """Return whether `text` looks like a topology.conf.

    Parameters
    ----------
    text
        The file, or its start.
    """
    return _LINE.search(text) is not None


def parse_slurm_topology(text: str, *, path: str | None = None) -> SlurmTopology:
    """Return the topology in a topology.conf.

    Parameters
    ----------
    text
        The file.
    path
        Its name, for messages.

    Raises
    ------
    DocumentError
        With all faults: lines that are none, switches doubled or missing, circles, hostlists that are none.
    """
    groups = _Groups(faults=Faults(path=path))
    for number, line in _logical_lines(text):
        pairs = {key.lower(): value for key, value in _PAIR.findall(line)}
        rest = _PAIR.sub("", line).strip()
        kind = next((key for key in _NAMES if key in pairs), None)
        if rest:
            groups.faults.add(f"{excerpt(rest)} is not KEY=VALUE", line=number)
        elif kind is not None:
            lists = {key: value for key, value in pairs.items() if key in _LISTS}
            for key in sorted(set(pairs) - {kind, *_LISTS, *_IGNORED}):
                groups.faults.add(f"unknown key {excerpt(key)}; Nodes and Switches are read", line=number)
            groups.add(kind.removesuffix("name"), lists, name=pairs[kind], line=number)
        elif "blocksizes" in pairs:
            groups.sizes = _sizes(pairs["blocksizes"].split(","), groups.faults, number)
        else:
            groups.faults.add(f"{excerpt(line.strip())} names no switch and no block", line=number)
    return groups.finish()


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield number and text of each line that says something; a backslash at its end joins the next."""
    parts: list[str] = []
    first = 0
    for number, line in enumerate(text.splitlines(), start=1):
        first = first or number
        part = line.partition("#")[0].rstrip()
        parts.append(part.removesuffix("\\"))
        if part.endswith("\\"):
            continue
        joined = " ".join(parts)
        if joined.strip():
            yield first, joined
        parts, first = [], 0
    if any(map(str.strip, parts)):
        yield first, " ".join(parts)


def _sizes(words: list[str], faults: Faults, line: int | None) -> tuple[int, ...]:
    if all(word.isascii() and word.isdigit() and 1 <= int(word[:9]) <= MOST_NAMES for word in words):
        return tuple(map(int, words))
    faults.add(f"BlockSizes {excerpt(','.join(words))} are not whole numbers from 1", line=line)
    return ()


def is_slurm_topology_yaml(text: str) -> bool:
    """Return whether `text` looks like a topology.yaml.

    Parameters
    ----------
    text
        The file, or its start.
    """
    return _YAML.search(text) is not None and _TYPES.search(text) is not None


def parse_slurm_topology_yaml(text: str, *, path: str | None = None) -> SlurmTopology:
    """Return the topology for the whole cluster in a topology.yaml.

    Parameters
    ----------
    text
        The file.
    path
        Its name, for messages.

    Raises
    ------
    DocumentError
        With all faults: YAML that is none, keys of another shape, and those of a topology.conf.
    """
    tree = parse_yaml(text, path=path)
    reader = _YamlReader(tree=tree, groups=_Groups(faults=Faults(path=path, found=list(tree.faults))))
    reader.read()
    return reader.groups.finish()


@dataclass(slots=True, kw_only=True)
class _YamlReader:
    """Reads the one topology that counts, and says at which line what is wrong."""

    tree: Tree
    groups: _Groups

    def read(self) -> None:
        chosen = self.chosen()
        if chosen is None:
            return
        place, entry = chosen
        for kind, key in (("switch", "tree"), ("block", "block")):
            body = entry.get(key)
            if isinstance(body, dict):
                self.read_groups(kind, body, (place, key))
                sizes = body.get("block_sizes")
                if isinstance(sizes, list):
                    line = self.tree.lines.get((place, key, "block_sizes"))
                    self.groups.sizes = _sizes([str(each) for each in sizes], self.groups.faults, line)

    def chosen(self) -> tuple[int, dict[str, Plain]] | None:
        """Return place and content of the topology that counts."""
        listed = self.tree.value
        if not isinstance(listed, list):
            self.groups.faults.add("is not a list of topologies ('- topology: NAME')", line=1)
            return None
        entries = [(place, each) for place, each in enumerate(listed) if isinstance(each, dict)]
        shaped = [(place, each) for place, each in entries if "tree" in each or "block" in each]
        if not shaped:
            self.groups.faults.add("no topology is a tree or has blocks; a flat one says nothing", line=1)
            return None
        return next((pair for pair in shaped if pair[1].get("cluster_default") is True), shaped[0])

    def read_groups(self, kind: str, body: dict[str, Plain], at: KeyPath) -> None:
        plural = "switches" if kind == "switch" else "blocks"
        groups = body.get(plural)
        if not isinstance(groups, list):
            self.fault(at, f"has no list of {plural}")
            return
        for place, group in enumerate(groups):
            here = (*at, plural, place)
            name = group.get(kind) if isinstance(group, dict) else None
            if not isinstance(group, dict) or not isinstance(name, str | int):
                self.fault(here, f"is no {kind} with a name")
                continue
            lists = {"nodes": group.get("nodes"), "switches": group.get("children")}
            for key, value in lists.items():
                if value is not None and not isinstance(value, str):
                    self.fault(here, f"the {key} of {excerpt(str(name))} are not text such as n[0-3]")
            self.groups.add(
                kind,
                {key: value for key, value in lists.items() if isinstance(value, str)},
                name=str(name),
                line=self.tree.lines.get(here),
            )

    def fault(self, at: KeyPath, message: str) -> None:
        key = ".".join(map(str, at))
        self.groups.faults.add(message, line=self.tree.lines.get(at), key=key)
