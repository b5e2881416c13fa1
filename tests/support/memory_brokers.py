"""Nodes that are brokers on a network in memory, under a clock that jumps, and their clients."""

from __future__ import annotations

import random
import time
from collections.abc import AsyncIterator, Collection, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Self

import attrs
import trio

from gossamer.client.errors import unwrapped
from gossamer.node.broker.assembly import BrokerNode, run_broker
from gossamer.node.broker.deliveries import event_of
from gossamer.node.broker.families.graph import GraphHost
from gossamer.node.broker.families.scot import ScotHost
from gossamer.node.broker.families.tree import TreeHost
from gossamer.node.broker.forked_work import in_this_process
from gossamer.node.broker.host import BrokerDependencies, FamilyHost, id_text
from gossamer.node.broker.members import Member
from gossamer.node.security.cluster import Membership
from gossamer.node.store.writer import open_writer
from gossamer.node.transport.base import Address
from gossamer.node.transport.frames import FrameReader
from gossamer.node.transport.limits import Limits
from gossamer.protocol.brokers.core.broker import SharedIndex
from gossamer.protocol.brokers.core.messages import Publish
from gossamer.protocol.brokers.graph.settings import GraphSettings
from gossamer.protocol.brokers.scot import BrokerLabel, Factor, Scot, ScotSettings
from gossamer.protocol.brokers.tree import TreeBroker, TreeSettings
from gossamer.protocol.content import filters
from gossamer.protocol.content.filters.composite import parse_composite
from support.memory_peers import EPOCH_S, MemoryNodes
from support.memory_transport import MemoryNetwork
from support.waiting import at_once, eventually

PATIENCE_S = 600.0
# Links of brokers stay, as of `gossamer.node.broker.node`.
LIMITS = Limits(unused_seconds=86_400.0, stall_seconds=60.0)
# Statistics, timers and frames as in a node, but acknowledgements soon, so that tests settle soon.
SETTINGS = TreeSettings(
    covering="active", retained_publications=1000, acknowledge_every=4, acknowledge_interval=1000
)
SCOT = Scot(Factor.path("abc"), Factor.complete(3))
TAKING_OVER = ScotSettings(around_failures=True, take_over=True)
RING = ((1, 2), (2, 3), (3, 4), (4, 5), (5, 1), (2, 5))
# All documents are sampled, and any saving is worth other trees, so that there are many.
PLANNING = GraphSettings(probability=1.0, interval=5_000_000, threshold=0.0)


def tree_broker(node: BrokerNode) -> TreeBroker:
    broker = node.engine.broker
    assert isinstance(broker, TreeBroker)
    return broker


