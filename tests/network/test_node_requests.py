"""Queue groups, requests and replies, over peers in memory and in processes that fail."""

from __future__ import annotations

import json
import signal
import subprocess
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from gossamer.node.errors import NoAnswerError, RefusedByNodeError, RequestError
from gossamer.node.local.client import open_client
from gossamer.node.local.replies import Replies, Reply, Requested
from gossamer.node.peer.unicast.messages import opened
from gossamer.protocol.content.values import Payload
from gossamer.protocol.patterns.groups import HEARTBEAT_S
from support.local_nodes import LocalNode
from support.memory_peers import MemoryPeers, memory_peers
from support.memory_transport import Faults, MemoryNetwork
from support.node_fleets import QUICK, Fleet, Publisher, running_fleet, until
from support.node_processes import PATIENCE_S, Shell, end, wait_for_line
from support.transport_peers import on_jumping_clock
from support.waiting import eventually, running

KEYS = [1 + (i << 58) for i in range(6)]
REQUESTER, *REPLIERS = KEYS
LATE = Faults(latency_s=(0.0, 0.05))
TIMEOUT_S = 20.0


@attrs.define(eq=False)
class Run:
    crowd: MemoryPeers
    requester: Replies
    got: dict[int, Counter[float]] = attrs.field(factory=dict)
    late: list[int] = attrs.field(factory=list)  # repliers that were told that nobody waits

    async def serve(self, key: int, *, task_status: trio.TaskStatus[None]) -> None:
        """Reply to every request at peer ``key`` with the price that it is about."""
        peer, replies = self.crowd.peers[key], Replies(self.crowd.peers[key])
        async with peer.subscribe("price >= 0") as events:
            task_status.started()
            async for event in events:
                price = event.values["price"]
                self.got.setdefault(key, Counter())[price] += 1  # type: ignore[index]
                _, reply_to = opened(event.payload)
                assert reply_to is not None
                try:
                    await replies.reply(reply_to.to_token(), Payload(str(price).encode()))
                except RequestError:
                    self.late.append(key)

    async def ask(self, price: int, wanted: int) -> tuple[Requested, list[Reply]]:
        replies: list[Reply] = []

        async def take(reply: Reply) -> None:
            replies.append(reply)
            await trio.lowlevel.checkpoint()

        event: dict[str, int | str] = {"price": price, "symbol": "IBM"}
        result = await self.requester.request(
            event, None, wanted=wanted, patience_s=TIMEOUT_S, hand_on=take
        )
        assert result.came == len(replies)
        assert {one.payload.data for one in replies} <= {str(price).encode()}
        return result, replies


@asynccontextmanager
async def a_run(folder: Path, seed: int = 1) -> AsyncIterator[Run]:
    network = MemoryNetwork(seed, LATE)
    async with memory_peers(folder, *KEYS, network=network) as crowd, running() as nursery:
        await crowd.whole()
        run = Run(crowd, Replies(crowd.peers[REQUESTER]))
        for key in REPLIERS:
            await nursery.start(run.serve, key)
        await crowd.rounds(10)
        yield run


@on_jumping_clock
async def test_every_replier_replies_once_though_connections_break(tmp_path: Path) -> None:
    async with a_run(tmp_path) as run:
        network = run.crowd.network
        network.faults = attrs.evolve(LATE, breaking=0.003, duplication=0.1, reordering=0.1)
        for price in range(30):
            result, replies = await run.ask(price, len(REPLIERS))
            assert result.acknowledged
            assert sorted(one.replier for one in replies) == REPLIERS
        assert all(set(got.values()) == {1} for got in run.got.values())
        assert network.duplicated > 0
        assert network.broken > 0


@on_jumping_clock
async def test_repliers_that_are_gone_are_not_waited_for_beyond_the_timeout(tmp_path: Path) -> None:
    async with a_run(tmp_path) as run:
        gone, rest = REPLIERS[:2], REPLIERS[2:]
        async with trio.open_nursery() as nursery:
            for key in gone:
                nursery.start_soon(run.crowd.crash, key)
        began = trio.current_time()
        result, replies = await run.ask(7, len(REPLIERS))
        assert trio.current_time() - began == pytest.approx(TIMEOUT_S, abs=0.1)
        assert sorted(one.replier for one in replies) == rest
        result, replies = await run.ask(8, len(rest))
        assert result.acknowledged
        assert len(replies) == len(rest)


