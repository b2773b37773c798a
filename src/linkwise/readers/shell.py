"""A shell script as commands with their words, and its variables as far as they stand in it.

Nothing is run. What a script computes stays as it is written (``$(hostname)``), and of a loop or a condition
every branch is read once, in order. The scan is linear in the text.

References
----------
IEEE Std 1003.1-2017, Shell Command Language, 2.2 (quoting), 2.3 (tokens), 2.6
(expansions), 2.7.4 (here-documents).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

__all__ = ["LATE_DOLLAR", "MOST_WORDS", "Command", "Word", "expanded", "read_commands"]

MOST_WORDS = 50_000
"""Words of one script that are read; what comes after is passed over."""
_LONGEST_WORD = 20_000
_LONGEST_VALUE = 4000

LATE_DOLLAR = "\ue000"
"""Stands for a dollar sign that is quoted: the next shell may expand it, not this one."""

_OPERATORS = frozenset(";&|()<>\n")
_ESCAPED = {"$": LATE_DOLLAR, "`": "`", '"': '"', "\\": "\\", "\n": ""}
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w{0,200}\+?=")
_EXPANSION = re.compile(
    r"\$(?:(\w{1,200})|\{(\w{1,200})(?:\[[@*]\])?(?:(:?[-=])((?:[^{}]|\{[^{}]{0,200}\}){0,200}))?\})"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """One word of a command.

    Attributes
    ----------
    text
        The word without its quotes; expansions stay as they are written.
    line
        Line it starts in, counted from one.
    quote
        ``'`` or ``"`` where all of it stands in that quote; empty otherwise.
    """

    text: str
    line: int
    quote: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One simple command.

    Attributes
    ----------
    line
        Line it starts in, counted from one.
    words
        The command and its arguments.
    assignments
        ``NAME=VALUE`` before the command; alone they set variables of the shell. An array is one text.
    comment
        The text of a comment, for a line that is nothing else.
    """

    line: int
    words: tuple[Word, ...] = ()
    assignments: tuple[Word, ...] = ()
    comment: str = ""


def read_commands(text: str, *, first_line: int = 1) -> Iterator[Command]:
    """Yield the commands of a script in the order of their lines.

    Parameters
    ----------
    text
        The script.
    first_line
        Line of its first line in the file it stands in.
    """
    words: list[Word] = []
    scanner = _Scanner(text=text, line=first_line)
    for word in scanner.words():
        if word is None:
            if words:
                yield _command(words)
            words = []
        elif word.text.startswith("#") and not word.quote and not words:
            yield Command(line=word.line, comment=word.text)
        else:
            words.append(word)
    if words:
        yield _command(words)


def expanded(text: str, variables: Mapping[str, str]) -> str:
    """Return a text with the variables put in that are known; ``${NAME:-default}`` of others is its default.

    Parameters
    ----------
    text
        A word.
    variables
        Values by name.
    """
    if len(text) > _LONGEST_WORD:
        return text
    left = _LONGEST_VALUE

    def value(match: re.Match[str]) -> str:
        nonlocal left
        found = variables.get(match[1] or match[2], match[0] if match[4] is None else match[4])[:left]
        left -= len(found)
        return found

    return _EXPANSION.sub(value, text)


def _command(words: list[Word]) -> Command:
    count = 0
    while count < len(words) and _ASSIGNMENT.match(words[count].text) and not words[count].quote:
        count += 1
    return Command(line=words[0].line, words=tuple(words[count:]), assignments=tuple(words[:count]))


