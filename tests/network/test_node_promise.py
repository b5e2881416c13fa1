"""No acknowledged event is lost and none comes twice, whatever fails; on a clock that jumps."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from gossamer.node.errors import NotAcknowledged, PeerStopped
from gossamer.node.peer.batches.machine_code import EVENTS, STEPS
from gossamer.node.peer.peer import Peer
from gossamer.node.transport.limits import Limits
from support.memory_peers import REPLICAS, MemoryPeers, memory_peers
from support.memory_transport import Faults, MemoryNetwork
from support.switching_ways import let_peers_switch
from support.transport_peers import on_jumping_clock
from support.waiting import comes_true, eventually, running

pytestmark = [on_jumping_clock, pytest.mark.usefixtures("each_preset")]


@attrs.define(eq=False)
class Reader:
    low: float = 0
    high: float = 1000
    got: Counter[int] = attrs.field(factory=Counter)  # how often it was handed each event, by id

    async def read(
        self,
        peer: Peer,
        name: str = "",
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        expression = f"price >= {self.low} and price <= {self.high}"
        async with peer.subscribe(expression, name=name) as events:
            task_status.started()
            async for event in events:
                self.got[event.id] += 1


@attrs.define(eq=False)
class Ledger:
    acknowledged: dict[int, float] = attrs.field(factory=dict)  # prices of events, by id
    given_up: int = 0  # how many publications were not acknowledged
    readers: dict[int, Reader] = attrs.field(factory=dict)  # by key of their peer

    async def publish(self, peer: Peer, price: float) -> None:
        try:
            self.acknowledged[await peer.publish({"price": price, "symbol": "A"})] = price
        except NotAcknowledged:
            self.given_up += 1
        except PeerStopped:
            return

    def due(self, key: int) -> set[int]:
        one = self.readers[key]
        return {event for event, price in self.acknowledged.items() if one.low <= price <= one.high}

    def missing(self, keys: Collection[int]) -> dict[int, set[int]]:
        lacking = {key: self.due(key) - self.readers[key].got.keys() for key in keys}
        return {key: events for key, events in lacking.items() if events}

    def repeated(self) -> dict[int, Counter[int]]:
        found = {key: one.got - Counter(one.got.keys()) for key, one in self.readers.items()}
        return {key: events for key, events in found.items() if events}

    def summary(self, keys: Collection[int]) -> str:
        due = sum(len(self.due(key)) for key in keys)
        lost = sum(map(len, self.missing(keys).values()))
        twice = sum(map(len, self.repeated().values()))
        return (
            f"{len(self.acknowledged)} events acknowledged, {self.given_up} not; "
            f"{due} deliveries due to {len(keys)} readers, {lost} lost, {twice} repeated"
        )


KEYS = [1 + (i << 58) for i in range(8)]
DRAWS = 1
sized = pytest.mark.parametrize("peers", [6, pytest.param(8, marks=pytest.mark.campaign)])
# Within this the overlay has to be right again, and everything delivered.
REPAIR_S = 30.0
LATE = Faults(latency_s=(0.0, 0.05))


@attrs.define(eq=False)
class Run:
    crowd: MemoryPeers
    ledger: Ledger
    seed: int  # of this run, and what is drawn with it
    draws: random.Random
    up: set[int]
    repair_s: float = 0.0  # how long it took until the ring was right again

    @asynccontextmanager
    async def publishing(self, each: int = 12, pause_s: float = 0.5) -> AsyncIterator[None]:
        async with trio.open_nursery() as nursery:
            for key in list(self.crowd.peers):
                draws = random.Random(self.draws.random())
                nursery.start_soon(self._publish, key, draws, each, pause_s)
            yield
            await eventually(lambda: not nursery.child_tasks)

    async def _publish(self, key: int, draws: random.Random, each: int, pause_s: float) -> None:
        peer = self.crowd.peers[key]
        for _ in range(each):
            await self.ledger.publish(peer, draws.randrange(1000))
            await trio.sleep(draws.uniform(0, 2 * pause_s))

    async def crash(self, keys: Collection[int]) -> None:
        self.up -= set(keys)
        async with trio.open_nursery() as nursery:
            for key in keys:
                nursery.start_soon(self.crowd.crash, key)

    async def acknowledged(self, events: int) -> None:
        await eventually(lambda: len(self.ledger.acknowledged) >= events)

    async def repaired(self) -> None:
        began = trio.current_time()
        await self.crowd.whole(REPAIR_S)
        self.repair_s = trio.current_time() - began

    async def settled(self, title: str) -> None:
        title = f"{title}, seed {self.seed}, ring after {self.repair_s:.1f} s"
        await comes_true(lambda: not self.ledger.missing(self.up), 2 * REPAIR_S)
        await self.crowd.rounds(8)
        print(f"{title}: {self.ledger.summary(self.up)}")
        assert self.ledger.acknowledged
        assert (self.ledger.missing(self.up), self.ledger.repeated()) == ({}, {})


@asynccontextmanager
async def a_run(folder: Path, seed: int, peers: int) -> AsyncIterator[Run]:
    draws = random.Random(seed)
    network = MemoryNetwork(seed, LATE)
    async with memory_peers(folder, *KEYS[:peers], network=network) as crowd, running() as nursery:
        run = Run(crowd, Ledger(), seed, draws, set(crowd.peers))
        await crowd.whole()
        for key, peer in crowd.peers.items():
            low = draws.randrange(600)
            reader = run.ledger.readers[key] = Reader(low, low + draws.randrange(50, 400))
            await nursery.start(reader.read, peer)
        await crowd.rounds(10)
        yield run


@pytest.mark.parametrize(
    ("who", "pause_s"),
    [
        ("a third", 0.5),
        ("the successors of a node", 0.5),
        pytest.param("a node and its successor", 0.2, marks=pytest.mark.campaign),
    ],
)
@sized
async def test_up_to_k_peers_crash_at_once(
    tmp_path: Path, seed: int, peers: int, who: str, pause_s: float
) -> None:
    """Of those in a row one may be the rendezvous node of events that flow."""
    async with a_run(tmp_path, seed, peers) as run:
        gone = run.draws.sample(KEYS[1:peers], 3 * peers // 8)
        if who != "a third":
            places = sorted((one.snapshot().position, key) for key, one in run.crowd.peers.items())
            first = run.draws.randrange(peers) + (who == "the successors of a node")
            gone = [places[(first + i) % peers][1] for i in range(REPLICAS)]
        async with run.publishing(pause_s=pause_s):
            await run.acknowledged(3 * peers)
            await run.crash(gone)
            await run.repaired()
        await run.settled(f"{who} crash")


@sized
async def test_peers_change_how_they_take_frames_while_others_crash_and_connections_break(
    tmp_path: Path, seed: int, peers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One by one or in batches, record by record or by buffers, from one moment to the next."""
    ways = let_peers_switch(monkeypatch)
    async with a_run(tmp_path, seed, peers) as run:
        run.crowd.network.faults = attrs.evolve(LATE, breaking=0.003)
        async with run.publishing(each=20, pause_s=0.1):
            await run.acknowledged(6 * peers)
            await run.crash(run.draws.sample(KEYS[1:peers], 2))
        run.crowd.network.faults = LATE
        await run.settled(f"{dict(ways)}")
    assert set(ways) == {"one by one", EVENTS, "step", STEPS}


