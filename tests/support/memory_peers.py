"""Whole peers on loopback, or in memory under a clock that jumps, also as members of a cluster."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

import attrs
import trio

from gossamer.node.config.delivery import Delivery
from gossamer.node.config.node import Discovery, Identity, Listen, NodeConfig, Page, Protocol
from gossamer.node.discovery.sources import static_peers
from gossamer.node.errors import InterfaceError
from gossamer.node.peer.assembly import run_peer
from gossamer.node.peer.dependencies import Dependencies
from gossamer.node.peer.peer import Event, Peer, Subscription
from gossamer.node.security.cluster import Membership
from gossamer.node.security.event_keys import EventKey
from gossamer.node.store.writer import StoreWriter, open_writer
from gossamer.node.transport.base import Address, LocalPeer, Transport, Verify
from gossamer.node.transport.limits import Limits
from gossamer.protocol.content.schema import FloatAttribute, Schema, StringAttribute
from gossamer.protocol.peer.settings import presets
from support.clusters import MadeCluster, event_key
from support.memory_transport import MemoryNetwork
from support.waiting import PATIENCE_S, at_once, eventually

SCHEMA = Schema([FloatAttribute("price", 0, 1000), StringAttribute("symbol")])
# Long enough for three peers of a process on a busy machine.
LOOPBACK_ROUND_S = 0.1
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


NodeT = TypeVar("NodeT")


@attrs.define
class MemoryNodes(Generic[NodeT]):
    """Nodes on a network in memory, by number; they come and go while others stay."""

    network: MemoryNetwork
    folder: Path
    nursery: trio.Nursery
    nodes: dict[int, NodeT] = attrs.field(init=False, factory=dict)  # those that run
    _stops: dict[int, trio.Event] = attrs.field(init=False, factory=dict)
    _gone: dict[int, trio.Event] = attrs.field(init=False, factory=dict)

    @classmethod
    @asynccontextmanager
    async def opening(
        cls,
        folder: Path,
        names: Iterable[Any],
        network: MemoryNetwork | None = None,
        **changes: Any,
    ) -> AsyncIterator[Self]:
        """Nodes once all are there; stopped at the end."""
        async with trio.open_nursery() as nursery:
            made = cls(network or MemoryNetwork(), folder, nursery, **changes)
            for name in names:
                await made.admit(name)
            await made.ready()
            yield made
            for key in list(made.nodes):
                await made.stop(key)

    async def admit(self, name: Any) -> int:
        await self.add(name)
        return int(name)

    async def ready(self) -> None:
        """Wait until the nodes that run can be used."""

    def opened(self, key: int) -> AbstractAsyncContextManager[NodeT]:
        """A node that is no part of the crowd."""
        raise NotImplementedError

    async def add(self, key: int) -> NodeT:
        node: NodeT = await self.nursery.start(self._run, key)
        return node

    async def _run(self, key: int, task_status: trio.TaskStatus[NodeT]) -> None:
        self.network.isolated.discard(key)
        self._stops[key], self._gone[key] = trio.Event(), trio.Event()
        async with self.opened(key) as node:
            self.nodes[key] = node
            task_status.started(node)
            await self._stops[key].wait()
            del self.nodes[key]
        self._gone[key].set()

    async def stop(self, key: int) -> None:
        self._stops[key].set()
        await self._gone[key].wait()

    async def crash(self, key: int) -> None:
        """Let a node end without a word; what is under way to or from it is lost."""
        self.network.isolate(key)
        await self.stop(key)


@attrs.define
class MemoryPeers(MemoryNodes[Peer]):
    """Peers of one overlay; each is told of the first's address, or of whatever is said."""

    limits: Limits = attrs.field(factory=Limits)
    preset: str = attrs.field(factory=lambda: PRESET)
    settings: dict[str, Any] = attrs.field(factory=dict)  # changes to those of the preset
    schema: Schema = SCHEMA
    round_s: float = ROUND_S
    acknowledge_s: float = 10.0
    lost: InterfaceError | None = None  # what their addresses are, if they are
    wrong_s: dict[int, float] = attrs.field(factory=dict)  # how far clocks are ahead
    # Keys of the peers whose addresses a peer is told.
    bootstrap: Callable[[int], Iterable[int]] = lambda key: [1] if key != 1 else []

    @property
    def peers(self) -> dict[int, Peer]:
        return self.nodes

    async def ready(self) -> None:
        for peer in self.peers.values():
            await peer.ready()

    @asynccontextmanager
    async def opened(self, key: int) -> AsyncIterator[Peer]:
        state = open_writer(self.folder / f"{key}.db", aside=at_once)
        async with (
            state as writer,
            run_peer(self._dependencies(key, writer)) as peer,
            self._beside(peer),
        ):
            yield peer

    @asynccontextmanager
    async def _beside(self, _peer: Peer) -> AsyncIterator[None]:
        """What runs beside a peer: nothing, unless a subclass says so."""
        yield

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
            settings=getattr(presets, self.preset)(16, **self._settings()),
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
MembersT = TypeVar("MembersT", bound="MemberPeers")


def address_of(key: int) -> Address:
    return Address("memory", 1000 + (key >> 58))


def memory_peers(
    folder: Path, *keys: int, network: MemoryNetwork | None = None, **changes: Any
) -> AbstractAsyncContextManager[MemoryPeers]:
    return MemoryPeers.opening(folder, keys, network, **changes)


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


# Members of a cluster, with signed descriptors.


