"""Puts a broker's node together from its parts and keeps it running."""

from __future__ import annotations

import random
import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final

import attrs
import trio

from gossamer.node.broker.families.kinds import Kind
from gossamer.node.broker.families.scot import ScotKind
from gossamer.node.broker.links.dialling import Dialler
from gossamer.node.broker.links.links import Neighbours
from gossamer.node.broker.links.routes import Passage, Routes, RouteService
from gossamer.node.broker.links.scot import ScotNeighbours
from gossamer.node.broker.links.wire import OVERLAY_FRAMES, SCOT_FRAMES
from gossamer.node.broker.machine.engine import MICROSECONDS, Delivery, Engine, Input
from gossamer.node.broker.machine.journal import StoredJournal, recall
from gossamer.node.broker.members import Members
from gossamer.node.config.broker import GRAPH_BROKERS
from gossamer.node.errors import RefusedByPeer
from gossamer.node.errors.exception_groups import unwrapped
from gossamer.node.monitoring.metrics import Counters
from gossamer.node.peer.frames.address_book import AddressBook
from gossamer.node.peer.membership.admission import admit
from gossamer.node.peer.membership.disconnect_reasons import count_end, count_refusal
from gossamer.node.peer.membership.renewal import RenewalService
from gossamer.node.peer.membership.revocation import RevocationService
from gossamer.node.peer.membership.services import Present, make_services, show_certificate
from gossamer.node.peer.membership.status import Standing
from gossamer.node.security.certificates import PeerCertificate
from gossamer.node.security.cluster import Membership
from gossamer.node.security.descriptors import DescriptorCache
from gossamer.node.security.identity import key_text
from gossamer.node.store import Store
from gossamer.node.store.broker import Letter
from gossamer.node.store.writer import StoreWriter
from gossamer.node.transport.base.base import (
    Address,
    Farewell,
    Hello,
    LocalPeer,
    PeerIdentity,
    Transport,
    Verify,
)
from gossamer.node.transport.base.limits import Limits
from gossamer.node.transport.base.schema import Frame
from gossamer.node.transport.links import ConnectionPool, PoolEvents
from gossamer.protocol.brokers.core.index import NewIndex
from gossamer.protocol.brokers.core.messages import Detach, Publish
from gossamer.protocol.brokers.scot.memory import effects as scot
from gossamer.protocol.brokers.tree import Id, client

# Neighbours that are known at a time, for the list of those revoked.
BOOK_CAPACITY: Final = 4096
# Within this a node says its goodbyes, so that it stops in two seconds.
GOODBYE_S: Final = 1.5
# A broker that lost its state begins a new life, which has to be later than all earlier ones: it is
# numbered by the seconds since 2020.
FIRST_INCARNATION: Final = 1_577_836_800
_MAIL: Final = "broker mail"


@attrs.frozen(kw_only=True)
class BrokerParts:
    """What a broker's node is made of.

    Attributes:
        key: its permanent key, by which the overlay knows it.
        name, cluster, version: what it is called, where it belongs, what it runs.
        kind: of the broker, with its settings.
        new_index: makes an empty index of filters.
        large_index: the same for a broker that starts with many subscriptions.
        neighbours: where to dial.
        queue: messages that may wait for the broker.
        retention_s: how long a client with a name may be away.
        limits: of the transport.
        make_transport: the transport that says this of the node, and admits by this.
        listen: where to listen.
        advertise: where others reach it, from where it really listens.
        member: its membership; None without certificates.
        present: has the transport show a renewed certificate on the next connections.
        writer: of its state file.
        draws: what is left to chance: how long to wait before dialling again.
        now: Unix seconds.
    """

    key: int
    name: str
    cluster: str
    version: str
    kind: Kind
    new_index: NewIndex
    large_index: NewIndex
    neighbours: Sequence[Address]
    queue: int = 1024
    retention_s: float = 7200.0
    limits: Limits
    make_transport: Callable[[LocalPeer, Verify], Transport]
    listen: Sequence[Address]
    advertise: Callable[[Sequence[Address]], Sequence[Address]]
    member: Membership | None = None
    present: Present = lambda _transport, _member: None
    writer: StoreWriter
    draws: random.Random
    now: Callable[[], float]


