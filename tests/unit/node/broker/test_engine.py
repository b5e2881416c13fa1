"""A broker's node stores what happened before anything follows from it; links that are replaced."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from attrs import define, field

from gossamer.node import errors
from gossamer.node.broker import journal as journal_module
from gossamer.node.broker.engine import TURN, Engine, Input
from gossamer.node.broker.families.scot import ScotHost
from gossamer.node.broker.families.tree import TreeHost
from gossamer.node.broker.host import FamilyHost, HostedBroker, Match
from gossamer.node.broker.journal import Entry, StoredJournal, recall
from gossamer.node.errors import StoreError
from gossamer.node.store.broker import QueuedDelivery
from gossamer.node.store.writer import StoreWriter, open_writer
from gossamer.protocol.brokers import scot
from gossamer.protocol.brokers.core import messages as m
from gossamer.protocol.brokers.core.broker import NewIndex, SharedIndex
from gossamer.protocol.brokers.core.effects import Deliver, Effect
from gossamer.protocol.brokers.core.messages import Id, UnsafeError, client, neighbour
from gossamer.protocol.brokers.scot import Factor, Scot
from gossamer.protocol.brokers.scot.messages import (
    Acknowledge,
    Numbered,
    Promised,
    WindowEnded,
)
from gossamer.protocol.brokers.tree import TreeBroker, TreeSettings, messages
from gossamer.protocol.brokers.tree.messages import Frame, SynchroniseRequest
from gossamer.protocol.content import filters
from support.memory_brokers import (
    LIMITS,
    MemoryBrokers,
    MemoryGraph,
    all_got,
    memory_brokers,
    memory_scot,
)
from support.memory_transport import MemoryNetwork, MemoryStream
from support.plain_index import PlainIndex
from support.transport_peers import on_jumping_clock
from support.waiting import soon

ADA = client("ada")
PATIENCE_S = 30.0
Logs = pytest.LogCaptureFixture
WANTED = filters.parse("x > 1")
FAMILY = TreeHost(TreeSettings())
FOUR = Scot(Factor.path("ab"), Factor.complete(2))
HERE = FOUR.position(scot.BrokerLabel("a", 0))
TAKING_OVER = scot.ScotSettings(around_failures=True, take_over=True)


@define(eq=False)
class Recorder:
    """A journal and hands that note what they are given, in one order.

    The disk refuses so often as ``failures`` says, and waits until the gate is set.
    """

    happened: list[str] = field(factory=list)
    kept: list[str] = field(factory=list)
    failures: int = 0
    gate: trio.Event = field(factory=trio.Event)
    backlog: int = 0

    async def keep(self, entries: Sequence[Entry], deliveries: Sequence[QueuedDelivery]) -> None:
        await self.gate.wait()
        if self.failures:
            self.failures -= 1
            raise StoreError("state.db", "is full")
        self.happened.append(f"kept {len(entries)} and {len(deliveries)}")
        self.kept += [type(entry.message).__name__ for entry in entries]

    async def dump_if_due(self, broker: HostedBroker, now: int, nursery: trio.Nursery) -> None:
        assert (broker.name, now >= 0, nursery.child_tasks is None) == ("B", True, False)

    def queued(self, effect: Deliver | Match) -> QueuedDelivery | None:
        return QueuedDelivery(effect.client, b"")

    def carry_out(self, told: Input, effects: list[Effect]) -> None:
        kinds = [type(effect).__name__ for effect in effects]
        self.happened.append(" ".join([type(told.message).__name__, *kinds]))


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@asynccontextmanager
async def engine_with(
    recorder: Recorder, broker: HostedBroker | None = None, **options: Any
) -> AsyncIterator[Engine]:
    how = {"now": 0, "congested_queue": 1000, "room": 100, "patience_s": PATIENCE_S} | options
    engine = Engine(broker or FAMILY.new("B", 0, PlainIndex), recorder, recorder, **how)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(engine.run)
        yield engine
        recorder.gate.set()
        assert await engine.close()


async def test_nothing_follows_before_it_is_stored(recorder: Recorder) -> None:
    async with engine_with(recorder) as engine, trio.open_nursery() as nursery:
        asked = [
            m.Attach(),
            m.Advertise("a", WANTED),
            m.Subscribe("s", WANTED),
            m.Publish({"x": 2}),
        ]
        nursery.start_soon(engine.ask, ADA, asked)
        await soon(lambda: engine.busy)
        assert recorder.happened == []
        recorder.gate.set()
        await soon(lambda: not engine.busy)
        followed = ["Attach", "Advertise", "Subscribe", "Publish Deliver"]
        assert recorder.happened == ["kept 4 and 1", *followed]


async def test_while_the_disk_is_full_nothing_follows(recorder: Recorder, caplog: Logs) -> None:
    recorder.failures = 3
    recorder.gate.set()
    async with engine_with(recorder) as engine:
        (outcome,) = await engine.ask(ADA, [m.Attach()])
        assert (outcome.error, trio.current_time()) == (None, 3)
        assert recorder.happened == ["kept 1 and 0", "Attach"]
    assert len(caplog.records) == 3


async def test_who_brings_more_than_there_is_room_for_waits(recorder: Recorder) -> None:
    async with engine_with(recorder, room=2) as engine, trio.open_nursery() as nursery:
        engine.submit(ADA, m.Attach())
        await soon(lambda: engine.busy)
        brought: list[int] = []

        async def bring() -> None:
            for number in range(5):
                await engine.submit_with_patience(
                    neighbour("C"), Frame(0, number, SynchroniseRequest())
                )
                brought.append(number)

        nursery.start_soon(bring)
        await trio.testing.wait_all_tasks_blocked()
        assert brought == [0, 1]
        recorder.gate.set()
        await soon(lambda: brought == [0, 1, 2, 3, 4])


async def test_what_comes_first_is_left_out_where_the_broker_refuses(recorder: Recorder) -> None:
    recorder.gate.set()
    done: list[str] = []
    async with engine_with(recorder) as engine:
        outcomes = await engine.ask(ADA, [m.Detach(), m.Attach()], lambda: done.append("first"))
        assert "is not attached" in str(outcomes[0].error)
        assert outcomes[1].error is None
        assert done == ["first"]


async def test_who_publishes_waits_for_room_to_keep_it(recorder: Recorder, caplog: Logs) -> None:
    kept = [0]
    recorder.gate.set()
    left: dict[str, Any] = {"left": lambda _: 3 - kept[0]}
    async with engine_with(recorder, **left) as engine, trio.open_nursery() as nursery:
        await engine.ask(ADA, [m.Attach(), m.Advertise("a", WANTED)])
        kept[0] = 3
        nursery.start_soon(engine.ask, ADA, [m.Publish({"x": 2})])
        await trio.testing.wait_all_tasks_blocked()
        # Nobody else waits, and whatever comes may have made room.
        await engine.ask(ADA, [m.Subscribe("s", WANTED)])
        kept[0] = 2
        await engine.ask(ADA, [m.Subscribe("t", WANTED)])
        await soon(lambda: recorder.happened[-1].startswith("Publish"))
        assert (trio.current_time(), caplog.records) == (0, [])
        # It waits once for who is away.
        for times in (1, 2):
            kept[0] = 3
            for _ in range(5):
                await engine.ask(ADA, [m.Publish({"x": 2})])
            assert trio.current_time() == times * PATIENCE_S
            kept[0] = 0
            await engine.ask(ADA, [m.Publish({"x": 2})])
        assert len(caplog.records) == 2


async def test_publications_go_first_and_are_stored_with_few_others(recorder: Recorder) -> None:
    async with engine_with(recorder, goes_first=FAMILY.publishes) as engine:
        engine.submit(ADA, m.Attach())
        engine.submit(ADA, m.Advertise("a", WANTED))
        await soon(lambda: engine.busy)
        for number in range(2 * TURN):
            engine.submit(neighbour("C"), Frame(0, number, SynchroniseRequest()))
        engine.submit(ADA, m.Publish({"x": 2}))
        recorder.gate.set()
        await soon(lambda: not engine.waiting and not engine.busy)
        first = ["kept 2 and 0", "Attach", "Advertise", f"kept {TURN + 1} and 0", "Publish"]
        assert recorder.happened[:5] == first
        assert sum(one.startswith("Frame") for one in recorder.happened) == 2 * TURN


@pytest.mark.parametrize("safe", [True, False])
async def test_a_client_is_answered_when_its_message_is_known_safe(safe: bool) -> None:
    broker = scot.ScotBroker("B", HERE, TAKING_OVER, new_index=PlainIndex)
    recorder = Recorder()
    recorder.gate.set()
    how: dict[str, Any] = {"congested_queue": 1 << 62, "passing": ScotHost.passing}
    async with engine_with(recorder, broker, **how) as engine, trio.open_nursery() as nursery:
        engine.submit(None, scot.NeighbourUp("C", scot.BrokerLabel("a", 1)))
        await engine.ask(ADA, [m.Attach()])
        answers: list[object] = []

        async def publish() -> None:
            answers.extend(await engine.ask(ADA, [m.Publish({"x": 1})]))

        async def subscribe() -> None:
            (outcome,) = await engine.ask(ADA, [m.Subscribe("s", filters.parse("present(x)"))])
            assert outcome.error is None
            nursery.start_soon(publish)

        nursery.start_soon(subscribe)
        await soon(lambda: broker.table_size == 1)
        engine.submit(None, WindowEnded(()))
        memory = broker.take_over_memory
        assert memory is not None
        await soon(lambda: len(memory.copies) == 2)
        for number in list(memory.copies):
            engine.submit(neighbour("C"), Acknowledge(number, True))
        await soon(lambda: 1 in broker.counters.cases or broker.counters.delivered == 1)
        await soon(lambda: len(memory.copies) == 1)
        assert answers == []
        (number,) = memory.copies
        engine.submit(neighbour("C"), Acknowledge(number, safe))
        await soon(lambda: bool(answers))
        (outcome,) = answers
        assert isinstance(outcome.error, UnsafeError) is not safe  # type: ignore[attr-defined]
    assert recorder.kept == ["NeighbourUp", "Attach", "Subscribe", "Publish"]


SETTINGS = TreeHost(TreeSettings(covering="active", retained_publications=10))


@pytest.fixture
async def writer(tmp_path: Path) -> AsyncIterator[StoreWriter]:
    async with open_writer(tmp_path / "state.db") as opened:
        yield opened


async def recalled(
    writer: StoreWriter, settings: FamilyHost = SETTINGS, large_index: NewIndex = PlainIndex
) -> Any:
    found = await recall(
        writer, "B1", settings, now=5, incarnation=7, new_index=SharedIndex, large_index=large_index
    )
    assert found.now >= 5
    return found.broker


async def begun(writer: StoreWriter) -> tuple[TreeBroker, StoredJournal]:
    """A broker that knows nothing yet, and its journal, which says so."""
    broker, journal = await recalled(writer), StoredJournal(writer, SETTINGS)
    await journal.dump(broker, 0)
    return broker, journal


async def tell(broker: Any, journal: StoredJournal, entries: Sequence[Entry]) -> None:
    for entry in entries:
        broker.handle(entry.now, entry.source, entry.message)
    await journal.keep(entries, [])


async def play(broker: TreeBroker, journal: StoredJournal, first: int, count: int) -> None:
    for number in range(first, first + count):
        wanted = filters.parse(f"price > {number}")
        for message in (m.Subscribe(f"s{number}", wanted), m.Publish({"price": number + 1})):
            broker.handle(1000 * number, ADA, message)
            kept = [Entry(1000 * number, ADA, message)], [QueuedDelivery("ada", b"x")]
            await journal.keep(*kept)


@pytest.mark.trio
async def test_what_was_told_since_the_dump_is_told_again(writer: StoreWriter) -> None:
    broker, journal = await begun(writer)
    entries = [
        Entry(1, None, m.NeighbourUp("B2")),
        Entry(2, ADA, m.Attach()),
        Entry(3, ADA, m.Advertise("all", filters.parse("price >= 0"))),
    ]
    await tell(broker, journal, entries)
    await play(broker, journal, 1, 10)
    assert (await recalled(writer)).dump() == broker.dump()
    await journal.dump(broker, 20_000)
    await play(broker, journal, 11, 5)
    assert journal.since_dump == 10
    assert (await recalled(writer)).dump() == broker.dump()
    assert await writer.run(lambda store: store.broker.waiting()) == {"ada": 30}


@pytest.mark.trio
async def test_large_tables_get_the_index_for_them(
    writer: StoreWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[PlainIndex] = []

    def large() -> PlainIndex:
        made.append(PlainIndex())
        return made[-1]

    monkeypatch.setattr(journal_module, "LARGE_TABLE", 3)
    broker, journal = await recalled(writer), StoredJournal(writer, SETTINGS)
    broker.handle(1, ADA, m.Attach())
    for number in (1, 2, 3):
        broker.handle(2, ADA, m.Subscribe(f"s{number}", filters.parse("x > 1")))
        await journal.dump(broker, 3)
        await recalled(writer, large_index=large)
        assert bool(made) is (number == 3)


@pytest.mark.trio
async def test_a_dump_is_due_when_the_log_is_long_for_the_tables(writer: StoreWriter) -> None:
    broker, journal = await begun(writer)
    entry = Entry(1, ADA, m.Attach())
    await journal.keep([entry] * 499, [])
    async with trio.open_nursery() as nursery:
        await journal.dump_if_due(broker, 2, nursery)
    assert journal.since_dump == 499
    await journal.keep([entry], [])
    async with trio.open_nursery() as nursery:
        await journal.dump_if_due(broker, 2, nursery)
        await journal.keep([entry], [])
    assert journal.since_dump == 1


@pytest.mark.trio
async def test_other_settings_and_another_covering_apply_from_now_on(writer: StoreWriter) -> None:
    broker, journal = await begun(writer)
    more = TreeHost(TreeSettings(covering="active", retained_publications=20))
    advertised = messages.Advertisement(Id("B2", 1), filters.parse("present(x)"))
    assert (await recalled(writer, more)).dump() == broker.dump()
    told = [
        Entry(1, None, m.NeighbourUp("B2")),
        Entry(2, neighbour("B2"), messages.Frame(1, 1, messages.Synchronise((advertised,), ()))),
        Entry(3, ADA, m.Attach()),
        *(Entry(4, ADA, m.Subscribe(f"s{n}", filters.parse(f"x > {10 - n}"))) for n in range(3)),
    ]
    await tell(broker, journal, told)
    assert broker.sizes().sent == 1
    for covering, sent in (("off", 3), ("lazy", 1), ("off", 3)):
        other = TreeHost(TreeSettings(covering=covering))
        assert (await recalled(writer, other)).sizes().sent == sent
    changed = TreeHost(TreeSettings(covering="off"))
    await StoredJournal(writer, changed).dump(await recalled(writer, changed), 5)
    assert (await recalled(writer, changed)).sizes().sent == 3
    assert (await recalled(writer)).sizes().sent == 1


@pytest.mark.trio
async def test_what_is_no_broker_is_not_recalled(writer: StoreWriter) -> None:
    number = await writer.run(lambda store: store.broker.begin_dump())
    await writer.run(lambda store: store.broker.add_to_dump(number, b"\x80"))
    assert (await recalled(writer)).name == "B1"
    await writer.run(lambda store: store.broker.finish_dump(number))
    with pytest.raises(errors.StoreError, match="holds no broker"):
        await recalled(writer)
    await StoredJournal(writer, SETTINGS).dump(TreeBroker("B9", SETTINGS.of), 0)
    with pytest.raises(errors.StoreError, match="holds broker B9, expected B1"):
        await recalled(writer)


@pytest.mark.trio
async def test_a_broker_of_a_scot_is_recalled_with_its_tables(writer: StoreWriter) -> None:
    kind = ScotHost(HERE, TAKING_OVER, "words")
    broker, journal = await recalled(writer, kind), StoredJournal(writer, kind)
    await journal.dump(broker, 0)
    promised = Promised("bob", "s", Id("C", 1), filters.parse("x > 1"))
    entries = [
        Entry(1, None, scot.NeighbourUp("C", scot.BrokerLabel("a", 1), synchronise=True)),
        Entry(2, ADA, m.Attach()),
        Entry(3, ADA, m.Subscribe("s", filters.parse("present(x)"))),
        Entry(4, neighbour("C"), Numbered(9, promised)),
    ]
    await tell(broker, journal, entries)
    again = await recalled(writer, kind)
    assert again.dump() == broker.dump()
    assert [one.client for one in kind.clients(again)] == ["ada"]
    assert again.next_id == Id("B1", (7 << 32) + 2)
    for changed, words in (
        (
            scot.ScotSettings(covering=True),
            "take_over is False, expected True until covering is off",
        ),
        (scot.ScotSettings(routing="bid"), "routing is 'bid', expected 'dynamic'"),
    ):
        with pytest.raises(errors.ConfigurationError, match=words):
            await recalled(writer, ScotHost(HERE, changed, "words"))


# Links whose connection another one replaces before its end is noticed

ANY = "present(x)"
Overlay = Callable[[Path], AbstractAsyncContextManager[MemoryBrokers]]
FAMILIES: dict[str, Overlay] = {
    "tree": lambda folder: memory_brokers(folder, [(2, 1)]),
    "scot": partial(memory_scot, scot=FOUR),
    "graph": lambda folder: MemoryGraph.running(folder, [(2, 1)]),
}


def lose_connection(network: MemoryNetwork, near: int, far: int) -> None:
    """Let nothing more come over a connection; one end notices, and the other does not."""
    for stream in list(network.streams):
        if {stream.owner, stream.other_end} == {near, far}:
            stream.other = MemoryStream(network, stream.other_end, stream.owner)
            stream.other.other = stream
            if stream.owner == near:
                stream.break_now()


@pytest.mark.parametrize("unnoticed", [1, 2], ids=["who listens", "who dials"])
@pytest.mark.parametrize("family", FAMILIES)
@on_jumping_clock
async def test_a_connection_that_replaces_a_dead_one_brings_a_session_of_its_own(
    tmp_path: Path, family: str, unnoticed: int
) -> None:
    async with FAMILIES[family](tmp_path) as brokers:
        clients: dict[int, Any] = await brokers.subscribers(all=ANY)
        for client in clients.values():
            await client.advertise("all", ANY)
        await brokers.settle()
        due = {await client.publish({"x": 1}) for client in clients.values()}
        await all_got(clients, due)
        lose_connection(brokers.network, 3 - unnoticed, unnoticed)
        due |= {await client.publish({"x": 2}) for client in clients.values()}
        await all_got(clients, due)
        # Until the dead connection is given up, or brokers that stop would be dialled meanwhile.
        await trio.sleep(2 * LIMITS.close_seconds)
