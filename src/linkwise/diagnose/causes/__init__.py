"""One cause, one file: a function of the name of the cause, from facts to a finding or ``None``.

It says what a line means, by its format in the program's source, never by how a sample reads: no line number
of a
source, name of a host, pointer or order of ranks decides. What wins over what is said in `precedence` alone.
`RULES` lists them all.
"""

from __future__ import annotations

from collections.abc import Callable

from linkwise.diagnose.causes.duplicate_gpu import duplicate_gpu
from linkwise.diagnose.causes.gdr_off import gdr_off
from linkwise.diagnose.causes.socket_fallback import socket_fallback
from linkwise.diagnose.facts import Facts
from linkwise.diagnose.finding import Finding

__all__ = ["RULES"]

RULES: dict[str, Callable[[Facts], Finding | None]] = {
    "socket_fallback": socket_fallback,
    "gdr_off": gdr_off,
    "duplicate_gpu": duplicate_gpu,
}
"""All rules by the cause that each finds."""