class BrokerNode:
    """A broker that runs; made by `run_broker`.

    Attributes:
        key, name, cluster, version, kind: as of its parts.
        addresses: where others reach it.
        mail: id of the file in which clients' letters are kept.
        engine: the broker and what waits for it.
        members: its clients.
        neighbours: its neighbours.
        pool: its connections.
        standing: whether it belongs to its cluster and reaches others.
        counters: what every node counts.
    """

    def __init__(self, parts: BrokerParts, nursery: trio.Nursery) -> None:
        self.key = parts.key
        self.name = parts.name
        self.cluster = parts.cluster
        self.version = parts.version
        self.addresses: tuple[Address, ...] = ()
        self.mail = ""
        self.engine: Engine
        self.counters = Counters()
        self.started_at = trio.current_time()
        self.kind = parts.kind
        self.members = Members(
            parts.writer, self._engine, parts.retention_s, keeps=parts.kind.keeps
        )
        self.neighbours = _neighbours_of(parts.kind, nursery, self._engine)
        self._parts = parts
        self._renewals: RenewalService | None = None
        self._nursery = nursery
        self._descriptors = (
            None
            if parts.member is None
            else DescriptorCache(parts.member.authority, parts.member.revoked)
        )
        self._book = AddressBook(parts.key, BOOK_CAPACITY, tuple, trio.current_time)
        self.transport = parts.make_transport(self._introduction(), self._verify)
        self.transport.on_refusal = partial(count_refusal, self.counters)
        self.transport.on_refused_by = self._on_refused_by
        self.standing = Standing(parts.key, reaches_nobody=self._reaches_nobody)
        self.pool = self.neighbours.pool = ConnectionPool(
            self.transport,
            parts.limits,
            SCOT_FRAMES if isinstance(parts.kind, ScotKind) else OVERLAY_FRAMES,
            PoolEvents(
                on_frame=self._on_frame,
                on_up=self._on_up,
                on_down=self._on_down,
                on_loss=self.neighbours.on_loss,
                on_busy=partial(count_refusal, self.counters),
            ),
            self._book.addresses_of,
            draws=parts.draws,
        )
        self._routes = Routes()
        self._route_service = RouteService(
            self._routes,
            parts.key,
            parts.name,
            self.pool.try_send,
            nursery,
            cyclic=parts.kind.cyclic,
        )
        self._make_services()

    def _engine(self) -> Engine:
        return self.engine

    # What it tells

    def label(self, broker: str) -> str:
        """What people call a broker, where that is known here."""
        if broker == key_text(self.key):
            return f"{self.name} ({broker})" if self.name else broker
        return self.neighbours.label(broker)

    def tables(self) -> dict[str, Any]:
        """The broker's tables as plain values."""
        return self.kind.tables(self.engine.broker, self.label)

    async def trace(self, id_: Id) -> list[Passage]:
        """The route of a publication; raises `RouteUnknownError`."""
        return await self._route_service.trace(id_)

    @property
    def certificate(self) -> PeerCertificate | None:
        """By which it belongs to its cluster; None without certificates."""
        if self._renewals is not None:
            return self._renewals.member.certificate
        return None if self._parts.member is None else self._parts.member.certificate

    # What the engine wants done

    def letter(self, effect: Delivery) -> Letter | None:
        """What is to be stored for the client of a delivery."""
        return self.members.letter(effect, self._parts.now())

    @property
    def backlog(self) -> int:
        """Frames in the longest queue to a neighbour."""
        return self.neighbours.backlog

    def carry_out(self, told: Input, effects: list[Any]) -> None:
        """Do what follows from a message."""
        self.neighbours.send(effects)
        for effect in effects:
            if isinstance(effect, Delivery):
                self.counters.events_delivered += 1
                self.members.delivered(effect, self._parts.now())
            elif isinstance(effect, scot.Adopted):
                self.members.adopt(effect)
            elif isinstance(effect, scot.Dismissed):
                self.members.dismiss(effect)
                self._nursery.start_soon(self.members.withdraw, effect.client, None)
            elif isinstance(effect, scot.Withdrawn):
                self._nursery.start_soon(self.members.withdraw, effect.client, effect.ids)
            elif (task := self.kind.task(effect)) is not None:
                self._nursery.start_soon(self._work_out, task)
            else:
                self.neighbours.refused(effect)
        outcome, published = told.outcome, None
        if isinstance(told.message, Publish) and outcome is not None and outcome.error is None:
            self.counters.events_published += 1
            published = outcome.id
        self._routes.note(told, effects, published)

    async def _work_out(self, task: Callable[[], Any]) -> None:
        found = await trio.to_thread.run_sync(task, abandon_on_cancel=True)
        self.engine.tell(None, found)

    # What the transport asks and tells

    def _introduction(self) -> LocalPeer:
        certificate = self.certificate
        return LocalPeer(
            key=self.key,
            cluster=self.cluster,
            software=f"gossamer {self.version}"[:64],
            fingerprint=None if certificate is None else certificate.fingerprint,
            schema=self.kind.schema,
        )

    def _verify(self, certificate: bytes | None, hello: Hello) -> PeerIdentity:
        if certificate is None or self._descriptors is None:
            return PeerIdentity(hello.key)
        assert self._revocations is not None
        revoked, now = self._revocations.revoked, self._parts.now()
        return admit(certificate, hello, self._descriptors, revoked, self.counters, now)

    def _on_refused_by(self, error: RefusedByPeer) -> None:
        if self._revocations is not None:
            self._revocations.hear(error.proof)

    def _reaches_nobody(self) -> bool:
        """Whether there are to be neighbours, and none is connected."""
        wanted = bool(self._parts.neighbours) or any(
            not one.refused for one in self.neighbours.known.values()
        )
        return wanted and len(self.pool) == 0

    def _make_services(self) -> None:
        parts = self._parts
        self._revocations: RevocationService | None = None
        if parts.member is None or self._descriptors is None:
            return
        self._revocations, self._renewals = make_services(
            parts.member,
            parts.writer,
            self._descriptors,
            self._book,
            self.pool,
            self.counters,
            self.standing,
            draws=parts.draws,
            now=parts.now,
            report_failure=lambda _: None,  # its connection ends, which is news enough
            install=lambda member: show_certificate(self.transport, parts.present, member),
        )

    def _on_up(self, identity: PeerIdentity) -> None:
        self._book.learn(identity.key, (), identity.name)
        self.neighbours.on_up(identity)
        if self._revocations is not None:
            self._revocations.greet(identity.key)
        if self._renewals is not None:
            self._renewals.greet(identity.key)
        connection = self.pool.get(identity.key)
        if connection is None or not connection.admitted.dialled:
            self.counters.accepted += 1

    def _on_down(self, identity: PeerIdentity, farewell: Farewell) -> None:
        count_end(self.counters, farewell.cause)
        if self._renewals is not None:
            self._renewals.forget(identity.key)
        if self._revocations is not None:
            self._revocations.forget(identity.key)
            if not farewell.by_us:
                self._revocations.hear(farewell.proof)
        self.neighbours.on_down(identity, farewell)

    async def _on_frame(self, identity: PeerIdentity, frame: Frame) -> None:
        self.counters.frames_received += 1
        match frame["type"]:
            case "broker" | "place":
                await self.neighbours.on_frame(identity, frame)
            case "route wanted" | "route":
                self._route_service.receive(identity.key, frame)
            case "renewal wanted" | "renewed" if self._renewals is not None:
                self._renewals.receive(identity.key, frame)
            case _ if self._revocations is not None:
                self._revocations.receive(identity.key, frame)

    # Running

    async def start(self) -> None:
        """Recall the broker, listen, and start everything."""
        parts, writer = self._parts, self._parts.writer
        await writer.run(Store.bind, parts.key, parts.now())
        self.mail = await writer.run(_mail_id)
        self._journal = StoredJournal(writer, parts.kind)
        now = int(parts.now() * MICROSECONDS)
        recalled = await recall(
            writer,
            key_text(parts.key),
            parts.kind,
            now=now,
            incarnation=max(0, int(parts.now()) - FIRST_INCARNATION),
            new_index=parts.new_index,
            large_index=parts.large_index,
        )
        # Before the first message: what is stored can only be told again after a dump.
        await self._journal.dump(recalled.broker, recalled.now)
        self.engine = Engine(
            recalled.broker,
            self._journal,
            self,
            now=recalled.now,
            congested_queue=parts.kind.congested_queue,
            room=parts.queue,
        )
        self.engine.tell(None, parts.kind.restarted())
        letters = await writer.run(lambda store: store.broker.waiting())
        for name in self.members.restore(parts.kind.clients(recalled.broker), letters):
            self.engine.tell(client(name), Detach())
        self._nursery.start_soon(self.engine.run)
        self._nursery.start_soon(self.members.run)
        if isinstance(self.neighbours, ScotNeighbours):
            self._nursery.start_soon(self.neighbours.report)
            self._nursery.start_soon(self.neighbours.wait)
        await self._connect()

    async def _connect(self) -> None:
        parts = self._parts
        listening = await self._nursery.start(self.pool.run, parts.listen)
        self.addresses = tuple(Address(*address) for address in parts.advertise(listening))
        self.transport.me = attrs.evolve(self.transport.me, addresses=self.addresses)
        if self._revocations is not None:
            self._nursery.start_soon(self._revocations.run)
        if self._renewals is not None:
            self._nursery.start_soon(self._renewals.run)
        for address in parts.neighbours:
            dialler = Dialler(address, self.pool, self.neighbours, parts.draws)
            self._nursery.start_soon(dialler.run)

    async def close(self) -> None:
        """Say goodbye, and store the broker, so that it is soon there again."""
        await self.pool.close()
        if await self.engine.close():
            await self._journal.dump(self.engine.broker, self.engine.now)


