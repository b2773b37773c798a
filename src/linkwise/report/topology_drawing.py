"""A drawing of a fabric as SVG: its tiers one above the other, what repeats shown by its ends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from linkwise.report.svg import BOX, COLOURS, LETTER, Box, drawn, fitting, line, printable, svg, text
from linkwise.report.wording import counted

if TYPE_CHECKING:
    from linkwise.network.wiring import Wiring

__all__ = ["topology_svg"]

_WIDTH, _LEFT, _RIGHT = 1240, 130, 250
_ROW, _TOP = 130, 80
_MOST_PODS, _SPINE_PITCH = 3, 82.0
_ARC = 60
"""Room for the links between groups [px]."""

_SLOTS = 16
"""Leaves and gaps that fit side by side with legible names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Slot:
    """A place in the row of leaves: pod, group and leaf of it, or ``None`` where some are left out."""

    pod: int
    group: int | None
    leaf: int | None


def topology_svg(wiring: Wiring, *, title: str) -> str:
    """Return a drawing of one network of a fabric as the text of an SVG file.

    Parameters
    ----------
    wiring
        How its switches are joined.
    title
        What stands above it.

    Notes
    -----
    Of long rows the first and last parts are drawn, and dots between them; counts in the margin are of the
    whole network. Spine i of every pod leads to the cores of group i, which are one box. An arc is the links
    between two groups of dragonfly-plus.
    """
    tiers = ["node", "leaf", *(["spine"] if wiring.spines else []), *(["core"] if wiring.cores else [])]
    top = _TOP + (_ARC if wiring.pair_links else 0)
    rows = {tier: top + _ROW * (len(tiers) - 1 - place) for place, tier in enumerate(tiers)}
    leaves, dots = _leaf_row(wiring, rows)
    nodes = list(_node_row(wiring, leaves, rows["node"]))
    spines, more = _spine_row(wiring, rows["spine"]) if wiring.spines else ({}, [])
    cores, rest = _core_row(wiring, spines, rows["core"]) if wiring.cores else ({}, [])
    lines = [
        *((box, leaves[slot]) for box, slots in nodes for slot in slots),
        *((leaves[slot], box) for (pod, _), box in spines.items() for slot in leaves if slot.pod == pod),
        *((box, cores[place]) for (_, place), box in spines.items() if cores),
    ]
    boxes = [*leaves.values(), *(box for box, _ in nodes), *spines.values(), *cores.values()]
    height = top + _ROW * (len(tiers) - 1) + 70
    parts = [
        text(20, 28, printable(title), size=17, weight="bold"),
        text(20, 48, _subtitle(wiring), fill="#475569"),
        *(line(below, above) for below, above in lines),
        *_arcs(wiring, rows.get("spine", 0)),
        *(drawn(box) for box in boxes),
        *(text(x, y + 5, "...", size=20, anchor="middle") for x, y in (*dots, *more, *rest)),
        *_margins(wiring, rows),
    ]
    return svg(_WIDTH, height, parts)


def _subtitle(wiring: Wiring) -> str:
    words = f"switches of {wiring.ports} ports"
    if wiring.spines:
        words += f", {wiring.oversubscription:.3g} to 1 at the leaf"
    if wiring.networks > 1:
        words = f"one of {wiring.networks} networks that are alike and not joined; {words}"
    return words


def _shown(count: int, most: int) -> list[int | None]:
    """Return all of so many where they are few; else the first, a gap (``None``) and the last."""
    if count <= most:
        return list(range(count))
    return [*range(most - 2), None, count - 1]


def _spans(wiring: Wiring) -> list[tuple[int | None, float, float]]:
    """Return the pods drawn, a narrow gap where others are left out, and from where to where each is."""
    pods = _shown(wiring.pods, _MOST_PODS)
    shares = [0.2 if pod is None else 1.0 for pod in pods]
    width = (_WIDTH - _LEFT - _RIGHT) / sum(shares)
    starts = [_LEFT + width * sum(shares[:place]) for place in range(len(pods))]
    return [
        (pod, start, start + width * share) for pod, start, share in zip(pods, starts, shares, strict=True)
    ]


