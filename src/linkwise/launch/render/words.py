"""Words and values in shells and manifests: quoted, so that names of strangers stay names."""

from __future__ import annotations

import json
import shlex
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from io import StringIO
from typing import TYPE_CHECKING, Any

from linkwise.launch.render.run_settings import LOGS
from linkwise.launch.render.start import FOLDER

if TYPE_CHECKING:
    from linkwise.launch.render.start import Program
    from linkwise.settings.recommended import Setting

__all__ = [
    "comment_lines",
    "export_lines",
    "paragraph",
    "printable",
    "program_lines",
    "toml_text",
    "yaml_text",
]

_WIDTH = 78


def printable(text: str) -> str:
    """Return a text on one line, with escapes for what cannot be printed.

    Parameters
    ----------
    text
        A name, as somebody else gave it.
    """
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def paragraph(text: str, *, first: str = "", indent: str = "") -> str:
    """Return a text in lines of a page.

    Parameters
    ----------
    text
        Words.
    first, indent
        What the first line starts with, and the others.
    """
    return textwrap.fill(
        text,
        width=100,
        initial_indent=first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def comment_lines(text: str) -> Iterator[str]:
    """Yield the lines of a comment of a shell script.

    Parameters
    ----------
    text
        A sentence.
    """
    yield from textwrap.wrap(
        printable(text),
        width=_WIDTH,
        initial_indent="# ",
        subsequent_indent="# ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def export_lines(settings: Sequence[Setting], *, logs: str) -> Iterator[str]:
    """Yield exports for a shell script, each after the reason for it.

    Parameters
    ----------
    settings
        The settings.
    logs
        Folder of the logs, as the shell says it: ``$logs``.
    """
    for each in settings:
        yield from comment_lines(f"{each.reason} ({each.basis}; {each.source})")
        value = f'"{logs}/{each.value}"' if each.name in LOGS else shlex.quote(each.value)
        yield f"export {each.name}={value}"


def program_lines(program: Program, *, launcher: Sequence[str], folder: str) -> Iterator[str]:
    """Yield the command that runs a program on one node, with the arguments of the script behind it.

    Parameters
    ----------
    program
        The program.
    launcher
        The launcher and its options, quoted already, one group on each line.
    folder
        Where the files of the program lie, as the shell says it: ``$folder``.
    """
    words = [_shell_word(each, folder) for each in program.words]
    if program.arguments_file:
        yield f'mapfile -t arguments < "{folder}/{program.arguments_file}"'
        words.append('"${arguments[@]}"')
    pieces = [*launcher, *_lines_of(words), '"$@"']
    for number, piece in enumerate(pieces):
        yield ("" if number == 0 else "    ") + piece + ("" if number == len(pieces) - 1 else " \\")


def _shell_word(word: str, folder: str) -> str:
    if FOLDER not in word:
        return shlex.quote(word)
    before, _, behind = word.partition(FOLDER)
    return (shlex.quote(before) if before else "") + f'"{folder}"' + (shlex.quote(behind) if behind else "")


def _lines_of(words: Sequence[str]) -> Iterator[str]:
    """Yield the words of a command, as many on each line as fit."""
    line = ""
    for word in words:
        if line and len(line) + len(word) > _WIDTH - 8:
            yield line
            line = ""
        line = f"{line} {word}" if line else word
    if line:
        yield line


_WORDS_OF_YAML_1_1 = frozenset(
    ["y", "n", "yes", "no", "on", "off", "true", "false", "null", "none", "nan", "inf"]
)


def yaml_text(documents: Sequence[Mapping[str, Any]], *, heading: str) -> str:
    """Return documents as YAML that version 1.1 and 1.2 of the language read alike.

    Parameters
    ----------
    documents
        Plain values.
    heading
        A sentence for a comment at the top.

    Notes
    -----
    Kubernetes reads YAML 1.1, where ``no`` is false, ``1e3`` a number and ``0o7`` too: every text that is not
    plainly a word is quoted.
    """
    from ruamel.yaml import YAML

    writer = YAML()
    writer.default_flow_style = False
    writer.width = 4096
    writer.indent(mapping=2, sequence=4, offset=2)
    stream = StringIO()
    stream.write("".join(f"{line}\n" for line in comment_lines(heading)))
    for number, document in enumerate(documents):
        if number:
            stream.write("---\n")
        writer.dump(_quoted(document), stream)
    return stream.getvalue()


def _quoted(value: object) -> object:
    from ruamel.yaml.scalarstring import DoubleQuotedScalarString, LiteralScalarString

    if isinstance(value, Mapping):
        return {str(key): _quoted(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_quoted(each) for each in value]
    if not isinstance(value, str):
        return value
    if "\n" in value and all(each.isprintable() or each == "\n" for each in value):
        return LiteralScalarString(value)
    return value if _is_plain_word(value) else DoubleQuotedScalarString(value)


def _is_plain_word(text: str) -> bool:
    is_word = text.isascii() and text[:1].isalpha() and all(each.isalnum() or each in "-_./" for each in text)
    return is_word and text.lower() not in _WORDS_OF_YAML_1_1


def toml_text(tables: Mapping[str, Mapping[str, object]], *, heading: str) -> str:
    """Return tables of plain values as TOML.

    Parameters
    ----------
    tables
        By name; values are texts, whole numbers, truth values, and lists of them.
    heading
        A sentence for a comment at the top.
    """
    lines = list(comment_lines(heading))
    for name, table in tables.items():
        lines += ["", f"[{name}]"]
        lines += [f"{key} = {_toml_value(value)}" for key, value in table.items()]
    return "\n".join(lines) + "\n"


def _toml_value(value: object) -> str:
    # A text of JSON in ASCII is one of TOML, but for pairs of surrogates and DEL.
    if isinstance(value, str):
        return json.dumps(printable(value), ensure_ascii=False)
    return json.dumps(value)
