"""How long until what was missed is there, and what looking for it costs at rest.

    python tests/bench/bench_repair.py [cut-1 cut-20 split-5 crash join move rest] [--peers 8]

Peers in memory, with the settings and rounds of nodes, and seconds of a clock that jumps. Of each
accident the longest that an event was missing, from its publication, or the end of the accident, to
when the last reader had it.
"""

from __future__ import annotations

import logging
import random
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Final

import attrs
import trio
import trio.testing

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.common import SEED, read_options, write_rows
from gossamer.node.errors import NotAcknowledged
from support.memory_peers import MemoryPeers, memory_peers
from support.memory_transport import MemoryNetwork

PATIENCE_S: Final = 3600.0
REST_S: Final = 900.0
EVENTS: Final = 60


@attrs.define(eq=False)
class Crowd:
    """Peers that all read everything, and what has come to each."""

    peers: MemoryPeers
    keys: list[int]
    draws: random.Random
    published: dict[int, float] = attrs.field(factory=dict)
    got: dict[int, dict[int, float]] = attrs.field(factory=dict)

    async def read(
        self, key: int, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        got = self.got.setdefault(key, {})
        async with self.peers.peers[key].subscribe("price >= 0", name=str(key)) as events:
            task_status.started()
            async for event in events:
                got.setdefault(event.id, trio.current_time())

    async def publish(self, keys: list[int], pause_s: float) -> None:
        """Let these peers publish in turn."""
        for number in range(EVENTS):
            key = keys[number % len(keys)]
            with suppress(NotAcknowledged):
                began = trio.current_time()
                event = await self.peers.publish(key, self.draws.randrange(1000))
                self.published[event] = began
            await trio.sleep(pause_s)

    async def repaired(self, over: float, keys: list[int]) -> float:
        """For how long what was acknowledged was missing at these, once the accident was over."""
        with trio.move_on_after(PATIENCE_S):
            while any(self.published.keys() - self.got[key].keys() for key in keys):
                await trio.sleep(0.1)
            return max(
                self.got[key][event] - max(over, began)
                for key in keys
                for event, began in self.published.items()
            )
        return float("inf")


@asynccontextmanager
async def crowd_of(peers: int, seed: int) -> AsyncIterator[tuple[Crowd, trio.Nursery]]:
    """Peers that have formed an overlay and read."""
    keys = [1 + (2 * i << 58) for i in range(peers)]
    with tempfile.TemporaryDirectory() as folder:
        async with (
            memory_peers(Path(folder), *keys, network=MemoryNetwork(seed)) as made,
            trio.open_nursery() as nursery,
        ):
            await made.whole()
            crowd = Crowd(made, keys, random.Random(seed))
            for key in keys:
                await nursery.start(crowd.read, key)
            await made.rounds(40)
            yield crowd, nursery
            nursery.cancel_scope.cancel()


async def apart(peers: int, seed: int, share: float, minutes: float) -> float:
    """A share of the peers, or one, are cut off for a while; both sides publish."""
    async with crowd_of(peers, seed) as (crowd, _):
        keys, parted = crowd.draws.sample(crowd.keys, peers), max(1, int(share * peers))
        sides = keys[:parted], keys[parted:]
        crowd.peers.network.partition(*sides)
        async with trio.open_nursery() as nursery:
            for side in sides:
                nursery.start_soon(crowd.publish, side, minutes * 60 / EVENTS)
        crowd.peers.network.heal()
        return await crowd.repaired(trio.current_time(), crowd.keys)


async def crash(peers: int, seed: int) -> float:
    """A peer and its successor crash while events flow."""
    async with crowd_of(peers, seed) as (crowd, _):
        places = {peer.snapshot().position: key for key, peer in crowd.peers.peers.items()}
        around = [places[place] for place in sorted(places)]
        first = crowd.draws.randrange(peers)
        gone = {around[first], around[(first + 1) % peers]}
        left = [key for key in crowd.keys if key not in gone]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(crowd.publish, left, 0.1)
            await trio.sleep(3)
            began = trio.current_time()
            for key in gone:
                nursery.start_soon(crowd.peers.crash, key)
        return await crowd.repaired(began, left)


async def join(peers: int, seed: int) -> float:
    """A peer joins while events flow, and takes a part of the ring over."""
    async with crowd_of(peers, seed) as (crowd, readers):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(crowd.publish, crowd.keys, 0.1)
            await trio.sleep(3)
            began = trio.current_time()
            await crowd.peers.add(1 + (2 * crowd.draws.randrange(peers) + 1 << 58))
        took = await crowd.repaired(began, crowd.keys)
        readers.cancel_scope.cancel()
        return took


async def move(peers: int, seed: int) -> float:
    """A further peer wants something else, and moves on the ring for it, while events flow."""
    async with crowd_of(peers, seed) as (crowd, readers):
        mover = await crowd.peers.add(1 + (2 * crowd.draws.randrange(peers) + 1 << 58))
        async with mover.subscribe("price in [100, 120]"):
            await crowd.peers.rounds(40)
        before = mover.snapshot().position
        async with trio.open_nursery() as nursery, mover.subscribe("price in [700, 720]"):
            nursery.start_soon(crowd.publish, crowd.keys, 0.1)
            began = trio.current_time()
            while mover.snapshot().position == before:
                await trio.sleep(0.1)
        took = await crowd.repaired(began, crowd.keys)
        readers.cancel_scope.cancel()
        return took


async def rest(peers: int, seed: int) -> float:
    """Bytes a second and peer in a quarter of an hour at rest, as long after the last event."""
    async with crowd_of(peers, seed) as (crowd, _):
        await crowd.publish(crowd.keys, 0.1)
        sent = []
        for _ in range(2):
            await trio.sleep(REST_S)
            for peer in crowd.peers.peers.values():
                peer.gauges()  # counts control frames
            sent.append(sum(peer.counters.bytes_sent for peer in crowd.peers.peers.values()))
        return (sent[1] - sent[0]) / REST_S / peers


ACCIDENTS: Final[dict[str, Callable[[int, int], Awaitable[float]]]] = {
    "cut-1": partial(apart, share=0, minutes=1),
    "cut-20": partial(apart, share=0, minutes=20),
    "split-5": partial(apart, share=0.5, minutes=5),
    "crash": crash,
    "join": join,
    "move": move,
    "rest": rest,
}


def main() -> None:
    logging.disable(logging.CRITICAL)
    options = read_options(__doc__, ACCIDENTS, peers=8, runs=3, json=Path)
    rows: list[dict[str, Any]] = []
    for name in options.words:
        found = []
        for run in range(options.runs):
            clock = trio.testing.MockClock(autojump_threshold=0)
            found.append(trio.run(ACCIDENTS[name], options.peers, SEED + run, clock=clock))
        unit = "bytes a second and peer" if name == "rest" else "s"
        rows.append({"accident": name, "median": median(found), "all": found, "unit": unit})
        rounded = [round(one, 1) for one in found]
        print(f"{name:8s} {median(found):9.1f} {unit}  {rounded}", flush=True)
    write_rows(options.json, rows)


if __name__ == "__main__":
    main()
