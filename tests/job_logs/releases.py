"""Releases of NCCL that the generated jobs run, one or two of each series that changed its messages.

The release tags of github.com/NVIDIA/nccl name the versions; the CUDA suffix and the driver are ones that a build of that
time had, and carry no meaning for a diagnosis.
"""

from dataclasses import dataclass

Version = tuple[int, int, int]


def version_of(text: str) -> Version:
    """Return `2.27.5` as three numbers."""
    major, minor, patch = (int(part) for part in text.split("."))
    return major, minor, patch


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """One release of NCCL as a job loads it.

    Parameters
    ----------
    version : Version
        Major, minor and patch.
    cuda : str
        The CUDA release it was built with, the suffix of its version line.
    driver : int
        What cudaDriverVersion prints: 12040 is CUDA 12.4.
    """

    version: Version
    cuda: str
    driver: int

    def __str__(self) -> str:
        return ".".join(map(str, self.version))

    @property
    def code(self) -> int:
        """The number that ncclGetVersion returns."""
        major, minor, patch = self.version
        return major * 1000 + minor * 100 + patch if minor < 9 else major * 10000 + minor * 100 + patch

    def is_from(self, text: str) -> bool:
        """Return whether this release is `text` or newer."""
        return self.version >= version_of(text)


def _release(text: str, cuda: str, driver: int) -> tuple[str, Release]:
    return text, Release(version=version_of(text), cuda=cuda, driver=driver)


RELEASES = dict(
    [
        _release("2.4.8", "10.0", 10010),
        _release("2.6.4", "10.1", 10010),
        _release("2.7.8", "10.2", 10020),
        _release("2.9.9", "11.3", 11030),
        _release("2.10.3", "11.3", 11040),
        _release("2.12.12", "11.6", 11060),
        _release("2.14.3", "11.7", 11070),
        _release("2.16.5", "11.8", 11080),
        _release("2.18.3", "12.1", 12020),
        _release("2.19.3", "12.3", 12030),
        _release("2.20.5", "12.4", 12040),
        _release("2.21.5", "12.4", 12040),
        _release("2.22.3", "12.5", 12050),
        _release("2.23.4", "12.6", 12060),
        _release("2.24.3", "12.6", 12060),
        _release("2.25.1", "12.8", 12080),
        _release("2.26.5", "12.9", 12090),
        _release("2.27.5", "12.9", 12090),
        _release("2.28.9", "13.0", 13000),
        _release("2.29.3", "13.1", 13010),
        _release("2.30.7", "13.1", 13010),
        _release("2.32.3", "13.1", 13010),
    ]
)
"""Every release of this package by its name."""


def release(text: str) -> Release:
    """Return the release of that name."""
    return RELEASES[text]
