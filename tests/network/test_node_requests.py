"""Requests and replies between peers: on a clock that jumps, and between processes."""

from __future__ import annotations

import json
import signal
import subprocess
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import attrs
import pytest
import trio

from gossamer.node.errors import NoAnswerError, NobodyWaitsError
from gossamer.node.local.replies import Replies, Reply, Requested
from gossamer.node.peer.unicast.envelopes import opened
from gossamer.protocol.content.payload import Payload
from support.memory_peers import MemoryPeers, memory_peers
from support.memory_transport import Faults, MemoryNetwork
from support.node_fleets import Fleet, running_fleet
from support.node_processes import PATIENCE_S, Shell, end, wait_for_line
from support.transport_peers import on_jumping_clock
from support.waiting import eventually

KEYS = [1 + (i << 58) for i in range(6)]
REQUESTER, *REPLIERS = KEYS
LATE = Faults(latency_s=(0.0, 0.05))
TIMEOUT_S = 20.0


@attrs.define(eq=False)
class Run:
    """A peer that requests, and others that reply."""

    crowd: MemoryPeers
    requester: Replies
    # By replier, how often it got the request of each price.
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
                except NobodyWaitsError:
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
    async with (
        memory_peers(folder, *KEYS, network=network) as crowd,
        trio.open_nursery() as nursery,
    ):
        await crowd.whole()
        run = Run(crowd, Replies(crowd.peers[REQUESTER]))
        for key in REPLIERS:
            await nursery.start(run.serve, key)
        await crowd.rounds(10)
        yield run
        nursery.cancel_scope.cancel()


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
async def test_more_replies_than_wanted_are_told_that_nobody_waits(tmp_path: Path) -> None:
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


@pytest.mark.parametrize("fails", [False, pytest.param(True, marks=pytest.mark.campaign)])
async def test_commands_request_and_reply(tmp_path: Path, fails: bool) -> None:
    """While peers are killed and paused, too."""
    shell = Shell(tmp_path)
    with running_fleet(shell, 3, protocol__round_s=0.2) as fleet:
        await fleet.ready()
        asks = ("request", "--folder", fleet.names[0], "symbol=IBM", "price=81", "volume=1")
        replies = ("reply", "price > 80", "--folder")
        echo = shell.start(*replies, fleet.names[1], "--name", "ada", "--echo")
        run = shell.start(*replies, fleet.names[2], "--run", "tr a-z A-Z | cut -c 1-5")
        for process in (echo, run):
            await trio.to_thread.run_sync(wait_for_line, process, "replying")
        await _until_known(fleet)

        done = await _run(shell, *asks, "--replies", "2", "--timeout", str(PATIENCE_S))
        assert done.returncode == 0, done.stderr
        shown = sorted((json.loads(line)["text"] for line in done.stdout.splitlines()), key=len)
        assert shown[0] == '{"ID"\n'
        assert json.loads(shown[1])["values"]["symbol"] == "IBM"

        if fails:
            await _replies_of_peers_that_fail(fleet, asks)

        for process in (echo, run):
            await trio.to_thread.run_sync(end, process, signal.SIGTERM)
        done = await _run(shell, *asks, "--timeout", "0.5")
        assert done.returncode == 1
        assert "nobody replied to request" in done.stderr


async def _replies_of_peers_that_fail(fleet: Fleet, asks: tuple[str, ...]) -> None:
    shell = fleet.shell
    # A replier's peer is killed: one reply is missing, and that is said.
    fleet.kill(fleet.names[2])
    done = await _run(shell, *asks, "--replies", "2", "--timeout", "3")
    assert done.returncode == 1
    assert "1 of 2 replies came within 3 s" in done.stderr
    fleet.start(fleet.names[2])
    await fleet.ready()
    await _until_known(fleet)

    # Another one is paused, and replies once it goes on, though its connections have ended.
    fleet.send(fleet.names[1], signal.SIGSTOP)
    paused = shell.start(*asks, "--replies", "2", "--timeout", str(PATIENCE_S), "--raw")
    await trio.sleep(4)
    fleet.send(fleet.names[1], signal.SIGCONT)
    code, out, err = await trio.to_thread.run_sync(end, paused)
    assert (code, err) == (0, "")
    assert out.count("IBM") == 1


async def _run(shell: Shell, *arguments: str) -> subprocess.CompletedProcess[str]:
    return await trio.to_thread.run_sync(lambda: shell.run(*arguments))


async def _until_known(fleet: Fleet) -> None:
    """Wait until a request reaches both repliers."""
    async with fleet.client(fleet.names[0]) as client:
        values = {"symbol": "IBM", "price": 81.0, "volume": 1}
        with trio.fail_after(PATIENCE_S):
            while len(await client.request(values, timeout_s=2.0, replies=2)) < 2:
                pass
