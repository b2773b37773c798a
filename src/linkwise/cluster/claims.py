"""What a file says of a cluster, one claim per key, and what all files together say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
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
        oversubscription system``, ``change`` for a part that is missing or slow, or ``note`` for what no key
        of a document can hold.
    value
        Its value: a name of the catalogue, a count, or a rate [bytes/s]; for ``nvlinks`` the numbers of
        links of one GPU that would look the same; for ``change`` selector and what is left.
    path
        The file it was read in, or the option that gives it.
    why
        How the file says it, for a reader.
    assumed
        Whether it was taken for granted; what another file states then goes before it.
    settled
        Whether it goes before what others state.
    """

    key: str
    value: Any
    path: str
    why: str
    assumed: bool = False
    settled: bool = False


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
    changes
        Claims of parts that are missing or slow, each once.
    """

    claims: Mapping[str, Claim]
    notes: tuple[str, ...]
    faults: tuple[Fault, ...]
    changes: tuple[Claim, ...] = ()

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


def weigh(claims: Iterable[Claim], *, nodes: int | None) -> Evidence:
    """Return what holds of all claims: stated goes before assumed, and what is stated must agree.

    Parameters
    ----------
    claims
        The claims of options and files.
    nodes
        How many nodes an option says there are; it goes before what files say.
    """
    kept: dict[str, Claim] = {}
    notes: list[str] = []
    faults: list[Fault] = []
    if nodes is not None:
        kept["nodes"] = Claim(key="nodes", value=nodes, path="--nodes", why=str(nodes), settled=True)
    stated = list(claims)
    changes = {str(claim.value): claim for claim in stated if claim.key == "change"}
    for claim in sorted(
        (each for each in stated if each.key != "change"), key=lambda each: (not each.settled, each.assumed)
    ):
        first = kept.setdefault(claim.key, claim)
        if claim.key == "note":
            notes.append(f"{claim.path}: {claim.why}")
        elif isinstance(claim.value, frozenset) and first.value & claim.value:
            kept[claim.key] = replace(first, value=first.value & claim.value)
        elif first.value != claim.value:
            if claim.assumed or first.settled:
                notes.append(f"{claim.path}: {claim.why}; not used, {first.path} goes before it")
            else:
                faults.append(_contradiction(first, claim))
    kept.pop("note", None)
    return Evidence(
        claims=kept, notes=tuple(dict.fromkeys(notes)), faults=tuple(faults), changes=tuple(changes.values())
    )


def _contradiction(first: Claim, second: Claim) -> Fault:
    said = f"{second.path} says: {second.why}; {first.path} says: {first.why}"
    todo = f"leave one out{_OPTIONS.get(second.key, '')}"
    return Fault(path=second.path, key=second.key, message=f"contradiction: {said}; {todo}")


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