@pytest.mark.parametrize(
    ("peers", "apart_s"), [(4, 45.0), pytest.param(8, 60.0, marks=pytest.mark.campaign)]
)
async def test_halves_apart_for_long(tmp_path: Path, seed: int, peers: int, apart_s: float) -> None:
    async with a_run(tmp_path, seed, peers) as run:
        async with run.publishing(pause_s=apart_s / 10):
            await run.acknowledged(peers)
            shuffled = run.draws.sample(KEYS[:peers], peers)
            run.crowd.network.partition(shuffled[: peers // 2], shuffled[peers // 2 :])
            await trio.sleep(apart_s)
            run.crowd.network.heal()
            await run.repaired()
        await run.settled(f"halves for {apart_s:g} s")
        assert sum(peer.counters.events_recovered for peer in run.crowd.peers.values()) > 0


@pytest.mark.parametrize("peers", [5, pytest.param(8, marks=pytest.mark.campaign)])
async def test_all_restart_while_they_are_apart(tmp_path: Path, seed: int, peers: int) -> None:
    """So that nobody remembers what there was before, or that others are away."""
    keys = KEYS[:peers]
    async with a_run(tmp_path, seed, 0) as run, running() as readers:
        crowd, run.up = run.crowd, set(keys)
        crowd.bootstrap = lambda _: keys

        async def start(key: int) -> None:
            one = run.ledger.readers.setdefault(key, Reader())
            await readers.start(one.read, await crowd.add(key), "ledger")

        for key in keys:
            await start(key)
        await crowd.whole()
        crowd.network.partition(keys[::2], keys[1::2])
        for key in keys:
            await crowd.crash(key)
        for key in keys:
            await start(key)
        await trio.sleep(REPAIR_S)
        async with run.publishing(pause_s=10):
            pass
        crowd.network.heal()
        await run.repaired()
        await run.settled("halves that have restarted")


@pytest.mark.parametrize("each_preset", ["kindred"], indirect=True)
async def test_a_flood_erases_nothing_of_others_and_who_floods_is_named(tmp_path: Path) -> None:
    """A member publishes many times what its peers hold, while a subscriber is away."""
    settings = {"held_events": 64, "retention_rounds": 400, "pending_publications": 64}
    async with memory_peers(tmp_path, *KEYS[:4], settings=settings) as crowd:
        away, publisher, flooder = KEYS[1], crowd.peers[KEYS[2]], crowd.peers[KEYS[3]]
        crowd.peers[away].subscribe("price < 10", name="ada").close()
        await crowd.rounds(8)
        await crowd.stop(away)
        before = {await crowd.publish(publisher.key, price) for price in range(5)}
        flood = [{"price": 20.0, "symbol": "A"}] * 64
        for _ in range(8):
            await flooder.publish_many(flood)
        assert await comes_true(
            lambda: any("flood" in peer.standing.by_kind() for peer in crowd.peers.values()), 30.0
        )
        told = [peer.standing.by_kind().get("flood", "") for peer in crowd.peers.values()]
        assert any(f"{flooder.key:016x}" in one for one in told), told
        after = {await crowd.publish(publisher.key, price) for price in range(5)}
        peer = await crowd.add(away)
        events = peer.subscribe("price < 10", name="ada")
        assert await comes_true(lambda: len(events) >= 10, REPAIR_S), len(events)
        assert {(await anext(events)).id for _ in range(len(events))} == before | after


@sized
async def test_frames_come_twice_and_in_other_order(tmp_path: Path, seed: int, peers: int) -> None:
    """What is under way on a connection that breaks is lost, at both of its ends."""
    async with a_run(tmp_path, seed, peers) as run:
        network = run.crowd.network
        network.faults = attrs.evolve(LATE, breaking=0.003, duplication=0.1, reordering=0.1)
        async with run.publishing(each=20):
            pass
        network.faults = LATE
        await run.settled(
            f"{network.duplicated} frames came twice, {network.reordered} in another order, "
            f"{network.broken} connections broke"
        )
        assert min(network.duplicated, network.reordered, network.broken) > 0


# A peer that is away for long: rounds are slow, so that this is not many of them.

HOUR_S = 3600.0
for_long = pytest.mark.parametrize(
    "away_s", [HOUR_S / 6, pytest.param(HOUR_S, marks=pytest.mark.campaign)]
)


async def away_for(
    folder: Path, away_s: float, retention_s: float, set_ahead_s: float = 0.0
) -> tuple[list[float], list[float]]:
    """What a named application was handed by the end, and what was published while it was away.

    Ten events come meanwhile; the peer of the application restarts before and after. All clocks are
    set ahead, or back, in the middle of it.
    """
    round_s = away_s / 120
    options: dict[str, Any] = {
        "settings": {"retention_rounds": round(retention_s / round_s)},
        "round_s": round_s,
        "acknowledge_s": 20 * round_s,
        "limits": Limits(
            ping_seconds=10 * round_s, silence_seconds=20 * round_s, unused_seconds=away_s
        ),
    }
    got: list[float] = []
    async with memory_peers(folder, *KEYS[:4], **options) as crowd:
        away, publisher = KEYS[2], crowd.peers[KEYS[3]]

        async def read() -> None:
            async with crowd.peers[away].subscribe("price >= 0", name="ada") as events:
                async for event in events:
                    price = event.values["price"]
                    assert isinstance(price, int | float)
                    got.append(price)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(read)
            await trio.sleep(10 * round_s)
            await publisher.publish({"price": 999, "symbol": "A"})
            await trio.sleep(2 * round_s)
            await crowd.crash(away)
        for price in range(10):
            await publisher.publish({"price": price, "symbol": "A"})
            await trio.sleep(away_s / 10)
            if price == 5:
                crowd.wrong_s = dict.fromkeys(KEYS, set_ahead_s)
        await crowd.add(away)
        async with running(read):
            await trio.sleep(40 * round_s)
            await publisher.publish({"price": 1000, "symbol": "A"})
            await trio.sleep(2 * round_s)
    return got, [999, *range(10), 1000]


@pytest.mark.parametrize(
    "set_ahead_s", [0.0, 50 * HOUR_S, pytest.param(-5 * HOUR_S, marks=pytest.mark.campaign)]
)
@for_long
async def test_a_peer_back_lacks_nothing(tmp_path: Path, away_s: float, set_ahead_s: float) -> None:
    """Clocks that are set meanwhile do no harm."""
    got, published = await away_for(tmp_path, away_s, 2 * away_s, set_ahead_s)
    print(f"away for {away_s:g} s, clocks set by {set_ahead_s:g} s: {len(got)} of {len(published)}")
    assert sorted(got) == sorted(published)


@for_long
async def test_a_peer_back_too_late_gets_what_is_still_kept_and_says_so(
    tmp_path: Path, away_s: float, capsys: pytest.CaptureFixture[str]
) -> None:
    got, published = await away_for(tmp_path, away_s, retention_s=away_s / 2)
    missed = set(published) - set(got)
    print(f"away for longer than events are kept: {len(missed)} of {len(published)} missed")
    assert missed == set(range(len(missed)))
    assert 4 <= len(missed) <= 7
    assert len(got) == len(set(got))
    said = capsys.readouterr()
    assert "away for longer than events are kept" in said.out + said.err


async def test_a_publisher_that_reaches_nobody_is_warned(tmp_path: Path) -> None:
    """Until it counts the others as gone: then it is an overlay of its own."""
    network = MemoryNetwork(1, LATE)
    async with memory_peers(tmp_path, *KEYS[:4], network=network, acknowledge_s=1.0) as crowd:
        await crowd.whole()
        ledger, publisher = Ledger(), crowd.peers[KEYS[0]]
        network.partition([KEYS[0]], KEYS[1:])
        async with trio.open_nursery() as nursery:
            for price in range(0, 1000, 50):
                nursery.start_soon(ledger.publish, publisher, price)
        assert ledger.given_up == publisher.counters.events_unacknowledged == 20
        await trio.sleep(60)
        await ledger.publish(publisher, 500)
        assert len(ledger.acknowledged) == 1
