"""A drawing of a fabric of explicit links as SVG: nodes below, switches by their distance from them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from linkwise.report.svg import BOX, COLOURS, Box, drawn, fitting, line, printable, svg, text
from linkwise.report.wording import counted

if TYPE_CHECKING:
    from linkwise.network.link_graph import LinkGraph

__all__ = ["link_topology_svg"]

_WIDTH, _LEFT, _TOP, _ROW = 1240, 130, 110, 130
_MOST = 14
"""Boxes of one row; of more the first ones and the last are drawn."""


def link_topology_svg(graph: LinkGraph, *, title: str) -> str:
    """Return a drawing of a fabric as the text of an SVG file.

    Parameters
    ----------
    graph
        The links.
    title
        What stands above it.

    Notes
    -----
    A line is all cables between two ends; links within a tier are arcs above it.
    """
    tiers = graph.tiers
    rows: list[list[int]] = [[] for _ in range(int(tiers.max()) + 1)]
    rows[0] = list(range(graph.nodes))
    for switch in range(graph.switches):
        rows[int(tiers[switch])].append(switch)
    boxes = {}
    parts: list[str] = []
    for tier, members in enumerate(rows):
        y = _TOP + _ROW * (len(rows) - 1 - tier)
        parts.append(text(20, y + 4, _count(tier, len(members)), fill=_colour(tier), weight="bold", size=13))
        shown, gap = _shown(members)
        pitch = (_WIDTH - _LEFT - 20) / max(1, len(shown) + (gap is not None))
        for place, member in enumerate(shown):
            x = _LEFT + pitch * (place + 0.5 + (gap is not None and place >= gap))
            name = f"node {member}" if tier == 0 else printable(graph.names[member])
            width = min(110.0, pitch - 6)
            most = max(3, int((width - 6) / 6.6))
            short = name if len(name) <= most else name[: most - 2] + ".."
            boxes[tier == 0, member] = Box(
                tier=_tier(tier), name=fitting((short,), width), x=x, y=y, width=width
            )
        if gap is not None:
            parts.append(text(_LEFT + pitch * (gap + 0.5), y + 5, "...", size=20, anchor="middle"))
    words = f"{counted(graph.switches, 'switch', 'switches')}; a line is all cables between two ends"
    heading = [
        text(20, 28, printable(title), size=17, weight="bold"),
        text(20, 48, words, fill="#475569"),
    ]
    parts = [*heading, *_lines(graph, boxes), *(drawn(box) for box in boxes.values()), *parts]
    return svg(_WIDTH, _TOP + _ROW * (len(rows) - 1) + 70, parts)


def _tier(tier: int) -> str:
    return ("node", "leaf", "spine", "core")[min(tier, 3)]


def _colour(tier: int) -> str:
    return COLOURS[_tier(tier)]


def _count(tier: int, count: int) -> str:
    return counted(count, "node") if tier == 0 else counted(count, "switch", "switches")


def _shown(members: Sequence[int]) -> tuple[list[int], int | None]:
    """Return the members drawn, and before which of them some are left out."""
    if len(members) <= _MOST:
        return list(members), None
    return [*members[: _MOST - 2], members[-1]], _MOST - 2


def _lines(graph: LinkGraph, boxes: dict[tuple[bool, int], Box]) -> Iterator[str]:
    half = len(graph.tail) // 2
    ends = zip(graph.end_node.tolist(), graph.end_switch.tolist(), strict=True)
    pairs = [((True, node), (False, switch)) for node, switch in ends]
    trunks = zip(graph.tail[:half].tolist(), graph.head[:half].tolist(), strict=True)
    pairs += [((False, tail), (False, head)) for tail, head in trunks]
    for one, other in pairs:
        if one in boxes and other in boxes:
            below, above = sorted((boxes[one], boxes[other]), key=lambda box: -box.y)
            yield line(below, above) if below.y > above.y else _arc(below, above)


def _arc(one: Box, other: Box) -> str:
    foot = one.y - BOX / 2
    return (
        f'<path d="M {one.x:.1f} {foot:.1f} Q {(one.x + other.x) / 2:.1f} {foot - 50:.1f} {other.x:.1f} '
        f'{foot:.1f}" fill="none" stroke="#94a3b8"/>'
    )