@attrs.define
class MemoryBrokers(MemoryNodes[BrokerNode]):
    """Brokers of one overlay, a tree; their numbers are their keys where they are no members."""

    edges: list[tuple[int, int]]  # which of them dials which
    settings: Any = SETTINGS
    publications_first: bool = False
    # Memberships of a real cluster, by number.
    members: dict[int, Membership] = attrs.field(factory=dict)
    refused: int = 0  # how many links do not come up
    settles: bool = True  # whether all links are up when they are first used

    @classmethod
    def running(
        cls,
        folder: Path,
        edges: Iterable[tuple[int, int]],
        network: MemoryNetwork | None = None,
        **changes: Any,
    ) -> AbstractAsyncContextManager[Self]:
        edges = list(edges)
        numbers = sorted({end for edge in edges for end in edge})
        return cls.opening(folder, numbers, network, edges=edges, **changes)

    async def start(self, number: int) -> BrokerNode:
        return await self.add(number)

    async def ready(self) -> None:
        if self.settles:
            await self.settle()

    async def crash(self, number: int) -> None:
        async def nothing(*_: object) -> None:
            return

        self.nodes[number]._journal.dump = nothing  # type: ignore[method-assign, assignment]
        await super().crash(number)

    async def client(
        self, number: int, name: str | None, *, offers: str = "", wants: str = ""
    ) -> MemoryClient:
        """A client of a broker, once all know what it offers and wants, as `offer` and `all`."""
        client = await MemoryClient.attach(self.nodes[number], name)
        if offers:
            await client.advertise("offer", offers)
        if wants:
            await client.subscribe("all", wants)
        if offers or wants:
            await self.settle()
        return client

    async def subscribers(self, **wanted: str) -> dict[int, MemoryClient]:
        """A client with a name at each broker, whose number filters may have as ``{number}``."""
        found = {}
        for number, node in self.nodes.items():
            found[number] = await MemoryClient.attach(node, f"client {number}")
            for label, text in wanted.items():
                await found[number].subscribe(label, text.format(number=number))
        await self.settle()
        return found

    def subscriptions(self) -> dict[int, int]:
        return {one: tree_broker(node).sizes().subscriptions for one, node in self.nodes.items()}

    async def settle(self) -> None:
        await eventually(self._is_settled, PATIENCE_S)

    async def settle_link(self, one: int, other: int) -> None:
        ends = [self.nodes[number].engine for number in (one, other)]

        def is_settled() -> bool:
            quiet = not any(end.waiting or end.busy for end in ends)
            return quiet and self._agree(*(end.broker.name for end in ends))

        await eventually(is_settled, PATIENCE_S)

    def _is_settled(self) -> bool:
        ups = sum(
            one.connection is not None and one.connection.is_open
            for node in self.nodes.values()
            for one in node.neighbours.known.values()
        )
        running = {frozenset(edge) for edge in self.edges if set(edge) <= set(self.nodes)}
        wanted = 2 * (len(running) - self.refused)
        return ups >= wanted and self._is_quiet() and self._numbers_agree()

    def _is_quiet(self) -> bool:
        return not any(
            node.engine.waiting
            or node.engine.busy
            or node.backlog
            or any(connection.queued_bytes for connection in node.pool)
            for node in self.nodes.values()
        )

    def _numbers_agree(self) -> bool:
        names = {node.engine.broker.name for node in self.nodes.values()}
        return all(
            self._agree(node.engine.broker.name, link.name)
            for node in self.nodes.values()
            for link in tree_broker(node).links()
            if link.up and link.name in names
        )

    def _agree(self, one: str, other: str) -> bool:
        brokers = {node.engine.broker.name: tree_broker(node) for node in self.nodes.values()}
        there = {link.name: link for link in brokers[one].links()}.get(other)
        back = {link.name: link for link in brokers[other].links()}.get(one)
        return (
            there is not None
            and back is not None
            and (there.out_session, there.out_number) == (back.in_session, back.in_number)
            and (back.out_session, back.out_number) == (there.in_session, there.in_number)
        )

    @asynccontextmanager
    async def opened(self, number: int) -> AsyncIterator[BrokerNode]:
        self.network.isolated.discard(number)
        state = open_writer(self.folder / f"{number}.db", aside=at_once)
        with unwrapped():
            async with state as writer, run_broker(self._parts(number, writer)) as node:
                yield node

    def family(self, number: int) -> FamilyHost:
        del number
        return TreeHost(self.settings)

    def _parts(self, number: int, writer: Any) -> BrokerDependencies:
        member = self.members.get(number)
        if member is not None:
            self.network.certificates[member.identity.key] = member.certificate.der
        return BrokerDependencies(
            key=number if member is None else member.identity.key,
            name=f"broker {number}" if member is None else member.certificate.name,
            cluster="memory" if member is None else member.authority.cluster,
            member=member,
            version="test",
            family=self.family(number),
            new_index=SharedIndex,
            large_index=SharedIndex,
            apart=in_this_process,
            neighbours=[address_of(other) for one, other in self.edges if one == number],
            publications_first=self.publications_first,
            limits=LIMITS,
            make_transport=lambda me, verify: self.network.transport(me, LIMITS, verify),
            listen=[address_of(number)],
            advertise=lambda listening: listening,
            writer=writer,
            draws=random.Random(number),
            now=lambda: (time.time() if member else EPOCH_S) + trio.current_time(),
        )


@attrs.define
class MemoryScot(MemoryBrokers):
    """Brokers of a SCOT, numbered cluster by cluster from 1 on.

    Some may be mistaken about their places, or about the overlay, which they name in ``words``.
    """

    settings: ScotSettings = TAKING_OVER
    scot: Scot = SCOT
    places: dict[int, BrokerLabel] = attrs.field(factory=dict)
    words: dict[int, str] = attrs.field(factory=dict)

    def label(self, number: int) -> BrokerLabel:
        return self.places.get(number, self.scot.brokers[number - 1])

    def number(self, region: str, cluster: int) -> int:
        return self.scot.brokers.index(BrokerLabel(region, cluster)) + 1

    def family(self, number: int) -> FamilyHost:
        position = self.scot.position(self.label(number))
        return ScotHost(position, self.settings, self.words.get(number, "the overlay"))

    def at(self, region: str, cluster: int) -> BrokerNode:
        return self.nodes[self.number(region, cluster)]

    def _is_settled(self) -> bool:
        return self._is_quiet() and all(map(self._has_its_links, self.nodes))

    def _has_its_links(self, number: int) -> bool:
        broker = machine(self.nodes[number])
        beside = {end for edge in self.edges if number in edge for end in edge} - {number}
        running = {f"{one:016x}" for one in beside if one in self.nodes}
        copies = broker.take_over_memory is not None and broker.take_over_memory.copies
        return not copies and not running & broker.down and running <= set(broker.neighbours())


