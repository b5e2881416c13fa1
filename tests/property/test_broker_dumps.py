"""A broker that is killed at any instant of a dump is recalled as the one that went on.

Its dump is made in portions, with messages between them, each of which may be the last that reaches
the disk. What was stored of the messages is told to a broker that has no disk: the two are equal.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
from attrs import define, field

from gossamer.node.broker import forked_work as apart_module
from gossamer.node.broker import journal as journal_module
from gossamer.node.broker.families.tree import TreeHost
from gossamer.node.broker.forked_work import Apart, in_a_process, in_this_process
from gossamer.node.broker.journal import Entry, StoredJournal, recall
from gossamer.node.errors import StoreError
from gossamer.node.store import Store
from gossamer.node.store import broker as broker_module
from gossamer.node.store.broker import QueuedDelivery
from gossamer.node.store.writer import open_writer
from gossamer.protocol.brokers.core import messages as m
from gossamer.protocol.brokers.core.messages import Id, client, neighbour
from gossamer.protocol.brokers.tree import TreeBroker, TreeSettings
from gossamer.protocol.brokers.tree import messages as t
from gossamer.protocol.content.filters import parse
from support.draws import Draws, few_or_many
from support.plain_index import PlainIndex

HOST = TreeHost(TreeSettings(covering="incremental", retained_publications=5))
ADA, BEA = client("ada"), client("bea")
BATCHES = 60
BEGUN = 1_000
# Calls until the first dump, with which every broker begins.
FIRST_DUMP = 12


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dumps after a few messages, in many portions, and what they replace is forgotten slowly."""
    monkeypatch.setattr(journal_module, "LEAST_BETWEEN_DUMPS", 8)
    monkeypatch.setattr(journal_module, "ENTRIES_PER_MESSAGE", 1 << 30)
    monkeypatch.setattr(apart_module, "PORTION", 400)
    monkeypatch.setattr(broker_module, "_GIVEN_UP", 3)
    monkeypatch.setattr(broker_module, "_PORTIONS_GIVEN_UP", 2)


@define
class Disk:
    """A disk that takes so many calls, and then no more, as if the process had been killed."""

    last: float = float("inf")
    calls: int = 0

    async def aside(self, call: Callable[[], None]) -> None:
        self.calls += 1
        if self.calls > self.last:
            raise StoreError("state.db", "is out of reach: the process was killed")
        call()
        await trio.lowlevel.checkpoint()


@define
class Messages:
    """What a broker is told, drawn at random: clients and a neighbour that come and ask."""

    draws: random.Random
    labels: Iterator[int] = field(factory=itertools.count)
    frames: Iterator[int] = field(factory=lambda: itertools.count(2))
    wanted: list[str] = field(factory=list)
    there: list[int] = field(factory=list)
    bea: bool = False

    def first(self) -> list[tuple[Any, Any]]:
        return [
            (None, m.NeighbourUp("S")),
            (neighbour("S"), t.Frame(1, 1, t.Synchronise((), ()))),
            (ADA, m.Attach()),
            (ADA, m.Advertise("all", parse("present(x)"))),
        ]

    def next(self) -> tuple[Any, Any]:
        draws = self.draws
        kind = draws.choice(("publish", "subscribe", "unsubscribe", "came", "gone", "bea"))
        wanted = parse(f"x >= {draws.randrange(10)} and x < {draws.randrange(11, 20)}")
        if kind == "subscribe":
            self.wanted.append(f"s{next(self.labels)}")
            return ADA, m.Subscribe(self.wanted[-1], wanted)
        if kind == "unsubscribe" and self.wanted:
            return ADA, m.Unsubscribe(self.wanted.pop(draws.randrange(len(self.wanted))))
        if kind == "came":
            self.there.append(next(self.labels) + 1)
            return self._frame(t.Subscription(Id("S", self.there[-1]), wanted))
        if kind == "gone" and self.there:
            gone = self.there.pop(draws.randrange(len(self.there)))
            return self._frame(t.Unsubscription(Id("S", gone)))
        if kind == "bea":
            self.bea = not self.bea
            return BEA, m.Attach((("mine", wanted),)) if self.bea else m.Detach()
        return ADA, m.Publish({"x": draws.randrange(20)})

    def _frame(self, message: Any) -> tuple[Any, Any]:
        return neighbour("S"), t.Frame(1, next(self.frames), message)


