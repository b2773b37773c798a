"""The line that every rank prints of a step, as trainers do: how long it took and how much it computed."""

from __future__ import annotations

import time

from .session import Session
from .transformer import paused_s

__all__ = ["Pace"]


class Pace:
    """Times one iteration after the other, each from the end of the one before.

    Parameters
    ----------
    session
        This rank.

    Notes
    -----
    A rank computes while it sleeps in place of a GPU, and while its process has a core. What is left of an
    iteration it waits: for others, for the network, or for a core.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._ended_s, self._computed_s = time.perf_counter(), _computed_s()

    def print_step(self, step: int, loss: float) -> None:
        """Print the iteration that ends now.

        Parameters
        ----------
        step
            Its number.
        loss
            Of this rank.
        """
        ended_s, computed_s = time.perf_counter(), _computed_s()
        time_s = ended_s - self._ended_s
        compute_s = min(time_s, computed_s - self._computed_s)
        self._ended_s, self._computed_s = ended_s, computed_s
        self._session.print(
            f"step {step} loss {loss:.4f} time {time_s:.3f} s"
            f" compute {compute_s:.3f} s wait {time_s - compute_s:.3f} s"
        )


def _computed_s() -> float:
    return paused_s() + time.process_time()
