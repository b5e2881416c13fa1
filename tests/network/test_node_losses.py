"""A peer that takes less than it is sent, for longer than others remember what they sent.

What does not fit into the queue to it is dropped, and forgotten soon after; it is told, and asks
for what is held.
"""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
import trio

from gossamer.node.errors import UnacknowledgedError
from gossamer.protocol.content.payload import Payload
from support.node_fleets import Fleet, Follower, running_fleet, until
from support.node_processes import Shell

pytestmark = pytest.mark.campaign

PEERS = 4
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
AT_ONCE, PAUSE_S = 8, 0.02
SLOW_S = 25.0
# Of which it runs a twentieth: too little for what it is sent, and enough to count as alive.
STOPPED_S, RUNNING_S = 0.38, 0.02
PATIENCE_S = 120.0
# Events that show who passes them on.
PROBES = 20
# Frames that were dropped, by which it shows that a peer is sent more than it takes.
ENOUGH = 100


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    with running_fleet(Shell(tmp_path), PEERS, **SETTINGS) as made:
        yield made


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


async def test_a_peer_that_is_slow_for_long_has_everything_afterwards(fleet: Fleet) -> None:
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
                    await trio.sleep(PAUSE_S)

            with trio.move_on_after(PATIENCE_S):
                async with trio.open_nursery() as publishers:
                    for place in range(AT_ONCE):
                        publishers.start_soon(publish, place)
                    # A busy machine takes longer to bring more than is taken.
                    await trio.sleep(SLOW_S)
                    while sum(await dropped_by(fleet)) <= ENOUGH:
                        await trio.sleep(PAUSE_S)
                    publishers.cancel_scope.cancel()
        print(f"{len(acknowledged)} events acknowledged, {len(follower.got)} there so far")
        dropped = await dropped_by(fleet)
        await until(lambda: acknowledged <= set(follower.got), PATIENCE_S)
        nursery.cancel_scope.cancel()
    asked_for = await total(fleet, slow_one, "events_recovered_total")
    delivered = await total(fleet, slow_one, "events_delivered_total")
    again = await total(fleet, slow_one, 'dropped_total{cause="delivered before"}')
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
        await until(lambda: len(reader.got) == PROBES, PATIENCE_S)
        nursery.cancel_scope.cancel()
    passed_on = {name: await total(fleet, name, "events_forwarded_total") for name in others}
    return min(others, key=passed_on.__getitem__)


async def dropped_by(fleet: Fleet) -> list[float]:
    """How many frames each peer has dropped, since too many waited."""
    return [await total(fleet, name, 'dropped_total{cause="queue full"}') for name in fleet.names]


async def total(fleet: Fleet, name: str, metric: str) -> float:
    async with fleet.client(name) as client:
        lines = (await client.metrics()).splitlines()
    return sum(
        float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(f"gossamer_{metric} ")
    )