async def play(path: Path, seed: int, disk: Disk, apart: Apart) -> list[Entry]:
    """Let a broker be told messages until the disk is gone; returns those that it had taken."""
    draws = random.Random(seed)
    messages, kept = Messages(draws), list[Entry]()
    broker = TreeBroker("B", HOST.of, incarnation=1, new_index=PlainIndex)
    async with open_writer(path, aside=disk.aside) as writer, trio.open_nursery() as nursery:
        journal = StoredJournal(writer, HOST, apart)
        await journal.dump(broker, 0)
        told = messages.first()
        for now in range(1, BATCHES):
            entries = [Entry(now, source, message) for source, message in told]
            for entry in entries:
                broker.handle(entry.now, entry.source, entry.message)
            try:
                await journal.keep(entries, [QueuedDelivery("ada", b"x")] * draws.randrange(2))
            except StoreError:
                break
            kept += entries
            await journal.dump_if_due(broker, now, nursery)
            for _ in range(draws.randrange(8)):
                await trio.lowlevel.checkpoint()
            told = [messages.next() for _ in range(draws.randrange(1, 4))]
    return kept


async def dump_of_recalled(path: Path, *, again: bool) -> dict[str, object]:
    """What a broker remembers that goes on from a file; dumped once more before, if asked for."""
    async with open_writer(path) as writer:
        found = await recall(
            *(writer, "B", HOST),
            now=BEGUN,
            incarnation=9,
            new_index=PlainIndex,
            large_index=PlainIndex,
        )
        if again:
            await StoredJournal(writer, HOST, in_this_process).dump(found.broker, found.now)
    return found.broker.dump()


def went_on(kept: list[Entry]) -> dict[str, object]:
    broker = TreeBroker("B", HOST.of, incarnation=1, new_index=PlainIndex)
    for entry in kept:
        broker.handle(entry.now, entry.source, entry.message)
    return broker.dump()


def calls_of(folder: Path, seed: int) -> int:
    disk = Disk()
    trio.run(play, folder / "whole.db", seed, disk, in_this_process)
    return disk.calls


def check_killed(path: Path, seed: int, last: int, apart: Apart) -> None:
    expected = went_on(trio.run(play, path, seed, Disk(last), apart))
    for again in (False, True, False):
        found = trio.run(partial(dump_of_recalled, path, again=again))
        assert found == expected, f"seed {seed}, killed after {last} calls"
    with Store(path) as store:
        assert (rows(store, "broker_dumps"), rows(store, "broker_log")) == (1, 0)


def rows(store: Store, table: str) -> int:
    ((number,),) = store.database.rows(f"SELECT count(*) FROM {table}")
    return int(number)


@pytest.mark.parametrize("every", [29, pytest.param(1, marks=pytest.mark.campaign)])
def test_killed_at_any_instant_it_is_recalled_as_it_went_on(tmp_path: Path, every: int) -> None:
    seed = 1
    calls = calls_of(tmp_path, seed)
    print(f"seed {seed}: {calls} calls")
    assert calls > 10 * FIRST_DUMP
    for last in range(FIRST_DUMP, calls + 1, every):
        check_killed(tmp_path / f"{last}.db", seed, last, in_this_process)


@few_or_many(1, 10)
def test_dumps_of_a_process_are_of_when_it_began(tmp_path: Path, count: int, draws: Draws) -> None:
    for seed in draws.numbers(count):
        folder = tmp_path / str(seed)
        folder.mkdir()
        last = random.Random(seed).randrange(FIRST_DUMP, calls_of(folder, seed))
        check_killed(folder / "state.db", seed, last, in_a_process)
