"""The cables of a fabric as CSV: one row for each, with both of its ends."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from linkwise.network.wiring import Wiring

__all__ = ["CABLE_COLUMNS", "cable_list_csv"]

CABLE_COLUMNS = ("tier", "network", "from", "from_port", "to", "to_port")


def cable_list_csv(wiring: Wiring) -> str:
    """Return every cable of a fabric as CSV, from the nodes upwards.

    Parameters
    ----------
    wiring
        How its switches are joined.
    """
    from linkwise.network.cabling import cable_runs

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(CABLE_COLUMNS)
    writer.writerows(
        (str(run.tier), run.network, run.lower, run.lower_port, run.upper, run.upper_port)
        for run in cable_runs(wiring)
    )
    return text.getvalue()