def _neighbours_of(kind: Kind, nursery: trio.Nursery, engine: Callable[[], Engine]) -> Neighbours:
    if isinstance(kind, ScotKind):
        return ScotNeighbours(nursery, engine, kind)
    if kind.schema == GRAPH_BROKERS:
        from gossamer.node.broker.links.graph import GraphNeighbours

        return GraphNeighbours(nursery, engine)
    return Neighbours(nursery, engine)


def _mail_id(store: Store) -> str:
    kept = store.get_meta(_MAIL)
    if kept is None:
        kept = secrets.token_hex(8).encode()
        store.set_meta(_MAIL, kept)
    return kept.decode()


@asynccontextmanager
async def run_broker(parts: BrokerParts) -> AsyncIterator[BrokerNode]:
    """A running broker; leaving, cancelled or not, stops it within two seconds.

    Raises:
        ListenFailed: it cannot listen where it should.
        StoreError: its state file is another node's, or cannot be written.
        ConfigurationError: its tables were made with settings that do not go with these.
    """
    with unwrapped():
        async with trio.open_nursery() as nursery:
            node = BrokerNode(parts, nursery)
            await node.start()
            try:
                yield node
            finally:
                with trio.CancelScope(shield=True, deadline=trio.current_time() + GOODBYE_S):
                    await node.close()
                nursery.cancel_scope.cancel()
