"""Files that people have of a site: read within bounds, told apart by what is in them."""

from __future__ import annotations

import gzip
import hashlib
import sys
import zlib
from dataclasses import dataclass
from enum import StrEnum
from io import BytesIO
from pathlib import Path

from linkwise.errors import DocumentError, Fault, InputError
from linkwise.readers.bench_record import is_bench_record
from linkwise.readers.json_text import looks_like_json
from linkwise.readers.kineto import is_kineto
from linkwise.readers.launch_record import is_launch_record
from linkwise.readers.training_log import is_training_log

__all__ = ["LARGEST_BYTES", "SiteFile", "SiteFileKind", "read_site_file"]

LARGEST_BYTES = 200_000_000
"""Files larger than this are refused, compressed ones by what they hold: a trace of a few steps of one
process has tens of MB [bytes]."""
_GZIP = b"\x1f\x8b"


class SiteFileKind(StrEnum):
    """What a file holds."""

    NCCL_TESTS = "nccl-tests"
    TRAINING_LOG = "training log"
    KINETO = "Kineto trace"
    BENCH = "bench record"
    LAUNCH = "launch record"


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteFile:
    """One file that was measured.

    Attributes
    ----------
    path
        As it was given.
    kind
        What it holds.
    sha256
        Digest of the file as it is on disk.
    text
        What it says.
    """

    path: str
    kind: SiteFileKind
    sha256: str
    text: str

    @property
    def name(self) -> str:
        """Return its name without folders."""
        return Path(self.path).name


def read_site_file(path: str) -> SiteFile:
    """Return a file and what it holds.

    Parameters
    ----------
    path
        The file, which may be compressed with gzip; ``-`` is standard input, a run folder its record.

    Raises
    ------
    DocumentError
        If it cannot be read, is too large, or holds nothing that is known.
    """
    shown = "<stdin>" if path == "-" else path
    data = _bytes(path)
    try:
        text = _unpacked(data, shown).decode("utf-8-sig", errors="replace")
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise _refused(shown, "is cut short or damaged: its gzip stream does not end") from None
    return SiteFile(path=shown, kind=_kind(text, shown), sha256=hashlib.sha256(data).hexdigest(), text=text)


def _bytes(path: str) -> bytes:
    try:
        if path == "-":
            data = sys.stdin.buffer.read(LARGEST_BYTES + 1)
        else:
            target = Path(path)
            with (target / "record.json" if target.is_dir() else target).open("rb") as file:
                data = file.read(LARGEST_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise _refused(path, f"cannot be read: {reason}") from None
    if len(data) > LARGEST_BYTES:
        raise _refused(path, f"is larger than {LARGEST_BYTES // 1_000_000} MB; give a shorter run")
    return data


def _unpacked(data: bytes, path: str) -> bytes:
    if not data.startswith(_GZIP):
        return data
    with gzip.GzipFile(fileobj=BytesIO(data)) as file:
        text = file.read(LARGEST_BYTES + 1)
    if len(text) > LARGEST_BYTES:
        raise _refused(path, f"holds more than {LARGEST_BYTES // 1_000_000} MB; give a shorter run")
    return text


def _kind(text: str, path: str) -> SiteFileKind:
    if not text.strip():
        raise _refused(
            path, "is empty: nothing was measured, or nothing written; look at the run that made it"
        )
    if is_bench_record(text):
        return SiteFileKind.BENCH
    if is_launch_record(text):
        return SiteFileKind.LAUNCH
    if is_kineto(text):
        return SiteFileKind.KINETO
    if is_training_log(text):
        return SiteFileKind.TRAINING_LOG
    if "busbw" in text or looks_like_json(text, "nccl_tests") or looks_like_json(text, "results"):
        return SiteFileKind.NCCL_TESTS
    raise _refused(
        path,
        "is none of: output of nccl-tests, JSON of linkwise bench, the record of linkwise launch, a log of "
        "Megatron-LM, NeMo, torchtitan or DeepSpeed with the times of steps, a trace of PyTorch's profiler",
    )


def _refused(path: str, message: str) -> InputError:
    return DocumentError([Fault(path=path, message=message)])
