"""A configuration kept whole, with the text of the files it names, and put back from that."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from linkwise.documents.tree import parse_yaml
from linkwise.errors import InputError
from linkwise.rollout.canonical import canonical_text, parse_object
from linkwise.rollout.plan import Configuration

__all__ = ["kept_configuration", "promoted_json", "put_back"]

_MOST_FILE_BYTES = 4 << 20


def kept_configuration(configuration: Configuration) -> str:
    """Return a configuration as the text that is kept: settings, layout, and its files' own text.

    Parameters
    ----------
    configuration
        As the rollout file gives it.

    Raises
    ------
    InputError
        When a file it names cannot be read, is no text, or is larger than 4 MiB.
    """
    return canonical_text(
        {
            "digest": configuration.digest,
            "settings": dict(configuration.settings),
            "layout": dict(configuration.layout),
            "python": configuration.python,
            "command": list(configuration.command),
            "job": Path(configuration.job).name,
            "script": Path(configuration.script).name,
            "files": dict(_files(configuration)),
        }
    )


def _files(configuration: Configuration) -> Iterator[tuple[str, str]]:
    """Yield the files by their path from the folder of the job; the script lies beside the job."""
    if configuration.script:
        yield Path(configuration.script).name, _text_of(Path(configuration.script))
    if not configuration.job:
        return
    job = Path(configuration.job)
    text = _text_of(job)
    yield job.name, text
    tree = parse_yaml(text).value
    model = tree.get("model") if isinstance(tree, dict) else None
    if isinstance(model, str) and not Path(model).is_absolute() and (job.parent / model).is_file():
        yield model, _text_of(job.parent / model)


def _text_of(path: Path) -> str:
    try:
        if path.stat().st_size > _MOST_FILE_BYTES:
            raise InputError(f"{path}: is larger than 4 MiB, which is too much to keep for the way back")
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        raise InputError(f"{path}: is no text, and cannot be kept for the way back") from None


def promoted_json(kept: str, *, rollout: str, since: str) -> str:
    """Return what is written for launchers: the configuration in force, and why it is.

    Parameters
    ----------
    kept
        As `kept_configuration` wrote it.
    rollout
        Name of the rollout that put it in force.
    since
        When, in UTC.
    """
    found = parse_object(kept, what="a kept configuration")
    body = {"linkwise": "promoted/1", "rollout": rollout, "since": since, **found}
    return json.dumps(body, indent=2, sort_keys=False) + "\n"


def put_back(kept: str, folder: Path) -> Configuration:
    """Return a configuration whose files were written again as they were kept.

    Parameters
    ----------
    kept
        As `kept_configuration` wrote it.
    folder
        Where to.

    Raises
    ------
    InputError
        When the text is none of ours, or a file of it would lie outside the folder.
    """
    found = parse_object(kept, what="a kept configuration")
    files: dict[str, str] = found["files"]
    # A model may lie above its job: the job goes as deep as the longest way up.
    ups = max((PurePosixPath(name).parts.count("..") for name in files), default=0)
    home = folder.joinpath(*(["job"] * ups)) if ups else folder
    for name, text in files.items():
        _write(folder, home / name, text)
    return _configuration(found, home)


def _write(folder: Path, path: Path, text: str) -> None:
    target = Path(os.path.normpath(path.absolute()))
    if not target.is_relative_to(folder.absolute()):
        raise InputError(f"a kept file would lie at {target}, outside {folder}; it was altered")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(text.encode("utf-8"))


def _configuration(found: dict[str, Any], home: Path) -> Configuration:
    job = str((home / found["job"]).absolute()) if found["job"] else ""
    script = str((home / found["script"]).absolute()) if found["script"] else ""
    return replace(
        Configuration(digest=str(found["digest"])),
        settings=dict(found["settings"]),
        layout=dict(found["layout"]),
        python=str(found["python"]),
        command=tuple(found["command"]),
        job=job,
        script=script,
    )
