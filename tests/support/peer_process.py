"""A process that runs real peers and does what its standard input asks for; see `peer_processes`.

A request is a line of JSON, [name, arguments]; so is the answer, [true, result] or [false, why].
"""

from __future__ import annotations

import gc
import json
import os
import resource
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import attrs
import trio

from gossamer.node.config.broker import AUTO, Node
from gossamer.node.config.delivery import Delivery
from gossamer.node.config.node import (
    Discovery,
    Identity,
    Listen,
    NodeConfig,
    Page,
    Protocol,
)
from gossamer.node.errors import NotAcknowledged
from gossamer.node.peer.peer import Peer, Subscription, open_peer
from gossamer.protocol.content.schema import Schema
from support.peer_traffic import Traffic
from support.quotes import SCHEMA


@attrs.define(eq=False)
class Host:
    """The peers of this process, and the applications that use them.

    Attributes:
        receipts: [subscription, event, Unix seconds] of what was taken from the streams.
        traffic: of every peer, since `watch` was asked for.
    """

    nursery: trio.Nursery
    peers: list[Peer] = attrs.field(factory=list)
    receipts: list[tuple[int, int, float]] = attrs.field(factory=list)
    traffic: list[Traffic] = attrs.field(factory=list)
    _news: trio.Event = attrs.field(factory=trio.Event)

    async def open(
        self, folders: list[str], bootstrap: list[str], round_s: float, settings: dict[str, Any]
    ) -> list[str]:
        """Start a peer for each folder; return where they listen."""
        places: list[Peer | None] = [None] * len(folders)
        async with trio.open_nursery() as nursery:
            for place, folder in enumerate(folders):
                config = peer_config(Path(folder), bootstrap, round_s, settings)
                nursery.start_soon(self._start, config, places, place)
        self.peers = [peer for peer in places if peer is not None]
        return [str(peer.addresses[0]) for peer in self.peers]

    async def ready(self) -> float:
        """Wait until all peers are; return when the last one was."""
        for peer in self.peers:
            await peer.ready()
        return time.time()

    async def subscribe(self, wishes: list[tuple[int, int, str]]) -> None:
        """Take the events of each [number, place of the peer, expression]."""
        for number, place, expression in wishes:
            stream = self.peers[place].subscribe(expression, room=1 << 20)
            self.nursery.start_soon(self._take, number, stream)

    async def publish(
        self, quotes: list[tuple[int, float, dict[str, Any]]]
    ) -> list[tuple[int, float, float]]:
        """Publish each [place of the peer, due at, values]; return when all were answered.

        A time in the past is due at once. Returns for each its event, when it was published, and
        after how many seconds it was acknowledged, -1 where nobody did.
        """
        published: list[tuple[int, float, float]] = [(-1, 0.0, -1.0)] * len(quotes)

        async def publish_one(number: int, place: int, values: dict[str, Any]) -> None:
            at = time.time()
            try:
                event = await self.peers[place].publish(values)
                published[number] = (event, at, time.time() - at)
            except NotAcknowledged as error:
                published[number] = (error.event, at, -1.0)

        async with trio.open_nursery() as nursery:
            for number, (place, due_at, values) in enumerate(quotes):
                await trio.sleep(max(0.0, due_at - time.time()))
                nursery.start_soon(publish_one, number, place, values)
        return published

    async def wait_for(self, count: int, patience_s: float) -> int:
        """Wait until so many events were taken, or none for so long; return how many were."""
        with trio.move_on_after(patience_s) as scope:
            while len(self.receipts) < count:
                self._news = trio.Event()
                await self._news.wait()
                scope.deadline = trio.current_time() + patience_s
        return len(self.receipts)

    async def rest(self, rounds: int) -> None:
        """Wait until every peer has begun so many more rounds."""
        goals = [(peer, peer.counters.rounds + rounds) for peer in self.peers]
        while any(peer.counters.rounds < goal for peer, goal in goals):
            await trio.sleep(0.02)

    async def become_whole(self) -> None:
        """Wait until no peer has anything to ask for: many that start at once miss each other."""
        while not all(peer.is_whole for peer in self.peers):
            await trio.sleep(0.02)

    async def take_receipts(self) -> list[tuple[int, int, float]]:
        """What was taken since the last time."""
        taken, self.receipts = self.receipts, []
        return taken

    async def watch(self) -> None:
        """Count copies of events and hops from now on."""
        self.traffic = [Traffic() for _ in self.peers]
        for peer, traffic in zip(self.peers, self.traffic, strict=True):
            traffic.watch(peer)

    async def take_traffic(self) -> list[dict[str, Any]]:
        """What was counted of every peer."""
        return [traffic.counts() for traffic in self.traffic]

    async def usage(self) -> dict[str, Any]:
        """What the process has used so far, and what its peers have counted."""
        gc.collect()
        used = resource.getrusage(resource.RUSAGE_SELF)
        counted = ("frames_sent", "bytes_sent", "events_forwarded", "events_delivered", "rounds")
        return {
            "cpu_s": used.ru_utime + used.ru_stime,
            **_memory(),
            "peers": len(self.peers),
            "connections": sum(int(peer.gauges().connections) for peer in self.peers),
            "rounds_late": sum(peer.counters.rounds_late for peer in self.peers),
            "dropped": _sum_of([dict(peer.counters.dropped) for peer in self.peers]),
            **{name: sum(getattr(peer.counters, name) for peer in self.peers) for name in counted},
        }

    async def _start(self, config: NodeConfig, places: list[Peer | None], place: int) -> None:
        places[place] = await self.nursery.start(run_peer, config)

    async def _take(self, number: int, stream: Subscription) -> None:
        async for event in stream:
            self.receipts.append((number, event.id, time.time()))
            self._news.set()


