"""The `layouts/1` document: the layouts that a sweep tries, in order."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from linkwise.documents import Document, parse_document, read_text
from linkwise.job.document import LayoutDocument
from linkwise.job.reading import layout_of
from linkwise.layout import Layout

__all__ = ["HEADER", "LayoutsDocument", "read_layouts"]

HEADER = "layouts/1"
_MOST_LAYOUTS = 64


class LayoutsDocument(Document):
    """Layouts for a job that names none."""

    layouts: Annotated[list[LayoutDocument], Field(min_length=1, max_length=_MOST_LAYOUTS)] = Field(
        description="Degrees as in the key layout of a job/1 document."
    )


def read_layouts(path: str) -> tuple[Layout, ...]:
    """Return the layouts of a `layouts/1` document.

    Parameters
    ----------
    path
        The file.

    Raises
    ------
    DocumentError
        With all faults of the document.
    """
    document = parse_document(read_text(path), LayoutsDocument, HEADER, path=path)
    return tuple(layout_of(each) for each in document.layouts)