@on_jumping_clock
async def test_more_replies_than_wanted_are_refused_as_nobody_waits(tmp_path: Path) -> None:
    async with a_run(tmp_path) as run:
        _, replies = await run.ask(7, 2)
        assert len({one.replier for one in replies}) == 2
        await eventually(lambda: len(run.late) == len(REPLIERS) - 2)
        assert not {one.replier for one in replies} & set(run.late)


@on_jumping_clock
async def test_a_replier_that_was_out_of_reach_still_replies_in_time(tmp_path: Path) -> None:
    async with a_run(tmp_path) as run, trio.open_nursery() as nursery:
        run.crowd.network.partition(REPLIERS[:1], [REQUESTER, *REPLIERS[1:]])

        async def heal() -> None:
            await trio.sleep(4.0)
            run.crowd.network.heal()

        nursery.start_soon(heal)
        _, replies = await run.ask(7, len(REPLIERS))
        assert sorted(one.replier for one in replies) == REPLIERS


@on_jumping_clock
async def test_a_peer_answers_what_it_offers_to_answer(tmp_path: Path) -> None:
    async with memory_peers(tmp_path, *KEYS[:2]) as crowd:
        one, other = crowd.peers.values()

        async def ask(body: bytes) -> bytes:
            return await one.messages.ask(other.key, other.addresses, "nothing", body, 3.0)

        with pytest.raises(NoAnswerError, match="does not offer 'nothing'"):
            await ask(b"")
        other.messages.offer("nothing", lambda key, body: body + str(key).encode())
        assert await ask(b"!") == b"!" + str(one.key).encode()
        await crowd.crash(other.key)
        with pytest.raises(NoAnswerError):
            await ask(b"")


async def test_commands_request_and_reply(shell: Shell) -> None:
    async def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return await trio.to_thread.run_sync(lambda: shell.run(*arguments))

    with running_fleet(shell, 3, protocol__round_s=0.2) as fleet:
        await fleet.ready()
        asks = ("request", "--folder", fleet.names[0], "symbol=IBM", "price=81", "volume=1")
        replies = ("reply", "price > 80", "--folder")
        echo = shell.start(*replies, fleet.names[1], "--name", "ada", "--echo")
        command = shell.start(*replies, fleet.names[2], "--run", "tr a-z A-Z | cut -c 1-5")
        for process in (echo, command):
            await trio.to_thread.run_sync(wait_for_line, process, "replying")
        async with fleet.client(fleet.names[0]) as client:  # until a request reaches both
            values = {"symbol": "IBM", "price": 81.0, "volume": 1}
            with trio.fail_after(PATIENCE_S):
                while len(await client.request(values, timeout_s=2.0, replies=2)) < 2:
                    pass

        done = await run(*asks, "--replies", "2", "--timeout", str(PATIENCE_S))
        assert done.returncode == 0, done.stderr
        shown = sorted((json.loads(line)["text"] for line in done.stdout.splitlines()), key=len)
        assert (shown[0], json.loads(shown[1])["values"]["symbol"]) == ('{"ID"\n', "IBM")
        done = await run(*asks, "--replies", "3", "--timeout", "1")
        assert done.returncode == 1
        assert "2 of 3 replies came within 1 s" in done.stderr

        for process in (echo, command):
            await trio.to_thread.run_sync(end, process, signal.SIGTERM)
        done = await run(*asks, "--timeout", "0.5")
        assert done.returncode == 1
        assert "nobody replied to request" in done.stderr


# Queue groups: no acknowledged event is lost, and none is done twice unless its worker's peer was
# killed or paused while it had the event.


FEW = pytest.param((24, 3), id="few")
FULL = pytest.param((400, 5), marks=pytest.mark.campaign, id="full")
ALL = "price >= 0"
at_full_size = pytest.mark.parametrize("size", [FULL])


@pytest.fixture
def fleet(tmp_path: Path, size: tuple[int, int]) -> Iterator[Fleet]:
    with running_fleet(Shell(tmp_path), size[1], **QUICK) as made:
        yield made


