"""Peers in processes of their own are killed, paused, slow or run out of disk while events flow."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import attrs
import pytest
import trio

from gossamer.node.errors import UnacknowledgedError
from gossamer.protocol.content.values import Payload
from support.node_fleets import QUICK, Fleet, Follower, Publisher, running_fleet, until
from support.node_processes import PATIENCE_S, Shell

REPAIR_S = 30.0


@attrs.frozen
class Size:
    peers: int
    events: int
    settings: dict[str, object]


# That of the promise, with the rounds and limits of the preset `local`.
FULL = pytest.param(Size(10, 400, {}), marks=pytest.mark.campaign, id="full")
FEW = pytest.param(Size(3, 24, {**QUICK, "node__compiled": "never"}), id="few")
at_full_size = pytest.mark.parametrize("size", [FULL])
PAUSE_S = 30.0


@pytest.fixture
def fleet(tmp_path: Path, size: Size) -> Iterator[Fleet]:
    with running_fleet(Shell(tmp_path), size.peers, **size.settings) as made:
        yield made


@attrs.define(eq=False)
class Run:
    events: int
    followers: list[Follower]
    publishers: list[Publisher]
    title: str = ""

    @property
    def acknowledged(self) -> set[str]:
        return set.union(*(publisher.acknowledged for publisher in self.publishers))

    @property
    def has_published(self) -> bool:
        done = sum(len(one.acknowledged) + one.uncertain for one in self.publishers)
        return done >= self.events // len(self.publishers) * len(self.publishers)

    async def settled(self) -> None:
        due = self.acknowledged
        with trio.move_on_after(PATIENCE_S):
            await until(lambda: all(due <= set(one.got) for one in self.followers), 2 * PATIENCE_S)
        lost = {one.peer: len(due - set(one.got)) for one in self.followers}
        repeated = {one.peer: len(one.got) - len(set(one.got)) for one in self.followers}
        uncertain = sum(publisher.uncertain for publisher in self.publishers)
        print(
            f"{self.title}: {len(due)} events acknowledged, {uncertain} not; {len(self.followers)} "
            f"applications lost {sum(lost.values())} and got {sum(repeated.values())} twice"
        )
        assert len(due) >= self.events // 2
        assert not any(lost.values()), lost
        assert not any(repeated.values()), repeated


@asynccontextmanager
async def publishing(fleet: Fleet, size: Size, pause_s: float = 0.05) -> AsyncIterator[Run]:
    await fleet.ready()
    followers = [Follower(fleet, name, "app") for name in fleet.names]
    run = Run(size.events, followers, [Publisher(fleet, name) for name in fleet.names[:2]])
    async with trio.open_nursery() as nursery:
        for follower in followers:
            await nursery.start(follower.run)
        async with trio.open_nursery() as publishers:
            for publisher in run.publishers:
                publishers.start_soon(publisher.run, size.events // len(run.publishers), pause_s)
            yield run
            await until(lambda: run.has_published)
        await run.settled()
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("size", [FEW, FULL])
async def test_a_third_of_the_peers_are_killed_and_come_back(fleet: Fleet, size: Size) -> None:
    async with publishing(fleet, size) as run:
        await until(lambda: len(run.acknowledged) > size.events // 4)
        gone = fleet.names[2 : 2 + -(-3 * size.peers // 10)]
        fleet.kill(*gone)
        repair_s = await fleet.ready([name for name in fleet.names if name not in gone])
        await until(lambda: len(run.acknowledged) > size.events // 2)
        fleet.start(*gone)
        assert size.peers < 10 or repair_s < REPAIR_S
        run.title = f"{len(gone)} of {size.peers} killed, ring after {repair_s:.1f} s"


@at_full_size
async def test_a_peer_is_paused_for_long(fleet: Fleet, size: Size) -> None:
    async with publishing(fleet, size, PAUSE_S / size.events * 2) as run:
        await until(lambda: len(run.acknowledged) > size.events // 8)
        fleet.send(fleet.names[-1], signal.SIGSTOP)
        await trio.sleep(PAUSE_S)
        fleet.send(fleet.names[-1], signal.SIGCONT)
        repair_s = await fleet.ready()
        assert repair_s < REPAIR_S
        run.title = f"paused for {PAUSE_S:g} s, ring after {repair_s:.1f} s"


@at_full_size
async def test_the_node_of_an_application_is_killed_again_and_again(
    fleet: Fleet, size: Size
) -> None:
    """Wherever that strikes: before an event is on its disk, after it, while it catches up."""
    async with publishing(fleet, size, 0.2) as run:
        victim, got = fleet.names[-1], run.followers[-1].got
        for _ in range(3):
            enough = len(got) + 3
            await until(lambda enough=enough: len(got) > enough or run.has_published)  # type: ignore[misc]
            fleet.kill(victim)
            fleet.start(victim)
        run.title = "killed three times"


@at_full_size
async def test_the_disk_of_a_peer_is_full_for_a_while(fleet: Fleet, size: Size) -> None:
    """What cannot be written waits, and neither is lost nor comes twice."""
    async with publishing(fleet, size) as run:
        await until(lambda: len(run.acknowledged) > size.events // 4)
        fleet.limit_files(fleet.names[-1], 1)
        await until(lambda: len(run.acknowledged) > size.events * 3 // 4)
        assert not set(run.followers[-1].got) >= run.acknowledged
        fleet.limit_files(fleet.names[-1], 1 << 40)
        run.title = "a full disk"


# A peer that takes less than it is sent, for longer than others remember what they sent.

# Of events of so many bytes a few dozen fit into a queue, a few thousand into buffers of the
# system, and all of them into what is held.
SIZE = 3_000
SETTINGS: dict[str, object] = {
    "discovery__multicast": False,
    "limits__frame_bytes": 64_000,
    "limits__queue_bytes": 128_000,
    "delivery__acknowledge_s": 60.0,
    "delivery__event_memory": 512,
    # The rendezvous node alone holds an event, so that none waits for the peer that is slow.
    "delivery__successors": 0,
}
AT_ONCE, BETWEEN_S = 8, 0.02
SLOW_S = 25.0
SLOW = pytest.param(Size(4, 0, SETTINGS), marks=pytest.mark.campaign, id="slow")
# Of which it runs a twentieth: too little for what it is sent, and enough to count as alive.
STOPPED_S, RUNNING_S = 0.38, 0.02
DELIVERED_S = 120.0
# Events that show who passes them on.
PROBES = 20
# Frames that were dropped, by which it shows that a peer is sent more than it takes.
ENOUGH = 100


@asynccontextmanager
async def slow(fleet: Fleet, name: str) -> AsyncIterator[None]:
    async def hold_up() -> None:
        try:
            while True:
                fleet.send(name, signal.SIGSTOP)
                await trio.sleep(STOPPED_S)
                fleet.send(name, signal.SIGCONT)
                await trio.sleep(RUNNING_S)
        finally:
            fleet.send(name, signal.SIGCONT)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(hold_up)
        yield
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("size", [SLOW])
async def test_a_peer_that_is_slow_for_long_has_everything_afterwards(fleet: Fleet) -> None:
    """What does not fit into the queue to it is dropped, and forgotten soon after.

    It is told of that, and asks for what is held.
    """
    acknowledged: set[str] = set()
    await fleet.ready()
    slow_one = await one_aside(fleet)
    follower = Follower(fleet, slow_one, "app")
    async with trio.open_nursery() as nursery:
        await nursery.start(follower.run)
        async with fleet.client(fleet.names[0]) as client, slow(fleet, slow_one):

            async def publish(place: int) -> None:
                number = place
                while True:
                    payload = Payload(bytes(SIZE))
                    with suppress(UnacknowledgedError):
                        acknowledged.add(await client.publish(quote(number), payload=payload))
                    number += AT_ONCE
                    await trio.sleep(BETWEEN_S)

            with trio.move_on_after(DELIVERED_S):
                async with trio.open_nursery() as publishers:
                    for place in range(AT_ONCE):
                        publishers.start_soon(publish, place)
                    # A busy machine takes longer to bring more than is taken.
                    await trio.sleep(SLOW_S)
                    while sum(await dropped_by(fleet)) <= ENOUGH:
                        await trio.sleep(BETWEEN_S)
                    publishers.cancel_scope.cancel()
        print(f"{len(acknowledged)} events acknowledged, {len(follower.got)} there so far")
        dropped = await dropped_by(fleet)
        await until(lambda: acknowledged <= set(follower.got), DELIVERED_S)
        nursery.cancel_scope.cancel()
    asked_for = await total(fleet, slow_one, "events_recovered_total")
    delivered = await total(fleet, slow_one, "events_delivered_total")
    again = await total(fleet, slow_one, 'redundant_total{cause="delivered before"}')
    print(f"{len(acknowledged)} events, {dropped} dropped, {asked_for:.0f} asked for")
    assert sum(dropped) > ENOUGH, "it was sent no more than it could take"
    assert asked_for > 0
    assert again >= asked_for - delivered
    assert len(follower.got) == len(set(follower.got))


def quote(number: int) -> dict[str, object]:
    """An event; all of them have one rendezvous node."""
    return {"symbol": "IBM", "price": float(number % 500), "volume": number}


async def one_aside(fleet: Fleet) -> str:
    """A peer by way of which no event comes from the first one to its rendezvous node and back.

    A slow peer there would slow the publisher down, and never be sent too much.
    """
    first, second, *others = fleet.names
    reader = Follower(fleet, second, "probe")
    async with trio.open_nursery() as nursery, fleet.client(first) as client:
        await nursery.start(reader.run)
        for number in range(PROBES):
            await client.publish(quote(number))
        await until(lambda: len(reader.got) == PROBES, DELIVERED_S)
        nursery.cancel_scope.cancel()
    passed_on = {name: await total(fleet, name, "events_forwarded_total") for name in others}
    return min(others, key=passed_on.__getitem__)


async def dropped_by(fleet: Fleet) -> list[float]:
    return [await total(fleet, name, 'dropped_total{cause="queue full"}') for name in fleet.names]


async def total(fleet: Fleet, name: str, metric: str) -> float:
    async with fleet.client(name) as client:
        lines = (await client.metrics()).splitlines()
    return sum(
        float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(f"gossamer_{metric} ")
    )
