"""Queue groups over peers in processes of their own that are killed, paused and started again.

No acknowledged event is lost, and none is done twice unless its worker's peer was killed or paused
while it had the event.
"""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from gossamer.node.errors import RefusedByNodeError
from gossamer.node.local.client import open_client
from gossamer.protocol.patterns.groups import HEARTBEAT_S
from support.node_fleets import QUICK, Fleet, Publisher, running_fleet, until
from support.node_processes import Shell

# How many events there are, and how many peers.
FEW = pytest.param((24, 3), id="few")
FULL = pytest.param((400, 5), marks=pytest.mark.campaign, id="full")
ALL = "price >= 0"
# Until another peer leads, and what the last one had is given to others.
PATIENCE_S = 300.0


at_full_size = pytest.mark.parametrize("size", [FULL])


@pytest.fixture
def fleet(tmp_path: Path, size: tuple[int, int]) -> Iterator[Fleet]:
    with running_fleet(Shell(tmp_path), size[1], **QUICK) as made:
        yield made


@attrs.define(eq=False)
class Work:
    """What the workers of a group have got, and have acknowledged."""

    # By event, the peers at which workers got it.
    got: dict[str, list[str]] = attrs.field(factory=dict)
    dealt: Counter[str] = attrs.field(factory=Counter)  # by event, how often it was acknowledged

    async def worker(
        self, fleet: Fleet, peer: str, pause_s: float = 0.02, *, task_status: trio.TaskStatus[None]
    ) -> None:
        """Deal with events one after another, over restarts of the node."""
        async with open_client(fleet.address(peer), patience_s=600) as client:
            await client.join("work", ALL, "workers")
            task_status.started()
            async for event in client.events:
                self.got.setdefault(event.id, []).append(peer)
                await trio.sleep(pause_s)
                self.dealt[event.id] += 1
                await client.settle(event)

    def twice(self) -> dict[str, list[str]]:
        return {event: peers for event, peers in self.got.items() if len(peers) > 1}


@asynccontextmanager
async def at_work(fleet: Fleet, peers: Sequence[str], pause_s: float = 0.02) -> AsyncIterator[Work]:
    """Workers at these peers, whose groups have found each other."""
    work = Work()
    await fleet.ready()
    async with trio.open_nursery() as nursery:
        for peer in peers:
            await nursery.start(work.worker, fleet, peer, pause_s)
        await together(fleet, peers)
        yield work
        nursery.cancel_scope.cancel()


async def together(fleet: Fleet, peers: Sequence[str]) -> None:
    """Wait until one of these peers leads all of them."""
    with trio.fail_after(PATIENCE_S):
        while True:
            states = [await group_of(fleet, peer) for peer in peers]
            whole = all(len(one["peers"]) == len(peers) for one in states if one is not None)
            leading = sum(one["leads"] for one in states if one is not None)
            if whole and leading == 1 and None not in states:
                return
            await trio.sleep(0.2)


async def group_of(fleet: Fleet, peer: str) -> dict[str, Any] | None:
    async with fleet.client(peer) as client:
        groups = (await client.status())["groups"]
    return groups[0] if groups else None


async def settled(work: Work, publisher: Publisher, events: int) -> None:
    """Wait until all is published, and every acknowledged event is dealt with."""
    await until(lambda: len(publisher.acknowledged) + publisher.uncertain == events, PATIENCE_S)
    await until(lambda: publisher.acknowledged <= set(work.dealt), PATIENCE_S)
    assert len(publisher.acknowledged) >= events // 2


