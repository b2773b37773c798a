"""Which node of the catalogue, or which description of one, fits what files say of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from linkwise import catalog
from linkwise.catalog import System
from linkwise.cluster.claims import Evidence, counted
from linkwise.cluster.parts import rate_text
from linkwise.errors import Fault

__all__ = ["NodeChoice", "choose_node", "nvlinks_of"]


_SPARE = 4
"""NICs of a node that serve storage and management, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeChoice:
    """The node of an imported cluster.

    Parameters
    ----------
    system
        Name of the system of the catalogue, or ``None`` for a description.
    described
        Keys and values of the description, as the document spells them.
    comment
        Why it was chosen, for a reader.
    faults
        Why none can be chosen, and what to do.
    notes
        What the files say of the node and its system has otherwise.
    """

    system: str | None = None
    described: Mapping[str, str | int] = field(default_factory=dict, hash=False)
    comment: str = ""
    faults: tuple[Fault, ...] = ()
    notes: tuple[str, ...] = ()


def choose_node(evidence: Evidence) -> NodeChoice:
    """Return the node that fits the evidence.

    Parameters
    ----------
    evidence
        What options and files say.
    """
    named = evidence.claims.get("system")
    if named is not None:
        stated = catalog.system(named.value)
        option = named.path.startswith("--")
        return NodeChoice(
            system=stated.name,
            comment="as the option says" if option else f"{named.path}: {named.why}",
            faults=(*_misfits(stated, evidence), *_slower_links(stated, evidence)),
            notes=tuple(_other_nics(stated, evidence)),
        )
    if evidence.value("gpus_per_node") is None:
        message = (
            "no file says what a node has; add one that does (nvidia-smi topo -m, NCCL's XML, node labels)"
        )
        return NodeChoice(faults=(Fault(message=f"{message}, or give --system, as in --system dgx-h100"),))
    alike = [each for each in _systems() if not [*_misfits(each, evidence)]]
    fitting = [each for each in alike if _ports_fit(each, evidence)]
    if not fitting and "nics" in evidence.claims and evidence.claims["nics"].assumed:
        # Clouds show the NIC of storage or management beside those of the fabric, at no PCIe switch.
        fitting = [each for each in alike if _ports_fit(each, evidence, more_nics=True)]
    wanted = evidence.value("gpu")
    if len({each.gpu for each in fitting}) > 1:
        return NodeChoice(faults=(_ambiguous(fitting, evidence),))
    if fitting:
        return _assumed(fitting, evidence)
    if wanted is None:
        return NodeChoice(faults=(_unknown_gpu(evidence),))
    return _description(wanted, evidence)


@cache
def _systems() -> tuple[System, ...]:
    found = map(catalog.system, catalog.names("system"))
    # What is owned goes before what is rented, and the designs of NVIDIA before those of others.
    return tuple(sorted(found, key=lambda each: (each.kind != "system", each.name)))


@cache
def nvlinks_of(gpu: str) -> int | None:
    """Return how many NVLinks a GPU has, from its rate and that of a link of its generation.

    Parameters
    ----------
    gpu
        Name in the catalogue.
    """
    found = catalog.gpu(gpu)
    if found.nvlink_generation is None or found.nvlink_bytes_per_s is None:
        return None
    link = catalog.entry("nvlink", f"nvlink-{found.nvlink_generation}").figure("link_bytes_per_s").value
    links = found.nvlink_bytes_per_s / link
    return round(links) if abs(links - round(links)) < 0.01 else None


def _misfits(system: System, evidence: Evidence) -> Iterator[Fault]:
    """Yield what the files say of a node and this system is not."""
    gpu = evidence.value("gpu")
    if gpu is not None and gpu != system.gpu:
        yield _misfit(evidence.where("gpu"), system, f"its GPU is {gpu}", f"has {system.gpu}")
    count = evidence.value("gpus_per_node")
    if count is not None and count != system.gpus_per_node:
        what = f"a node has {count} GPUs"
        yield _misfit(evidence.where("gpus_per_node"), system, what, f"has {system.gpus_per_node}")
    domain = evidence.claims.get("nvlink_domain_gpus")
    expected = min(system.nvlink_domain_gpus, system.gpus_per_node)
    if domain is not None and domain.value != expected and not domain.assumed:
        what = f"NVLink joins {domain.value} of its GPUs"
        yield _misfit(domain.path, system, what, f"joins {expected}")
    links, has = evidence.value("nvlinks"), nvlinks_of(system.gpu)
    if links is not None and has not in links:
        words = " or ".join(map(str, sorted(links)))
        yield _misfit(evidence.where("nvlinks"), system, f"a GPU has {words} NVLinks", f"has {has or 'none'}")


