"""Documents a user writes: YAML 1.2 in, with the line of every key; JSON Schema out.

It knows no document by name: the room that owns one passes its pydantic model. Every fault of a file is
gathered before any is raised. It computes nothing.
Read first: `reading.read_document`, then `tree` (what YAML is accepted) and `fields` (quantities and counts).
"""

from linkwise.documents.fields import (
    Bytes,
    BytesPerSecond,
    Count,
    Document,
    FlopPerSecond,
    Fraction,
    Misfits,
    Quantity,
    Seconds,
    Watts,
)
from linkwise.documents.reading import json_schema, parse_document, read_document
from linkwise.documents.text import read_text

__all__ = [
    "Bytes",
    "BytesPerSecond",
    "Count",
    "Document",
    "FlopPerSecond",
    "Fraction",
    "Misfits",
    "Quantity",
    "Seconds",
    "Watts",
    "json_schema",
    "parse_document",
    "read_document",
    "read_text",
]