@pytest.mark.parametrize("size", [FEW, FULL])
async def test_each_event_goes_to_one_worker_of_any_peer(
    fleet: Fleet, size: tuple[int, int]
) -> None:
    """A worker that comes later gets what was waiting; one peer's workers cannot do it all."""
    events, (*first, last) = size[0], fleet.names
    async with at_work(fleet, first, pause_s=0.05) as work, trio.open_nursery() as nursery:
        publisher = Publisher(fleet, last)
        nursery.start_soon(publisher.run, events, 0.02)
        await until(lambda: len(work.dealt) > events // 3)
        await nursery.start(work.worker, fleet, last)
        await settled(work, publisher, events)
        nursery.cancel_scope.cancel()
    assert work.twice() == {}
    assert len({peer for peers in work.got.values() for peer in peers}) >= len(first)


@at_full_size
async def test_killed_members_and_leaders_lose_nothing(fleet: Fleet, size: tuple[int, int]) -> None:
    events, members = size[0], fleet.names[1:]
    async with at_work(fleet, members, pause_s=0.05) as work, trio.open_nursery() as nursery:
        publisher = Publisher(fleet, fleet.names[0])
        nursery.start_soon(publisher.run, events, 0.05)
        (leader,) = [one for one in members if (await _leads(fleet, one))]
        other = next(one for one in members if one != leader)
        for gone in (leader, other):
            fleet.kill(gone)
            await until(lambda: len(publisher.acknowledged) > events // 3)
            fleet.start(gone)
        await settled(work, publisher, events)
        nursery.cancel_scope.cancel()
    # What was at the workers of a peer that was killed may have come again; a few at most.
    assert set(work.twice()) <= _had(work, {leader, other})
    assert len(work.twice()) <= 4


@at_full_size
@pytest.mark.parametrize("in_the_midst", [False, True], ids=["at some time", "amid a round"])
async def test_a_paused_leader_is_replaced_and_follows_when_it_is_back(
    fleet: Fleet, size: tuple[int, int], in_the_midst: bool
) -> None:
    """Its questions to the others may be without an answer when it is paused; it asks again."""
    events, members = size[0], fleet.names[1:]
    async with at_work(fleet, members) as work, trio.open_nursery() as nursery:
        publisher = Publisher(fleet, fleet.names[0])
        nursery.start_soon(publisher.run, events, 0.2)
        await until(lambda: len(work.dealt) > events // 6)
        (leader,) = [one for one in members if (await _leads(fleet, one))]
        others = [one for one in members if one != leader and in_the_midst]
        for one in others:
            fleet.send(one, signal.SIGSTOP)
        if others:
            # Nothing tells when the leader has asked them; it asks everybody once in that time.
            await trio.sleep(1.5 * HEARTBEAT_S)
        fleet.send(leader, signal.SIGSTOP)
        for one in others:
            fleet.send(one, signal.SIGCONT)
        before = len(work.dealt)
        await until(lambda: len(work.dealt) > before + 5, PATIENCE_S)
        fleet.send(leader, signal.SIGCONT)
        await settled(work, publisher, events)
        await together(fleet, members)
        nursery.cancel_scope.cancel()
    assert set(work.twice()) <= _had(work, {leader})
    assert len(work.twice()) <= 2


@at_full_size
async def test_what_waits_survives_a_restart_of_all_and_is_done_once(
    fleet: Fleet, size: tuple[int, int]
) -> None:
    events, members = size[0] // 2, fleet.names[:2]
    async with at_work(fleet, members, pause_s=0.05) as work, trio.open_nursery() as nursery:
        publisher = Publisher(fleet, fleet.names[2])
        nursery.start_soon(publisher.run, events, 0.01)
        await until(lambda: len(publisher.acknowledged) + publisher.uncertain == events)
        nursery.cancel_scope.cancel()
    # No worker is there any more, and the rest waits, over a restart too.
    left = publisher.acknowledged - set(work.dealt)
    fleet.kill(*members)
    fleet.start(*members)
    await fleet.ready()
    async with at_work(fleet, members) as rest:
        await until(lambda: left <= set(rest.dealt), PATIENCE_S)
    again = set(rest.dealt) & set(work.dealt)
    assert len(again) <= 2, "at most what was being acknowledged when its worker left"
    assert max(rest.dealt.values(), default=0) <= 1


@pytest.mark.parametrize("size", [(0, 2)], ids=["two"])
async def test_a_group_is_left_and_what_is_none_is_refused(fleet: Fleet) -> None:
    await fleet.ready()
    async with fleet.client(fleet.names[0]) as client:
        with pytest.raises(RefusedByNodeError, match="not printable"):
            await client.join("work", ALL, "\n")
        with pytest.raises(RefusedByNodeError):
            await client.join("work", "price >", "workers")
        with pytest.raises(RefusedByNodeError, match="of no group 'workers'"):
            await client.leave("workers", ALL)
        await client.join("work", ALL, "workers")
        with pytest.raises(RefusedByNodeError, match="has workers at this node"):
            await client.leave("workers", ALL)
        await client.unsubscribe("work")
        await client.leave("workers", ALL)
        assert await group_of(fleet, fleet.names[0]) is None


async def _leads(fleet: Fleet, peer: str) -> bool:
    state = await group_of(fleet, peer)
    return state is not None and bool(state["leads"])


def _had(work: Work, peers: set[str]) -> set[str]:
    return {event for event, at in work.got.items() if peers & set(at)}