@attrs.define(kw_only=True)
class MemberPeers(MemoryPeers):
    """Peers of one cluster; each is told of the address of the one that made it."""

    cluster: MadeCluster
    members: dict[int, Membership] = attrs.field(factory=dict)
    offset_s: float = 0.0  # how wrong all clocks are, beside those of some
    change: Callable[[int, Dependencies], Dependencies] = lambda _, dependencies: dependencies
    # By which members sign their events, once they have published.
    event_keys: dict[int, EventKey] = attrs.field(factory=dict)
    every: int = 0  # each so many'th member is bad; none, where it is 0
    # What is different about a bad one beside that.
    betray: Callable[[Membership, Dependencies], Dependencies] = lambda _, dependencies: (
        dependencies
    )
    bad: set[int] = attrs.field(factory=set)

    @property
    def honest(self) -> list[int]:
        return [key for key in self.peers if key not in self.bad]

    def now(self, key: int = -1) -> float:
        wrong_s = self.offset_s + self.wrong_s.get(key, 0.0)
        return self.cluster.now + trio.current_time() + wrong_s

    async def admit(self, name: str) -> int:
        member = self.cluster.admit(name) if self.members else self.cluster.first
        key = member.identity.key
        self.members[key] = member
        self.network.certificates[key] = member.certificate.der
        await self.add(key)
        return key

    def address_of(self, key: int) -> Address:
        return Address("memory", 1000 + list(self.members).index(key))

    def _dependencies(self, key: int, writer: StoreWriter) -> Dependencies:
        member = self.members[key]
        first = next(iter(self.members))
        bootstrap = [] if key == first else [self.address_of(first)]
        dependencies = attrs.evolve(
            super()._dependencies(key, writer),
            name=member.certificate.name,
            cluster=member.authority.cluster,
            member=member,
            listen=[self.address_of(key)],
            sources=lambda _: [static_peers(bootstrap)],
            now=lambda: self.now(key),
            present=self._present,
            event_key=self.event_keys.get(key),
            make_event_key=partial(self._make_event_key, key),
        )
        dependencies = self.change(key, dependencies)
        if self.every and len(self.members) % self.every == 0:
            self.bad.add(key)
        return self.betray(member, dependencies) if key in self.bad else dependencies

    async def _make_event_key(self, key: int) -> EventKey:
        """Another key for each member of a cluster; to make them anew each time takes a while."""
        await trio.lowlevel.checkpoint()
        self.event_keys[key] = event_key(len(self.event_keys))
        return self.event_keys[key]

    def _present(self, _: Transport, member: Membership) -> None:
        self.members[member.identity.key] = member
        self.network.certificates[member.identity.key] = member.certificate.der


def member_peers(
    cluster: MadeCluster, count: int, **changes: Any
) -> AbstractAsyncContextManager[MemberPeers]:
    """Running members of ``cluster``, the one that made it first; stopped at the end."""
    return running_members(MemberPeers, cluster, count, **changes)


def running_members(
    kind: type[MembersT],
    cluster: MadeCluster,
    count: int,
    network: MemoryNetwork | None = None,
    **changes: Any,
) -> AbstractAsyncContextManager[MembersT]:
    names = [f"member {number}" for number in range(count)]
    return kind.opening(cluster.folder.parent, names, network, cluster=cluster, **changes)


# On loopback.


# Does something with the cluster's own state file while a peer that uses it runs: in a thread, as
# who waits for the file's lock in the peer's own thread would keep the peer from giving it back.
aside = trio.to_thread.run_sync


def config_of(
    folder: Path, bootstrap: Sequence[Address] = (), *, plain: bool = False, **protocol: Any
) -> NodeConfig:
    """A peer on loopback with short rounds that tries ``bootstrap``; TLS unless ``plain``."""
    return NodeConfig(
        preset="local",
        identity=Identity(folder=folder),
        listen=Listen(addresses=("127.0.0.1:0",), plain_text=plain),
        discovery=Discovery(multicast=False, peers=tuple(map(str, bootstrap))),
        protocol=Protocol(peers_expected=8, round_s=LOOPBACK_ROUND_S, settings=protocol),
        page=Page(enabled=False),
        schema=SCHEMA,
    )


def of_member(member: Membership, bootstrap: Sequence[Address] = (), **protocol: Any) -> NodeConfig:
    return config_of(member.folder.path, bootstrap, **protocol)


def elsewhere(config: NodeConfig, *bootstrap: Address) -> NodeConfig:
    discovery = attrs.evolve(config.discovery, peers=tuple(map(str, bootstrap)))
    return attrs.evolve(config, discovery=discovery)


async def rounds_pass(*peers: Peer, rounds: int = 4) -> None:
    goals = [(peer, peer.counters.rounds + rounds) for peer in peers]
    await eventually(lambda: all(peer.counters.rounds >= goal for peer, goal in goals))


async def take(events: Subscription, count: int, patience_s: float = PATIENCE_S) -> list[Event]:
    with trio.fail_after(patience_s):
        return [await events.__anext__() for _ in range(count)]


async def take_ids(events: Subscription, count: int) -> set[int]:
    return {event.id for event in await take(events, count)}


async def knock(peer: Peer) -> trio.SocketStream:
    return await trio.open_tcp_stream(*peer.addresses[0])


def linked(peer: Peer) -> set[int]:
    """Keys of the peers that ``peer`` has links to."""
    return {other.key for other in peer.snapshot().peers if other.links}
