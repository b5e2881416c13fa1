"""Order of each publisher's events between peers, on a clock that jumps, whatever fails."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from gossamer.node.errors import NotAcknowledged
from gossamer.node.local.client import ReceivedEvent, open_client
from gossamer.node.local.serving.ordered import PATIENCE_S, Ordered
from gossamer.node.peer.peer import Event, Peer
from support.draws import larger
from support.memory_peers import EPOCH_S, MemoryPeers, memory_peers
from support.memory_transport import Faults, MemoryNetwork
from support.node_fleets import Fleet, Publisher, running_fleet, until
from support.node_processes import Shell
from support.transport_peers import on_jumping_clock
from support.waiting import eventually

pytestmark = pytest.mark.usefixtures("each_preset")

KEYS = [1 + (i << 58) for i in range(larger(5, 6))]
# Frames overtake each other, so that events do without order.
LATE = Faults(latency_s=(0.0, 0.5))
EXPRESSION = "price < 700"
REPAIR_S = 60.0
EVENTS = larger(24, 40)


@attrs.define(eq=False)
class Reader:
    peer: Peer
    # The events, and whether each was late.
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
    """Peers that publish as fast as they can, and readers."""

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
        """Wait until the readers have everything, and check its order."""
        await eventually(
            lambda: all(self.due <= {event.id for event, _ in one.got} for one in self.readers),
            REPAIR_S,
        )
        assert len(self.due) > EVENTS // 2
        for one in self.readers:
            check_order(one.got, self.acknowledged)


@asynccontextmanager
async def a_run(folder: Path, seed: int = 1) -> AsyncIterator[Run]:
    network = MemoryNetwork(seed, Faults(latency_s=(0.0, 0.05)))
    async with (
        memory_peers(folder, *KEYS, network=network) as crowd,
        trio.open_nursery() as nursery,
    ):
        await crowd.whole()
        readers = [Reader(crowd.peers[key]) for key in KEYS[:3]]
        for reader in readers:
            await nursery.start(reader.run)
        await crowd.rounds(10)
        network.faults = LATE
        yield Run(crowd, readers, random.Random(seed))
        nursery.cancel_scope.cancel()


@on_jumping_clock
async def test_events_of_several_publishers_come_in_their_order(tmp_path: Path) -> None:
    async with a_run(tmp_path) as run:
        await run.publish(*KEYS[2:5])  # one reads its own as well
        await run.settled()
        assert not any(late for one in run.readers for _, late in one.got)


@on_jumping_clock
async def test_order_is_kept_though_connections_break(tmp_path: Path) -> None:
    async with a_run(tmp_path) as run:
        network = run.crowd.network
        network.faults = attrs.evolve(LATE, breaking=0.003, duplication=0.1, reordering=0.1)
        await run.publish(*KEYS[3:5])
        network.faults = Faults(latency_s=(0.0, 0.05))
        await run.settled()
        assert min(network.broken, network.reordered) > 0


@on_jumping_clock
async def test_what_a_publisher_that_crashes_had_published_still_comes(tmp_path: Path) -> None:
    async with a_run(tmp_path) as run:
        await run.publish(KEYS[-1])
        before = trio.current_time()
        await run.crowd.crash(KEYS[-1])
        await run.settled()
        assert trio.current_time() - before < 3 * PATIENCE_S
        # Others are held up by it no longer.
        await run.publish(KEYS[-2])
        await run.settled()


@on_jumping_clock
async def test_a_relay_that_crashes_changes_nothing(tmp_path: Path) -> None:
    async with a_run(tmp_path) as run, trio.open_nursery() as nursery:
        nursery.start_soon(run.publish, KEYS[-2])
        await trio.sleep(1.0)
        await run.crowd.crash(KEYS[-1])
        await eventually(lambda: not nursery.child_tasks, 120)
        await run.settled()


@on_jumping_clock
async def test_a_reader_that_was_cut_off_catches_up_in_order(tmp_path: Path) -> None:
    async with a_run(tmp_path) as run:
        network = run.crowd.network
        network.partition(KEYS[:1], KEYS[1:])
        await trio.sleep(larger(30, 40))  # until it counts as gone, so that the others acknowledge
        await run.publish(KEYS[-2])
        network.heal()
        await run.settled()


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    with running_fleet(Shell(tmp_path), 4, protocol__round_s=0.2) as made:
        yield made


@pytest.mark.campaign
@pytest.mark.parametrize("each_preset", ["kindred"], indirect=True)
async def test_a_name_gets_all_in_order_though_its_node_is_killed(fleet: Fleet) -> None:
    """Its node is killed with events in every state, and a relay as well."""
    got: list[ReceivedEvent] = []
    here, relay, *publishers = fleet.names
    await fleet.ready()

    async def read(*, task_status: trio.TaskStatus[None]) -> None:
        address = fleet.address(here)
        async with open_client(address, "ada", ordered=True, patience_s=600) as client:
            await client.subscribe("all", "price >= 0")
            task_status.started()
            async for event in client.events:
                got.append(event)
                await client.settle(event)

    async with trio.open_nursery() as readers:
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
        readers.cancel_scope.cancel()
    assert len(due) > 60
    check_order([(event, event.late) for event in got], due)