def _slower_links(system: System, evidence: Evidence) -> Iterator[Fault]:
    """Yield that the links which a file states carry less than the NICs of this system; options may."""
    claim = evidence.claims.get("link")
    if claim is None or claim.assumed or claim.settled or not system.nics:
        return
    rate = catalog.link(claim.value).bytes_per_s
    ports = evidence.value("nics") or system.nics
    if rate > 0.99 * system.nic_bytes_per_s or ports * rate > 0.99 * system.nics * system.nic_bytes_per_s:
        return
    said = f"a node has {counted(ports, 'link')} of {rate_text(rate)} ({claim.value})"
    has = f"has {counted(system.nics, 'NIC')} of {rate_text(system.nic_bytes_per_s)}"
    message = f"{said}, but {system.name} {has}; name another --system, or give --link if its NICs run slower"
    yield Fault(path=claim.path, message=message)


def _other_nics(system: System, evidence: Evidence) -> Iterator[str]:
    claim = evidence.claims.get("nics")
    if claim is not None and claim.value != system.nics:
        yield f"{claim.path}: {claim.why}; {system.name} has {system.nics} NICs and goes before it"


def _misfit(where: str, system: System, said: str, has: str) -> Fault:
    return Fault(path=where, message=f"{said}, but {system.name} {has}; name another --system, or none")


def _ports_fit(system: System, evidence: Evidence, *, more_nics: bool = False) -> bool:
    nics, rate = evidence.value("nics"), evidence.value("nic_bytes_per_s")
    card, link = evidence.value("nic"), evidence.value("link")
    return (
        (nics is None or nics == system.nics or (more_nics and system.nics < nics <= system.nics + _SPARE))
        and (rate is None or abs(rate - system.nic_bytes_per_s) <= 0.01 * rate)
        and (card is None or card == system.nic)
        and (link is None or system.link is None or _same_protocol(link, system))
    )


def _same_protocol(link: str, system: System) -> bool:
    """Return whether the link is that of the system, or another that its NIC speaks."""
    spoken = catalog.nic(system.nic).protocols if system.nic is not None else ()
    return link == system.link or catalog.link(link).protocol in (*spoken, "tcp")


def _found(evidence: Evidence) -> str:
    """Return what of a node was found, in words."""
    links, nics, rate = (evidence.value(key) for key in ("nvlinks", "nics", "nic_bytes_per_s"))
    words = [counted(evidence.value("gpus_per_node"), "GPU")]
    if links is not None:
        words.append(f"{' or '.join(map(str, sorted(links)))} NVLinks each")
    if nics is not None:
        words.append(counted(nics, "NIC") + (f" of {rate_text(rate)}" if rate is not None else ""))
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _assumed(fitting: Sequence[System], evidence: Evidence) -> NodeChoice:
    first, *others = fitting
    known = first.gpu if evidence.value("gpu") is not None else ""
    also = f"; {', '.join(each.name for each in others[:4])} would fit too" if others else ""
    where = evidence.where("gpus_per_node", "nics", "gpu")
    what = f"{known + ': ' if known else ''}{_found(evidence)} fit it"
    notes = tuple(_other_nics(first, evidence))
    return NodeChoice(system=first.name, comment=f"assumed: {what} ({where}){also}", notes=notes)


def _ambiguous(fitting: Sequence[System], evidence: Evidence) -> Fault:
    names = ", ".join(each.name for each in fitting[:10])
    more = f" and {len(fitting) - 10} more" if len(fitting) > 10 else ""
    what = f"{_found(evidence)} fit nodes of several GPUs ({names}{more})"
    example = f"--system {fitting[0].name}"
    return Fault(path=evidence.where("gpus_per_node"), message=f"{what}; name yours, as in {example}")


def _unknown_gpu(evidence: Evidence) -> Fault:
    what = f"no file says which GPU it is, and {_found(evidence)} fit no system of the catalogue"
    todo = "give --gpu, as in --gpu h100-sxm ('linkwise catalog gpu' lists them), or --system"
    return Fault(path=evidence.where("gpus_per_node"), message=f"{what}; {todo}")


def _description(gpu: str, evidence: Evidence) -> NodeChoice:
    """Return a description of the node, where the GPU is known and no system fits."""
    described: dict[str, str | int] = {"gpu": gpu, "gpus_per_node": evidence.value("gpus_per_node")}
    domain = evidence.claims.get("nvlink_domain_gpus")
    if domain is not None:
        described["nvlink_domain_gpus"] = domain.value
    nics, card, rate = (evidence.value(key) for key in ("nics", "nic", "nic_bytes_per_s"))
    link = evidence.value("link")
    if rate is None and card is None and link is not None:
        rate = catalog.link(link).bytes_per_s
    known = nics and (rate is not None or card is not None)
    described["nics"] = nics if known else 0
    if known and card is not None:
        described["nic"] = card
    if known and rate is not None:
        described["nic_bytes_per_s"] = rate_text(rate)
    where = evidence.where("gpus_per_node", "gpu", "nics", "nic_bytes_per_s")
    lost = "; the rate of its NICs is not known, give --link to count them" if nics and not known else ""
    unsure = f"; NVLink domain assumed: {domain.why}" if domain is not None and domain.assumed else ""
    comment = f"no system of the catalogue fits: {where}{unsure}{lost}"
    return NodeChoice(described=described, comment=comment)
