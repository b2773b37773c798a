"""The folder that `render` writes: what it replaces, and what it leaves alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from linkwise.cli.files import write_whole
from linkwise.errors import InputError

if TYPE_CHECKING:
    from linkwise.report.render_result import RenderResult

__all__ = ["check_folder", "write_folder"]

_OPTION = "-o"
_LARGEST_BYTES = 5_000_000
"""Larger files were not rendered [bytes]."""


def check_folder(folder: Path) -> None:
    """Refuse a folder that can never be written, before the work is done.

    Parameters
    ----------
    folder
        The folder.

    Raises
    ------
    InputError
        When it is a file, or lies in no folder.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{_OPTION} {folder} is a file; give the name of a folder")
    if not folder.parent.is_dir():
        raise InputError(f"{_OPTION} {folder}: there is no folder {folder.parent}")


def write_folder(
    folder: Path,
    result: RenderResult,
    texts: Mapping[str, str],
    *,
    executable: frozenset[str],
    is_forced: bool,
) -> tuple[str, ...]:
    """Write rendered files and the result, and return which files of an earlier run were removed.

    Parameters
    ----------
    folder
        Where to; made if it is not there.
    result
        The result.
    texts
        Texts by name.
    executable
        Names of files that are commands.
    is_forced
        Whether files are replaced that were not rendered, or edited since.

    Raises
    ------
    InputError
        When there are such files, and nothing forces it; when the folder cannot be written.
    """
    from linkwise.report.render_result import RENDER_FILE
    from linkwise.report.results import published_json

    before = _before(folder)
    kept = [name for name in (*texts, RENDER_FILE) if not _is_ours(folder, name, before)]
    if kept and not is_forced:
        raise InputError(
            f"{_OPTION} {folder} has {', '.join(kept)}, not rendered by linkwise or edited since; give "
            "another "
            "folder, or --force to replace"
        )
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise InputError(f"{_OPTION} {folder}: cannot be made ({error.strerror})") from None
    for name, text in {**texts, RENDER_FILE: published_json(result) + "\n"}.items():
        if (folder / name).is_symlink():
            (folder / name).unlink()  # what it leads to belongs to somebody else
        write_whole(_OPTION, folder / name, text)
        if name in executable:
            mode = (folder / name).stat().st_mode
            (folder / name).chmod(mode | (mode & 0o444) >> 2)
    return tuple(_removed(folder, before, texts))


def _before(folder: Path) -> Mapping[str, str]:
    """Return the digests that an earlier run left; none where its result is not one."""
    from linkwise.report.render_result import RENDER_FILE, digests_in

    content = _content(folder / RENDER_FILE)
    try:
        return {} if content is None else {RENDER_FILE: "", **digests_in(content.decode())}
    except ValueError:
        return {}


def _content(path: Path) -> bytes | None:
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST_BYTES:
            return None
        return path.read_bytes()
    except OSError:
        return None


def _is_ours(folder: Path, name: str, before: Mapping[str, str]) -> bool:
    """Return whether a file is not there, or as it was rendered."""
    from linkwise.report.render_result import RENDER_FILE, digest_of

    path = folder / name
    if not path.exists() and not path.is_symlink():
        return True
    content = _content(path)
    if content is None or name not in before:
        return False
    return name == RENDER_FILE or digest_of(content) == before[name]


def _removed(folder: Path, before: Mapping[str, str], texts: Mapping[str, str]) -> Iterator[str]:
    """Yield files of an earlier run that this one has no more; one that was edited since stays."""
    from linkwise.report.render_result import RENDER_FILE

    for name in before:
        is_plain = name not in ("", ".", "..") and Path(name).name == name
        if name in texts or name == RENDER_FILE or not is_plain or not (folder / name).is_file():
            continue
        if _is_ours(folder, name, before):
            (folder / name).unlink()
            yield name
