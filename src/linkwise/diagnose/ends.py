"""How each rank of a job over gloo ended: what it said last, what its agent says of it, and who said nothing.

Notes
-----
When one rank is gone the others say so, one after the other, and the peer that a line names is as often one
that left because of the first as the first itself. What tells them apart is who is silent, and what the
agents of torchrun tell of processes: those that a signal ended, those that they ended themselves, those
that did not obey.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from linkwise.diagnose.facts import Facts
from linkwise.readers.job_log.values import Sighting

__all__ = ["Ends", "Exit", "is_gloo_job"]

_OF_NCCL = (
    "watchdog_timeout", "watchdog_failure", "watchdog_cut", "torch_error", "call_failed", "tests_failure",
    "xla_error", "version",
)  # fmt: skip
_ABORTED = -6
_DISTRIBUTED = ("Dist", "ChildFailed", "Rendezvous", "SignalException", "ProcessExited", "ProcessRaised")
_ECHOES = (
    "gloo", "Connection closed by peer", "Connection reset by peer", "Broken pipe", "Timed out waiting",
    "Rank ", "connectFullMesh", "Socket Timeout", "failed to connect", "store", "NCCL",
)  # fmt: skip


def is_gloo_job(facts: Facts) -> bool:
    """Return whether ranks talk over gloo and nothing of NCCL is here: beside it, gloo's lines are echoes.

    Parameters
    ----------
    facts
        What is known of the job.
    """
    gloo = facts.seen("gloo_closed", "gloo_timeout", "gloo_unconnected", "gloo_no_address", "rank_joined")
    return bool(gloo) and not facts.hosts and not facts.seen(*_OF_NCCL) and not facts.channels


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """How a process ended, as its agent tells.

    Parameters
    ----------
    pid, code
        Of the process; below zero the signal that ended it.
    rank, host
        ``None`` where nothing says.
    is_told, is_forced
        Whether the agent had told it to end, and had to end it by force.
    line
        That says so.
    """

    pid: str
    code: int
    rank: int | None
    host: str | None
    is_told: bool
    is_forced: bool
    line: Sighting


@dataclass(frozen=True, kw_only=True)
class Ends:
    """The ends of all ranks.

    Parameters
    ----------
    facts
        What is known of the job.
    """

    facts: Facts

    @cached_property
    def errors(self) -> Mapping[int, Sighting]:
        """Return the first line of gloo's of each rank that has one."""
        found: dict[int, Sighting] = {}
        for each in self.facts.seen("gloo_closed", "gloo_timeout"):
            if each.rank is not None:
                found.setdefault(each.rank, each)
        return found

    @cached_property
    def timeouts(self) -> tuple[Sighting, ...]:
        """Return the lines of ranks that waited in vain."""
        return self.facts.seen("gloo_timeout")

    @cached_property
    def own_errors(self) -> tuple[Sighting, ...]:
        """Return the errors of the program itself, which are no echo of another rank."""
        return tuple(
            each
            for each in self.facts.seen("own_error")
            if not any(word in each.fields["name"].rpartition(".")[2] for word in _DISTRIBUTED)
            and not any(word in each.fields.get("text", "") for word in _ECHOES)
        )

    @cached_property
    def host_of(self) -> Mapping[int, str]:
        """Return the host of each rank: by its own lines, by its agent's, or else the file it prints to."""
        found = {each.rank: each.host for each in self.facts.log.rank_steps if each.host}
        joined = self.facts.seen("rank_joined")
        found |= {each.rank: each.fields["host"] for each in joined if each.rank is not None}
        for each in self.exits:
            if each.rank is not None and each.host is not None:
                found.setdefault(each.rank, each.host)
        if not found:
            found = self._files
        return found

    @property
    def _files(self) -> dict[int, str]:
        """Return the file of each rank, where several files have ranks of their own each."""
        lines = self.facts.seen("gloo_closed", "gloo_timeout", "own_error")
        places = [(each.rank, each.evidence.file) for each in lines if each.rank is not None]
        found = dict(places)
        is_apart = all(found[rank] == file for rank, file in places) and len(set(found.values())) > 1
        return found if is_apart else {}

    @cached_property
    def hosts(self) -> tuple[str, ...]:
        """Return the hosts that ranks are known on."""
        return tuple(dict.fromkeys(self.host_of.values()))

    @cached_property
    def ranks(self) -> frozenset[int]:
        """Return the ranks there are, as far as anything tells."""
        worlds = [int(each.fields["world"]) for each in self.facts.seen("rank_joined", "gloo_refused")]
        told = {each.rank for each in self.facts.log.rank_steps} | set(self.errors) | set(self.host_of)
        return frozenset(told | set(range(max(worlds, default=0))))

    @property
    def is_whole(self) -> bool:
        """Return whether the output says how many ranks there are."""
        return bool(self.facts.seen("rank_joined", "gloo_refused")) and len(self.ranks) > 1

    @cached_property
    def _host_of_file(self) -> Mapping[str, str]:
        """Return the host of each file in which all lines that name one name the same."""
        found: dict[str, set[str]] = {}
        for line in self.facts.seen("summary_host", "rank_joined"):
            found.setdefault(line.evidence.file, set()).add(line.fields["host"])
        for rank in self.facts.log.rank_steps:
            if rank.host is not None:
                found.setdefault(rank.steps[0].evidence.file, set()).add(rank.host)
        return {file: min(hosts) for file, hosts in found.items() if len(hosts) == 1}

    @cached_property
    def exits(self) -> tuple[Exit, ...]:
        """Return how processes ended, each once."""
        told = {each.fields["pid"] for each in self.facts.seen("agent_closing")}
        forced = {each.fields["pid"] for each in self.facts.seen("agent_forced")}
        ranks = {each.fields["pid"]: each for each in self.facts.seen("rank_joined")}
        summary = {each.fields["pid"]: (each, place) for each, place in self._summary}
        found: dict[tuple[str, str], Exit] = {}
        for each in self.facts.seen("agent_exit", "summary_exit"):
            pid = each.fields["pid"]
            place = summary.get(pid, (each, {}))[1]
            host = each.fields.get("host") or place.get("host") or self._host_of_file.get(each.evidence.file)
            told_rank = each.fields.get("rank") or place.get("rank")
            if told_rank is None and pid in ranks:
                told_rank, host = ranks[pid].fields["rank"], ranks[pid].fields["host"]
            rank = None if told_rank is None else int(told_rank)
            if rank is None and "local_rank" in each.fields:
                rank = self._rank_at(host, int(each.fields["local_rank"]))
            found.setdefault(
                (each.evidence.file, pid),
                Exit(
                    pid=pid,
                    code=int(each.fields["code"]),
                    rank=rank,
                    host=host,
                    is_told=pid in told,
                    is_forced=pid in forced,
                    line=each,
                ),
            )
        return tuple(found.values())

    def _rank_at(self, host: str | None, local_rank: int) -> int | None:
        """Return the rank at a place of a host, where the ranks of the host tell of themselves."""
        there = sorted(
            each.rank for each in self.facts.log.rank_steps if host is not None and each.host == host
        )
        return there[local_rank] if local_rank < len(there) else None

    @property
    def _summary(self) -> Iterable[tuple[Sighting, dict[str, str]]]:
        """Yield the exits of torchrun's last table with rank and host, which stand on the lines before."""
        lines = {
            (each.evidence.file, each.evidence.line): each.fields
            for each in self.facts.seen("summary_host", "summary_rank")
        }
        for each in self.facts.seen("summary_exit"):
            file, line = each.evidence.file, each.evidence.line
            rank, host = lines.get((file, line - 1), {}), lines.get((file, line - 2), {})
            if "rank" in rank:
                yield each, {**rank, **host}

    @cached_property
    def kills(self) -> tuple[Exit, ...]:
        """Return the processes that a signal ended which no agent sent, and which is no sequel."""
        return tuple(
            each
            for each in self.exits
            if each.code < 0
            and not each.is_told
            and not (each.code == _ABORTED and (each.rank is None or each.rank in self.errors))
            and not (each.rank is not None and any(line.rank == each.rank for line in self.own_errors))
        )

    @cached_property
    def silent(self) -> frozenset[int]:
        """Return the ranks that said nothing at their end, and of which no agent says how they ended."""
        ended = {
            each.rank
            for each in self.exits
            if each.rank is not None and not each.is_forced and (each.is_told or each.code >= 0)
        }
        spoke = {each.rank for each in (*self.own_errors, *self.facts.seen("interrupted"))}
        return frozenset(self.ranks - set(self.errors) - ended - spoke)

    @cached_property
    def forced(self) -> tuple[Exit, ...]:
        """Return the processes that did not obey and had to be ended, of ranks that said nothing."""
        return tuple(
            each
            for each in self.exits
            if each.is_forced and (each.rank is None or each.rank not in self.errors)
        )

    @cached_property
    def heard_hosts(self) -> frozenset[str]:
        """Return the hosts of which a rank or an agent spoke at the end."""
        found = {self.host_of[rank] for rank in self.errors if rank in self.host_of}
        return frozenset(found | {each.host for each in self.exits if each.host is not None})

    def ranks_on(self, host: str) -> frozenset[int]:
        """Return the ranks of a host.

        Parameters
        ----------
        host
            The host.
        """
        return frozenset(rank for rank, place in self.host_of.items() if place == host)

    def where(self, ranks: Iterable[int]) -> list[str]:
        """Return hosts and ranks as a finding names them.

        Parameters
        ----------
        ranks
            The ranks.
        """
        chosen = sorted(ranks)
        hosts = dict.fromkeys(self.host_of[rank] for rank in chosen if rank in self.host_of)
        return [*hosts, *(f"rank {rank}" for rank in chosen)]

    @cached_property
    def is_told(self) -> bool:
        """Return whether a launcher was told to end, or the job was stopped, before any rank had an error.

        Notes
        -----
        Launchers end what is left once a rank has failed; that comes after errors, in the same file or in
        none.
        """
        if self.facts.seen("interrupted"):
            return True
        first: dict[str, int] = {}
        for each in self.errors.values():
            first.setdefault(each.evidence.file, each.order)
        told = self.facts.seen("agent_told")
        return any(each.order < first.get(each.evidence.file, each.order + 1) for each in told)

    @cached_property
    def went_on(self) -> bool:
        """Return whether a rank did two steps after the first error of its file: the job started again."""
        first: dict[str, int] = {}
        for each in self.errors.values():
            place = each.evidence
            first[place.file] = min(place.line, first.get(place.file, place.line))
        return any(
            len(rank.steps) > 1
            and (place := rank.steps[-2].evidence).line > first.get(place.file, place.line)
            for rank in self.facts.log.rank_steps
        )
