"""A member, or an application, that publishes as fast as it can: others go on as before.

Three peers in processes of their own, and an honest publisher of ten events a second.
"""

from __future__ import annotations

import json
import signal
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import attrs
import pytest
import trio

from gossamer.node.errors import UnacknowledgedError
from gossamer.node.local.client import LocalClient
from gossamer.node.local.follower import follow
from gossamer.node.transport.base.base import Address
from support.flooders import Flooder
from support.node_fleets import LOOK_S, Fleet, until
from support.node_processes import PATIENCE_S, Shell

pytestmark = pytest.mark.campaign

FLOOD_S = 90.0
RATE = 10
BEFORE_S, RECOVERY_S, AFTER_S = 3.0, 10.0, 5.0
# Part of what is published during a flood that may go unacknowledged, on a busy machine.
LOST = 0.1
# For how long peers stand still while they, or others, are flooded.
STILL_S = 2.0
# Publications that a greedy application does not wait for.
AT_ONCE = 300


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    """Three peers that run, and a fourth membership."""
    made = Fleet.make(Shell(tmp_path), 4, discovery__multicast=False)
    made.start(*made.names[:3])
    yield made
    made.stop()


@attrs.define(eq=False)
class Honest:
    """An application that publishes ten events a second."""

    client: LocalClient
    symbol: str
    due: list[float] = attrs.field(factory=list)  # when each was published, by trio's clock
    # When each was, by its number; and its id.
    acknowledged: dict[int, tuple[float, str]] = attrs.field(factory=dict)

    async def run(self) -> None:
        """Publish, whether or not what was published before is acknowledged, until cancelled."""
        begun = trio.current_time()
        async with trio.open_nursery() as nursery:
            while True:
                nursery.start_soon(self._publish, len(self.due))
                self.due.append(trio.current_time())
                await trio.sleep_until(begun + len(self.due) / RATE)

    async def _publish(self, number: int) -> None:
        values = {"symbol": self.symbol, "price": float(number % 500), "volume": number}
        with suppress(UnacknowledgedError):
            event = await self.client.publish(values)
            self.acknowledged[number] = trio.current_time(), event

    def share(self, begin: float, end: float) -> float:
        """Which part of its rate was acknowledged in that time."""
        times = [at for at, _ in self.acknowledged.values() if begin <= at < end]
        return len(times) / (RATE * (end - begin))

    def missing(self, begin: float, end: float) -> list[int]:
        """The events published in that time that nobody acknowledged."""
        numbers = [number for number, at in enumerate(self.due) if begin <= at < end]
        return [number for number in numbers if number not in self.acknowledged]


@attrs.define(eq=False)
class Run:
    fleet: Fleet
    honest: list[Honest]
    got: list[str]  # ids that a named application at the third peer was handed, of honest events

    async def judge(self, begin: float, end: float) -> None:
        """After a flood from ``begin`` to ``end``: what was honest went on, and arrived."""
        recovered = end + RECOVERY_S
        await trio.sleep_until(recovered + AFTER_S)
        await until(
            lambda: not any(one.missing(recovered, recovered + AFTER_S) for one in self.honest)
        )
        for one in self.honest:
            during = one.share(begin, end)
            lost = len(one.missing(0, recovered))
            print(f"{one.symbol}: {during:.0%} of the rate during the flood, {lost} unacknowledged")
            assert during >= 0.5
            assert lost <= LOST * RATE * (end - begin)
        acknowledged = {event for one in self.honest for _, event in one.acknowledged.values()}
        await until(lambda: acknowledged <= set(self.got))
        assert len(self.got) == len(set(self.got))

    async def stand_still(self, names: Sequence[str]) -> None:
        """Stop peers for a moment."""
        for name in names:
            self.fleet.send(name, signal.SIGSTOP)
        await trio.sleep(STILL_S)
        for name in names:
            self.fleet.send(name, signal.SIGCONT)

    async def calm(self) -> None:
        """Wait until no peer is overloaded any more."""
        for name in self.fleet.names[:3]:
            async with self.fleet.client(name) as client:
                with trio.fail_after(PATIENCE_S):
                    while "gossamer_overloading 0.0" not in await client.metrics():
                        await trio.sleep(LOOK_S)

    def logged(self, event: str) -> list[dict[str, str]]:
        """Lines of that event in all logs."""
        texts = [self.fleet.log(name) for name in self.fleet.names[:3]]
        lines = [json.loads(line) for text in texts for line in text.splitlines()]
        return [line for line in lines if line["event"] == event]


@asynccontextmanager
async def a_run(fleet: Fleet, *publishers: int) -> AsyncIterator[Run]:
    running = fleet.names[:3]
    await fleet.ready(running)
    got: list[str] = []

    async def note(task_status: trio.TaskStatus[None]) -> None:
        where = fleet.address(running[2])
        wanted = {name: f'symbol == "HONEST{name}"' for name in "012"}
        async with follow(where, wanted, name="app") as events:
            task_status.started()
            async for event in events:
                got.append(event.id)
                await events.acknowledge(event)

    async def connect(place: int, task_status: trio.TaskStatus[Honest]) -> None:
        async with fleet.client(running[place]) as client:
            task_status.started(Honest(client, f"HONEST{place}"))
            await trio.sleep_forever()

    async with trio.open_nursery() as nursery:
        await nursery.start(note)
        honest = [await nursery.start(connect, place) for place in publishers]
        for one in honest:
            nursery.start_soon(one.run)
        await trio.sleep(BEFORE_S)
        yield Run(fleet, honest, got)
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("targets", [1, 3])
async def test_a_member_that_floods_stops_no_events_of_others(fleet: Fleet, targets: int) -> None:
    """It floods all peers, or one, which passes its events on and is not held to account for it.

    A peer takes no more from a connection than it can deal with; so the others stand still for a
    moment, and what waits for them is more than there is room for, however fast anybody is.
    """
    flooder = Flooder.of_folder(fleet.folder(fleet.names[3]))
    async with a_run(fleet, 0) as run:
        begin = trio.current_time()
        with trio.move_on_after(FLOOD_S):
            async with trio.open_nursery() as nursery:
                told = run.logged("peer listens")
                addresses = [Address.parse(line["at"]) for line in told]
                nursery.start_soon(flooder.flood, *addresses[:targets])
                await run.stand_still(fleet.names[1:3])
        await run.judge(begin, trio.current_time())
        print(f"{flooder.sent} events flooded, {flooder.answered} copies answered")
        assert flooder.sent > 10 * RATE * FLOOD_S, "that is no flood"
        await run.calm()
        key = f"({flooder.member.identity.key:016x})"
        for said in map(run.logged, ("overload begins", "overload ends")):
            assert any(key in line["peer"] and key in line["publisher"] for line in said)


async def test_an_application_that_floods_waits_and_others_do_not(fleet: Fleet) -> None:
    """Others at the same peer as well; the greedy one has as much as there is room for."""
    published = 0

    async def be_greedy(client: LocalClient) -> None:
        nonlocal published
        while True:
            await client.publish({"symbol": "GREEDY", "price": 1.0, "volume": published})
            published += 1

    async with a_run(fleet, 0, 1) as run, fleet.client(fleet.names[1]) as client:
        begin = trio.current_time()
        with trio.move_on_after(FLOOD_S):
            async with trio.open_nursery() as nursery:
                for _ in range(AT_ONCE):
                    nursery.start_soon(be_greedy, client)
        await run.judge(begin, trio.current_time())
    print(f"{published} events of the greedy application acknowledged")
    assert published > 0
