"""The `calibration/1` document: what `linkwise calibrate` writes, and from its text to `Calibration`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import Field, StringConstraints, model_validator

from linkwise.cluster.calibration import (
    FACTORS,
    CalibratedFactor,
    Calibration,
    Hardware,
    MeasuredFile,
)
from linkwise.cluster.prices_document import Day
from linkwise.documents import BytesPerSecond, Count, Document, Misfits, read_document
from linkwise.errors import InputError, UnknownName

if TYPE_CHECKING:
    from os import PathLike

__all__ = ["HEADER", "CalibrationDocument", "calibration_text", "read_calibration"]

HEADER = "calibration/1"
MOST_FILES = 10_000
_Positive = Annotated[float, Field(ge=0.01, le=100)]
_Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{16,64}$")]
_Word = Annotated[str, StringConstraints(min_length=1, max_length=300)]


class HardwareDocument(Document):
    """What the measurements were made on."""

    gpu: _Word
    gpus_per_node: Count
    nvlink_domain_gpus: Count
    nics_per_node: Annotated[int, Field(strict=True, ge=0, le=1_000_000)]
    nic_rate: BytesPerSecond | None = Field(default=None, description="Of one NIC; none without NICs.")
    link: _Word


class FactorDocument(Document):
    """One factor with its 80 % interval."""

    value: _Positive
    low: _Positive
    high: _Positive

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if not self.low <= self.value <= self.high:
            raise Misfits([("value", f"{self.value:g} is not between low and high, which are its interval")])
        return self


class FileDocument(Document):
    """One file that was measured."""

    name: _Word
    sha256: _Digest
    kind: _Word


class CalibrationDocument(Document):
    """What was measured on a cluster, as factors on what is modelled."""

    made: Day
    constants: _Digest = Field(description="Digest of the shipped constants that the factors belong to.")
    hardware: HardwareDocument
    factors: dict[str, FactorDocument] = Field(max_length=len(FACTORS))
    files: list[FileDocument] = Field(min_length=1, max_length=MOST_FILES)

    @model_validator(mode="after")
    def _names(self) -> Self:
        unknown = [name for name in self.factors if name not in FACTORS]
        if unknown:
            raise Misfits(
                (f"factors.{name}", str(UnknownName.among(FACTORS, kind="factor", given=name)))
                for name in unknown
            )
        return self


def read_calibration(path: str | PathLike[str], *, constants: str) -> Calibration:
    """Return the calibration in a file.

    Parameters
    ----------
    path
        The file, or ``-`` for standard input.
    constants
        Digest of the constants that are shipped today.

    Raises
    ------
    DocumentError
        With all faults of the file.
    InputError
        If its factors belong to other constants than those of today.
    """
    document = read_document(path, CalibrationDocument, HEADER)
    if document.constants != constants:
        raise InputError(
            f"{path}: is stale: made on {document.made:%Y-%m-%d} for other constants of the model than this "
            "release has, so that its factors would count twice or not at all; run linkwise calibrate again "
            f"on {_names(document)}"
        )
    there = document.hardware
    return Calibration(
        path=str(path),
        made=document.made,
        hardware=Hardware(
            gpu=there.gpu,
            gpus_per_node=there.gpus_per_node,
            nvlink_domain_gpus=there.nvlink_domain_gpus,
            nics_per_node=there.nics_per_node,
            nic_bytes_per_s=there.nic_rate or 0.0,
            link=there.link,
        ),
        constants=document.constants,
        factors=tuple(
            CalibratedFactor(name=name, value=each.value, low=each.low, high=each.high)
            for name, each in document.factors.items()
        ),
        files=tuple(
            MeasuredFile(name=each.name, sha256=each.sha256, kind=each.kind) for each in document.files
        ),
    )


def calibration_text(calibration: Calibration, *, comments: Mapping[str, str]) -> str:
    """Return the document of a calibration; reading it back gives the same.

    Parameters
    ----------
    calibration
        What to write.
    comments
        What to say behind a factor, by its name.
    """
    there = calibration.hardware
    rate = f"\n  nic_rate: {there.nic_bytes_per_s:.12g} B/s" if there.nic_bytes_per_s else ""
    lines = [
        f"linkwise: {HEADER}",
        "# written by linkwise calibrate; plan, explain, compare and collective take it with --calibration",
        f"made: {calibration.made:%Y-%m-%d}",
        f'constants: "{calibration.constants}"',
        "hardware:",
        f"  gpu: {_text(there.gpu)}",
        f"  gpus_per_node: {there.gpus_per_node}",
        f"  nvlink_domain_gpus: {there.nvlink_domain_gpus}",
        f"  nics_per_node: {there.nics_per_node}{rate}",
        f"  link: {_text(there.link)}",
        "factors:" if calibration.factors else "factors: {}",
    ]
    for each in calibration.factors:
        said = f"  # {comments[each.name]}" if each.name in comments else ""
        lines.append(
            f"  {each.name}: {{value: {each.value:.5g}, low: {each.low:.5g}, high: {each.high:.5g}}}{said}"
        )
    lines.append("files:")
    for file in calibration.files:
        lines += [
            f"  - name: {_text(file.name)}",
            f'    sha256: "{file.sha256}"',
            f"    kind: {_text(file.kind)}",
        ]
    return "\n".join(lines) + "\n"


def _text(value: str) -> str:
    """Return a text as YAML reads it back; what is no Unicode, as a file may be called, is escaped."""
    plain = value.encode("utf-8", "backslashreplace").decode()
    return (
        value
        if re.fullmatch(r"[A-Za-z][\w.-]*", value) and value.lower() not in _WORDS
        else json.dumps(plain, ensure_ascii=False)
    )


_WORDS = ("none", "null", "true", "false", "yes", "no", "on", "off", "y", "n")


def _names(document: CalibrationDocument) -> str:
    names = [each.name for each in document.files]
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more
