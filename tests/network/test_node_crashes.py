"""Peers in processes of their own are killed, paused and run out of disk while events flow.

Every peer has a named application. By the end each of them has been handed every acknowledged event
once, those whose peer failed too.
"""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import attrs
import pytest
import trio

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
    """Applications at every peer, and two publishers of so many events at the first two."""

    fleet: Fleet
    events: int
    followers: list[Follower]
    publishers: list[Publisher]

    @property
    def acknowledged(self) -> set[str]:
        return set.union(*(publisher.acknowledged for publisher in self.publishers))

    async def publish(self, pause_s: float = 0.05) -> None:
        async with trio.open_nursery() as nursery:
            for publisher in self.publishers:
                nursery.start_soon(publisher.run, self.events // len(self.publishers), pause_s)

    async def settled(self, title: str) -> None:
        """Wait until everybody has everything; nothing may have come twice."""
        due = self.acknowledged
        with trio.move_on_after(PATIENCE_S):
            await until(lambda: all(due <= set(one.got) for one in self.followers), 2 * PATIENCE_S)
        lost = {one.peer: len(due - set(one.got)) for one in self.followers}
        repeated = {one.peer: len(one.got) - len(set(one.got)) for one in self.followers}
        uncertain = sum(publisher.uncertain for publisher in self.publishers)
        print(
            f"{title}: {len(due)} events acknowledged, {uncertain} not; {len(self.followers)} "
            f"applications lost {sum(lost.values())} and got {sum(repeated.values())} twice"
        )
        assert len(due) >= self.events // 2
        assert not any(lost.values()), lost
        assert not any(repeated.values()), repeated


@asynccontextmanager
async def a_run(fleet: Fleet, events: int) -> AsyncIterator[Run]:
    await fleet.ready()
    followers = [Follower(fleet, name, "app") for name in fleet.names]
    publishers = [Publisher(fleet, fleet.names[i]) for i in (0, 1)]
    async with trio.open_nursery() as nursery:
        for follower in followers:
            await nursery.start(follower.run)
        yield Run(fleet, events, followers, publishers)
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("size", [FEW, FULL])
async def test_a_third_of_the_peers_are_killed_at_once_and_come_back(
    fleet: Fleet, size: Size
) -> None:
    async with a_run(fleet, size.events) as run, trio.open_nursery() as nursery:
        nursery.start_soon(run.publish)
        await until(lambda: len(run.acknowledged) > size.events // 4)
        gone = fleet.names[2 : 2 + -(-3 * size.peers // 10)]
        fleet.kill(*gone)
        rest = [name for name in fleet.names if name not in gone]
        repair_s = await fleet.ready(rest)
        await until(lambda: len(run.acknowledged) > size.events // 2)
        fleet.start(*gone)
        await until(lambda: not nursery.child_tasks)
        assert size.peers < 10 or repair_s < REPAIR_S
        await run.settled(f"{len(gone)} of {size.peers} killed, ring after {repair_s:.1f} s")


@at_full_size
async def test_a_peer_is_paused_for_long(fleet: Fleet, size: Size) -> None:
    async with a_run(fleet, size.events) as run, trio.open_nursery() as nursery:
        nursery.start_soon(partial(run.publish, PAUSE_S / size.events * 2))
        await until(lambda: len(run.acknowledged) > size.events // 8)
        paused = fleet.names[-1]
        fleet.send(paused, signal.SIGSTOP)
        await trio.sleep(PAUSE_S)
        fleet.send(paused, signal.SIGCONT)
        repair_s = await fleet.ready()
        await until(lambda: not nursery.child_tasks)
        assert repair_s < REPAIR_S
        await run.settled(f"paused for {PAUSE_S:g} s, ring after {repair_s:.1f} s")


@at_full_size
async def test_the_node_of_an_application_is_killed_again_and_again(
    fleet: Fleet, size: Size
) -> None:
    """Wherever that strikes: before an event is on its disk, after it, while it catches up."""
    async with a_run(fleet, size.events) as run, trio.open_nursery() as nursery:
        nursery.start_soon(partial(run.publish, 0.2))
        victim = fleet.names[-1]
        for _ in range(3):
            before = len(run.followers[-1].got)
            await until(
                lambda before=before: (  # type: ignore[misc]
                    len(run.followers[-1].got) > before + 3 or not nursery.child_tasks
                )
            )
            fleet.kill(victim)
            fleet.start(victim)
        await until(lambda: not nursery.child_tasks)
        await run.settled("killed three times")


@at_full_size
async def test_the_disk_of_a_peer_is_full_for_a_while(fleet: Fleet, size: Size) -> None:
    """What cannot be written waits, and neither is lost nor comes twice."""
    async with a_run(fleet, size.events) as run, trio.open_nursery() as nursery:
        nursery.start_soon(run.publish)
        await until(lambda: len(run.acknowledged) > size.events // 4)
        full = fleet.names[-1]
        fleet.limit_files(full, 1)
        await until(lambda: len(run.acknowledged) > size.events * 3 // 4)
        assert not set(run.followers[-1].got) >= run.acknowledged
        fleet.limit_files(full, 1 << 40)
        await until(lambda: not nursery.child_tasks)
        await run.settled("a full disk")
