"""Faults of a file that another program wrote, gathered and bounded."""

from __future__ import annotations

from dataclasses import dataclass, field

from linkwise.errors import DocumentError, Fault

__all__ = ["MOST_FAULTS", "Faults", "excerpt"]

MOST_FAULTS = 20
"""Faults of one file that are printed; of the rest only the number."""


@dataclass(slots=True, kw_only=True)
class Faults:
    """The faults of one file.

    Parameters
    ----------
    path
        The file, for messages; ``None`` where the text had none.
    """

    path: str | None
    found: list[Fault] = field(default_factory=list)
    left_out: int = 0

    def add(self, message: str, *, line: int | None = None, key: str = "") -> None:
        """Keep one fault, or count it where there are many.

        Parameters
        ----------
        message
            What was found, why it cannot be, and what to do.
        line
            Line counted from one.
        key
            The place in the file, for formats with keys.
        """
        if len(self.found) < MOST_FAULTS:
            self.found.append(Fault(path=self.path, line=line, key=key, message=message))
        else:
            self.left_out += 1

    def raise_any(self) -> None:
        """Raise all that were kept.

        Raises
        ------
        DocumentError
            If there is one.
        """
        if not self.found:
            return
        more = f"{self.left_out} more faults of this kind are not printed"
        rest = [Fault(path=self.path, message=more)] if self.left_out else []
        raise DocumentError([*self.found, *rest])

    def refusal(self, message: str, *, line: int | None = None, key: str = "") -> DocumentError:
        """Return the exception for a fault after which nothing more can be read, with those before it.

        Parameters
        ----------
        message, line, key
            As for `add`.
        """
        return DocumentError([*self.found, Fault(path=self.path, line=line, key=key, message=message)])


def excerpt(text: str, *, most: int = 40) -> str:
    """Return a piece of foreign text in quotes, short and printable.

    Parameters
    ----------
    text
        The text.
    most
        Characters that are shown.
    """
    return repr(text if len(text) <= most else text[: most - 3] + "...")
