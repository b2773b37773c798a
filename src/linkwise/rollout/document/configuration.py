"""Scope and configurations of a `rollout/1` document, and the files that they name."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from linkwise.cluster import load_cluster
from linkwise.documents import Document, Misfits
from linkwise.documents.text import nearest_file
from linkwise.errors import DocumentError, InputError, UnknownName
from linkwise.job.reading import layout_from_options, read_job
from linkwise.rollout.document.fields import Argv, SettingText, Versions, Word
from linkwise.rollout.metrics import PLACES

__all__ = ["ConfigurationDocument", "ScopeDocument", "named_file"]


def named_file(given: str, path: str | None) -> Path:
    """Return the absolute path of a file that a document names.

    Parameters
    ----------
    given
        As it is named, relative to the document.
    path
        The file of the document; ``None`` or ``<stdin>`` where it has none.
    """
    folder = Path() if path in (None, "<stdin>") else Path(path or "").parent
    return (folder / given).resolve()


def _path_of(info: ValidationInfo) -> str | None:
    return info.context.get("path") if isinstance(info.context, dict) else None


def _existing(given: str, info: ValidationInfo) -> str:
    file = named_file(given, _path_of(info))
    if not file.is_file():
        raise InputError(f"{given!r}: no such file{nearest_file(file)}")
    return given


def _readable_job(given: str, info: ValidationInfo) -> str:
    read_job(named_file(_existing(given, info), _path_of(info)))
    return given


def _readable_cluster(given: str, info: ValidationInfo) -> str:
    file = named_file(given, _path_of(info))
    load_cluster(str(file) if file.is_file() else given)
    return given


def _place(given: str) -> str:
    kind, colon, name = given.partition(":")
    if kind not in PLACES:
        raise UnknownName.among(PLACES, kind="place", given=kind)
    if colon and (kind != "lab" or not name):
        raise InputError(f"{given!r} is no place; only a lab has a name: 'lab:NAME'")
    return given


class FingerprintDocument(Document):
    """What must be seen of the cluster; another one is an error, not a pass."""

    gpu: Word | None = Field(default=None, description="Name in the catalogue, or as the driver says it.")
    gpus_per_node: Annotated[int, Field(strict=True, ge=1)] | None = None
    nics_per_node: Annotated[int, Field(strict=True, ge=1)] | None = None
    nic: Word | None = None
    driver: Versions | None = None
    cuda: Versions | None = None
    nccl: Versions | None = None
    torch: Versions | None = None
    kernel: Versions | None = None
    firmware: Word | None = Field(default=None, description="Of the NICs, as it is printed.")
    plugin: Word | None = Field(default=None, description="Of NCCL's network.")


class ScopeDocument(Document):
    """Where the rollout is valid."""

    cluster: Annotated[str, AfterValidator(_readable_cluster)] = Field(
        description="Path of a cluster/1 document, or SYSTEM:NODES."
    )
    place: Annotated[str, AfterValidator(_place)] = Field(description="local, slurm, lab or lab:NAME.")
    device: Literal["cuda", "cpu"] = Field(default="cuda", description="cpu: trials with gloo, without GPUs.")
    prices: Annotated[str, AfterValidator(_existing)] | None = Field(
        default=None, description="Path of a prices/1 document, for objectives of cost."
    )
    fingerprint: FingerprintDocument = Field(default_factory=FingerprintDocument)


class ConfigurationDocument(Document):
    """What is run."""

    settings: dict[Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")], SettingText] = Field(
        default_factory=dict, description="Variables of the environment."
    )
    job: Annotated[str, AfterValidator(_readable_job)] | None = Field(
        default=None, description="Path of a job/1 document."
    )
    layout: dict[str, str | int | bool] = Field(
        default_factory=dict, description="Keys of the layout of the job that differ from its document."
    )
    script: Annotated[str, AfterValidator(_existing)] | None = Field(
        default=None, description="What is started instead of the framework's program."
    )
    python: Word | None = Field(default=None, description="The Python that has torch.")
    command: Argv | None = Field(
        default=None, description="What puts it in force, where settings are not all."
    )

    @field_validator("layout", mode="after")
    @classmethod
    def _is_layout(cls, given: dict[str, str | int | bool]) -> dict[str, str | int | bool]:
        try:
            layout_from_options(given)
        except DocumentError as error:
            raise Misfits(
                (fault.key.removeprefix("--layout "), fault.message.replace("the option", "the key"))
                for fault in error.faults
            ) from None
        return given