async def run_peer(config: NodeConfig, task_status: trio.TaskStatus[Peer]) -> None:
    """Run a peer until it is cancelled; it is the task's status."""
    async with open_peer(config) as peer:
        task_status.started(peer)
        await trio.sleep_forever()


def _compiled() -> str:
    """How peers take frames: as a benchmark asks for."""
    return os.environ.get("GOSSAMER_TEST_COMPILED", AUTO)


def peer_config(
    folder: Path,
    bootstrap: list[str],
    round_s: float,
    settings: dict[str, Any],
    schema: Schema = SCHEMA,
    address: str = "127.0.0.1:0",
) -> NodeConfig:
    """What a peer is told that listens at ``address`` and looks for others at ``bootstrap``."""
    delivery = Delivery(**settings.pop("delivery", {}))
    return NodeConfig(
        node=Node(compiled=_compiled()),
        preset="local",
        identity=Identity(folder=folder),
        listen=Listen(addresses=(address,)),
        discovery=Discovery(multicast=False, peers=tuple(bootstrap)),
        protocol=Protocol(round_s=round_s, settings=settings),
        delivery=delivery,
        page=Page(enabled=False),
        schema=schema,
    )


def _memory() -> dict[str, int]:
    """What this process has in memory, and what of that no other process has too."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()[1:]
    kilobytes = {name: int(rest.split()[0]) for name, rest in (one.split(":") for one in lines)}
    unshared = kilobytes["Private_Clean"] + kilobytes["Private_Dirty"]
    return {"resident_bytes": 1024 * kilobytes["Rss"], "unshared_bytes": 1024 * unshared}


def _sum_of(counts: list[dict[str, int]]) -> dict[str, int]:
    names = {name for count in counts for name in count}
    total = {name: sum(count.get(name, 0) for count in counts) for name in sorted(names)}
    return {name: number for name, number in total.items() if number}


async def _requests() -> AsyncIterator[tuple[str, dict[str, Any]]]:
    """What is asked for on standard input, until that ends."""
    held = b""
    async with trio.lowlevel.FdStream(os.dup(sys.stdin.fileno())) as stream:
        async for data in stream:
            *lines, held = (held + data).split(b"\n")
            for line in lines:
                yield json.loads(line)


async def _serve() -> None:
    async with trio.open_nursery() as nursery:
        host = Host(nursery)
        async for name, arguments in _requests():
            try:
                answer = [True, await getattr(host, name)(**arguments)]
            except Exception as error:
                answer = [False, f"{type(error).__name__}: {error}"]
            print(json.dumps(answer), flush=True)
        nursery.cancel_scope.cancel()


if __name__ == "__main__":
    gc.freeze()  # as a node does
    trio.run(_serve)
