"""Puts a broker's node together from what it is made with, and keeps it running."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final

import attrs
import trio

from gossamer.client.errors import unwrapped
from gossamer.node.broker.composites import Composites
from gossamer.node.broker.engine import MICROSECONDS, Engine, Input
from gossamer.node.broker.forked_work import worked_out
from gossamer.node.broker.host import ROWS, BrokerDependencies, ForComposites, Match
from gossamer.node.broker.journal import QUEUE_ID, StoredJournal, recall
from gossamer.node.broker.links import Dialler, Neighbours
from gossamer.node.broker.members import Members
from gossamer.node.broker.routes import Passage, Routes, RouteService
from gossamer.node.broker.wire import OVERLAY_FRAMES
from gossamer.node.errors import NodeError, RefusedByPeer, WorkApartError
from gossamer.node.local.history import kept_id
from gossamer.node.monitoring.logs import log
from gossamer.node.monitoring.members import Member, MemberTable
from gossamer.node.monitoring.metrics import Counters
from gossamer.node.peer.frames.address_book import AddressBook
from gossamer.node.peer.membership.admission import (
    DoubledIdentities,
    MembershipStatus,
    admit,
    count_end,
    count_refusal,
    note_connected,
    note_disconnected,
)
from gossamer.node.peer.membership.documents import MemberContext
from gossamer.node.peer.membership.renewal import RenewalService
from gossamer.node.peer.membership.revocation import RevocationService
from gossamer.node.peer.membership.services import show_certificate
from gossamer.node.security.certificates import PeerCertificate
from gossamer.node.security.descriptors import DescriptorCache
from gossamer.node.security.identity import key_text
from gossamer.node.store import Store
from gossamer.node.store.broker import QueuedDelivery
from gossamer.node.transport.base import (
    Address,
    Admitted,
    Farewell,
    LocalPeer,
    PeerIdentity,
)
from gossamer.node.transport.links import ConnectionPool, PoolEvents
from gossamer.node.transport.schema import Frame
from gossamer.protocol.brokers.core.arrival_queue import no_message
from gossamer.protocol.brokers.core.effects import (
    Adopted,
    Compute,
    Deliver,
    Dismissed,
    Refuse,
    Withdrawn,
)
from gossamer.protocol.brokers.core.messages import Detach, Id, Publish, client

# Neighbours that are known at a time, for the list of those revoked.
BOOK_CAPACITY: Final = 4096
# Within this a node says its goodbyes, so that it stops in two seconds.
GOODBYE_S: Final = 1.5
# A broker that lost its state begins a new life, which has to be later than all earlier ones: it is
# numbered by the seconds since 2020.
FIRST_INCARNATION: Final = 1_577_836_800


class BrokerNode:
    """A broker that runs; made by `run_broker`.

    Attributes:
        key, name, cluster, version, family: as of its given.
        addresses: where others reach it.
        queue_id: id of the file in which clients' deliveries are kept.
        engine: the broker and what waits for it.
        members, composites: its clients, and their composite subscriptions.
        neighbours: its neighbours.
        pool: its connections.
        standing: whether it belongs to its cluster and reaches others.
        counters: what every node counts.
    """

    def __init__(self, given: BrokerDependencies, nursery: trio.Nursery) -> None:
        self.key = given.key
        self.name = given.name
        self.cluster = given.cluster
        self.cluster_name = given.cluster_name
        self.version = given.version
        self.addresses: tuple[Address, ...] = ()
        self.queue_id = ""
        self.engine: Engine
        self.counters = Counters()
        self.started_at = trio.current_time()
        self.family = given.family
        self.members = Members(
            given.writer, self._engine, given.retention_s, keeps=given.family.keeps_deliveries
        )
        self.composites = Composites(self.members, given.writer, self._engine, trio.current_time)
        self.neighbours: Neighbours = given.family.neighbours(nursery, self._engine) or Neighbours(
            nursery, self._engine, given.family
        )
        self._given = given
        self._renewals: RenewalService | None = None
        self._nursery = nursery
        self._descriptors = (
            None
            if given.member is None
            else DescriptorCache(given.member.authority, given.member.revoked)
        )
        self._book = AddressBook(given.key, BOOK_CAPACITY, trio.current_time)
        self.transport = given.make_transport(
            self._introduction(), partial(admit, self._descriptors, self.counters, given.now)
        )
        self.doubles = DoubledIdentities()
        self.transport.on_refusal = self._on_refusal
        self.transport.on_refused_by = self._on_refused_by
        self.standing = MembershipStatus(given.key, reaches_nobody=self._reaches_nobody)
        self.standing.ask("identity", self.doubles.complaint)
        self.standing.ask("disk", given.writer.complaint)
        self.cluster_members = self._make_members()
        self.pool = self.neighbours.pool = ConnectionPool(
            self.transport,
            given.limits,
            given.family.frames,
            self._book.addresses_of,
            draws=given.draws,
        )
        self._routes = Routes(given.family.carried)
        self._route_service = RouteService(
            self._routes,
            given.key,
            given.name,
            self.pool.try_send,
            nursery,
            cyclic=given.family.cyclic,
        )
        self._make_services()

    def _make_members(self) -> MemberTable:
        certificate = self.certificate
        return MemberTable(
            Member(
                self._given.key,
                self._given.name,
                version=self._given.version,
                certificate_expires_s=None if certificate is None else certificate.not_after,
            ),
            self.counters,
            self._given.now,
            revoked=tuple if self._descriptors is None else self._descriptors.revoked_keys,
        )

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
        told = self.family.tables(self.engine.broker, self.label)
        return {**told, "composites": self.composites.rows()[:ROWS]}

    async def trace(self, id_: Id) -> list[Passage]:
        """The route of a publication; raises `RequestError`."""
        return await self._route_service.trace(id_)

    @property
    def certificate(self) -> PeerCertificate | None:
        """By which it belongs to its cluster; None without certificates."""
        if self._renewals is not None:
            return self._renewals.member.certificate
        return None if self._given.member is None else self._given.member.certificate

    # What the engine wants done

    def queued(self, effect: Deliver | Match) -> QueuedDelivery | None:
        """What is to be stored for the client of a delivery."""
        return self.members.queued(effect, self._given.now())

    @property
    def backlog(self) -> int:
        """Frames in the longest queue to a neighbour."""
        return self.neighbours.backlog

    def carry_out(self, told: Input, effects: list[Any]) -> None:
        """Do what follows from a message."""
        self.neighbours.send(effects)
        for effect in effects:
            if isinstance(effect, Deliver | Match):
                self.counters.events_delivered += 1
                self.members.delivered(effect, self._given.now())
            elif isinstance(effect, ForComposites):
                self.members.matched(effect)
            elif isinstance(effect, Adopted):
                self.members.adopt(effect)
            elif isinstance(effect, Dismissed):
                self.members.dismiss(effect)
                self._nursery.start_soon(self.members.withdraw, effect.client, None)
            elif isinstance(effect, Withdrawn):
                self._nursery.start_soon(self.members.withdraw, effect.client, effect.ids)
            elif isinstance(effect, Compute):
                self._nursery.start_soon(self._work_out, effect)
            elif isinstance(effect, Refuse):
                self.neighbours.refused(effect)
        outcome, published = told.outcome, None
        if isinstance(told.message, Publish) and outcome is not None and outcome.error is None:
            self.counters.events_published += 1
            published = outcome.id
        self._routes.note(told, effects, published)

    async def _work_out(self, effect: Compute) -> None:
        self.engine.submit(None, await worked_out(effect, self._given.apart))

    # What the transport asks and tells

    def _introduction(self) -> LocalPeer:
        certificate = self.certificate
        return LocalPeer(
            key=self.key,
            cluster=self.cluster,
            software=f"gossamer {self.version}"[:64],
            fingerprint=None if certificate is None else certificate.fingerprint,
            schema=self.family.registered.schema,
        )

    def _on_refusal(self, error: NodeError | None, remote: Address) -> None:
        count_refusal(self.counters, error, remote)
        self.doubles.on_refusal(error, remote)

    def _on_refused_by(self, error: RefusedByPeer) -> None:
        if self._revocations is not None:
            self._revocations.hear(error.proof)

    def _reaches_nobody(self) -> bool:
        """Whether there are to be neighbours, and none is connected."""
        wanted = bool(self._given.neighbours) or any(
            not one.refused for one in self.neighbours.known.values()
        )
        return wanted and len(self.pool) == 0

    def _make_services(self) -> None:
        given = self._given
        self._revocations: RevocationService | None = None
        if given.member is None or self._descriptors is None:
            return
        context = MemberContext(
            given.member,
            given.writer,
            self._descriptors,
            self._book,
            self.pool,
            self.counters,
            self.standing,
            self.cluster_members,
            given.draws,
            given.now,
        )
        # Of a peer that is gone the connection ends, which is news enough.
        self._revocations = RevocationService(context, lambda _: None)
        install = partial(show_certificate, self.transport, given.present)
        self._renewals = RenewalService(context, self._revocations, install, given.name)

    def _on_admitted(self, admitted: Admitted) -> None:
        self.doubles.on_admitted(admitted)
        self.neighbours.on_admitted(admitted)

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
        if connection is not None:
            note_connected(self.cluster_members, connection.admitted, self._descriptors)

    def _on_down(self, identity: PeerIdentity, farewell: Farewell) -> None:
        count_end(self.counters, identity, farewell)
        self.doubles.on_down(identity, farewell)
        note_disconnected(self.cluster_members, identity, farewell)
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
            case "route wanted" | "route":
                self._route_service.receive(identity.key, frame)
            case "renewal wanted" | "renewed" if self._renewals is not None:
                self._renewals.receive(identity.key, frame)
            case kind if kind == "broker" or kind not in OVERLAY_FRAMES:
                await self.neighbours.on_frame(identity, frame)
            case _ if self._revocations is not None:
                self._revocations.receive(identity.key, frame)

    # Running

    async def start(self) -> None:
        """Recall the broker, listen, and start everything."""
        given, writer = self._given, self._given.writer
        await writer.run(Store.bind, given.key, given.now())
        self.queue_id = await writer.run(kept_id, QUEUE_ID)
        self._journal = StoredJournal(writer, given.family, given.apart)
        now = int(given.now() * MICROSECONDS)
        recalled = await recall(
            writer,
            key_text(given.key),
            given.family,
            now=now,
            incarnation=max(0, int(given.now()) - FIRST_INCARNATION),
            new_index=given.new_index,
            large_index=given.large_index,
        )
        # Before the first message: what is stored can only be told again after a dump.
        await self._journal.dump(recalled.broker, recalled.now)
        self.engine = Engine(
            recalled.broker,
            self._journal,
            self,
            now=recalled.now,
            congested_queue=given.family.congested_queue,
            room=given.queue,
            passing=given.family.passing,
            left=given.family.left,
            patience_s=given.full_wait_s,
            goes_first=given.family.publishes if given.publications_first else no_message,
            matched=lambda effects: self.composites.matched(effects, given.now()),
        )
        self.engine.submit(None, given.family.restarted())
        deliveries = await writer.run(lambda store: store.broker.waiting())
        for name in self.members.restore(given.family.clients(recalled.broker), deliveries):
            self.engine.submit(client(name), Detach())
        await self.composites.restore()
        self._nursery.start_soon(self.engine.run)
        self._nursery.start_soon(self.members.run)
        self._nursery.start_soon(self.neighbours.run)
        await self._connect()

    async def _connect(self) -> None:
        given = self._given
        events = PoolEvents(
            on_frame=self._on_frame,
            on_up=self._on_up,
            on_down=self._on_down,
            on_admitted=self._on_admitted,
            on_busy=partial(count_refusal, self.counters),
        )
        listening = await self._nursery.start(self.pool.run, given.listen, events)
        self.addresses = tuple(Address(*address) for address in given.advertise(listening))
        self.transport.me = attrs.evolve(self.transport.me, addresses=self.addresses)
        self.cluster_members.own.addresses = tuple(map(str, self.addresses))
        self._nursery.start_soon(self.cluster_members.run)
        self._nursery.start_soon(self.standing.tell)
        if self._revocations is not None:
            self._nursery.start_soon(self._revocations.run)
        if self._renewals is not None:
            self._nursery.start_soon(self._renewals.run)
        for address in given.neighbours:
            dialler = Dialler(address, self.pool, self.neighbours, given.draws)
            self._nursery.start_soon(dialler.run)

    async def close(self) -> None:
        """Say goodbye, and store the broker, so that it is soon there again."""
        await self.pool.close()
        if not await self.engine.close():
            return
        try:
            await self._journal.dump(self.engine.broker, self.engine.now)
        except WorkApartError as error:
            log.warning("the broker is not dumped, its log is told again", cause=str(error))


@asynccontextmanager
async def run_broker(given: BrokerDependencies) -> AsyncIterator[BrokerNode]:
    """A running broker; leaving, cancelled or not, stops it within two seconds.

    Raises:
        ListenFailed: it cannot listen where it should.
        StoreError: its state file is another node's, or cannot be written.
        ConfigurationError: its tables were made with settings that do not go with these.
    """
    with unwrapped():
        async with trio.open_nursery() as nursery:
            node = BrokerNode(given, nursery)
            await node.start()
            try:
                yield node
            finally:
                with trio.CancelScope(shield=True, deadline=trio.current_time() + GOODBYE_S):
                    await node.close()
                nursery.cancel_scope.cancel()
