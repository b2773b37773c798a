"""A shell script that starts a job, and sbatch directives in it, as settings and launches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from linkwise.readers.environment import Assignment, Reach, assignment
from linkwise.readers.launch import Launch, Option, find_launches, options_of
from linkwise.readers.shell import LATE_DOLLAR, Command, Word, expanded, read_commands

__all__ = ["LaunchScript", "read_launch_script"]

_DEEPEST = 3
_MOST_LAUNCHES = 1000
_MOST_ASSIGNMENTS = 5000
_EXPORTS = ("export", "declare", "typeset")
_SHELLS = ("bash", "sh", "/bin/bash", "/bin/sh", "dash", "zsh")


@dataclass(slots=True, kw_only=True)
class LaunchScript:
    """What a script sets and starts.

    Attributes
    ----------
    assignments
        The settings, in order.
    launches
        The launchers, in order.
    directives
        Options of ``#SBATCH`` lines.
    forwarded
        Names that a launcher passes on (``mpirun -x NAME``).
    variables
        Values of the shell, as far as they stand in the script.
    scope
        The container it runs in, in a manifest.
    """

    assignments: list[Assignment] = field(default_factory=list)
    launches: list[Launch] = field(default_factory=list)
    directives: list[Option] = field(default_factory=list)
    forwarded: set[str] = field(default_factory=set)
    variables: dict[str, str] = field(default_factory=dict)
    scope: str = ""
    exported: set[str] = field(default_factory=set)
    unexported: set[str] = field(default_factory=set)
    exports_all: bool = False
    is_inner: bool = False

    def read(
        self,
        text: str,
        *,
        first_line: int = 1,
        parents: tuple[str, ...] = (),
        is_late: bool = False,
        depth: int = 0,
    ) -> None:
        """Read a script, or one that a command of it starts.

        Parameters
        ----------
        text
            The script.
        first_line
            Line of its first line in the file it stands in.
        parents
            Launchers that start it.
        is_late
            Whether a shell on each node reads it.
        depth
            How many scripts it stands in.
        """
        for command in read_commands(text, first_line=first_line):
            if command.comment:
                self._comment(command.comment)
            elif command.words:
                self._command(command, parents=parents, is_late=is_late, depth=depth)
            else:
                for word in command.assignments:
                    self._set(word, Reach.SHELL)

    def _comment(self, text: str) -> None:
        if text.startswith("#SBATCH"):
            words = [Word(text=word, line=0) for word in text[7:200].split("#", maxsplit=1)[0].split()]
            self.directives.extend(options_of(words, "srun"))

    def _command(self, command: Command, *, parents: tuple[str, ...], is_late: bool, depth: int) -> None:
        first = command.words[0].text
        if first in _EXPORTS:
            self._export(command.words[1:])
            return
        if first == "set":
            flags = [word.text for word in command.words[1:]]
            self.exports_all |= "-a" in flags or "allexport" in flags
        elif first == "unset":
            self._unset({word.text for word in command.words[1:]})
        for word in command.assignments:
            self._set(word, Reach.COMMAND)
        if first == "env":
            for word in command.words[1:]:
                if "=" in word.text and not word.text.startswith("-"):
                    self._set(word, Reach.COMMAND)
        self._launches(tuple(self._expanded(command.words)), parents=parents, is_late=is_late, depth=depth)

    def _export(self, words: Sequence[Word]) -> None:
        for word in words:
            name, equals, _ = word.text.partition("=")
            if equals:
                self._set(word, Reach.EXPORTED)
            self.exported.add(name)
            if name not in self.unexported:
                continue
            self.unexported.discard(name)
            self.assignments = [
                replace(each, reach=Reach.EXPORTED)
                if each.name == name and each.reach is Reach.SHELL
                else each
                for each in self.assignments
            ]

    def _unset(self, names: set[str]) -> None:
        self.assignments = [each for each in self.assignments if each.name not in names]
        for name in names:
            self.variables.pop(name, None)

    def _set(self, word: Word, reach: Reach) -> None:
        name, _, value = word.text.partition("=")
        name, is_longer = name.removesuffix("+"), name.endswith("+")
        value = expanded(value, self.variables).replace(LATE_DOLLAR, "$")
        if is_longer:
            value = f"{self.variables.get(name, '')} {value}"[:10_000]
        if reach is not Reach.COMMAND:
            self.variables[name] = value
        if reach is Reach.SHELL and (self.exports_all or name in self.exported):
            reach = Reach.EXPORTED
        if self.is_inner and reach is Reach.EXPORTED:
            reach = Reach.COMMAND  # of the processes that a launcher starts, and of no others
        found = assignment(name, value, line=word.line, reach=reach, scope=self.scope)
        if found is not None and len(self.assignments) < _MOST_ASSIGNMENTS:
            self.assignments.append(found)
            if reach is Reach.SHELL:
                self.unexported.add(name)

    def _expanded(self, words: Sequence[Word]) -> Iterator[Word]:
        """Yield words with known variables put in; a variable that holds several words becomes them."""
        for word in words:
            text = expanded(word.text, self.variables)
            is_list = text != word.text and (not word.quote or "[@]" in word.text)
            if is_list and word.text.startswith("$") and len(text.split()) != 1:
                yield from (Word(text=each, line=word.line) for each in text.split())
            else:
                yield replace(word, text=text)

    def _launches(
        self, words: tuple[Word, ...], *, parents: tuple[str, ...], is_late: bool, depth: int
    ) -> None:
        found = find_launches(words, parents=parents, is_late=is_late, scope=self.scope)
        if len(self.launches) < _MOST_LAUNCHES:
            self.launches.extend(found)
        for launch in found:
            self._passed_on(launch)
        above = (*parents, *(launch.launcher for launch in found))
        for place in range(1, len(words) - 1):
            is_script = words[place].text.startswith("-") and words[place].text.endswith("c")
            if is_script and words[place - 1].text in _SHELLS and depth < _DEEPEST:
                inner = words[place + 1]
                late = bool(above) and LATE_DOLLAR in inner.text
                was_inner, self.is_inner = self.is_inner, self.is_inner or bool(above)
                self.read(
                    inner.text.replace(LATE_DOLLAR, "$"),
                    first_line=inner.line,
                    parents=above,
                    is_late=is_late or late,
                    depth=depth + 1,
                )
                self.is_inner = was_inner
                return

    def _passed_on(self, launch: Launch) -> None:
        for option in launch.options:
            words = [option.value] if option.name == "x" else []
            if option.name == "export":
                words = option.value.split(",")
            for word in words:
                name, equals, _ = word.partition("=")
                self.forwarded.add(name)
                if equals:
                    self._set(Word(text=word, line=launch.line), Reach.COMMAND)


def read_launch_script(text: str, *, first_line: int = 1, scope: str = "") -> LaunchScript:
    """Return what a script sets and starts.

    Parameters
    ----------
    text
        The script.
    first_line
        Line of its first line in the file it stands in.
    scope
        The container it runs in, in a manifest.
    """
    script = LaunchScript(scope=scope)
    script.read(text, first_line=first_line)
    return script
