"""Last values at every peer: on a clock that jumps, over crashes, partitions and restarts."""

from __future__ import annotations

import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import attrs
import pytest
import trio

from gossamer.node.errors import NotAcknowledged
from gossamer.node.peer.peer import Peer
from gossamer.node.peer.unicast.last_values import LastMark, marked
from support.draws import larger
from support.memory_peers import MemoryPeers, memory_peers
from support.memory_transport import Faults, MemoryNetwork
from support.node_fleets import LOOK_S, running_fleet
from support.node_processes import PATIENCE_S, Shell
from support.transport_peers import on_jumping_clock
from support.waiting import comes_true

pytestmark = pytest.mark.usefixtures("each_preset")

KEYS = [1 + (i << 58) for i in range(larger(4, 6))]
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
    async with memory_peers(folder, *KEYS, network=MemoryNetwork(1, LATE)) as crowd:
        await crowd.whole()
        await crowd.rounds(6)
        yield crowd


async def agreed(crowd: MemoryPeers, expected: dict[object, object]) -> None:
    """Wait until every peer knows this and nothing else."""
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
            symbol = draws.choice(SYMBOLS)
            try:
                await publish(crowd.peers[draws.choice(KEYS)], symbol, price)
                expected[symbol] = price
            except NotAcknowledged:
                expected.pop(symbol, None)  # it is not known whether it counts
                await publish(crowd.peers[KEYS[0]], symbol, 100 + price)
                expected[symbol] = 100 + price
        network.faults = LATE
        await agreed(crowd, dict(expected))
        for key in KEYS[1 : len(KEYS) // 2 + 1]:
            await crowd.crash(key)
        await crowd.add(KEYS[1])
        await agreed(crowd, dict(expected))


@on_jumping_clock
async def test_what_was_deleted_or_replaced_in_one_part_wins_in_both(tmp_path: Path) -> None:
    async with a_crowd(tmp_path) as crowd:
        for price, symbol in enumerate(SYMBOLS):
            await publish(crowd.peers[KEYS[0]], symbol, price)
        await agreed(crowd, {"IBM": 0, "SAP": 1, "XYZ": 2})
        crowd.network.partition(KEYS[:2], KEYS[2:])
        await trio.sleep(larger(35, 60))  # until each part acknowledges by itself
        await publish(crowd.peers[KEYS[len(KEYS) // 2 + 1]], "IBM", 10)
        await publish(crowd.peers[KEYS[0]], "SAP", 0, is_deleted=True)
        crowd.network.heal()
        await agreed(crowd, {"IBM": 10, "XYZ": 2})


@on_jumping_clock
async def test_what_expires_is_gone_everywhere(tmp_path: Path) -> None:
    async with a_crowd(tmp_path) as crowd:
        await publish(crowd.peers[KEYS[0]], "IBM", 1, lasts_s=30.0)
        await publish(crowd.peers[KEYS[0]], "SAP", 2)
        await agreed(crowd, {"IBM": 1, "SAP": 2})
        await trio.sleep(31)
        await agreed(crowd, {"SAP": 2})


@pytest.mark.parametrize("each_preset", ["kindred"], indirect=True)
async def test_commands_keep_and_print_last_values(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    with running_fleet(shell, PEERS, protocol__round_s=0.2) as fleet:
        await fleet.ready()
        here, *others = fleet.names
        keep = ("--retained-last", "symbol", "--folder", here)

        async def ok(*words: str) -> str:
            return await trio.to_thread.run_sync(lambda: shell.ok(*words))

        for symbol, price in (("IBM", 1), ("IBM", 2), ("SAP", 3)):
            await ok("pub", f"symbol={symbol}", f"price={price}", *keep)
        await ok("pub", "symbol=SAP", "--delete", *keep)
        fleet.kill(others[0])
        fleet.start(others[0])
        for there in others:
            async with fleet.client(there) as client:
                with trio.fail_after(PATIENCE_S):
                    while (await client.status())["last_values"] < 2:
                        await trio.sleep(LOOK_S)
            printed = await ok("sub", "price >= 0", "--last", "--count", "1", "--folder", there)
            event = json.loads(printed)
            assert (event["values"], event["last"]) == ({"symbol": "IBM", "price": 2}, "symbol")
