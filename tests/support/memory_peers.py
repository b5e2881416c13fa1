"""Whole peers on a network in memory, under a clock that jumps."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import attrs
import trio

from gossamer.node.config.delivery import Delivery
from gossamer.node.config.node import Protocol
from gossamer.node.discovery.sources import static_peers
from gossamer.node.errors import AddressGone
from gossamer.node.peer.assembly import run_peer
from gossamer.node.peer.dependencies import Dependencies
from gossamer.node.peer.peer import Peer
from gossamer.node.store.writer import open_writer
from gossamer.node.transport.base.base import Address, LocalPeer, Transport, Verify
from gossamer.node.transport.base.limits import Limits
from gossamer.protocol.content.schema import Schema
from gossamer.protocol.peer.settings import config
from support.memory_transport import MemoryNetwork
from support.node_peers import SCHEMA, linked, rounds_pass
from support.waiting import at_once, eventually

ROUND_S = 0.5
# As many successors as nodes have, whatever the preset says: the promise is made of them.
REPLICAS = Delivery().successors
# As of the preset `lan`, with smaller tables: rules that search them run interpreted.
# Installation as in a node; load shifting as in the presets, so that peers move all the time.
SETTINGS: dict[str, Any] = {
    **{
        name: Protocol.NODE_SETTINGS[name]
        for name in (
            *("refresh_rounds", "entry_lifetime", "entry_links", "replay_backoff"),
            *("ring_offers", "acknowledged_hops"),
        )
    },
    "attributes": 2,
    "replicas": REPLICAS,
    "subscriptions": 16,
    "event_memory": 512,
    "pending_publications": 32,
    "replay_rounds": 60,
    "held_events": 4096,
    "retention_rounds": 14_400,
}
EPOCH_S = 1_700_000_000.0
# Of the protocol of peers, unless said otherwise.
PRESET = "kindred"


@attrs.define
class MemoryPeers:
    """Peers of one overlay; each is told of the first's address, or of whatever is said."""

    network: MemoryNetwork
    folder: Path
    nursery: trio.Nursery
    limits: Limits = attrs.field(factory=Limits)
    preset: str = attrs.field(factory=lambda: PRESET)
    settings: dict[str, Any] = attrs.field(factory=dict)  # changes to those of the preset
    schema: Schema = SCHEMA
    round_s: float = ROUND_S
    acknowledge_s: float = 10.0
    lost: AddressGone | None = None  # what their addresses are, if they are
    wrong_s: dict[int, float] = attrs.field(factory=dict)  # how far clocks are ahead
    # Keys of the peers whose addresses a peer is told.
    bootstrap: Callable[[int], Iterable[int]] = lambda key: [1] if key != 1 else []
    peers: dict[int, Peer] = attrs.field(factory=dict)  # those that run
    _stops: dict[int, trio.Event] = attrs.field(factory=dict)
    _gone: dict[int, trio.Event] = attrs.field(factory=dict)

    async def add(self, key: int) -> Peer:
        peer: Peer = await self.nursery.start(self._run, key)
        return peer

    async def _run(self, key: int, task_status: trio.TaskStatus[Peer]) -> None:
        self.network.isolated.discard(key)
        self._stops[key], self._gone[key] = trio.Event(), trio.Event()
        async with AsyncExitStack() as stack:
            state = open_writer(self.folder / f"{key}.db", aside=at_once)
            writer = await stack.enter_async_context(state)
            peer = await stack.enter_async_context(run_peer(self._dependencies(key, writer)))
            await stack.enter_async_context(self._beside(peer))
            self.peers[key] = peer
            task_status.started(peer)
            await self._stops[key].wait()
            del self.peers[key]
        self._gone[key].set()

    @asynccontextmanager
    async def _beside(self, _peer: Peer) -> AsyncIterator[None]:
        """What runs beside a peer: nothing, unless a subclass says so."""
        yield

    async def stop(self, key: int) -> None:
        self._stops[key].set()
        await self._gone[key].wait()

    async def crash(self, key: int) -> None:
        """Let a peer end without a word; what is under way to or from it is lost."""
        self.network.isolate(key)
        await self.stop(key)

    async def whole(self, patience_s: float = 120.0) -> None:
        """Wait until every peer knows the next one on the ring."""
        await eventually(lambda: not ring_errors(self.peers), patience_s)

    async def acquainted(self) -> None:
        """Wait until everybody is linked to everybody."""
        peers = self.peers.values()
        await eventually(lambda: all(len(linked(peer)) == len(peers) - 1 for peer in peers))

    async def publish(self, key: int, price: float) -> int:
        """Publish an event of this price at a peer; its id, once it is acknowledged."""
        return await self.peers[key].publish({"price": price, "symbol": "A"})

    async def rounds(self, rounds: int = 4) -> None:
        await rounds_pass(*self.peers.values(), rounds=rounds)

    def _advertise(self, listening: Sequence[Address]) -> Sequence[Address]:
        if self.lost is not None:
            raise self.lost
        return listening

    def _settings(self) -> dict[str, Any]:
        return SETTINGS | {"attributes": len(self.schema)} | self.settings

    def _dependencies(self, key: int, writer: Any) -> Dependencies:
        def make(me: LocalPeer, verify: Verify) -> Transport:
            return self.network.transport(me, self.limits, verify)

        return Dependencies(
            key=key,
            name=f"peer {key}",
            cluster="memory",
            version="test",
            schema=self.schema,
            settings=getattr(config, self.preset)(16, **self._settings()),
            round_s=self.round_s,
            acknowledge_s=self.acknowledge_s,
            limits=self.limits,
            make_transport=make,
            listen=[address_of(key)],
            advertise=self._advertise,
            writer=writer,
            sources=lambda _: [static_peers(map(address_of, self.bootstrap(key)))],
            compiled="never",  # otherwise in `switching_ways`
            draws=random.Random(key),
            now=lambda: EPOCH_S + self.wrong_s.get(key, 0.0) + trio.current_time(),
            steady=trio.current_time,
        )


