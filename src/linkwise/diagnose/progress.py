"""Whether the job moved data, and how fast: what measured sizes and timed steps say."""

from __future__ import annotations

from linkwise.diagnose.facts import Facts

__all__ = ["has_progressed", "plateau_bytes_per_s", "plateau_fraction"]

_PORT_RATES = (1.25e9, 3.125e9, 5e9, 7e9, 12.5e9, 25e9, 50e9, 100e9)
"""Rates of ports that are sold, 10 to 800 Gbit/s [bytes/s]."""
_LARGE_BYTES = 1 << 26


def has_progressed(facts: Facts) -> bool:
    """Return whether a size was measured or a step was timed.

    Parameters
    ----------
    facts
        What is known of the job.
    """
    has_steps = any(each.count > 1 for each in facts.log.rank_steps)
    return has_steps or bool(facts.log.tests) or bool(facts.seen("step_time", "tests_end"))


def plateau_bytes_per_s(facts: Facts) -> float | None:
    """Return the best bus bandwidth of an all-reduce between nodes at large sizes; ``None`` without one.

    Parameters
    ----------
    facts
        What is known of the job.
    """
    found = [
        row.busbw_bytes_per_s
        for _, run in facts.log.tests
        if len(run.hosts) > 1
        for row in run.rows
        if row.size_bytes >= _LARGE_BYTES
    ]
    return max(found, default=None)


def plateau_fraction(facts: Facts) -> float | None:
    """Return the plateau over the rate of the slowest ports that could carry it; ``None`` where unknown.

    Parameters
    ----------
    facts
        What is known of the job.

    Notes
    -----
    The NICs in use are counted in the channel lines. A log seldom says their rate, so the slowest rate on
    sale is
    taken at which they carry what was measured: with any faster port the fraction is smaller still.
    """
    plateau = plateau_bytes_per_s(facts)
    nics: dict[str | None, set[str]] = {}
    for each in facts.net_channels:
        nics.setdefault(each.host, set()).add(each.nic)
    count = max((len(each) for each in nics.values()), default=0)
    if plateau is None or not count:
        return None
    carried = [rate * count for rate in _PORT_RATES if rate * count >= plateau]
    return plateau / min(carried) if carried else None
