"""Any change of a decision log or of what it rests on shows: single bytes, rows, tails, whole chains."""

import random
import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest

from linkwise.errors import InputError, LinkwiseError
from linkwise.rollout.exports.decision_log import log_json, parse_log
from linkwise.rollout.store.decisions import Kind, LogHead, seal, unseal
from linkwise.rollout.store.signing import read_private_key, read_public_keys
from linkwise.rollout.store.store import Store
from linkwise.rollout.store.verification import LogRow, flaws_of
from tests.rollout.simulated import Processes, carry, ground, three_steps

ROWS = {
    "linkwise_decisions": ("rollout", "number", "text", "digest", "signature"),
    "linkwise_rollouts": ("name", "head_entries", "head_digest"),
    "linkwise_runs": ("rollout", "run_id", "text"),
    "linkwise_kept": ("rollout", "digest", "text"),
    "linkwise_baselines": (
        "rollout",
        "run_id",
        "scope",
        "configuration",
        "fingerprint",
        "target",
        "promoted",
    ),
    "linkwise_meta": ("name", "value"),
}
"""Every column of the store that is evidence; holders are none."""


def key_pair(folder, name="key"):
    cryptography = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.ed25519")
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
        PublicFormat,
    )

    key = cryptography.Ed25519PrivateKey.generate()
    private, public = folder / f"{name}.pem", folder / f"{name}.pub"
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    public.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return private, public


@pytest.fixture(scope="module")
def promoted(tmp_path_factory):
    """Return the folder of a rollout that was promoted, its log signed."""
    folder = tmp_path_factory.mktemp("promoted")
    private, _ = key_pair(folder)
    plan = replace(three_steps(), steps=three_steps().steps[:1])
    there = ground(folder, plan, measure=Processes(count=2), sign=read_private_key(private))
    carry(there)
    there.store.close()
    with closing(sqlite3.connect(folder / "store.sqlite")) as connection:
        connection.execute("PRAGMA journal_mode=DELETE")
    return folder


def contents_of(folder):
    store = Store(str(folder / "store.sqlite"))
    found = store.contents("change")
    store.close()
    return found


def changed(data, place, how):
    """Return bytes with one changed: one bit, or to any other value."""
    other = data[place] ^ (1 << how) if how < 8 else (data[place] + how) % 256
    return data[:place] + bytes([other]) + data[place + 1 :]


def is_caught(data):
    try:
        return bool(flaws_of(parse_log(data)))
    except InputError:
        return True


def test_a_log_as_it_was_written_has_no_flaw(promoted):
    contents = contents_of(promoted)
    keys = read_public_keys([promoted / "key.pub"])
    assert flaws_of(contents, head=contents.head.digest, keys=keys) == ()
    assert parse_log(log_json(contents).encode()) == contents


@pytest.mark.parametrize("ways", [1, pytest.param(3, marks=pytest.mark.full)])
def test_every_changed_byte_of_an_export_is_caught(promoted, ways):
    # Two runs stand for all: every kind of line stays.
    data = log_json(contents_of(promoted)).encode()
    draw = random.Random(ways)
    places = range(len(data)) if ways > 1 else sorted(draw.sample(range(len(data)), 1500))
    for place in places:
        for how in draw.sample(range(12), ways):
            if changed(data, place, how) != data:
                assert is_caught(changed(data, place, how)), (place, data[max(0, place - 20) : place + 20])


def cells(folder):
    """Yield each text or number of the store: its table, column, row, and bytes."""
    with closing(sqlite3.connect(folder / "store.sqlite")) as connection:
        for table, columns in ROWS.items():
            for column in columns:
                query = f"SELECT rowid, CAST({column} AS BLOB) FROM {table}"
                for row, data in connection.execute(query).fetchall():
                    yield table, column, row, data


def is_caught_in_store(folder, store=None):
    """Return whether a store is refused or its log has flaws; an open one is not opened anew."""
    try:
        there = store or Store(str(folder / "store.sqlite"))
    except LinkwiseError:
        return True
    try:
        return bool(flaws_of(there.contents("change")))
    except LinkwiseError:
        return True
    finally:
        if store is None:
            there.close()


