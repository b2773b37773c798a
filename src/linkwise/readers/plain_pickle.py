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
import struct
from collections.abc import Callable
from typing import Any

__all__ = ["NotPlain", "is_pickle", "load_plain"]

MOST_INSTRUCTIONS = 3_000_000
"""Instructions of one pickle that are followed; each makes at most one value."""

_NAMES = {each.code.encode("latin-1")[0]: each.name for each in pickletools.opcodes}
_MARK = object()


class NotPlain(ValueError):
    """A pickle is damaged, too large, or wants more than plain values; the message says which."""


def is_pickle(start: bytes) -> bool:
    """Return whether data starts as a pickle of protocol 2 to 5 does.

    Parameters
    ----------
    start
        The first bytes.
    """
    return len(start) > 2 and start[0] == 0x80 and 2 <= start[1] <= 5 and start[2] in _NAMES


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
    machine = _Machine(data)
    try:
        return machine.run()
    except (IndexError, KeyError, struct.error, TypeError):
        raise NotPlain(f"is a damaged pickle, at byte {machine.at:,}") from None


class _Machine:
    """The stack machine: `run` follows the instructions to the end."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    def run(self) -> Any:
        data = self.data
        for _ in range(MOST_INSTRUCTIONS):
            code = data[self.at]
            self.at += 1
            if code == _STOP:
                return self.stack.pop()
            step = _STEPS.get(code)
            if step is None:
                raise NotPlain(_refusal(code))
            step(self)
        raise NotPlain(f"is a pickle of more than {MOST_INSTRUCTIONS:,} instructions; it is not read")

    def take(self, count: int) -> bytes:
        found = self.data[self.at : self.at + count]
        if len(found) < count:
            raise IndexError
        self.at += count
        return found

    def number(self, form: str) -> Any:
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

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

    def text(self, form: str) -> None:
        self.stack.append(self.take(self.number(form)).decode("utf-8", "replace"))

    def tuple_of(self, count: int) -> None:
        if count > len(self.stack):
            raise IndexError
        values = tuple(self.stack[len(self.stack) - count :]) if count else ()
        del self.stack[len(self.stack) - count :]
        self.stack.append(values)

    def append(self, values: list[Any]) -> None:
        target = self.stack[-1]
        if type(target) is not list:
            raise TypeError
        target.extend(values)

    def set_items(self, values: list[Any]) -> None:
        target = self.stack[-1]
        if type(target) is not dict or len(values) % 2:
            raise TypeError
        keys = values[::2]
        # The hash of a deep tuple costs as much as it is deep, and more where it shares its parts.
        if not all(isinstance(key, (str, int, float, bool, type(None))) for key in keys):
            raise TypeError
        target.update(zip(keys, values[1::2], strict=True))


def _refusal(code: int) -> str:
    name = _NAMES.get(code)
    if name is None:
        return f"is a damaged pickle: {code:#04x} is no instruction"
    return (
        f"is a pickle that asks for more than plain values (instruction {name}); such a file can run any"
        " program, and is not read"
    )


def _integer(machine: _Machine, form: str) -> None:
    size = machine.number(form)
    if not 0 <= size <= 64:
        raise NotPlain("is a pickle with a number of more than 512 bits; it is not read")
    machine.stack.append(int.from_bytes(machine.take(size), "little", signed=True))


def _single(machine: _Machine, change: Callable[[list[Any]], None], count: int) -> None:
    values = [machine.stack.pop() for _ in range(count)][::-1]
    change(values)


def _push(value: Callable[[], Any]) -> Callable[[_Machine], None]:
    return lambda machine: machine.stack.append(value())


def _number(form: str) -> Callable[[_Machine], None]:
    return lambda machine: machine.stack.append(machine.number(form))


def _put(form: str) -> Callable[[_Machine], None]:
    def step(machine: _Machine) -> None:
        machine.memo[machine.number(form)] = machine.stack[-1]

    return step


def _get(form: str) -> Callable[[_Machine], None]:
    return lambda machine: machine.stack.append(machine.memo[machine.number(form)])


def _memoize(machine: _Machine) -> None:
    machine.memo[len(machine.memo)] = machine.stack[-1]


def _tuple(machine: _Machine) -> None:
    machine.stack.append(tuple(machine.marked()))


_STOP = ord(".")
_STEPS: dict[int, Callable[[_Machine], None]] = {
    0x80: lambda machine: machine.number("<B"),  # PROTO
    0x95: lambda machine: machine.number("<Q"),  # FRAME
    ord("("): _push(lambda: _MARK),
    ord("]"): _push(list),
    ord("}"): _push(dict),
    ord(")"): _push(tuple),
    ord("N"): _push(lambda: None),
    0x88: _push(lambda: True),
    0x89: _push(lambda: False),
    ord("K"): _number("<B"),
    ord("M"): _number("<H"),
    ord("J"): _number("<i"),
    ord("G"): _number(">d"),
    0x8A: lambda machine: _integer(machine, "<B"),
    0x8B: lambda machine: _integer(machine, "<i"),
    ord("X"): lambda machine: machine.text("<I"),
    0x8C: lambda machine: machine.text("<B"),
    0x8D: lambda machine: machine.text("<Q"),
    ord("t"): _tuple,
    0x85: lambda machine: machine.tuple_of(1),
    0x86: lambda machine: machine.tuple_of(2),
    0x87: lambda machine: machine.tuple_of(3),
    ord("a"): lambda machine: _single(machine, machine.append, 1),
    ord("e"): lambda machine: machine.append(machine.marked()),
    ord("s"): lambda machine: _single(machine, machine.set_items, 2),
    ord("u"): lambda machine: machine.set_items(machine.marked()),
    ord("q"): _put("<B"),
    ord("r"): _put("<I"),
    0x94: _memoize,
    ord("h"): _get("<B"),
    ord("j"): _get("<I"),
}
"""What each known instruction does, by its code."""
