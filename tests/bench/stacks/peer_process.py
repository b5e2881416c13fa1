"""A process that runs real peers and does what standard input asks for; see `peer_processes`."""

from __future__ import annotations

import gc
import os
import resource
import time
from collections import Counter
from pathlib import Path
from typing import Any

import attrs
import psutil
import trio

from bench.stacks.peer_requests import run_on_trio
from gossamer.node.config.broker import AUTO, Node
from gossamer.node.config.delivery import Delivery
from gossamer.node.config.node import Discovery, Identity, Listen, NodeConfig, Page, Protocol
from gossamer.node.errors import NotAcknowledged
from gossamer.node.peer.application import PeerInternals
from gossamer.node.peer.frames.core import SELF, Record
from gossamer.node.peer.peer import Peer, Subscription, open_peer
from gossamer.protocol.content.schema import Schema
from gossamer.protocol.kernel.records import BODY, KIND
from gossamer.protocol.peer.record_table.records import DELIVER, EVENT_MESSAGES, EVENT_VALUES
from gossamer.protocol.peer.state.routing_table import is_interested
from support.quotes import SCHEMA


@attrs.define
class Traffic:
    """What events cost on their way through a peer: copies, and the peers they come through."""

    received: int = 0  # copies of events that the peer took
    uninterested: int = 0  # of these, copies of events that nobody at the peer wants
    hops: Counter[int] = attrs.field(factory=Counter)  # of deliveries, by peers they came through
    _inside: PeerInternals | None = None

    def watch(self, peer: Peer) -> None:
        """Count from now on; that takes time, so not while time is measured."""
        self._inside = peer.observe(self._see)

    def _see(self, record: Record) -> None:
        if record[KIND] in EVENT_MESSAGES:
            assert self._inside is not None
            self.received += 1
            state, values = self._inside.state, BODY + EVENT_VALUES
            self.uninterested += not is_interested.interpreted(state, SELF, record, values)
        elif record[KIND] == DELIVER:
            self.hops[record[BODY + 1]] += 1


class Wakes(trio.abc.Instrument):
    """Counts how often the process has slept and was woken."""

    def __init__(self) -> None:
        self.count = 0

    def after_io_wait(self, timeout: float) -> None:
        self.count += timeout > 0


@attrs.define(eq=False)
class Host:
    nursery: trio.Nursery
    peers: list[Peer] = attrs.field(factory=list)
    receipts: list[tuple[int, int, float]] = attrs.field(factory=list)
    traffic: list[Traffic] = attrs.field(factory=list)
    wakes: Wakes | None = None
    _news: trio.Event = attrs.field(factory=trio.Event)

    async def open(
        self, folders: list[str], bootstrap: list[str], round_s: float, settings: dict[str, Any]
    ) -> list[str]:
        """Start a peer for each folder; return where they listen."""
        places: dict[int, Peer] = {}

        async def start(place: int, config: NodeConfig) -> None:
            places[place] = await self.nursery.start(run_peer, config)

        async with trio.open_nursery() as nursery:
            for place, folder in enumerate(folders):
                config = peer_config(Path(folder), bootstrap, round_s, settings)
                nursery.start_soon(start, place, config)
        self.peers = [places[place] for place in range(len(folders))]
        return [str(peer.addresses[0]) for peer in self.peers]

    async def ready(self) -> float:
        for peer in self.peers:
            await peer.ready()
        return time.time()

    async def close(self) -> None:
        """Nothing: the nursery ends the peers."""

    async def subscribe(self, wishes: list[tuple[int, int, str]]) -> None:
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
        goals = [(peer, peer.counters.rounds + rounds) for peer in self.peers]
        while any(peer.counters.rounds < goal for peer, goal in goals):
            await trio.sleep(0.02)

    async def become_whole(self) -> None:
        """Wait until no peer has anything to ask for: many that start at once miss each other."""
        while not all(peer.is_whole for peer in self.peers):
            await trio.sleep(0.02)

    async def take_receipts(self) -> list[tuple[int, int, float]]:
        taken, self.receipts = self.receipts, []
        return taken

    async def watch(self) -> None:
        """Count copies of events and hops from now on."""
        self.traffic = [Traffic() for _ in self.peers]
        for peer, traffic in zip(self.peers, self.traffic, strict=True):
            traffic.watch(peer)

    async def take_traffic(self) -> list[dict[str, Any]]:
        """What was counted of every peer; hops as [hops, deliveries] pairs."""
        return [
            {
                "received": one.received,
                "uninterested": one.uninterested,
                "hops": sorted(one.hops.items()),
            }
            for one in self.traffic
        ]

    async def usage(self) -> dict[str, Any]:
        gc.collect()
        memory = psutil.Process().memory_full_info()
        used = resource.getrusage(resource.RUSAGE_SELF)
        return {
            "cpu_s": used.ru_utime + used.ru_stime,
            "resident_bytes": memory.rss,
            "unshared_bytes": memory.uss,
            "peers": len(self.peers),
            "connections": sum(int(peer.gauges().connections) for peer in self.peers),
            "events_forwarded": sum(peer.counters.events_forwarded for peer in self.peers),
            "rounds": sum(peer.counters.rounds for peer in self.peers),
        }

    async def activity(self) -> dict[str, Any]:
        """Processor seconds, and what has happened since this was first asked for."""
        if self.wakes is None:
            self.wakes = Wakes()
            trio.lowlevel.add_instrument(self.wakes)
        for peer in self.peers:
            peer.gauges()  # by which bytes are counted
        told = [peer.counters for peer in self.peers]
        used = resource.getrusage(resource.RUSAGE_SELF)
        return {
            "cpu_s": used.ru_utime + used.ru_stime,
            "wakes": self.wakes.count,
            "bytes": sum(one.bytes_received + one.bytes_sent for one in told),
            "frames": sum(one.frames_received + one.frames_sent for one in told),
        }

    async def _take(self, number: int, stream: Subscription) -> None:
        async for event in stream:
            self.receipts.append((number, event.id, time.time()))
            self._news.set()


async def run_peer(config: NodeConfig, task_status: trio.TaskStatus[Peer]) -> None:
    async with open_peer(config) as peer:
        task_status.started(peer)
        await trio.sleep_forever()


def peer_config(
    folder: Path,
    bootstrap: list[str],
    round_s: float,
    settings: dict[str, Any],
    schema: Schema = SCHEMA,
    address: str = "127.0.0.1:0",
) -> NodeConfig:
    """What a peer is told that listens at ``address`` and looks for others at ``bootstrap``."""
    others = {name: value for name, value in settings.items() if name != "delivery"}
    return NodeConfig(
        node=Node(compiled=os.environ.get("GOSSAMER_TEST_COMPILED", AUTO)),
        preset="local",
        identity=Identity(folder=folder),
        listen=Listen(addresses=(address,)),
        discovery=Discovery(multicast=False, peers=tuple(bootstrap)),
        protocol=Protocol(round_s=round_s, settings=others),
        delivery=Delivery(**settings.get("delivery", {})),
        page=Page(enabled=False),
        schema=schema,
    )


if __name__ == "__main__":
    run_on_trio(lambda nursery, _: Host(nursery))
