"""Expressions get what matches, last values and order are kept, whatever fails."""

from __future__ import annotations

import json
import random
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from gossamer.client.results import ReceivedEvent
from gossamer.node.errors import NotAcknowledged
from gossamer.node.local.client import open_client
from gossamer.node.local.serving.ordered import PATIENCE_S as HELD_UP_S
from gossamer.node.local.serving.ordered import Ordered
from gossamer.node.peer.peer import Event, Peer, Subscription
from gossamer.node.peer.unicast.last_values import LastMark, marked
from support.draws import larger
from support.filter_strategies import SCHEMA, Written, matchable, random_event
from support.memory_peers import EPOCH_S, MemoryPeers, memory_peers, rounds_pass, whole
from support.memory_transport import Faults, MemoryNetwork
from support.node_fleets import Fleet, Publisher, running_fleet, until
from support.node_processes import Shell
from support.transport_peers import on_jumping_clock
from support.waiting import comes_true, eventually, running

pytestmark = pytest.mark.usefixtures("each_preset")

KEYS = [1 + (i << 58) for i in range(5)]
# As many as there are subscriptions for: their boxes have to become coarser.
AT_ONCE_EACH = 16
EVENTS_EACH = 2
INTERVALS = {"key_intervals": 4}


async def publish_all(peers: list[Peer], draws: random.Random) -> dict[int, dict[str, Any]]:
    events = [(peer, random_event(draws, absent=0.2)) for peer in peers for _ in range(EVENTS_EACH)]
    return {await peer.publish(values): values for peer, values in events}


async def taken(stream: Subscription) -> list[Event]:
    return [await anext(stream) for _ in range(len(stream))]


def wanted(written: Written, published: dict[int, dict[str, Any]]) -> list[int]:
    return sorted(event for event, values in published.items() if written.matches(values))


@pytest.mark.parametrize("count", [80, pytest.param(1000, marks=pytest.mark.campaign)])
@on_jumping_clock
async def test_expressions_get_what_matches_and_nothing_else(tmp_path: Path, count: int) -> None:
    seed = 1
    draws, source = random.Random(seed), matchable(random.Random(seed))
    tried = deliveries = 0
    async with memory_peers(tmp_path, *KEYS, schema=SCHEMA, settings=INTERVALS) as crowd:
        peers = list(crowd.peers.values())
        while tried < count:
            batch = [next(source) for _ in range(AT_ONCE_EACH * len(peers))]
            tried += len(batch)
            async with AsyncExitStack() as stack:
                streams = [
                    await stack.enter_async_context(peers[i % len(peers)].subscribe(one.text))
                    for i, one in enumerate(batch)
                ]
                await rounds_pass(*peers, rounds=4)
                published = await publish_all(peers, draws)
                await rounds_pass(*peers, rounds=4)
                for one, stream in zip(batch, streams, strict=True):
                    found = [event for event in await taken(stream) if event.id in published]
                    ids = sorted(event.id for event in found)
                    assert ids == wanted(one, published), (seed, one.text)
                    assert all(event.values == published[event.id] for event in found)
                    deliveries += len(ids)
    print(f"seed {seed}: {tried} expressions, {deliveries} deliveries")
    assert deliveries > tried


@on_jumping_clock
async def test_named_expressions_get_what_came_while_their_peer_was_away(tmp_path: Path) -> None:
    seed = 2
    draws, source = random.Random(seed), matchable(random.Random(seed))
    batch = [next(source) for _ in range(8)]
    async with memory_peers(tmp_path, *KEYS, schema=SCHEMA, settings=INTERVALS) as crowd:
        away = KEYS[2]
        for one in batch:
            crowd.peers[away].subscribe(one.text, name=one.text).close()
        await crowd.rounds(6)
        await crowd.stop(away)
        published = await publish_all(list(crowd.peers.values()), draws)
        # Longer than events are replayed without being asked for.
        await trio.sleep(40)
        await crowd.add(away)
        subscribers = crowd.peers[away].subscribers
        due = sum(len(wanted(one, published)) for one in batch)
        assert due > 0
        await eventually(lambda: sum(map(len, subscribers)) >= due, 60.0)
        await crowd.rounds(8)
        for one in batch:
            stream = crowd.peers[away].subscribe(one.text, name=one.text)
            ids = [event.id for event in await taken(stream)]
            assert sorted(ids) == wanted(one, published), (seed, one.text)


