"""Command lines that start the processes of a job: torchrun, deepspeed, srun, mpirun, as options with values.

References
----------
PyTorch, documentation of torchrun (elastic/run), 2025. DeepSpeed, launcher/runner.py. SchedMD, srun(1) and
sbatch(1). Open MPI, mpirun(1).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from types import MappingProxyType

from linkwise.readers.shell import LATE_DOLLAR, Word

__all__ = ["Launch", "Option", "find_launches", "options_of"]

_PROGRAMS = {
    "torchrun": "torchrun",
    "deepspeed": "deepspeed",
    "srun": "srun",
    "mpirun": "mpirun",
    "mpiexec": "mpirun",
    "orterun": "mpirun",
}
_MODULES = {
    "torch.distributed.run": "torchrun",
    "torch.distributed.launch": "torch.distributed.launch",
    "deepspeed.launcher.runner": "deepspeed",
}
_FLAGS = frozenset(
    [
        "standalone",
        "no-python",
        "use-env",
        "help",
        "version",
        "run-path",
        "force-multi",
        "no-local-rank",
        "module",
        "m",
        "overcommit",
        "exclusive",
        "label",
        "unbuffered",
        "kill-on-bad-exit",
        "no-kill",
        "l",
        "u",
        "v",
        "K",
        "O",
        "Q",
        "oversubscribe",
        "allow-run-as-root",
        "tag-output",
        "bind-to-core",
        "report-bindings",
    ]
)
"""Options without a value."""
_SHORT = {
    "srun": {"N": "nodes", "n": "ntasks", "c": "cpus-per-task", "G": "gpus"},
    "mpirun": {"n": "np", "c": "np", "N": "npernode", "x": "x", "H": "host"},
}
_PAIRS = {"mca": 2, "gmca": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One option of a command line.

    Attributes
    ----------
    name
        Without hyphens in front, with hyphens inside.
    value
        Its value; empty for a flag.
    """

    name: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One command that starts processes.

    Attributes
    ----------
    launcher
        ``torchrun``, ``torch.distributed.launch``, ``deepspeed``, ``srun`` or ``mpirun``.
    line
        Line it starts in.
    options
        Its options in order; ``-x NAME`` of mpirun stands there once for each.
    parents
        Launchers that start this one, the outermost first.
    is_late
        Whether a shell on each node reads the options (``srun bash -c '...'``), and not the one before.
    scope
        The container it stands in, in a manifest.
    """

    launcher: str
    line: int
    options: tuple[Option, ...]
    parents: tuple[str, ...] = ()
    is_late: bool = False
    scope: str = ""

    def value(self, *names: str) -> str | None:
        """Return the value of the last option of one of these names, or ``None``."""
        found = [option.value for option in self.options if option.name in names]
        return found[-1] if found else None


def find_launches(
    words: Sequence[Word], *, parents: tuple[str, ...] = (), is_late: bool = False, scope: str = ""
) -> tuple[Launch, ...]:
    """Return the launchers among the words of a command, the outermost first.

    Parameters
    ----------
    words
        The command.
    parents
        Launchers that start it.
    is_late
        Whether a shell on each node reads it.
    scope
        The container it stands in.
    """
    starts = [(place, *found) for place in range(len(words)) if (found := _launcher_at(words, place))]
    if starts and not is_late and not parents and starts[0][0] > 12:
        return ()  # a word far behind is an argument of something else
    launches: list[Launch] = []
    for number, (_, launcher, first) in enumerate(starts):
        end = starts[number + 1][0] if number + 1 < len(starts) else len(words)
        above = (*parents, *(each.launcher for each in launches))
        if launcher in above or (above and above[-1] in ("torchrun", "deepspeed")):
            break  # arguments of the program that is started
        options = options_of(words[first:end], launcher)
        launches.append(
            Launch(
                launcher=launcher,
                line=words[first - 1].line,
                options=options,
                parents=above,
                is_late=is_late,
                scope=scope,
            )
        )
    return tuple(launches)


def options_of(words: Sequence[Word], launcher: str = "") -> tuple[Option, ...]:
    """Return the options at the front of a command line, up to the program that is started.

    Parameters
    ----------
    words
        The words after the launcher.
    launcher
        What it is, for its short options.
    """
    short: Mapping[str, str] = _SHORT.get(launcher, MappingProxyType({}))
    found: list[Option] = []
    place = 0
    while place < len(words) and words[place].text.startswith("-"):
        word = words[place]
        name, equals, value = word.text.lstrip("-").partition("=")
        name = name.replace("_", "-") if len(name) > 1 else name
        place += 1
        if not word.text.startswith("--") and name[:1] in short and name not in _PAIRS:
            compact = re.fullmatch(r"([A-Za-z])=?(\$?\d+|\$\{?\w+\}?)", word.text[1:])
            if compact:
                name, equals, value = compact[1], "=", compact[2]
            name = short.get(name, name)
        if not equals and name not in _FLAGS and _has_value(words, place):
            value = words[place].text
            place += _PAIRS.get(name, 1)
        found.append(Option(name=name, value=value.replace(LATE_DOLLAR, "$")))
        if name == "m":
            break
    return tuple(found)


def _has_value(words: Sequence[Word], place: int) -> bool:
    return place < len(words) and not re.match(r"-[A-Za-z-]", words[place].text)


def _launcher_at(words: Sequence[Word], place: int) -> tuple[str, int] | None:
    """Return the launcher at a word and the place of its first argument."""
    text = words[place].text
    if len(text) > 200:
        return None
    program = PurePosixPath(text).name
    if program in _PROGRAMS:
        return _PROGRAMS[program], place + 1
    if re.fullmatch(r"python[\d.]*", program) or text in ("$PYTHON", "${PYTHON}"):
        for step in range(place + 1, min(place + 5, len(words) - 1)):
            if words[step].text == "-m" and words[step + 1].text in _MODULES:
                return _MODULES[words[step + 1].text], step + 2
    return None
