"""The messages of NCCL: which text which release prints, and under which subsystems.

A text is a fact of the release; it was read from the format strings in the source at the release tags (2.3.5 to 2.30.7 of
github.com/NVIDIA/nccl) and, for 2.32.3, from the strings of the library in the wheel `nvidia-nccl-cu12`. `where` is the
source file of the last tag that has it. The tables are in `formats_start` and `formats_errors`.
"""

from dataclasses import dataclass

from tests.job_logs.releases import Release, Version, version_of

NEWEST = "2.32.3"
"""The last release whose strings were read."""

INFO, WARN, BARE = "INFO", "WARN", "BARE"
"""Levels: with the word INFO, with WARN and its place in the source, and without any prefix."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One text in one range of releases.

    Parameters
    ----------
    name : str
        What the message says, the same for all releases.
    first, last : Version
        The first and the last release tag that has this text.
    level : str
        INFO, WARN or BARE.
    subsystems : frozenset[str]
        It is shown when one of them is asked for; `ALL` is always shown.
    where : str
        The file of the source, below `src/`.
    text : str
        The text with named fields for `str.format`.
    """

    name: str
    first: Version
    last: Version
    level: str
    subsystems: frozenset[str]
    where: str
    text: str


def info(name: str, releases: str, subsystems: str, where: str, text: str) -> Message:
    """Return a message of level INFO; `releases` is `first..last`."""
    return _message(INFO, name, releases, subsystems, where, text)


def warn(name: str, releases: str, where: str, text: str) -> Message:
    """Return a message of level WARN, which every subsystem shows."""
    return _message(WARN, name, releases, "ALL", where, text)


def bare(name: str, releases: str, where: str, text: str) -> Message:
    """Return a message that is printed without any prefix."""
    return _message(BARE, name, releases, "ALL", where, text)


def _message(level: str, name: str, releases: str, subsystems: str, *place: str) -> Message:
    where, text = place
    first, _, last = releases.partition("..")
    return Message(
        name=name,
        first=version_of(first),
        last=version_of(last or NEWEST),
        level=level,
        subsystems=frozenset(subsystems.split("|")),
        where=where,
        text=text,
    )


def table() -> tuple[Message, ...]:
    """Return every message of every release."""
    from tests.job_logs.formats_errors import ERRORS
    from tests.job_logs.formats_start import START

    return START + ERRORS


def find(name: str, release: Release) -> Message | None:
    """Return the message of that name as the release prints it, or None where it has no such message."""
    return _index().get((name, release.version))


_FOUND: dict[tuple[str, Version], Message] = {}


def _index() -> dict[tuple[str, Version], Message]:
    from tests.job_logs.releases import RELEASES

    if not _FOUND:
        for message in table():
            for release in RELEASES.values():
                if message.first <= release.version <= message.last:
                    key = message.name, release.version
                    if key in _FOUND:
                        raise ValueError(f"two texts of {message.name} in {release}")
                    _FOUND[key] = message
    return _FOUND


def default_subsystems(release: Release) -> frozenset[str]:
    """Return what NCCL_DEBUG=INFO shows when NCCL_DEBUG_SUBSYS is not set (`ncclDebugMask` in `src/debug.cc`)."""
    if release.is_from("2.23.4"):
        return frozenset({"INIT", "BOOTSTRAP", "ENV"})
    if release.is_from("2.16.5"):
        return frozenset({"INIT", "ENV"})
    return frozenset({"INIT"})