@pytest.mark.parametrize("per_column", [6, pytest.param(10**9, marks=pytest.mark.full)])
def test_every_changed_byte_of_a_row_of_the_store_is_caught(promoted, tmp_path, per_column):
    file = tmp_path / "store.sqlite"
    file.write_bytes((promoted / "store.sqlite").read_bytes())
    draw = random.Random(per_column)
    by_column = {}
    for table, column, row, data in cells(promoted):
        by_column.setdefault((table, column), []).extend((row, data, place) for place in range(len(data)))
    assert len(by_column) == sum(map(len, ROWS.values()))
    store = Store(str(file))
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("PRAGMA foreign_keys=OFF")
        connection.execute("PRAGMA synchronous=OFF")
        for (table, column), found in by_column.items():
            opened = None if table == "linkwise_meta" else store
            statement = f"UPDATE OR IGNORE {table} SET {column} = CAST(? AS TEXT) WHERE rowid = ?"
            for row, data, place in draw.sample(found, min(per_column, len(found))):
                other = changed(data, place, draw.randrange(8))
                if connection.execute(statement, (other, row)).rowcount:
                    assert is_caught_in_store(tmp_path, opened), (table, column, row, data, other)
                    connection.execute(statement, (data, row))
    store.close()
    assert not is_caught_in_store(tmp_path)


def test_a_cut_tail_is_caught_by_its_head(promoted):
    contents = contents_of(promoted)
    for count in range(len(contents.rows)):
        cut = replace(contents, rows=contents.rows[:count])
        assert any("cut off" in flaw for flaw in flaws_of(cut))


def rewritten(contents, change):
    """Return a log written anew with other entries, its head and all digests right: what an insider could do."""
    rows, previous = [], "0" * 64
    for row in contents.rows:
        entry = change(unseal(row.text).entry)
        if entry is None:
            continue
        sealed = seal(replace(entry, number=len(rows), previous=previous, signer=""))
        rows.append(LogRow(number=len(rows), text=sealed.text, digest=sealed.digest, signature=""))
        previous = sealed.digest
    return replace(contents, rows=tuple(rows), head=LogHead(entries=len(rows), digest=previous))


def test_a_log_written_anew_is_caught_by_a_noted_head_and_by_keys(promoted):
    contents = contents_of(promoted)
    forged = rewritten(contents, lambda entry: replace(entry, by="somebody else"))
    assert flaws_of(forged) == ()
    assert any("written anew" in flaw for flaw in flaws_of(forged, head=contents.head.digest))
    keys = read_public_keys([promoted / "key.pub"])
    assert any("signed by nobody" in flaw for flaw in flaws_of(forged, keys=keys))


def test_a_run_taken_out_of_a_log_written_anew_is_caught_while_its_text_is_there(promoted):
    contents = contents_of(promoted)
    victim = next(iter(contents.runs))
    forged = rewritten(contents, lambda entry: None if entry.fact("run_id") == victim else entry)
    assert any(victim in flaw and "added" in flaw for flaw in flaws_of(forged))


def test_a_noted_head_holds_while_the_log_grows(promoted):
    contents = contents_of(promoted)
    assert flaws_of(contents, head=contents.rows[3].digest) == ()


def test_a_run_that_was_taken_out_is_named(promoted):
    contents = contents_of(promoted)
    victim = next(iter(contents.runs))
    runs = {name: text for name, text in contents.runs.items() if name != victim}
    assert any(victim in flaw and "gone" in flaw for flaw in flaws_of(replace(contents, runs=runs)))


def test_a_signature_of_another_key_is_caught(promoted, tmp_path):
    _, other = key_pair(tmp_path, "other")
    flaws = flaws_of(contents_of(promoted), keys=read_public_keys([other]))
    assert len(flaws) == len(contents_of(promoted).rows)


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"[" * 5000, b'{"schema": "linkwise.rollout-log/2"}', b"\xff\x00", b"null"]
)
def test_a_file_of_somebody_else_is_refused(data):
    with pytest.raises(InputError, match="rollout-log/1"):
        parse_log(data)


def test_nothing_is_decided_on_a_log_that_was_altered(promoted, tmp_path):
    (tmp_path / "store.sqlite").write_bytes((promoted / "store.sqlite").read_bytes())
    with closing(sqlite3.connect(tmp_path / "store.sqlite")) as connection, connection:
        connection.execute(
            "UPDATE linkwise_decisions SET text = replace(text, 'fail', 'pass') WHERE number = 2"
        )
        connection.execute(
            "UPDATE linkwise_decisions SET text = replace(text, 'tester', 'other') WHERE number = 2"
        )
    plan = replace(three_steps(), steps=three_steps().steps[:1])
    with pytest.raises(InputError, match="was altered"):
        carry(ground(tmp_path, plan))


def test_kinds_of_entries_are_what_they_were_called():
    # A log of an older Linkwise must stay readable: a kind is never renamed.
    assert {kind.value for kind in Kind} >= {"begun", "judged", "step passed", "promoted", "waived"}
