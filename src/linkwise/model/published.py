"""Published parameter counts, and where they are not the plain count of all parameters."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from enum import StrEnum
from types import MappingProxyType

from linkwise.model.parameters import ParameterCounts

__all__ = [
    "PUBLISHED_COUNTING",
    "PUBLISHED_EXCEPTIONS",
    "Counted",
    "counted_active",
    "counted_total",
    "published_tolerance",
]


class Counted(StrEnum):
    """What a publisher counts."""

    ALL = "all"
    LAYERS = "layers"
    """No embedding, positions nor head."""
    WITHOUT_EMBEDDING = "without embedding"
    """A token table that stands beside a head is left out: looking up multiplies nothing."""


_LABEL = "the label of the run counts the transformer layers only"
_LOOKUP = "the active count leaves the token table out"

PUBLISHED_COUNTING: Mapping[tuple[str, str], tuple[Counted, str]] = MappingProxyType(
    {
        ("bigscience-gpt-65b", "total"): (Counted.LAYERS, _LABEL),
        ("bigscience-gpt-97b", "total"): (Counted.LAYERS, _LABEL),
        ("bigscience-gpt-116b", "total"): (Counted.LAYERS, _LABEL),
        ("deepseek-v3", "active"): (Counted.WITHOUT_EMBEDDING, _LOOKUP),
        ("deepseek-r1", "active"): (Counted.WITHOUT_EMBEDDING, _LOOKUP),
        ("deepseek-v3.2", "active"): (Counted.WITHOUT_EMBEDDING, _LOOKUP),
        ("glm-5", "active"): (
            Counted.LAYERS,
            "token table and head left out, as the GLM-4.5 report says of its own",
        ),
        ("gpt-oss-20b", "active"): (Counted.WITHOUT_EMBEDDING, f"{_LOOKUP}, as its model card says"),
        ("gpt-oss-120b", "active"): (Counted.WITHOUT_EMBEDDING, f"{_LOOKUP}, as its model card says"),
        ("kimi-k2.5", "active"): (Counted.WITHOUT_EMBEDDING, _LOOKUP),
        ("minimax-m2.5", "active"): (Counted.WITHOUT_EMBEDDING, _LOOKUP),
    }
)
"""Model and count that are not :attr:`Counted.ALL`, with the reason."""

PUBLISHED_EXCEPTIONS: Mapping[tuple[str, str], str] = MappingProxyType(
    {
        ("kimi-k2", "total"): "1.04 T is announced; the published configuration has matrices for 1.026 T",
        ("kimi-k2.5", "total"): "1.04 T is announced; the published configuration has matrices for 1.026 T",
        ("kimi-k2", "active"): "32.6 B lies between 31.7 B without the token table and 32.9 B with it",
        ("grok-1-314b", "total"): "314 B is announced; the layers hold 314.9 B, with the table 315.7 B",
        ("grok-1-314b", "active"): "86 B is announced; two of eight experts and all the rest make 83.8 B",
        ("minimax-m2.5", "total"): "230 B is a round name; the published configuration makes 228.7 B",
        ("qwen3-30b-a3b", "active"): "3.3 B is cut, not rounded: all the parameters of a token are 3.353 B",
    }
)
"""Published counts that no way of counting we know reproduces, with what was found."""


def counted_total(name: str, counts: ParameterCounts) -> int:
    """Return the total of a model the way its publisher counts [1].

    Parameters
    ----------
    name
        Name in the catalogue.
    counts
        Its parameters.
    """
    how, _ = PUBLISHED_COUNTING.get((name, "total"), (Counted.ALL, ""))
    return counts.body if how is Counted.LAYERS else counts.total


def counted_active(name: str, counts: ParameterCounts) -> int:
    """Return the parameters active in one token the way the publisher of a model counts [1].

    Parameters
    ----------
    name
        Name in the catalogue.
    counts
        Its parameters.
    """
    how, _ = PUBLISHED_COUNTING.get((name, "active"), (Counted.ALL, ""))
    if how is Counted.LAYERS:
        return counts.body - counts.experts_inactive
    return counts.active_without_embedding if how is Counted.WITHOUT_EMBEDDING else counts.active


def published_tolerance(text: str) -> float:
    """Return how far a count may be from a published one, in the unit of the text.

    Parameters
    ----------
    text
        The count as published, for instance ``"70.55"``.

    Notes
    -----
    0.5 % or half a unit of the last digit, whichever is larger.
    """
    published = Decimal(text)
    exponent = published.as_tuple().exponent
    half_unit = Decimal(5).scaleb(exponent - 1) if isinstance(exponent, int) else Decimal(0)
    return float(max(published * Decimal("0.005"), half_unit))
