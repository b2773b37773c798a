"""The tables of the evidence store."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, ForeignKey, Integer, MetaData, Table, Text

__all__ = [
    "SCHEMA_VERSION",
    "TABLES",
    "baselines",
    "decisions",
    "holders",
    "kept",
    "meta",
    "rollouts",
    "runs",
]

SCHEMA_VERSION = 1
"""Raised when a table changes; a store of a later one is refused."""

TABLES = MetaData()

meta = Table(
    "linkwise_meta",
    TABLES,
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
)
"""What kind of store it is, and of which version."""

rollouts = Table(
    "linkwise_rollouts",
    TABLES,
    Column("name", Text, primary_key=True),
    Column("head_entries", Integer, nullable=False),
    Column("head_digest", Text, nullable=False),
)
"""Rollouts with the head of their log."""

decisions = Table(
    "linkwise_decisions",
    TABLES,
    Column("rollout", Text, ForeignKey(rollouts.c.name), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("text", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("signature", Text, nullable=False),
)
"""The decision log; rows are added, never changed. Approvals and waivers are entries of it."""

runs = Table(
    "linkwise_runs",
    TABLES,
    Column("rollout", Text, ForeignKey(rollouts.c.name), primary_key=True),
    Column("run_id", Text, primary_key=True),
    Column("text", Text, nullable=False),
)
"""Runs with every sample; the log has their order."""

kept = Table(
    "linkwise_kept",
    TABLES,
    Column("rollout", Text, ForeignKey(rollouts.c.name), primary_key=True),
    Column("digest", Text, primary_key=True),
    Column("text", Text, nullable=False),
)
"""Texts by their digest: rollout files, configurations, verdicts, output of commands."""

baselines = Table(
    "linkwise_baselines",
    TABLES,
    Column("rollout", Text, ForeignKey(rollouts.c.name), primary_key=True),
    Column("run_id", Text, primary_key=True),
    Column("scope", Text, nullable=False),
    Column("configuration", Text, nullable=False),
    Column("fingerprint", Text, nullable=False),
    Column("target", Text, nullable=False),
    Column("promoted", Text, nullable=False),
)
"""Which runs of promoted configurations others are compared with: where they ran, what was seen there."""

holders = Table(
    "linkwise_holders",
    TABLES,
    Column("rollout", Text, primary_key=True),
    Column("token", Text, nullable=False),
    Column("who", Text, nullable=False),
    Column("host", Text, nullable=False),
    Column("process", BigInteger, nullable=False),
    Column("since", Text, nullable=False),
)
"""Who carries out a rollout, or did so last; the lock itself is one that ends with its process."""