@dataclass(slots=True, kw_only=True)
class _Scanner:
    """Goes through a text once."""

    text: str
    line: int
    at: int = 0
    heredocs: list[str] = field(default_factory=list)
    is_in_array: bool = False

    def words(self) -> Iterator[Word | None]:
        """Yield words, and ``None`` where a command ends."""
        count = 0
        while self.at < len(self.text) and count < MOST_WORDS:
            char = self.text[self.at]
            if char in " \t\r":
                self.at += 1
            elif self.text.startswith("\\\n", self.at):
                self.step(2)
            elif char == "#":
                yield self.comment()
            elif char in _OPERATORS:
                if self.operator():
                    yield None
            else:
                count += 1
                yield self.word()

    def step(self, length: int) -> str:
        piece = self.text[self.at : self.at + length]
        self.line += piece.count("\n")
        self.at += length
        return piece

    def comment(self) -> Word:
        end = self.text.find("\n", self.at)
        line = self.line
        return Word(text=self.step((len(self.text) if end < 0 else end) - self.at), line=line)

    def operator(self) -> bool:
        """Pass an operator, and say whether it ends a command; a redirection takes its word along."""
        char = self.text[self.at]
        if char not in "<>" and not self.text.startswith(("&>", "&<"), self.at):
            self.step(1)
            if char == "\n" and self.heredocs:
                self.skip_heredocs()
            return True
        is_heredoc = self.text.startswith("<<", self.at) and not self.text.startswith("<<<", self.at)
        while (self.at < len(self.text) and self.text[self.at] in "<>&|-") or self.text.startswith(
            " ", self.at
        ):
            self.step(1)
        if self.at < len(self.text) and self.text[self.at] not in _OPERATORS:
            target = self.word()
            if is_heredoc and target.text:
                self.heredocs.append(target.text)
        return False

    def skip_heredocs(self) -> None:
        """Pass the bodies of here-documents: they are data of other programs."""
        for end in self.heredocs:
            while self.at < len(self.text):
                stop = self.text.find("\n", self.at)
                stop = len(self.text) if stop < 0 else stop
                body = self.text[self.at : stop]
                self.step(stop + 1 - self.at)
                if body.strip() == end:
                    break
        self.heredocs.clear()

    def word(self) -> Word:
        line, pieces, quotes = self.line, [], []
        start = self.at
        while self.at < len(self.text):
            char = self.text[self.at]
            if char in "'\"":
                quotes.append(char)
                pieces.append(self.quoted(char))
            elif char in "$`":
                pieces.append(self.expansion())
            elif char == "\\":
                pieces.append(_ESCAPED.get(pair := self.step(2)[1:], pair))
            elif char == "(" and not self.is_in_array and _ASSIGNMENT.fullmatch("".join(pieces)):
                pieces.append(self.array())
            elif char in _OPERATORS or char in " \t\r":
                break
            else:
                pieces.append(self.step(1))
        raw = self.text[start : self.at]
        whole = len(quotes) == 1 and len(raw) > 1 and raw[0] == raw[-1] == quotes[0]
        return Word(text="".join(pieces), line=line, quote=quotes[0] if whole else "")

    def quoted(self, quote: str) -> str:
        """Return what stands in quotes; one that is not closed goes to the end of the text."""
        self.step(1)
        pieces = []
        while self.at < len(self.text) and self.text[self.at] != quote:
            if quote == '"' and self.text[self.at] == "\\":
                pair = self.step(2)
                pieces.append(_ESCAPED.get(pair[1:], pair))
            elif quote == '"' and self.text[self.at] in "$`":
                pieces.append(self.expansion())
            else:
                char = self.step(1)
                pieces.append(LATE_DOLLAR if char == "$" else char)
        self.step(1)
        return "".join(pieces)

    def expansion(self) -> str:
        """Return an expansion as it is written."""
        if self.text[self.at] == "`":
            end = self.text.find("`", self.at + 1)
            return self.step((len(self.text) if end < 0 else end + 1) - self.at)
        opening = self.text[self.at + 1 : self.at + 2]
        if opening not in ("(", "{"):
            return self.step(1)
        start, depth, closing = self.at, 0, {"(": ")", "{": "}"}[opening]
        self.step(1)
        while self.at < len(self.text):
            char = self.step(1)
            depth += (char == opening) - (char == closing)
            if depth == 0:
                break
        return self.text[start : self.at]

    def array(self) -> str:
        """Return the words of an array with blanks between them."""
        self.step(1)
        self.is_in_array = True
        words = []
        while self.at < len(self.text) and self.text[self.at] != ")":
            char = self.text[self.at]
            if char in " \t\r\n" or char in _OPERATORS:
                self.step(1)
            elif self.text.startswith("\\\n", self.at):
                self.step(2)
            elif char == "#":
                self.comment()
            else:
                words.append(self.word().text)
        self.is_in_array = False
        self.step(1)
        return " ".join(words)
