"""The value `Calibration`: what a site measured, as factors on what is modelled.

Not here: how factors are found (`linkwise.calibrate`), and which constants and columns each scales
(`linkwise.network.link_factors`, `linkwise.estimate.calibrated`).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

from linkwise.errors import InputError

if TYPE_CHECKING:
    from linkwise.cluster.cluster import Cluster

__all__ = [
    "CALIBRATION_LAYER",
    "FACTORS",
    "CalibratedFactor",
    "Calibration",
    "Hardware",
    "MeasuredFile",
    "calibrated",
    "hardware_of",
]

CALIBRATION_LAYER = "site's calibration"
"""Name of the layer of figures."""

FACTORS: Mapping[str, str] = {
    "gpu_speed_16_bit": "compute",
    "gpu_speed_8_bit": "compute",
    "host_time": "compute",
    "exposed_share": "compute",
    "nvlink_latency": "nvlink",
    "nvlink_bandwidth": "nvlink",
    "network_latency": "network",
    "network_bandwidth": "network",
}
"""What can be calibrated, and its tier; no tier has more than four."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibratedFactor:
    """One factor on what is modelled.

    Attributes
    ----------
    name
        A key of `FACTORS`.
    value
        The factor; 1 is as modelled [1].
    low, high
        Ends of its 80 % interval [1].
    """

    name: str
    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """What two clusters must share for the calibration of one to hold on the other.

    Attributes
    ----------
    gpu
        Name of the GPU in the catalogue.
    gpus_per_node, nvlink_domain_gpus
        GPUs of a node, and of a whole NVLink domain [1].
    nics_per_node
        NICs of a node [1].
    nic_bytes_per_s
        Rate of one NIC [bytes/s].
    link
        The link of the fabric in the catalogue; ``none`` without one.
    """

    gpu: str
    gpus_per_node: int
    nvlink_domain_gpus: int
    nics_per_node: int
    nic_bytes_per_s: float
    link: str

    def differences(self, other: Hardware) -> Iterator[str]:
        """Yield what differs, in words: ``gpu a100-sxm-80gb, not h100-sxm``.

        Parameters
        ----------
        other
            What it should be.
        """
        for each in fields(self):
            mine, theirs = getattr(self, each.name), getattr(other, each.name)
            if mine != theirs:
                yield f"{each.name} {_shown(mine)}, not {_shown(theirs)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredFile:
    """One file that a calibration rests on.

    Attributes
    ----------
    name
        Its name, without folders.
    sha256
        Digest of what it held.
    kind
        Such as ``nccl-tests``.
    """

    name: str
    sha256: str
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """What a site measured, as factors on what is modelled.

    Attributes
    ----------
    path
        The file it was read from, for messages; ``None`` where there is none.
    made
        The day it was made.
    hardware
        What it was measured on.
    constants
        Digest of the shipped constants that the factors belong to.
    factors
        The factors that were fitted; the others are 1.
    files
        What they were fitted on.
    """

    path: str | None = None
    made: dt.date
    hardware: Hardware
    constants: str
    factors: tuple[CalibratedFactor, ...]
    files: tuple[MeasuredFile, ...]

    def factor(self, name: str) -> float:
        """Return the factor of that name, 1 where it was not fitted [1].

        Parameters
        ----------
        name
            A key of `FACTORS`.
        """
        return next((each.value for each in self.factors if each.name == name), 1.0)

    @property
    def words(self) -> str:
        """Return what it is, for a reader."""
        count = "1 file" if len(self.files) == 1 else f"{len(self.files)} files"
        named = f" {self.path}" if self.path else ""
        return f"{CALIBRATION_LAYER}{named} of {self.made:%Y-%m-%d}, from {count}"


def hardware_of(cluster: Cluster) -> Hardware:
    """Return what a calibration of a cluster is bound to; how many nodes there are does not count.

    Parameters
    ----------
    cluster
        What there is.
    """
    link = cluster.fabric.link
    return Hardware(
        gpu=cluster.gpu.name,
        gpus_per_node=cluster.gpus_per_node,
        nvlink_domain_gpus=max(cluster.full_domain_gpus or 1, cluster.nvlink_domain_gpus),
        nics_per_node=cluster.nics_per_node,
        nic_bytes_per_s=cluster.nic_bytes_per_s,
        link="none" if link is None else link.name,
    )


def calibrated(cluster: Cluster, calibration: Calibration) -> Cluster:
    """Return a cluster with a calibration laid over its figures.

    Parameters
    ----------
    cluster
        What there is.
    calibration
        What was measured on it, or on one with other numbers of the same nodes.

    Raises
    ------
    InputError
        If it was measured on other hardware.
    """
    differences = list(calibration.hardware.differences(hardware_of(cluster)))
    if differences:
        raise InputError(
            f"{calibration.path or 'the calibration'} is of another cluster than {cluster.name}: "
            f"{'; '.join(differences)}; run linkwise calibrate on measurements of this one"
        )
    return replace(cluster, calibration=calibration)


def _shown(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
