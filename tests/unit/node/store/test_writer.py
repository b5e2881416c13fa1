"""Writing from a running node: grouped, in order, and told apart where one fails."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import trio
import trio.testing

from gossamer.node.errors import JoinError, StoreError
from gossamer.node.store import Store, StoreLimits
from gossamer.node.store.broker import QueuedDelivery
from gossamer.node.store.events import RetainedEvent
from gossamer.node.store.store import StoredSubscription
from gossamer.node.store.writer import open_writer
from gossamer.protocol.kernel.errors import CapacityError

pytestmark = pytest.mark.trio


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.db"


def retain(store: Store, number: int, size: int = 10) -> bool:
    name = number.to_bytes(8, "big")
    return bool(store.events.retain_all([RetainedEvent(name, 1, b"x" * size, 0.0, 1e12)]))


def kept(path: Path) -> list[int]:
    """What another process finds in the file, which may be open here."""
    with closing(sqlite3.connect(path)) as other:
        found = other.execute("SELECT event_id FROM events ORDER BY position").fetchall()
    return [int.from_bytes(event_id, "big") for (event_id,) in found]


async def test_many_writes_share_few_commits_and_keep_their_order(path: Path) -> None:
    async with open_writer(path) as writer:
        for number in range(1000):
            await writer.write(retain, number)
        await writer.flush()
        assert kept(path) == list(range(1000))
        assert writer.counts["commits"] < 20
        assert writer.counts["writes"] == 1001


async def test_a_result_waits_for_no_others(path: Path, mock_clock: trio.testing.MockClock) -> None:
    """The clock stands still, so that waiting for a shared commit would last forever."""
    assert mock_clock.rate == 0
    async with open_writer(path) as writer:
        for number in range(3):
            assert await writer.run(retain, number)
            assert kept(path) == list(range(number + 1))
            assert not await writer.run(retain, number)
            await writer.flush()


async def test_writes_commit_soon(path: Path, autojump_clock: trio.testing.MockClock) -> None:
    assert autojump_clock.rate == 0
    async with open_writer(path) as writer:
        await writer.write(retain, 1)
        await trio.sleep(1)
        while writer.counts["commits"] == 0:
            await trio.lowlevel.checkpoint()
        assert kept(path) == [1]


@pytest.mark.parametrize("cancelled", [False, True])
async def test_leaving_and_cancelling_commit_what_was_taken(path: Path, cancelled: bool) -> None:
    with trio.CancelScope() as scope:
        async with open_writer(path) as writer:
            for number in range(10):
                await writer.write(retain, number)
            if cancelled:
                scope.cancel()
                await trio.sleep_forever()
    assert kept(path) == list(range(10))


async def test_a_write_that_fails_takes_no_other_with_it_and_is_reported_once(path: Path) -> None:
    def use_up(store: Store) -> None:
        retain(store, 99)
        raise JoinError("used")

    def subscribe(store: Store, name: str) -> None:
        store.subscriptions.add(StoredSubscription("c", name, "x"))

    async with open_writer(path, StoreLimits(subscriptions=1)) as writer:
        await writer.write(retain, 1)
        with pytest.raises(JoinError, match="used"):
            await writer.run(use_up)
        await writer.write(retain, 2)
        await writer.flush()
        before = writer.counts["failed"]
        for name in "ab":
            await writer.write(subscribe, name)
        with pytest.raises(CapacityError, match="subscriptions is full"):
            await writer.flush()
        await writer.flush()
        assert writer.counts["failed"] == before + 1
    assert kept(path) == [1, 2]


async def test_a_full_disk_fails_writes_and_spares_those_that_fit(path: Path) -> None:
    async with open_writer(path, max_pages=60) as writer:
        assert writer.complaint() == ""
        with pytest.raises(StoreError):
            await writer.run(retain, 1, 1_000_000)
        for words in ("what is to last is not written", "disk is full"):
            assert words in writer.complaint()
        assert await writer.run(retain, 2)
        assert writer.complaint() == ""
        await writer.write(retain, 3, 1_000_000)
        with pytest.raises(StoreError):
            await writer.flush()
        assert kept(path) == [2]


async def test_a_defect_in_a_write_that_nobody_waits_for_is_not_hidden(path: Path) -> None:
    def defect(_: Store) -> None:
        raise KeyError("defect")

    with pytest.RaisesGroup(pytest.RaisesExc(KeyError, match="defect"), flatten_subgroups=True):
        async with open_writer(path) as writer:
            await writer.write(retain, 1)
            await writer.write(defect)
            await trio.sleep_forever()
    assert kept(path) == []


async def test_the_oldest_deliveries_make_room(path: Path) -> None:
    deliveries = [QueuedDelivery("ada", bytes([n])) for n in range(5)]
    deliveries.append(QueuedDelivery("bob", b"b"))
    async with open_writer(path) as writer:
        await writer.run(lambda store: store.broker.enqueue(deliveries))
        assert await writer.run(lambda store: store.broker.drop_oldest("ada", 2)) == 2
        left = await writer.run(lambda store: store.broker.queued("ada", 0, 10))
        assert [one.body for one in left] == [b"\x02", b"\x03", b"\x04"]
        position = left[1].position
        assert await writer.run(lambda store: store.broker.acknowledge("ada", position)) == 2
        assert await writer.run(lambda store: store.broker.waiting()) == {"ada": 1, "bob": 1}


async def test_the_queue_is_bounded_and_the_loop_turns_while_another_locks(path: Path) -> None:
    async with open_writer(path, pending=2) as writer:
        async with trio.open_nursery() as nursery:
            for number in range(10):
                nursery.start_soon(writer.run, retain, number)
        assert sorted(kept(path)) == list(range(10))
        commits = writer.counts["commits"]
        async with trio.open_nursery() as nursery:
            with closing(sqlite3.connect(path)) as other:
                other.execute("BEGIN IMMEDIATE")
                nursery.start_soon(writer.run, retain, 10)
                for _ in range(100):
                    await trio.lowlevel.checkpoint()
                assert writer.counts["commits"] == commits
                other.rollback()
        assert kept(path)[-1] == 10
