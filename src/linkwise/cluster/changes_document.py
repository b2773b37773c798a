"""`changes` of a `cluster/1` document: how a selector is written, and which changes fit the cluster."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from linkwise import catalog
from linkwise.cluster.changes import MOST_CHANGED, Change, Part, Span, gpus_left, missing_nodes
from linkwise.cluster.parts import Node, fabric_parts_of, gpus_of, node_of, rate_text
from linkwise.documents import BytesPerSecond, Document, Misfits
from linkwise.errors import InputError

if TYPE_CHECKING:
    from linkwise.cluster.document import ClusterDocument

__all__ = ["ChangeDocument", "change_misfits", "changes_of", "gpus_after_changes"]

_LONGEST_SELECTOR = 200
_FORMS: Mapping[Part, tuple[tuple[str, ...], ...]] = {
    Part.NICS: (("node", "nic"),),
    Part.LINKS: (("leaf", "spine"), ("leaf", "spine", "link")),
    Part.NODES: (("node",),),
    Part.GPUS: (("node", "gpu"),),
    Part.SWITCHES: (("leaf",), ("spine",)),
}
"""Words of a selector, each with numbers behind it; of links and switches `network` may go before them."""
_EXAMPLES: Mapping[Part, str] = {
    Part.NICS: "node 3 nic 2",
    Part.LINKS: "leaf 1 spine 2",
    Part.NODES: "node 5-6",
    Part.GPUS: "node 2 gpu 0",
    Part.SWITCHES: "spine 1",
}
_NUMBERS = re.compile(r"\*|\d{1,8}(?:-\d{1,8})?(?:,\d{1,8}(?:-\d{1,8})?)*")
_COUNTED_FROM_ONE = ("network", "leaf", "spine", "link")


Selector = Annotated[
    str,
    BeforeValidator(lambda given: str(given) if type(given) is int else given),
    WithJsonSchema({"type": ["string", "integer"]}),
]
"""Words and numbers; a number alone is read, so that its message says how to write it."""


class ChangeDocument(Document):
    """Parts that are missing or slow: one selector, and what is left of each part it names."""

    model_config = ConfigDict(title="Change")

    nics: Selector | None = Field(default=None, description="Such as 'node 3 nic 2' or 'node 0-7 nic *'.")
    links: Selector | None = Field(
        default=None,
        description="Between switches, numbered as in the list of cables: 'leaf 1 spine 2 link 1'.",
    )
    nodes: Selector | None = Field(default=None, description="Such as 5, '5-6' or 'node 5-6'.")
    gpus: Selector | None = Field(default=None, description="Such as 'node 2 gpu 0'.")
    switches: Selector | None = Field(default=None, description="Such as 'leaf 3' or 'spine 1'.")
    rate: BytesPerSecond | None = Field(default=None, description="What a NIC or a link still carries.")
    fraction: Annotated[float, Field(strict=True, gt=0, lt=1)] | None = Field(
        default=None, description="What is left of the rate, or of the speed of a GPU."
    )
    missing: Literal[True] | None = Field(default=None, description="Nothing is left.")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        parts = [part for part in Part if getattr(self, part) is not None]
        left = [key for key in ("rate", "fraction", "missing") if getattr(self, key) is not None]
        faults = []
        if len(parts) != 1:
            faults.append(("", f"{_said(parts)}; name one of {', '.join(Part)}"))
        if len(left) != 1:
            faults.append(("", f"{_said(left)}; say one of rate, fraction and missing: true"))
        if not faults:
            faults = [*_word_misfits(self, parts[0], left[0])]
        if faults:
            raise Misfits(faults)
        return self

    @property
    def part(self) -> Part:
        """Return what the change is about."""
        return next(part for part in Part if getattr(self, part) is not None)

    @property
    def text(self) -> str:
        """Return the selector as it was written."""
        text = " ".join(str(getattr(self, self.part)).split())
        return f"node {text}" if self.part is Part.NODES and _NUMBERS.fullmatch(text) else text


def _said(keys: list[str] | list[Part]) -> str:
    return f"{' and '.join(keys)} do not go together" if keys else "says too little"


def _word_misfits(given: ChangeDocument, part: Part, left: str) -> Iterator[tuple[str, str]]:
    try:
        _selector(part, given.text)
    except InputError as error:
        yield part, str(error)
    if left == "rate" and part in (Part.NODES, Part.GPUS):
        yield "rate", f"{part} have a speed and no rate; write fraction, or name their nics"
    if left != "missing" and part is Part.SWITCHES:
        yield left, "a switch is there or missing; give what is left of its links under links"


def _selector(part: Part, text: str) -> tuple[tuple[str, tuple[Span, ...]], ...]:
    """Return the words of a selector with their numbers."""
    words = text.split()
    names, numbers = tuple(words[::2]), words[1::2]
    known = names[1:] if names[:1] == ("network",) and part in (Part.LINKS, Part.SWITCHES) else names
    fits = known in _FORMS[part] and len(names) == len(numbers) and len(text) <= _LONGEST_SELECTOR
    if not fits or not all(map(_NUMBERS.fullmatch, numbers)):
        shown = text if len(text) <= 40 else f"{text[:37]}..."
        raise InputError(
            f"{shown!r} does not select {part}; write it as '{_EXAMPLES[part]}', with numbers such as 3, "
            "0-7, 1,4 or * for all"
        )
    return tuple((name, _spans(name, each)) for name, each in zip(names, numbers, strict=True))


def _spans(name: str, text: str) -> tuple[Span, ...]:
    first = int(name in _COUNTED_FROM_ONE)
    if text == "*":
        return ((first, None),)
    found = []
    for each in text.split(","):
        low, _, high = each.partition("-")
        if int(high or low) < int(low):
            raise InputError(f"{name} {each}: the first number is larger than the last")
        if int(low) < first:
            raise InputError(f"{name} {low}: counted from {first}, as in the list of cables")
        found.append((int(low), int(high or low)))
    return tuple(found)


def changes_of(document: ClusterDocument) -> tuple[Change, ...]:
    """Return the changes that a document states.

    Parameters
    ----------
    document
        The document; its parts fit together.
    """
    built = _built_rates(document)
    return tuple(
        Change(
            part=given.part,
            selector=_selector(given.part, given.text),
            text=given.text,
            left_fraction=_left(given, built),
            place=f"changes.{place}",
        )
        for place, given in enumerate(document.changes)
    )


def gpus_after_changes(document: ClusterDocument, node: Node) -> tuple[int, int]:
    """Return how many GPUs there are to use, and how many of each NVLink domain, without missing nodes.

    Parameters
    ----------
    document
        The cluster as it was read.
    node
        One of its nodes.
    """
    missing = missing_nodes(changes_of(document), document.nodes) if document.changes else ()
    if not missing:
        return gpus_of(document, node)
    domain_nodes = max(1, node.nvlink_domain_gpus // node.gpus_per_node)
    if domain_nodes == 1:
        left = document.model_copy(update={"nodes": document.nodes - len(missing)})
        return gpus_of(left, node)
    gpus, domain = gpus_left(
        nodes=document.nodes, node_gpus=node.gpus_per_node, domain_nodes=domain_nodes, missing=missing
    )
    used = min(domain, document.gpus_per_domain or domain)
    return gpus // domain * used, used


def change_misfits(document: ClusterDocument) -> Iterator[tuple[str, str]]:
    """Return key and message of each change that does not fit the cluster or has no effect.

    Parameters
    ----------
    document
        The cluster as it was read.
    """
    node = node_of(document.node)
    faults = [
        (f"changes.{place}{key and '.'}{key}", message)
        for place, given in enumerate(document.changes)
        for key, message in _misfits_of(document, given, node)
    ]
    yield from faults
    if faults:
        return
    changes = changes_of(document)
    if sum(map(_count, changes, [document] * len(changes))) > MOST_CHANGED:
        yield "changes", f"name more than {MOST_CHANGED:,} parts; describe a smaller cluster"
        return
    yield from _overlap_misfits(document, changes)
    lost = set(missing_nodes(changes, document.nodes))
    yield from _idle_misfits(document, changes, lost)
    yield from _cut_off_misfits(document, changes, lost, nics=node.nics)
    if len(lost) == document.nodes:
        yield "changes", "leave no node to train on"
    elif lost and document.gpus is not None:
        left, _ = gpus_after_changes(document, node)
        if document.gpus > left:
            yield "gpus", f"{document.gpus} GPUs are more than the {left} that changes leave; ask for fewer"


def _misfits_of(document: ClusterDocument, given: ChangeDocument, node: Node) -> Iterator[tuple[str, str]]:
    ends = {"node": document.nodes, "nic": node.nics, "gpu": node.gpus_per_node}
    for word, spans in _selector(given.part, given.text):
        end = ends.get(word)
        most = None if end is None else max((high or low for low, high in spans))
        if end is not None and most is not None and most >= end:
            there = f"{word}s 0 to {end - 1}" if end > 1 else f"{word} 0 alone" if end else f"no {word}"
            yield given.part, f"{word} {most} is not there: {_owner(word)} {there}"
    is_network = given.part in (Part.NICS, Part.LINKS, Part.SWITCHES)
    rate = _built_rates(document).get(given.part, 0.0)
    if is_network and document.fabric is not None and document.fabric.links is not None:
        yield (
            given.part,
            "the table of links says what there is; take them out of its rows, or lower their rate",
        )
    elif is_network and not rate:
        yield given.part, "has no effect: there is no fabric"
    elif given.rate is not None and given.rate >= 0.999 * rate:
        yield "rate", f"has no effect: {given.part} carry {rate_text(rate)} as they were built"


def _owner(word: str) -> str:
    return "the cluster has" if word == "node" else "a node has"


def _built_rates(document: ClusterDocument) -> dict[Part, float]:
    """Return what a NIC and a link between switches carry as built [bytes/s]; 0 without a fabric."""
    node = node_of(document.node)
    parts = fabric_parts_of(document.fabric, node)
    if parts.link is None:
        return {}
    link = catalog.link(parts.link).bytes_per_s
    planes = document.fabric.planes if document.fabric is not None else 1
    nic = node.nic_bytes_per_s if parts.link == node.link else min(node.nic_bytes_per_s, planes * link)
    return {Part.NICS: nic, Part.LINKS: link, Part.SWITCHES: link}


def _left(given: ChangeDocument, built: Mapping[Part, float]) -> float:
    if given.missing:
        return 0.0
    return given.fraction if given.rate is None else given.rate / built[given.part]  # type: ignore[return-value]


def _count(change: Change, document: ClusterDocument) -> int:
    """Return how many parts a change names, at most."""
    total = 1
    for word, spans in change.selector:
        all_of = document.nodes if word == "node" else 1024
        total *= sum((all_of if high is None else high - low + 1) for low, high in spans)
    return total


def _overlap_misfits(document: ClusterDocument, changes: tuple[Change, ...]) -> Iterator[tuple[str, str]]:
    """Yield the changes that name a NIC, GPU or node which an earlier one names."""
    seen: dict[tuple[object, ...], str] = {}
    node = node_of(document.node)
    for change in changes:
        if change.part in (Part.LINKS, Part.SWITCHES):
            continue
        word, end = ("nic", node.nics) if change.part is Part.NICS else ("gpu", node.gpus_per_node)
        inner = (0,) if change.part is Part.NODES else tuple(change.numbers(word, end))
        for one in change.numbers("node", document.nodes):
            first = next((seen[key] for each in inner if (key := (change.part, one, each)) in seen), None)
            if first is not None:
                yield (
                    f"{change.place}.{change.part}",
                    f"names a part of node {one} that {first} names; keep one",
                )
                break
            seen.update(((change.part, one, each), change.place) for each in inner)


def _idle_misfits(
    document: ClusterDocument, changes: tuple[Change, ...], lost: set[int]
) -> Iterator[tuple[str, str]]:
    for change in changes:
        if change.part in (Part.LINKS, Part.SWITCHES) or (
            change.part is Part.NODES and not change.left_fraction
        ):
            continue
        if change.part is Part.GPUS and not change.left_fraction:
            continue
        if lost and all(one in lost for one in change.numbers("node", document.nodes)):
            yield f"{change.place}.{change.part}", "has no effect: its nodes are missing; leave it out"
        elif change.part is not Part.NICS and _are_unused(document, change, lost):
            words = f"has no effect: the {document.gpus} GPUs in use are those of other nodes, the first ones"
            yield f"{change.place}.{change.part}", f"{words}; leave it out"


def _are_unused(document: ClusterDocument, change: Change, lost: set[int]) -> bool:
    """Return whether GPUs are named only of nodes behind those in use."""
    if document.gpus is None or document.gpus_per_domain is not None:
        return False
    in_use = -(-document.gpus // node_of(document.node).gpus_per_node)
    first = min(change.numbers("node", document.nodes))
    return first - sum(one < first for one in lost) >= in_use


def _cut_off_misfits(
    document: ClusterDocument, changes: tuple[Change, ...], lost: set[int], *, nics: int
) -> Iterator[tuple[str, str]]:
    """Yield the nodes that have no NIC left and are not said to be missing."""
    gone: dict[int, set[int]] = {}
    for change in changes:
        if change.part is Part.NICS and not change.left_fraction:
            for one in change.numbers("node", document.nodes):
                gone.setdefault(one, set()).update(change.numbers("nic", nics))
    for one, without in gone.items():
        if len(without) == nics and one not in lost:
            yield "changes", f"node {one} has no NIC left; write {{nodes: node {one}, missing: true}} instead"
            return
