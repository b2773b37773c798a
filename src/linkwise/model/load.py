"""A model by what a person writes: a name of the catalogue, or the path of a configuration."""

from __future__ import annotations

import os
from pathlib import Path

from linkwise.model.architecture import Model
from linkwise.model.config_json import read_config_json
from linkwise.model.table_row import model_from_entry

__all__ = ["load_model"]


def load_model(text: str, *, folder: Path | None = None) -> Model:
    """Return the model of a catalogue name or of a ``config.json``.

    Parameters
    ----------
    text
        A path if it ends in ``.json``, is a directory that holds a ``config.json``, or has a path separator
        and is no name of the catalogue (``meta-llama/Llama-3.1-8B`` is an alias there); else a name.
    folder
        What a relative path is relative to; the working directory if left out.

    Raises
    ------
    UnknownName
        When the catalogue has no such model.
    InputError
        When the file cannot be used, or the shape of the model is not known.
    """
    from linkwise import catalog
    from linkwise.errors import UnknownName

    path = (folder or Path()) / text
    if "\0" in text or not text.strip():
        raise UnknownName.among(catalog.names("model"), kind="model", given=text)
    if text.endswith(".json"):
        return read_config_json(path)
    if len(text) < 4096 and (path / "config.json").is_file():
        return read_config_json(path / "config.json")
    try:
        return model_from_entry(catalog.model(text))
    except UnknownName:
        if os.sep in text:
            return read_config_json(path)
        raise
