"""Pickles of plain containers, numbers and texts, read without Python's unpickler: nothing in them can run.

A pickle is a program for a stack machine. This one knows the instructions that build lists, tuples,
dictionaries, texts, numbers, booleans and None, and refuses every other, so that no class is looked up and
nothing is called.

References
----------
Python, *pickletools*, https://docs.python.org/3/library/pickletools.html (the instructions); PyTorch,
torch/csrc/jit/serialization/pickler.cpp, https://github.com/pytorch/pytorch (those it writes, of protocol 2).
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable
from typing import Any

__all__ = ["NotPlain", "is_pickle", "load_plain"]

MOST_INSTRUCTIONS = 3_000_000
"""Instructions of one pickle that are followed; each makes at most one value."""
MOST_BITS = 512
"""Bits of a number; larger ones are no sizes or times."""

_CODES = {each.code.encode("latin-1")[0] for each in pickletools.opcodes}
_MARK = object()
_KEYS = (str, int, float, bool, type(None))


class NotPlain(ValueError):
    """A pickle is damaged, too large, or wants more than plain values; the message says which."""


def is_pickle(start: bytes) -> bool:
    """Return whether data starts as a pickle of protocol 2 to 5 does.

    Parameters
    ----------
    start
        The first bytes.
    """
    return len(start) > 2 and start[0] == 0x80 and 2 <= start[1] <= 5 and start[2] in _CODES


def load_plain(data: bytes) -> Any:
    """Return the value of a pickle.

    Parameters
    ----------
    data
        The pickle.

    Raises
    ------
    NotPlain
        If it holds more than containers, texts, numbers, booleans and None, or is damaged or too large.
    """
    machine = _Machine()
    try:
        for count, (code, argument, _) in enumerate(pickletools.genops(data)):
            if code.name == "STOP":
                return machine.stack.pop()
            if count >= MOST_INSTRUCTIONS:
                raise NotPlain(f"is a pickle of more than {MOST_INSTRUCTIONS:,} instructions; it is not read")
            step = _STEPS.get(code.name)
            if step is None:
                raise NotPlain(
                    f"is a pickle that asks for more than plain values (instruction {code.name}); such a file"
                    " can run any program, and is not read"
                )
            step(machine, argument)
    except NotPlain:
        raise
    except (IndexError, KeyError, TypeError, ValueError):
        # Of the standard library's reader too: an unknown instruction, or an end before its time.
        pass
    raise NotPlain("is a damaged pickle, or one that is cut short")


class _Machine:
    """The stack, and what was put aside."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    def marked(self) -> list[Any]:
        """Return what lies above the last mark, and take it and the mark away."""
        at = len(self.stack) - 1
        while self.stack[at] is not _MARK:
            at -= 1
            if at < 0:
                raise IndexError
        found = self.stack[at + 1 :]
        del self.stack[at:]
        return found

    def last(self, count: int) -> list[Any]:
        """Return the last values, and take them away."""
        if count > len(self.stack):
            raise IndexError
        found = self.stack[len(self.stack) - count :]
        del self.stack[len(self.stack) - count :]
        return found

    def append(self, values: list[Any]) -> None:
        target = self.stack[-1]
        if type(target) is not list:
            raise TypeError
        target.extend(values)

    def set_items(self, values: list[Any]) -> None:
        target, keys = self.stack[-1], values[::2]
        # The hash of a deep tuple costs as much as it is deep, and more where it shares its parts.
        if type(target) is not dict or not all(isinstance(each, _KEYS) for each in keys):
            raise TypeError
        target.update(zip(keys, values[1::2], strict=True))


def _integer(machine: _Machine, argument: Any) -> None:
    if argument.bit_length() > MOST_BITS:
        raise NotPlain(f"is a pickle with a number of more than {MOST_BITS} bits; it is not read")
    machine.stack.append(argument)


def _push(machine: _Machine, argument: Any) -> None:
    machine.stack.append(argument)


def _nothing(_machine: _Machine, _argument: Any) -> None:
    """Do nothing, as for the protocol and the frames."""


def _put(machine: _Machine, argument: Any) -> None:
    machine.memo[len(machine.memo) if argument is None else argument] = machine.stack[-1]


def _constant(make: Callable[[], Any]) -> Callable[[_Machine, Any], None]:
    return lambda machine, _: machine.stack.append(make())


def _tuple_of(count: int) -> Callable[[_Machine, Any], None]:
    return lambda machine, _: machine.stack.append(tuple(machine.last(count)))


_STEPS: dict[str, Callable[[_Machine, Any], None]] = {
    "PROTO": _nothing,
    "FRAME": _nothing,
    "MARK": _constant(lambda: _MARK),
    "EMPTY_LIST": _constant(list),
    "EMPTY_DICT": _constant(dict),
    "EMPTY_TUPLE": _constant(tuple),
    "NONE": _constant(lambda: None),
    "NEWTRUE": _constant(lambda: True),
    "NEWFALSE": _constant(lambda: False),
    "BININT": _push,
    "BININT1": _push,
    "BININT2": _push,
    "BINFLOAT": _push,
    "LONG1": _integer,
    "LONG4": _integer,
    "BINUNICODE": _push,
    "SHORT_BINUNICODE": _push,
    "BINUNICODE8": _push,
    "TUPLE": lambda machine, _: machine.stack.append(tuple(machine.marked())),
    "TUPLE1": _tuple_of(1),
    "TUPLE2": _tuple_of(2),
    "TUPLE3": _tuple_of(3),
    "APPEND": lambda machine, _: machine.append(machine.last(1)),
    "APPENDS": lambda machine, _: machine.append(machine.marked()),
    "SETITEM": lambda machine, _: machine.set_items(machine.last(2)),
    "SETITEMS": lambda machine, _: machine.set_items(machine.marked()),
    "BINPUT": _put,
    "LONG_BINPUT": _put,
    "MEMOIZE": _put,
    "BINGET": lambda machine, number: machine.stack.append(machine.memo[number]),
    "LONG_BINGET": lambda machine, number: machine.stack.append(machine.memo[number]),
}
"""What each known instruction does."""
