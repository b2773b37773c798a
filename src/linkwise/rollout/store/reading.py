"""What a store holds of a rollout: read as it lies there, and believed only when its log is whole."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, RowMapping, select

from linkwise.rollout.runs import StepRun
from linkwise.rollout.store.decisions import Entry, Kind, LogHead, SealedEntry, head_of
from linkwise.rollout.store.run_text import run_of_text
from linkwise.rollout.store.tables import baselines, decisions, kept, rollouts, runs
from linkwise.rollout.store.verification import LogContents, LogRow, read_log

__all__ = ["BaselineRow", "Record", "baseline_row", "contents_of", "record_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """All that a store holds of one rollout, as it was written.

    Parameters
    ----------
    rollout
        Its name.
    log
        All entries.
    runs
        All runs, in the order they were started.
    kept
        Other texts by their digests.
    """

    rollout: str
    log: tuple[SealedEntry, ...]
    runs: tuple[StepRun, ...]
    kept: Mapping[str, str]

    @property
    def head(self) -> LogHead:
        """Return the end of its log."""
        return head_of(self.log)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Return what the log says."""
        return tuple(each.entry for each in self.log)


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineRow:
    """One run of a promoted configuration.

    Parameters
    ----------
    run_id
        Of the run.
    scope
        Where it ran: cluster and place.
    configuration
        Digest of the configuration.
    fingerprint
        Digest of what was seen of the cluster.
    target
        How much of the cluster it touched, in words.
    promoted
        When, in UTC.
    """

    run_id: str
    scope: str
    configuration: str
    fingerprint: str
    target: str
    promoted: str

    @property
    def columns(self) -> tuple[str, ...]:
        """Return its values in the order in which they are listed."""
        return (self.run_id, self.scope, self.configuration, self.fingerprint, self.target, self.promoted)


def record_of(contents: LogContents) -> Record:
    """Return what a log and its runs say.

    Parameters
    ----------
    contents
        As they lie in a store.

    Raises
    ------
    InputError
        When something was altered.
    """
    log = read_log(contents)
    order = [each.entry.fact("run_id") for each in log if each.entry.kind is Kind.RUN_STARTED]
    return Record(
        rollout=contents.rollout,
        log=log,
        runs=tuple(run_of_text(contents.runs[run_id]) for run_id in order),
        kept=contents.kept,
    )


def contents_of(connection: Connection, rollout: str) -> LogContents | None:
    """Return what lies in a store of a rollout, not yet believed; ``None`` where nothing does.

    Parameters
    ----------
    connection
        In a transaction, so that all of it is of one moment.
    rollout
        Its name.
    """
    head = connection.execute(
        select(rollouts.c.head_entries, rollouts.c.head_digest).where(rollouts.c.name == rollout)
    ).first()
    if head is None:
        return None
    rows = connection.execute(
        select(decisions.c.number, decisions.c.text, decisions.c.digest, decisions.c.signature)
        .where(decisions.c.rollout == rollout)
        .order_by(decisions.c.number)
    )
    return LogContents(
        rollout=rollout,
        head=LogHead(entries=head[0], digest=head[1]),
        rows=tuple(LogRow(number=row[0], text=row[1], digest=row[2], signature=row[3]) for row in rows),
        runs=_texts(connection.execute(select(runs.c.run_id, runs.c.text).where(runs.c.rollout == rollout))),
        kept=_texts(connection.execute(select(kept.c.digest, kept.c.text).where(kept.c.rollout == rollout))),
        baselines=tuple(
            sorted(
                baseline_row(row).columns
                for row in connection.execute(
                    select(baselines).where(baselines.c.rollout == rollout)
                ).mappings()
            )
        ),
    )


def _texts(rows: Iterable[Sequence[str]]) -> dict[str, str]:
    return {row[0]: row[1] for row in rows}


def baseline_row(row: RowMapping) -> BaselineRow:
    """Return a row of the table of baselines.

    Parameters
    ----------
    row
        As it was selected.
    """
    return BaselineRow(
        run_id=row["run_id"],
        scope=row["scope"],
        configuration=row["configuration"],
        fingerprint=row["fingerprint"],
        target=row["target"],
        promoted=row["promoted"],
    )
