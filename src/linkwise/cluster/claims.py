"""What a file says of a cluster, one claim per key, and what all files together say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from linkwise.errors import Fault

__all__ = ["Claim", "Evidence", "counted", "groups_joined", "weigh"]


_OPTIONS = {"nodes": ", or give --nodes", "link": ", or give --link"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One thing that a file says, or that was taken from what it says.

    Parameters
    ----------
    key
        ``nodes gpu gpus_per_node nvlinks nvlink_domain_gpus nics nic nic_bytes_per_s link kind switch
        oversubscription system``, or ``note`` for what no key of a document can hold.
    value
        Its value: a name of the catalogue, a count, or a rate [bytes/s]; for ``nvlinks`` the numbers of
        links of one GPU that would look the same.
    path
        The file it was read in.
    why
        How the file says it, for a reader.
    assumed
        Whether it was taken for granted; what another file states then goes before it.
    """

    key: str
    value: Any
    path: str
    why: str
    assumed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What all files together say.

    Parameters
    ----------
    claims
        The claim that holds, by key.
    notes
        What no key holds, in sentences.
    faults
        Claims that contradict one another.
    """

    claims: Mapping[str, Claim]
    notes: tuple[str, ...]
    faults: tuple[Fault, ...]

    def value(self, key: str) -> Any:
        """Return what is claimed of `key`, or ``None``.

        Parameters
        ----------
        key
            A key of claims.
        """
        claim = self.claims.get(key)
        return None if claim is None else claim.value

    def where(self, *keys: str) -> str:
        """Return the files behind the claims of some keys, for a comment.

        Parameters
        ----------
        keys
            Keys of claims; those that nothing is claimed of do not count.
        """
        return ", ".join(dict.fromkeys(self.claims[key].path for key in keys if key in self.claims))


def weigh(claims: Iterable[Claim], *, settled: Mapping[str, object]) -> Evidence:
    """Return what holds of all claims: stated goes before assumed, and what is stated must agree.

    Parameters
    ----------
    claims
        The claims of all files.
    settled
        Values that options give; a claim that differs from one becomes a note.
    """
    kept: dict[str, Claim] = {}
    notes: list[str] = []
    faults: list[Fault] = []
    for claim in sorted(claims, key=lambda each: each.assumed):
        first = kept.setdefault(claim.key, claim)
        given = settled.get(claim.key)
        if claim.key == "note":
            notes.append(f"{claim.path}: {claim.why}")
        elif given is not None:
            if claim.value != given:
                notes.append(f"{claim.path}: {claim.why}; the option says {given} and goes before it")
        elif first.value != claim.value:
            if claim.assumed:
                notes.append(f"{claim.path}: {claim.why}; not used, {first.path} goes before it")
            else:
                faults.append(_contradiction(first, claim))
    kept.pop("note", None)
    return Evidence(
        claims={key: claim for key, claim in kept.items() if settled.get(key) is None},
        notes=tuple(dict.fromkeys(notes)),
        faults=tuple(faults),
    )


def _contradiction(first: Claim, second: Claim) -> Fault:
    said = f"{second.path} says: {second.why}; {first.path} says: {first.why}"
    todo = f"leave one out{_OPTIONS.get(second.key, '')}"
    return Fault(path=second.path, key=second.key, message=f"two files contradict: {said}; {todo}")


def counted(number: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun: ``"1 leaf"``, ``"2 leaves"``.

    Parameters
    ----------
    number
        The number.
    one, many
        The noun; its plural where that is not with an s.
    """
    return f"{number} {one if number == 1 else many or one + 's'}"


def groups_joined(members: Iterable[str], pairs: Iterable[tuple[str, str]]) -> list[set[str]]:
    """Return the groups of members that pairs join, directly or through others.

    Parameters
    ----------
    members
        All members; one that no pair names is a group of its own.
    pairs
        Pairs of members.
    """
    groups = {member: {member} for member in members}
    for first, second in pairs:
        one, other = sorted((groups[first], groups[second]), key=len)
        if one is not other:
            other |= one
            for member in one:
                groups[member] = other
    return list({id(group): group for group in groups.values()}.values())