@attrs.define(eq=False)
class Work:
    got: dict[str, list[str]] = attrs.field(factory=dict)
    dealt: Counter[str] = attrs.field(factory=Counter)  # by event, how often it was acknowledged

    async def worker(
        self, fleet: Fleet, peer: str, pause_s: float = 0.02, *, task_status: trio.TaskStatus[None]
    ) -> None:
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
    work = Work()
    await fleet.ready()
    async with running() as nursery:
        for peer in peers:
            await nursery.start(work.worker, fleet, peer, pause_s)
        await leader_of(fleet, peers)
        yield work


async def leader_of(fleet: Fleet, peers: Sequence[str]) -> str:
    with trio.fail_after(PATIENCE_S):
        while True:
            groups: dict[str, Any] = {}
            for peer in peers:
                async with fleet.client(peer) as client:
                    for one in (await client.status())["groups"]:
                        groups[peer] = one
            leading = [peer for peer, one in groups.items() if one["leads"]]
            known = [len(one["peers"]) for one in groups.values()]
            if len(leading) == 1 and known == [len(peers)] * len(peers):
                return leading[0]
            await trio.sleep(0.2)


async def settled(work: Work, publisher: Publisher, events: int) -> None:
    await until(lambda: len(publisher.acknowledged) + publisher.uncertain == events, PATIENCE_S)
    await until(lambda: publisher.acknowledged <= set(work.dealt), PATIENCE_S)
    assert len(publisher.acknowledged) >= events // 2


@pytest.mark.parametrize("size", [FEW, FULL])
async def test_each_event_goes_to_a_worker_of_any_peer(fleet: Fleet, size: tuple[int, int]) -> None:
    """A worker that comes later gets what was waiting; one peer's workers cannot do it all."""
    events, (*first, last) = size[0], fleet.names
    async with at_work(fleet, first, pause_s=0.05) as work, running() as nursery:
        publisher = Publisher(fleet, last)
        nursery.start_soon(publisher.run, events, 0.02)
        await until(lambda: len(work.dealt) > events // 3)
        await nursery.start(work.worker, fleet, last)
        await settled(work, publisher, events)
    assert work.twice() == {}
    assert len({peer for peers in work.got.values() for peer in peers}) >= len(first)


@at_full_size
@pytest.mark.parametrize("in_the_midst", [False, True], ids=["at some time", "amid a round"])
async def test_a_paused_leader_is_replaced_and_follows_when_it_is_back(
    fleet: Fleet, size: tuple[int, int], in_the_midst: bool
) -> None:
    """Its questions to the others may be without an answer when it is paused; it asks again."""
    events, members = size[0], fleet.names[1:]
    async with at_work(fleet, members) as work, running() as nursery:
        publisher = Publisher(fleet, fleet.names[0])
        nursery.start_soon(publisher.run, events, 0.2)
        await until(lambda: len(work.dealt) > events // 6)
        leader = await leader_of(fleet, members)
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
        await leader_of(fleet, members)
    twice = work.twice()
    assert len(twice) <= 2
    assert all(leader in peers for peers in twice.values())


@at_full_size
async def test_what_waits_survives_a_restart_of_all(fleet: Fleet, size: tuple[int, int]) -> None:
    events, members = size[0] // 2, fleet.names[:2]
    async with at_work(fleet, members, pause_s=0.05) as work, running() as nursery:
        publisher = Publisher(fleet, fleet.names[2])
        nursery.start_soon(publisher.run, events, 0.01)
        await until(lambda: len(publisher.acknowledged) + publisher.uncertain == events)
    left = publisher.acknowledged - set(work.dealt)
    fleet.kill(*members)
    fleet.start(*members)
    await fleet.ready()
    async with at_work(fleet, members) as rest:
        await until(lambda: left <= set(rest.dealt), PATIENCE_S)
    again = set(rest.dealt) & set(work.dealt)
    assert len(again) <= 2, "at most what was being acknowledged when its worker left"
    assert max(rest.dealt.values(), default=0) <= 1


async def test_a_group_is_left_and_what_is_none_is_refused(node: LocalNode) -> None:
    async with node.running(), node.client() as client:
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
        with pytest.raises(RefusedByNodeError, match="of no group 'workers'"):
            await client.leave("workers", ALL)