FEW = [1 + (i << 58) for i in range(larger(4, 6))]
PEERS = larger(2, 3)  # in processes
LATE = Faults(latency_s=(0.0, 0.2))
SYMBOLS = ["IBM", "SAP", "XYZ"]
# Until every peer has heard of what is new.
SPREAD_S = 60.0


def known(peer: Peer) -> dict[object, object]:
    return {one.values["symbol"]: one.values.get("price") for one in peer.last_values()}


async def publish(peer: Peer, symbol: str, price: int, **more: object) -> None:
    mark = LastMark("symbol", **more)  # type: ignore[arg-type]
    await peer.publish({"symbol": symbol, "price": price}, payload=marked(None, mark))


@asynccontextmanager
async def a_crowd(folder: Path) -> AsyncIterator[MemoryPeers]:
    async with whole(memory_peers(folder, *FEW, network=MemoryNetwork(1, LATE))) as crowd:
        await crowd.rounds(6)
        yield crowd


async def agreed(crowd: MemoryPeers, expected: dict[object, object]) -> None:
    peers = crowd.peers.values()
    await comes_true(lambda: all(known(peer) == expected for peer in peers), SPREAD_S)
    assert [known(peer) for peer in peers] == [expected] * len(peers)


@on_jumping_clock
async def test_all_peers_keep_the_newest_and_those_that_come_learn_it(tmp_path: Path) -> None:
    """Nobody subscribes, connections break, and most of those who were told first crash."""
    async with a_crowd(tmp_path) as crowd:
        network, draws = crowd.network, random.Random(1)
        expected: dict[object, object] = {}
        network.faults = attrs.evolve(LATE, breaking=0.003, duplication=0.1, reordering=0.1)
        for price in range(24):
            symbol, expected_price = draws.choice(SYMBOLS), price
            try:
                await publish(crowd.peers[draws.choice(FEW)], symbol, price)
            except NotAcknowledged:
                expected_price += 100  # it is not known whether the first one counts
                await publish(crowd.peers[FEW[0]], symbol, expected_price)
            expected[symbol] = expected_price
        network.faults = LATE
        await agreed(crowd, dict(expected))
        for key in FEW[1 : len(FEW) // 2 + 1]:
            await crowd.crash(key)
        await crowd.add(FEW[1])
        await agreed(crowd, dict(expected))


@on_jumping_clock
async def test_what_was_deleted_or_replaced_in_one_part_wins_in_both(tmp_path: Path) -> None:
    async with a_crowd(tmp_path) as crowd:
        for price, symbol in enumerate(SYMBOLS):
            await publish(crowd.peers[FEW[0]], symbol, price)
        await agreed(crowd, {"IBM": 0, "SAP": 1, "XYZ": 2})
        crowd.network.partition(FEW[:2], FEW[2:])
        await trio.sleep(larger(35, 60))  # until each part acknowledges by itself
        await publish(crowd.peers[FEW[len(FEW) // 2 + 1]], "IBM", 10)
        await publish(crowd.peers[FEW[0]], "SAP", 0, is_deleted=True)
        crowd.network.heal()
        await agreed(crowd, {"IBM": 10, "XYZ": 2})


@on_jumping_clock
async def test_what_expires_is_gone_everywhere(tmp_path: Path) -> None:
    async with a_crowd(tmp_path) as crowd:
        await publish(crowd.peers[FEW[0]], "IBM", 1, lasts_s=30.0)
        await publish(crowd.peers[FEW[0]], "SAP", 2)
        await agreed(crowd, {"IBM": 1, "SAP": 2})
        await trio.sleep(31)
        await agreed(crowd, {"SAP": 2})


@on_jumping_clock
async def test_a_clock_that_was_wrong_does_no_lasting_harm(tmp_path: Path) -> None:
    async with a_crowd(tmp_path) as crowd:
        wrong, other = crowd.peers[FEW[1]], crowd.peers[FEW[2]]
        events = wrong.subscribe("price >= 0")
        await crowd.rounds(6)
        for price, wrong_s in enumerate((7200.0, -7200.0, 86_400.0 * 365)):
            crowd.wrong_s = {FEW[1]: wrong_s}
            await comes_true(lambda: "clock" in wrong.standing.by_kind(), 20.0)
            assert "NTP" in wrong.standing.by_kind()["clock"]
            await publish(wrong, "IBM", 10 * price)
            await agreed(crowd, {"IBM": 10 * price})
            await publish(other, "IBM", 10 * price + 1)
            await agreed(crowd, {"IBM": 10 * price + 1})
            crowd.wrong_s = {}
            await publish(wrong, "IBM", 10 * price + 2)
            await agreed(crowd, {"IBM": 10 * price + 2})
            assert not wrong.standing.troubles()
        for event in await taken(events):
            assert abs(event.published_at - EPOCH_S - trio.current_time()) < 300.0


@on_jumping_clock
async def test_what_a_peer_alone_published_ahead_of_time_gives_way(tmp_path: Path) -> None:
    """Alone, nothing tells a peer that its clock is wrong."""
    async with memory_peers(tmp_path, FEW[0]) as crowd:
        crowd.wrong_s = {FEW[0]: 7200.0}
        await publish(crowd.peers[FEW[0]], "IBM", 1)
        crowd.wrong_s = {}
        for key in FEW[1:]:
            await crowd.add(key)
        await crowd.whole()
        for price, key in enumerate(FEW, 2):
            await publish(crowd.peers[key], "IBM", price)
            await agreed(crowd, {"IBM": price})


@pytest.mark.parametrize("each_preset", ["kindred"], indirect=True)
def test_commands_keep_and_print_last_values(one_node: Shell) -> None:
    keep = ("--retained-last", "symbol", "--folder", "desk")
    with one_node.node("desk"):
        for symbol, price in (("IBM", 1), ("IBM", 2), ("SAP", 3)):
            one_node.ok("pub", f"symbol={symbol}", f"price={price}", *keep)
        one_node.ok("pub", "symbol=SAP", "--delete", *keep)
        assert one_node.status("desk")["last_values"] == 2
        last = ("sub", "price >= 0", "--last", "--count", "1", "--folder", "desk")
        event = json.loads(one_node.ok(*last))
        assert (event["values"], event["last"]) == ({"symbol": "IBM", "price": 2}, "symbol")


PLACES = [1 + (i << 58) for i in range(larger(5, 6))]
# Frames overtake each other, so that events do without order.
OVERTAKING = Faults(latency_s=(0.0, 0.5))
ROUGH = attrs.evolve(OVERTAKING, breaking=0.003, duplication=0.1, reordering=0.1)
CALM = Faults(latency_s=(0.0, 0.05))
EXPRESSION = "price < 700"
REPAIR_S = 60.0
EVENTS = larger(24, 40)


@attrs.define(eq=False)
class Reader:
    peer: Peer
    got: list[tuple[Event, bool]] = attrs.field(factory=list)

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        begins = EPOCH_S + trio.current_time() + 2.0
        ordered: Ordered[Event] = Ordered(self.peer, lambda: [EXPRESSION], self._take, begins)
        async with trio.open_nursery() as nursery, self.peer.subscribe(EXPRESSION) as events:
            nursery.start_soon(ordered.run)
            task_status.started()
            async for event in events:
                ordered.take(event)

    async def _take(self, event: Event, late: bool) -> None:
        self.got.append((event, late))
        await trio.lowlevel.checkpoint()


def check_order(got: Sequence[tuple[Any, bool]], acknowledged: Collection[object]) -> None:
    """Each once, and in order but for what is late, which no event is that was acknowledged."""
    assert len({event.id for event, _ in got}) == len(got)
    last: dict[object, float] = {}
    for event, late in got:
        if late:
            assert event.id not in acknowledged
            continue
        assert event.published_at > last.get(event.publisher, 0.0)
        last[event.publisher] = event.published_at


@attrs.define(eq=False)
class Run:
    crowd: MemoryPeers
    readers: list[Reader]
    draws: random.Random
    acknowledged: set[int] = attrs.field(factory=set)
    due: set[int] = attrs.field(factory=set)

    async def publish(self, *keys: int) -> None:
        """Publish events of these peers, several of each under way at a time."""
        async with trio.open_nursery() as nursery:
            for key in keys:
                nursery.start_soon(self._publish, self.crowd.peers[key])

    async def _publish(self, peer: Peer) -> None:
        async def publish_one(price: int) -> None:
            with suppress(NotAcknowledged):
                event = await peer.publish({"price": price, "symbol": "IBM"})
                self.acknowledged.add(event)
                if price < 700:
                    self.due.add(event)

        async with trio.open_nursery() as nursery:
            for _ in range(EVENTS):
                nursery.start_soon(publish_one, self.draws.randrange(1000))
                await trio.sleep(self.draws.uniform(0, 0.2))

    async def settled(self) -> None:
        await eventually(
            lambda: all(self.due <= {event.id for event, _ in one.got} for one in self.readers),
            REPAIR_S,
        )
        assert len(self.due) > EVENTS // 2
        for one in self.readers:
            check_order(one.got, self.acknowledged)


@asynccontextmanager
async def a_run(folder: Path, seed: int = 1) -> AsyncIterator[Run]:
    network = MemoryNetwork(seed, CALM)
    async with memory_peers(folder, *PLACES, network=network) as crowd, running() as nursery:
        await crowd.whole()
        readers = [Reader(crowd.peers[key]) for key in PLACES[:3]]
        for reader in readers:
            await nursery.start(reader.run)
        await crowd.rounds(10)
        network.faults = OVERTAKING
        yield Run(crowd, readers, random.Random(seed))


@pytest.mark.parametrize("faults", [OVERTAKING, ROUGH], ids=["late", "rough"])
@on_jumping_clock
async def test_events_of_several_publishers_come_in_order(tmp_path: Path, faults: Faults) -> None:
    async with a_run(tmp_path) as run:
        network = run.crowd.network
        network.faults = faults
        await run.publish(*PLACES[2:5])  # one reads its own as well
        network.faults = CALM
        await run.settled()
        if faults is ROUGH:
            assert min(network.broken, network.reordered) > 0
        else:
            assert not any(late for one in run.readers for _, late in one.got)


@on_jumping_clock
async def test_what_a_publisher_that_crashes_had_published_still_comes(tmp_path: Path) -> None:
    async with a_run(tmp_path) as run:
        await run.publish(PLACES[-1])
        before = trio.current_time()
        await run.crowd.crash(PLACES[-1])
        await run.settled()
        assert trio.current_time() - before < 3 * HELD_UP_S
        await run.publish(PLACES[-2])
        await run.settled()


@on_jumping_clock
async def test_a_reader_that_was_cut_off_catches_up_in_order(tmp_path: Path) -> None:
    async with a_run(tmp_path) as run:
        network = run.crowd.network
        network.partition(PLACES[:1], PLACES[1:])
        await trio.sleep(larger(30, 40))  # until it counts as gone, so that the others acknowledge
        await run.publish(PLACES[-2])
        network.heal()
        await run.settled()


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    with running_fleet(Shell(tmp_path), 4, protocol__round_s=0.2) as made:
        yield made


@pytest.mark.campaign
@pytest.mark.parametrize("each_preset", ["kindred"], indirect=True)
async def test_a_name_gets_all_in_order_though_its_node_is_killed(fleet: Fleet) -> None:
    got: list[ReceivedEvent] = []
    here, relay, *publishers = fleet.names
    await fleet.ready()

    async def read(*, task_status: trio.TaskStatus[None]) -> None:
        async with open_client(fleet.address(here), "ada", ordered=True, patience_s=600) as client:
            await client.subscribe("all", "price >= 0")
            task_status.started()
            async for event in client.events:
                got.append(event)
                await client.settle(event)

    async with running() as readers:
        await readers.start(read)
        await trio.sleep(2)  # four rounds, from which on events are promised
        published = [Publisher(fleet, name) for name in publishers]
        async with trio.open_nursery() as nursery:
            for publisher in published:
                nursery.start_soon(publisher.run, 60, 0.05)
            for gone in (here, relay):
                await until(lambda: len(got) > 10)
                fleet.kill(gone)
                await trio.sleep(0.5)
                fleet.start(gone)
        due = set.union(*(one.acknowledged for one in published))
        await until(lambda: due <= {event.id for event in got}, 90)
    assert len(due) > 60
    check_order([(event, event.late) for event in got], due)
