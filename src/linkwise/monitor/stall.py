"""When a job that does no step is called stalled."""

from __future__ import annotations

from dataclasses import dataclass

from linkwise.readers.step_lines import MarkKind

__all__ = ["StallRule"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StallRule:
    """How long a job may do no step.

    Parameters
    ----------
    least_s
        At least so long [s].
    steps
        And so many times its median step [1].
    beside_s
        While a checkpoint, an evaluation or a compilation is under way, so long at least [s].
    start_s
        Before the first step [s].
    fixed_s
        What a person stated instead of `least_s` and `steps`; ``None`` to go by the step [s].
    """

    least_s: float = 30.0
    steps: float = 10.0
    beside_s: float = 600.0
    start_s: float = 1800.0
    fixed_s: float | None = None

    def limit_s(self, step_s: float | None, *, beside: MarkKind | None = None) -> float:
        """Return how long the job may do no step from now on [s].

        Parameters
        ----------
        step_s
            Its median step; ``None`` before there are any [s].
        beside
            What it does beside steps, as far as its log says.
        """
        if self.fixed_s is not None:
            limit_s = self.fixed_s
        elif step_s is None:
            return self.start_s
        else:
            limit_s = max(self.least_s, self.steps * step_s)
        return max(limit_s, self.beside_s) if beside is not None else limit_s