def _slots(wiring: Wiring, pod: int, room: int) -> list[_Slot]:
    """Return what stands in the row of leaves of one pod, in about so many places."""
    if wiring.pod_leaves % wiring.group_leaves:
        return _slots_of_split_groups(wiring, pod)
    pod_groups = wiring.pod_leaves // wiring.group_leaves
    first = pod * pod_groups
    count = min(pod_groups, -(-wiring.leaves // wiring.group_leaves) - first)
    leaves = _shown(wiring.group_leaves, 4 if wiring.pods == 1 else 3)
    row: list[_Slot] = []
    for group in _shown(count, max(3, room // (len(leaves) + 1))):
        if group is None:
            row.append(_Slot(pod=pod, group=None, leaf=None))
        else:
            row.extend(_Slot(pod=pod, group=first + group, leaf=leaf) for leaf in leaves)
    return row


def _slots_of_split_groups(wiring: Wiring, pod: int) -> list[_Slot]:
    """Return the row of leaves of a pod that has part of the leaves of a group."""
    first = pod * wiring.pod_leaves
    row = []
    for place in _shown(min(wiring.pod_leaves, wiring.leaves - first), 3):
        group, leaf = (None, None) if place is None else divmod(first + place, wiring.group_leaves)
        row.append(_Slot(pod=pod, group=group, leaf=leaf))
    return row


def _leaf_row(
    wiring: Wiring, rows: Mapping[str, float]
) -> tuple[dict[_Slot, Box], list[tuple[float, float]]]:
    """Return the leaves drawn, by slot, and where dots stand for others and for what goes with them."""
    boxes: dict[_Slot, Box] = {}
    dots: list[tuple[float, float]] = []
    spans = _spans(wiring)
    for pod, left, right in spans:
        if pod is None:
            dots.extend(((left + right) / 2, rows[tier]) for tier in ("node", "leaf", "spine"))
            continue
        slots = _slots(wiring, pod, _SLOTS // len(spans))
        pitch = (right - left) / len(slots)
        for place, slot in enumerate(slots):
            x = left + pitch * (place + 0.5)
            if slot.group is None or slot.leaf is None:
                dots.extend((x, rows[tier]) for tier in ("leaf", *(["node"] if slot.group is None else [])))
                continue
            number = f"{slot.group * wiring.group_leaves + slot.leaf + 1}"
            width = min(90.0, pitch - 6)
            name = fitting((f"leaf {number}", number), width)
            boxes[slot] = Box(tier="leaf", name=name, x=x, y=rows["leaf"], width=width)
    return boxes, dots


def _node_row(wiring: Wiring, leaves: dict[_Slot, Box], y: float) -> Iterator[tuple[Box, list[_Slot]]]:
    """Yield the nodes of each group drawn as one box, with the leaves they are on."""
    for pod, group in dict.fromkeys((slot.pod, slot.group) for slot in leaves):
        slots = [slot for slot in leaves if (slot.pod, slot.group) == (pod, group)]
        first = (group or 0) * wiring.group_nodes
        last = min(first + wiring.group_nodes, wiring.nodes) - 1
        numbers = f"{first:,}-{last:,}" if last > first else f"{first:,}"
        left, right = leaves[slots[0]], leaves[slots[-1]]
        width = max(left.width, (right.x - left.x) * 0.8)
        name = fitting((f"nodes {numbers}" if last > first else f"node {numbers}", numbers), width)
        yield Box(tier="node", name=name, x=(left.x + right.x) / 2, y=y, width=width), slots


def _spine_row(wiring: Wiring, y: float) -> tuple[dict[tuple[int, int], Box], list[tuple[float, float]]]:
    """Return the spines drawn, by pod and place in it, and where dots stand for others."""
    boxes, dots = {}, []
    for pod, left, right in _spans(wiring):
        if pod is None:
            continue
        most = min(8, int((right - left) / _SPINE_PITCH))
        for x, place in _spread(left, right, _shown(wiring.pod_spines, most)):
            if place is None:
                dots.append((x, y))
            else:
                name = f"spine {pod * wiring.pod_spines + place + 1}"
                boxes[pod, place] = Box(tier="spine", name=name, x=x, y=y, width=_SPINE_PITCH - 8)
    return boxes, dots


def _core_row(
    wiring: Wiring, spines: Mapping[tuple[int, int], Box], y: float
) -> tuple[dict[int, Box], list[tuple[float, float]]]:
    """Return the cores of the spines drawn, by the place of these in a pod, and where dots stand."""
    places: list[int | None] = list(dict.fromkeys(place for _, place in spines))
    if len(places) < wiring.pod_spines:
        places.insert(-1, None)
    boxes, dots = {}, []
    for x, place in _spread(_LEFT, _WIDTH - _RIGHT, places):
        if place is None:
            dots.append((x, y))
            continue
        first = place * wiring.group_cores + 1
        last = first + wiring.group_cores - 1
        name = f"cores {first}-{last}" if last > first else f"core {first}"
        boxes[place] = Box(tier="core", name=name, x=x, y=y, width=LETTER * len(name) + 16)
    return boxes, dots


def _arcs(wiring: Wiring, y: float) -> Iterator[str]:
    """Yield an arc for the links of each two groups drawn."""
    if not wiring.pair_links:
        return
    middles = [(left + right) / 2 for pod, left, right in _spans(wiring) if pod is not None]
    foot = y - BOX / 2
    for (place, one), (far, other) in combinations(enumerate(middles), 2):
        lift = foot - _ARC * (0.6 if far - place == 1 else 1.0)
        yield (
            f'<path d="M {one:.1f} {foot:.1f} Q {(one + other) / 2:.1f} {2 * lift - foot:.1f} {other:.1f} '
            f'{foot:.1f}" fill="none" stroke="#94a3b8" stroke-width="2"/>'
        )


def _spread(left: float, right: float, shown: Sequence[int | None]) -> Iterator[tuple[float, int | None]]:
    """Yield places from left to right at even distances."""
    pitch = (right - left) / len(shown)
    for place, each in enumerate(shown):
        yield left + pitch * (place + 0.5), each


def _margins(wiring: Wiring, rows: Mapping[str, float]) -> Iterator[str]:
    """Yield the counts: tiers on the left, cables on the right."""
    counts = {
        "node": counted(wiring.nodes, "node"),
        "leaf": counted(wiring.leaves, "leaf", "leaves"),
        "spine": counted(wiring.spines, "spine"),
        "core": counted(wiring.cores, "core"),
    }
    if wiring.pods > 1:
        counts["pod"] = counted(wiring.pods, "group" if wiring.pair_links else "pod")
        yield text(20, rows["spine"] + 22, counts["pod"], fill=COLOURS["spine"], size=12)
    for tier, y in rows.items():
        yield text(20, y + 4, counts[tier], fill=COLOURS[tier], weight="bold", size=13)
    x = _WIDTH - _RIGHT + 25
    cables = {
        "leaf": (wiring.nodes * wiring.node_links, f"{wiring.node_links} of each node"),
        "spine": (wiring.leaves * wiring.up_links, f"{wiring.spine_trunk} from a leaf to a spine"),
        "core": (wiring.spines * wiring.core_links, f"{wiring.core_trunk} from a spine to a core"),
    }
    for tier, (count, words) in cables.items():
        if tier in rows:
            y = rows[tier] + _ROW / 2
            yield text(x, y - 4, counted(count, "cable"), weight="bold")
            yield text(x, y + 12, words, fill="#475569")
    if wiring.pair_links:
        y = rows["spine"] - BOX
        yield text(x, y - 4, counted(wiring.global_cables // wiring.networks, "cable"), weight="bold")
        yield text(x, y + 12, f"{wiring.pair_links} between two groups", fill="#475569")
