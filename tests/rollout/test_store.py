"""The evidence store: whose it is, who may write, and what a server of PostgreSQL changes: nothing."""

import datetime as dt
import random
import sqlite3
import threading
from contextlib import closing
from dataclasses import replace

import pytest

from linkwise.errors import InputError, UnknownName
from linkwise.rollout.carrying import actions
from linkwise.rollout.carrying.deciding import Said, suspend
from linkwise.rollout.carrying.progress import Cause
from linkwise.rollout.store.decisions import Kind
from linkwise.rollout.store.lock import lock_number
from linkwise.rollout.store.store import Store
from linkwise.rollout.store.verification import flaws_of
from tests.rollout.simulated import carry, ground, holder, three_steps
from tests.rollout.test_killed import check_nothing_lost_or_doubled, kill_at_random, refuse_the_second

NOW = dt.datetime(2026, 11, 30, 8, tzinfo=dt.UTC)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.requires("postgresql"))])
def where(request, tmp_path):
    """Return the address of an empty store of each kind."""
    if request.param == "sqlite":
        return str(tmp_path / "store.sqlite")
    return request.getfixturevalue("postgres")


def opened(where):
    return Store(where, may_make=True)


def append(store, count=1, name="change", **more):
    for _ in range(count):
        with store.writing(name, **more) as writing:
            writing.append(Kind.SUSPENDED, at=NOW, by="mira", why="a test", facts={"cause": "person"})


def test_a_rollout_is_carried_out_on_it_and_verified(where, tmp_path):
    there = ground(tmp_path, three_steps(), where=where)
    assert isinstance(carry(there).action, actions.Done)
    assert flaws_of(there.store.contents("change")) == ()
    assert len(there.store.baseline(scope="test on local", target="1 nodes")) == 5
    there.store.close()
    again = Store(where)
    assert again.record("change").head == there.store.record("change").head
    again.close()


def test_one_holds_a_rollout_and_the_other_is_told_who(where):
    first, second = opened(where), opened(where)
    with first.held("change", by=holder("mira")):
        with pytest.raises(InputError, match=r"carried out by mira \(process \d+ on host\) since 20"):
            second.held("change", by=holder("tom")).__enter__()
        assert second.holder_now("change").who == "mira"
        with second.held("another", by=holder("tom")):
            pass
    assert second.holder_now("change") is None
    with second.held("change", by=holder("tom")):
        pass
    first.close()
    second.close()


def test_whoever_lost_the_rollout_writes_nothing_more(where):
    first, second = opened(where), opened(where)
    with first.held("change", by=holder("mira")) as lock:
        append(first, token=lock.token)
    with second.held("change", by=holder("tom")), pytest.raises(InputError, match="passed to somebody else"):
        append(first, token=lock.token)
    assert first.record("change").head.entries == 1
    first.close()
    second.close()


@pytest.mark.requires("postgresql")
def test_a_holder_whose_connection_the_server_ended_is_replaced_and_writes_nothing(postgres):
    import psycopg

    first, second = opened(postgres), opened(postgres)
    held = first.held("change", by=holder("mira"))
    lock = held.__enter__()
    number = lock_number("hold change")
    with psycopg.connect(postgres, autocommit=True) as connection:
        query = "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND objid = %s"
        assert connection.execute(query, (number & 0xFFFFFFFF,)).fetchall() == [(True,)]
    with second.held("change", by=holder("tom")), pytest.raises(InputError, match="passed to somebody else"):
        append(first, token=lock.token)
    held.__exit__(None, None, None)
    first.close()
    second.close()


def test_many_who_write_at_once_make_one_chain(where):
    stores = [opened(where) for _ in range(4)]
    threads = [threading.Thread(target=append, args=(store, 10)) for store in stores]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert flaws_of(stores[0].contents("change")) == ()
    assert stores[0].record("change").head.entries == 40
    for each in stores:
        each.close()


