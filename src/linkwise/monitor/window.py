"""The last values of something, and their quantiles."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

__all__ = ["Window"]


@dataclass(slots=True)
class Window:
    """The last values of something.

    Parameters
    ----------
    size
        How many are kept [1].
    """

    size: int = 512
    _values: deque[float] = field(init=False)

    def __post_init__(self) -> None:
        """Make room."""
        self._values = deque(maxlen=self.size)

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._values)

    def add(self, value: float) -> None:
        """Take a value; the oldest one goes where there are too many.

        Parameters
        ----------
        value
            The value.
        """
        self._values.append(value)

    def replace_last(self, value: float) -> None:
        """Put a value in the place of the newest.

        Parameters
        ----------
        value
            The value.
        """
        self._values[-1] = value

    @property
    def last(self) -> float | None:
        """Return the newest value."""
        return self._values[-1] if self._values else None

    @property
    def median(self) -> float | None:
        """Return their median."""
        return self.quantile(0.5)

    def quantile(self, fraction: float) -> float | None:
        """Return the value below which that fraction of them lies, by the nearest rank.

        Parameters
        ----------
        fraction
            From 0 to 1 [1].
        """
        if not self._values:
            return None
        ordered = sorted(self._values)
        return ordered[min(int(fraction * len(ordered)), len(ordered) - 1)]