CrowdT = TypeVar("CrowdT", bound=MemoryPeers)


def address_of(key: int) -> Address:
    return Address("memory", 1000 + (key >> 58))


@asynccontextmanager
async def memory_peers(
    folder: Path, *keys: int, network: MemoryNetwork | None = None, **changes: Any
) -> AsyncIterator[MemoryPeers]:
    """Running peers of one overlay, stopped at the end."""
    async with trio.open_nursery() as nursery:
        crowd = MemoryPeers(network or MemoryNetwork(), folder, nursery, **changes)
        for key in keys:
            await crowd.add(key)
        for peer in crowd.peers.values():
            await peer.ready()
        yield crowd
        for key in list(crowd.peers):
            await crowd.stop(key)


@asynccontextmanager
async def whole(opening: AbstractAsyncContextManager[CrowdT]) -> AsyncIterator[CrowdT]:
    """Peers once each of them knows the next one on the ring."""
    async with opening as crowd:
        await crowd.whole()
        yield crowd


@asynccontextmanager
async def acquainted(opening: AbstractAsyncContextManager[CrowdT]) -> AsyncIterator[CrowdT]:
    """Peers once everybody is linked to everybody."""
    async with opening as crowd:
        await crowd.acquainted()
        yield crowd


def ring_errors(peers: dict[int, Peer]) -> set[int]:
    """Keys of the peers that do not know the next one on the ring."""
    places = sorted((peer.snapshot().position, key) for key, peer in peers.items())
    following = {key: places[(place + 1) % len(places)][1] for place, (_, key) in enumerate(places)}
    return {
        key
        for key, peer in peers.items()
        if len(peers) > 1
        and following[key] not in {one.key for one in peer.snapshot().peers if "ring" in one.links}
    }