@attrs.define
class MemoryGraph(MemoryBrokers):
    settings: GraphSettings = PLANNING

    def family(self, number: int) -> FamilyHost:
        del number
        return GraphHost(self.settings)

    def coordinator(self) -> int:
        (name,) = {machine(node).term.broker for node in self.nodes.values()}
        return int(name, 16)

    def _is_settled(self) -> bool:
        """All that run use trees that join just them, and nothing is under way."""
        running = {f"{number:016x}" for number in self.nodes}
        brokers = [machine(node) for node in self.nodes.values()]
        return (
            self._is_quiet()
            and all(self._uses_its_trees(broker, running) for broker in brokers)
            and len({broker.present.plan.version for broker in brokers}) == 1
        )

    @staticmethod
    def _uses_its_trees(broker: Any, running: set[str]) -> bool:
        return (
            not broker.sizes().in_flight
            and broker.present is not None
            and broker.reachable == running
            and broker.term.broker == min(running)
            and running <= set(broker.present.plan.brokers)
            and broker.phase != "planning"
            and {one for one in broker.interests() if one.broker in running}
            <= set(broker.present.groups)
        )


def machine(node: BrokerNode) -> Any:
    return node.engine.broker


def address_of(number: int) -> Address:
    return Address("memory", 2000 + number)


memory_brokers = MemoryBrokers.running


def memory_scot(
    folder: Path, network: MemoryNetwork | None = None, scot: Scot = SCOT, **changes: Any
) -> AbstractAsyncContextManager[MemoryScot]:
    numbers = {label: number for number, label in enumerate(scot.brokers, 1)}
    edges = [(numbers[one], numbers[other]) for one, other in scot.links()]
    return MemoryScot.running(folder, edges, network, scot=scot, **changes)


def memory_graph(folder: Path) -> AbstractAsyncContextManager[MemoryGraph]:
    return MemoryGraph.running(folder, RING)


async def all_got(clients: Mapping[Any, MemoryClient], wanted: Collection[str]) -> None:
    for client in clients.values():
        await client.until_got(wanted)


@attrs.define(eq=False)
class MemoryClient:
    """A client of a broker, without a socket."""

    node: BrokerNode
    member: Member
    # Publications, by id, with the labels; those of a client with a name are read from the disk by
    # `fetch`.
    got: dict[str, tuple[dict[str, Any], list[str]]] = attrs.field(factory=dict)
    twice: list[str] = attrs.field(factory=list)  # ids that came again
    # Of composite subscriptions, in order: the label, and the ids of the publications.
    matches: list[tuple[str, list[str]]] = attrs.field(factory=list)

    @classmethod
    async def attach(cls, node: BrokerNode, name: str | None) -> MemoryClient:
        made = cls.__new__(cls)
        made.__init__(node, await node.members.attach(name, made.offer))  # type: ignore[misc]
        return made

    async def return_to(self, node: BrokerNode) -> None:
        self.node, self.member = node, await node.members.attach(self.member.name, self.offer)

    async def subscribe(self, label: str, text: str) -> None:
        await self.node.members.subscribe(self.member, label, filters.parse(text))

    async def subscribe_composite(
        self, label: str, text: str, within_s: float, most: int = 100
    ) -> None:
        await self.node.composites.subscribe(
            self.member, label, text, parse_composite(text), within_s, most
        )

    async def unsubscribe(self, label: str) -> None:
        if not await self.node.composites.unsubscribe(self.member, label):
            await self.node.members.unsubscribe(self.member, label)

    async def advertise(self, label: str, text: str) -> None:
        await self.node.members.advertise(self.member, label, filters.parse(text))

    async def publish(self, values: Mapping[str, object]) -> str:
        return id_text((await self.node.members.ask(self.member, Publish(values))).id)

    def offer(self, delivery: bytes) -> None:
        self._note(event_of(delivery, 0))

    async def fetch(self) -> None:
        deliveries = await self.node.members.read(self.member, 0, 1 << 20)
        for delivery in deliveries:
            self._note(event_of(delivery.body, delivery.position))
        if deliveries:
            await self.node.members.acknowledge(self.member, deliveries[-1].position)

    async def until_got(self, wanted: Collection[str]) -> None:
        with trio.fail_after(PATIENCE_S):
            while not set(wanted) <= set(self.got):
                await self.fetch()
                await trio.sleep(0.1)
        await self.fetch()
        assert not self.twice

    def _note(self, data: bytes) -> None:
        reader = FrameReader(Limits())
        reader.feed(data)
        frame = reader.next_frame()
        assert frame is not None
        if frame["id"] in self.got:
            self.twice.append(frame["id"])
        if frame["type"] == "match":
            (label,) = frame["subscriptions"]
            self.matches.append((label, [one["id"] for one in frame["events"]]))
            return
        self.got[frame["id"]] = frame["values"], sorted(frame["subscriptions"])