def test_a_transaction_that_fails_leaves_nothing(where):
    store = opened(where)
    append(store)

    def fail():
        with store.writing("change") as writing:
            writing.append(Kind.SUSPENDED, at=NOW, by="mira", why="a test")
            raise RuntimeError("the disk is full")

    with pytest.raises(RuntimeError):
        fail()
    assert store.record("change").head.entries == 1
    assert flaws_of(store.contents("change")) == ()
    store.close()


@pytest.mark.full
@pytest.mark.requires("postgresql")
def test_killed_on_a_server_the_next_one_goes_on(tmp_path, postgres):
    kill_at_random(tmp_path, "0.008", postgres, kills=3, draw=random.Random(1))
    store = Store(postgres)
    check_nothing_lost_or_doubled(tmp_path, store)
    store.close()


@pytest.mark.full
@pytest.mark.requires("postgresql")
def test_two_at_once_on_a_server_are_one_and_a_refusal(tmp_path, postgres):
    refuse_the_second(tmp_path, postgres)


def test_a_decision_taken_meanwhile_is_not_written_over(where, tmp_path):
    there = ground(tmp_path, three_steps(), where=where)
    other = opened(where)

    def meanwhile():
        # Asked before each action: what was decided in between must come first.
        if other.has("change") and other.record("change").head.entries == 9:
            suspend(other, "change", Said(by="mira", why="stop", at=NOW))
        return NOW

    there = replace(there, clock=meanwhile)
    end = carry(there)
    assert end.progress.cause is Cause.PERSON
    assert flaws_of(other.contents("change")) == ()
    other.close()


def test_a_database_of_something_else_is_refused(tmp_path):
    file = tmp_path / "other.sqlite"
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("CREATE TABLE things (name TEXT)")
    with pytest.raises(InputError, match="database of something else"):
        opened(str(file))


def test_a_file_that_is_no_database_is_refused(tmp_path):
    file = tmp_path / "notes.txt"
    file.write_text("these are no evidence " * 100)
    with pytest.raises(InputError, match="not a database"):
        opened(str(file))


@pytest.mark.parametrize("start", [0, 31, 62])
def test_a_damaged_file_is_told_of_wherever_the_damage_is(tmp_path, start):
    path = tmp_path / "store.sqlite"
    store = opened(str(path))
    append(store)
    store.close()
    whole = path.read_bytes()
    told = 0
    for at in range(start, len(whole), 93):
        path.write_bytes(whole[:at] + bytes(each ^ 0xFF for each in whole[at : at + 8]) + whole[at + 8 :])
        try:
            with closing(Store(str(path))) as damaged:
                told += bool(flaws_of(damaged.contents("change")))
        except InputError:
            told += 1
    assert told


def test_a_store_of_a_later_version_is_refused(tmp_path):
    file = tmp_path / "store.sqlite"
    opened(str(file)).close()
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE linkwise_meta SET value = '7' WHERE name = 'version'")
    with pytest.raises(InputError, match="is of version '7', and this Linkwise reads version 1"):
        Store(str(file))


def test_a_store_that_is_not_there_is_not_made_by_asking(tmp_path):
    with pytest.raises(InputError, match="there is no store at"):
        Store(str(tmp_path / "none.sqlite"))
    assert not (tmp_path / "none.sqlite").exists()


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("mysql://ops@db/x", "cannot be in mysql"),
        ("sqlite://", "in memory"),
        ("://", "no path and no address"),
        ("nonsense+driver://x", "cannot be in nonsense"),
    ],
)
def test_another_kind_of_store_is_refused(where, words):
    with pytest.raises(InputError, match=words):
        opened(where)


@pytest.mark.requires("postgresql")
def test_a_server_that_is_not_there_is_named_without_its_password(tmp_path):
    with pytest.raises(InputError) as told:
        opened(f"postgresql://ops:hunter2@/rollouts?host={tmp_path}")
    assert "hunter2" not in str(told.value)
    assert "ops" in str(told.value)


def test_a_rollout_of_another_name_gets_the_nearest(where):
    store = opened(where)
    append(store, name="nccl-2.30")
    with pytest.raises(UnknownName, match=r"did you mean nccl-2\.30\?"):
        store.record("nccl-2.31")
    store.close()
