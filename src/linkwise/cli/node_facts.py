"""Facts of a node: of this machine, or a folder, archive or output that `linkwise collect` wrote."""

from __future__ import annotations

import contextlib
import gzip
import io
import socket
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from linkwise.errors import InputError

if TYPE_CHECKING:
    from linkwise.settings.node import NodeFacts

__all__ = ["facts_at", "own_facts"]

_MOST_FILES = 200
_LARGEST_BYTES = 5_000_000
"""Larger files are passed over: the script writes at most 2 MB for a command [bytes]."""
_LARGEST_ARCHIVE_BYTES = 50_000_000
"""Larger archives, unpacked, are refused [bytes]."""


def own_facts() -> NodeFacts:
    """Return the interfaces and RDMA devices of this machine."""
    from linkwise.settings.node import NodeFacts, parse_node_facts

    layers = []
    for each in sorted(Path("/sys/class/infiniband").glob("*/ports/*/link_layer"))[:_MOST_FILES]:
        with contextlib.suppress(OSError):
            layers.append(f"{each}: {each.read_text(encoding='ascii', errors='replace').strip()}")
    return NodeFacts(
        interfaces=dict.fromkeys(name for _, name in socket.if_nameindex()),
        devices=parse_node_facts("\n".join(layers)).devices,
    )


def facts_at(place: str) -> NodeFacts:
    """Return the interfaces and devices that are shown at a place.

    Parameters
    ----------
    place
        A folder or an archive of `linkwise collect`, or a file with the output of one command.

    Raises
    ------
    InputError
        If it cannot be read, or shows none.
    """
    from linkwise.documents import read_text
    from linkwise.settings.node import parse_node_facts

    path = Path(place)
    if path.is_dir():
        text = "\n".join(_of_folder(path))
    elif path.name.endswith((".tar.gz", ".tgz")) and path.is_file():
        text = "\n".join(_of_archive(path))
    else:
        text = read_text(path, largest_bytes=_LARGEST_BYTES)
    facts = parse_node_facts(text)
    if not facts.interfaces and facts.devices is None:
        what = "shows neither interfaces nor RDMA devices"
        todo = "give what 'linkwise collect' wrote, or the output of 'ip link' or ibv_devinfo"
        raise InputError(f"--node {place}: {what}; {todo}")
    return facts


def _of_folder(path: Path) -> Iterator[str]:
    for each in sorted(path.iterdir())[:_MOST_FILES]:
        if each.is_file() and each.stat().st_size <= _LARGEST_BYTES:
            yield each.read_text(encoding="utf-8", errors="replace")


def _of_archive(path: Path) -> Iterator[str]:
    try:
        with gzip.open(path) as packed:
            data = packed.read(_LARGEST_ARCHIVE_BYTES + 1)
        if len(data) > _LARGEST_ARCHIVE_BYTES:
            raise InputError(f"--node {path} unpacks to more than {_LARGEST_ARCHIVE_BYTES // 1_000_000} MB")
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            for member, _ in zip(archive, range(_MOST_FILES), strict=False):
                file = archive.extractfile(member) if member.isfile() else None
                if file is not None and member.size <= _LARGEST_BYTES:
                    yield file.read().decode("utf-8", errors="replace")
    except (OSError, EOFError, zlib.error, tarfile.TarError) as error:
        raise InputError(f"--node {path} is no archive that can be read: {error}") from None
