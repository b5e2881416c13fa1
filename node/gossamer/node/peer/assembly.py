"""Puts a peer together from its dependencies and keeps it running."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Final

import attrs
import trio

from gossamer.compiled.object_code import LinkedCode
from gossamer.node.discovery.sources import REMEMBERED, STATIC, DiscoveredPeer, Source, discover
from gossamer.node.errors import PeerUnreachable, RefusedByPeer
from gossamer.node.errors.exception_groups import unwrapped
from gossamer.node.monitoring.logs import log
from gossamer.node.monitoring.members import Member, MemberTable
from gossamer.node.monitoring.metrics import Counters
from gossamer.node.peer.application import Inside, Peer, Views
from gossamer.node.peer.batches.exchange import Exchange, LinkedRules
from gossamer.node.peer.batches.machine_code import EVENTS, STEPS
from gossamer.node.peer.batches.steps import linked_step
from gossamer.node.peer.batches.tiers import Tiers
from gossamer.node.peer.batches.way import EventBatches
from gossamer.node.peer.bootstrap import Bootstrap
from gossamer.node.peer.catch_up import CatchUp
from gossamer.node.peer.cluster_info import schema_fingerprint
from gossamer.node.peer.dependencies import Dependencies
from gossamer.node.peer.frames.address_book import AddressBook
from gossamer.node.peer.frames.certificate_requests import CertificateService
from gossamer.node.peer.frames.core import Core
from gossamer.node.peer.frames.descriptor_authentication import (
    PlainAuthentication,
    SignedAuthentication,
)
from gossamer.node.peer.frames.event_authentication import (
    SignedEvents,
    make_event_authentication,
)
from gossamer.node.peer.frames.events import EventMemory, ValueMemory
from gossamer.node.peer.frames.forgeries import Forgeries
from gossamer.node.peer.frames.wire import Wire, frame_types
from gossamer.node.peer.gossip_timer import SteadyTimer
from gossamer.node.peer.load.overload import Overloads
from gossamer.node.peer.load.sender import PoolSender
from gossamer.node.peer.membership.admission import admit
from gossamer.node.peer.membership.cluster_reports import ClusterReports
from gossamer.node.peer.membership.disconnect_reasons import count_end, count_refusal
from gossamer.node.peer.membership.met import note_connected, note_disconnected
from gossamer.node.peer.membership.renewal import RenewalService
from gossamer.node.peer.membership.revocation import RevocationService
from gossamer.node.peer.membership.schema_spread import SchemaService
from gossamer.node.peer.membership.services import make_services, show_certificate
from gossamer.node.peer.membership.status import Standing
from gossamer.node.peer.own_report import report_of
from gossamer.node.peer.persistence import Keeper
from gossamer.node.peer.runtime import Delivery, Runtime
from gossamer.node.peer.unicast.messages import Messages
from gossamer.node.peer.views import PeerViews
from gossamer.node.security.certificates import PeerCertificate
from gossamer.node.security.cluster import Membership
from gossamer.node.security.descriptors import DescriptorCache
from gossamer.node.transport.base.base import (
    Address,
    Admitted,
    Cause,
    Farewell,
    Hello,
    LocalPeer,
    PeerIdentity,
)
from gossamer.node.transport.links import ConnectionPool, PoolEvents
from gossamer.node.transport.queues.fair_queue import Backlog
from gossamer.protocol.kernel.errors import CapacityError, ExpressionError, RemoteProtocolError
from gossamer.protocol.peer.codec import Codec
from gossamer.protocol.peer.space.hashing import uniform_hashes
from gossamer.protocol.peer.state.state import profile_words

__all__ = ["Dependencies", "run_peer"]

# Peers whose handles a peer keeps; one of a cluster of thousands meets a few hundred.
ADDRESS_CAPACITY: Final = 4096
# Values of events that may have to be passed on, in bytes: a thousand large ones.
EVENT_MEMORY_BYTES: Final = 16 << 20
# The same of events held for peers that are away.
HELD_BYTES: Final = 64 << 20
# Steps of the load that a peer tells, in the threshold above which neighbours compare loads: enough
# for these comparisons, and far fewer signatures to verify than one a peer and round.
LOAD_STEPS: Final = 4
# Within this a peer says its goodbyes, so that it stops in two seconds.
GOODBYE_S: Final = 1.5


class _Assembly:
    """The parts of one peer, joined."""

    def __init__(self, dependencies: Dependencies) -> None:
        self.dependencies = dependencies
        self.counters = Counters()
        seed = dependencies.draws.getrandbits(62)
        self.core = Core(attrs.evolve(dependencies.settings, seed=seed), dependencies.key)
        self.address_book = AddressBook(
            dependencies.key, ADDRESS_CAPACITY, self._held, trio.current_time
        )
        self.keeper = Keeper(dependencies.writer, dependencies.now, lambda: self.catch_up.is_whole)
        self.events = EventMemory(
            2 * dependencies.settings.event_memory,
            EVENT_MEMORY_BYTES,
            ValueMemory(dependencies.settings.held_events, HELD_BYTES),
        )
        self.descriptors = self._make_descriptors()
        self.authentication = self._make_authentication()
        codec = Codec(dependencies.settings)
        self.forgeries = Forgeries(self.address_book, self.counters)
        self.wire = Wire(codec, self.address_book, self.authentication, self.events)
        self.wire.on_two_contents = self.forgeries.note_two_contents
        self.runtime = Runtime(
            self.core,
            self.address_book,
            self.wire,
            self.authentication,
            self.events,
            self.counters,
            _nobody_listens,
        )
        self.runtime.on_held = self._on_held
        backlog = Backlog()
        self.overloads = Overloads(
            backlog, self.counters, self.address_book, self.runtime.report_loss
        )
        self.catch_up = CatchUp(
            self.runtime,
            round_s=dependencies.round_s,
            silence_s=dependencies.limits.silence_seconds,
            replay_s=dependencies.settings.replay_rounds * dependencies.round_s,
        )
        self.transport = dependencies.make_transport(self._introduction(), self._verify)
        self.transport.on_refusal = partial(count_refusal, self.counters)
        self.transport.on_refused_by = self._on_refused_by
        self.standing = Standing(dependencies.key, reaches_nobody=self._reaches_nobody)
        self.members = self._make_members()
        self.pool = ConnectionPool(
            self.transport,
            dependencies.limits,
            frame_types(codec),
            PoolEvents(
                on_frame=self.runtime.on_frame,
                on_bytes=self.runtime.on_bytes,
                on_up=self._on_up,
                on_down=self._on_down,
                on_loss=self._on_loss,
                on_busy=partial(count_refusal, self.counters),
                on_dropped=self.overloads.note_dropped,
            ),
            self.address_book.addresses_of,
            draws=dependencies.draws,
            backlog=backlog,
        )
        self.frame_sender = PoolSender(
            self.pool, self.counters, self.runtime.hand_back, self.overloads.note_dropped
        )
        self.messages = Messages(dependencies.key, self.pool, self.address_book, self.counters)
        self._make_services()
        self.reports = ClusterReports(
            self.members, self.pool, lambda: report_of(self.views, self.core)
        )
        revocations = self.revocations
        self.publishers, self.event_authentication = make_event_authentication(
            dependencies.member,
            dependencies.event_key,
            dependencies.make_event_key,
            None if revocations is None else lambda: revocations.revoked,
            self.descriptors,
            self.events,
            self.forgeries,
            self.counters,
            self.pool,
            coordinates=dependencies.settings.coordinates,
            now=dependencies.now,
        )
        self.runtime.attach(
            self.frame_sender,
            self.certificates,
            self.revocations,
            self.renewals,
            self.schemas,
            self.overloads,
            self.reports,
            self.publishers,
            self.forgeries,
            self._cut,
            self.messages,
        )
        self.tiers = Tiers(
            dependencies.compiled,
            self.counters,
            {EVENTS: self._take_in_batches, STEPS: self._step_compiled},
        )
        self.bootstrap = Bootstrap(
            self.runtime,
            self.address_book,
            self.pool.connect,
            self._identify,
            draws=dependencies.draws,
            round_s=dependencies.round_s,
        )
        self.runtime.on_greeting = self._on_greeting
        self.peer = self._make_peer()
        self._nursery: trio.Nursery | None = None

    # Making parts

    def _take_in_batches(self, code: LinkedCode) -> None:
        exchange = Exchange(self.core, partial(LinkedRules, code=code))
        self.runtime.take_in_batches(
            EventBatches(
                exchange,
                self.address_book,
                self.wire,
                self.events,
                self.counters,
                self.overloads,
                self.frame_sender,
                self.runtime.carry_out,
                self.runtime.introduce_publisher,
                self.dependencies.settings.coordinates,
                self.dependencies.limits.frame_bytes,
            )
        )

    def _step_compiled(self, code: LinkedCode) -> None:
        self.core.take_by(linked_step(self.core, code).take)

    def _held(self) -> set[int]:
        connected = (self.address_book.find(connection.identity.key) for connection in self.pool)
        return {*self.runtime.held(), *(entry.handle for entry in connected if entry is not None)}

    def _make_members(self) -> MemberTable:
        dependencies, certificate = self.dependencies, self._certificate()
        own = Member(
            dependencies.key,
            dependencies.name,
            version=dependencies.version,
            certificate_expires_s=None if certificate is None else certificate.not_after,
        )
        return MemberTable(
            own,
            self.counters,
            dependencies.now,
            self.address_book.heard_s,
            lambda: () if self.revocations is None else self.revocations.revoked.keys,
        )

    def _make_descriptors(self) -> DescriptorCache | None:
        member = self.dependencies.member
        return None if member is None else DescriptorCache(member.authority, member.revoked)

    def _make_authentication(self) -> SignedAuthentication | PlainAuthentication:
        dependencies, member = self.dependencies, self.dependencies.member
        if member is None or self.descriptors is None:
            return PlainAuthentication(dependencies.key, self.address_book)
        return SignedAuthentication(
            member.authority,
            member.identity,
            member.certificate,
            self.descriptors,
            self.address_book,
            self.counters,
            sequence=self.keeper.numbers.next,
            now=dependencies.now,
            profile_words=profile_words(dependencies.settings),
            first_range=dependencies.settings.first_range,
            load_step=dependencies.settings.parameters().shift_threshold // LOAD_STEPS,
        )

    def _make_services(self) -> None:
        dependencies, member = self.dependencies, self.dependencies.member
        self.certificates: CertificateService | None = None
        self.revocations: RevocationService | None = None
        self.renewals: RenewalService | None = None
        self.schemas: SchemaService | None = None
        if member is None or self.descriptors is None:
            return
        own = (dependencies.key, member.certificate.der)
        self.certificates = CertificateService(
            self.descriptors, own, self.pool.try_send, dependencies.now
        )
        self.revocations, self.renewals = make_services(
            member,
            dependencies.writer,
            self.descriptors,
            self.address_book,
            self.pool,
            self.counters,
            self.standing,
            draws=dependencies.draws,
            now=dependencies.now,
            report_failure=self.runtime.report_failure,
            install=self._install,
        )
        self.schemas = SchemaService(
            dependencies.schema_version,
            member,
            dependencies.writer,
            self.pool,
            self.counters,
            draws=dependencies.draws,
            change=lambda version: self.peer.change_schema(version),
        )

    def _install(self, member: Membership) -> None:
        """Put a renewed certificate in place; connections that there are go on."""
        assert self.certificates is not None
        assert isinstance(self.authentication, SignedAuthentication)
        show_certificate(self.transport, self.dependencies.present, member)
        self.certificates.renew(member.certificate.der)
        self.authentication.renew(member.certificate)
        assert isinstance(self.event_authentication, SignedEvents)
        self.event_authentication.renew(member)
        self.views.certificate_expires_s = member.certificate.not_after
        self.members.own.certificate_expires_s = member.certificate.not_after

    def _make_peer(self) -> Peer:
        dependencies = self.dependencies
        peer = Peer(
            self.runtime,
            self.events,
            self.event_authentication,
            self.counters,
            key=dependencies.key,
            version=dependencies.schema_version,
            hashes=uniform_hashes(dependencies.schema),
            draws=dependencies.draws,
            now=dependencies.now,
            mark=self.keeper.mark,
            keep=self.keeper.note_subscription,
            acknowledge_s=dependencies.acknowledge_s,
            standing=self.standing,
            messages=self.messages,
        )
        if self.publishers is not None:
            self.publishers.on_released = peer.deliver
        certificate = self._certificate()
        self.views = views = PeerViews(
            self.core,
            self.address_book,
            self.pool,
            self.frame_sender,
            self.overloads,
            peer.subscribers,
            self.counters,
            name=dependencies.name,
            cluster=dependencies.cluster,
            version=dependencies.version,
            round_s=dependencies.round_s,
            standing=self.standing,
            members=self.members,
            certificate_expires_s=None if certificate is None else certificate.not_after,
        )
        inside = Inside(self.core.state, self.address_book.key_of)
        reports = self.reports
        peer.show(
            Views(
                views.snapshot,
                views.gauges,
                lambda: inside,
                self.members.to_json,
                reports.view,
                reports.fresh_view,
            )
        )
        peer.ready_when(self._ready)
        peer.search_by(self._look_for)
        peer.whole_when(lambda: self.catch_up.is_whole)
        return peer

    def _look_for(self, addresses: Sequence[tuple[str, int]]) -> None:
        for address in addresses:
            self.bootstrap.add(DiscoveredPeer(None, (address,), STATIC))

    def _certificate(self) -> PeerCertificate | None:
        return None if self.dependencies.member is None else self.dependencies.member.certificate

    def _introduction(self) -> LocalPeer:
        certificate = self._certificate()
        return LocalPeer(
            key=self.dependencies.key,
            cluster=self.dependencies.cluster,
            software=f"gossamer {self.dependencies.version}"[:64],
            fingerprint=None if certificate is None else certificate.fingerprint,
            schema=schema_fingerprint(self.dependencies.schema),
        )

    def _on_held(self, event: int, brought_by: int) -> None:
        self.events.hold(event)
        self.peer.note_held(event, brought_by)

    # What the transport asks and tells

    def _verify(self, certificate: bytes | None, hello: Hello) -> PeerIdentity:
        if certificate is None or self.descriptors is None:
            return PeerIdentity(hello.key)
        assert self.revocations is not None
        return admit(
            certificate,
            hello,
            self.descriptors,
            self.revocations.revoked,
            self.counters,
            self.dependencies.now(),
        )

    def _on_refused_by(self, error: RefusedByPeer) -> None:
        if self.revocations is not None:
            self.revocations.hear(error.proof)

    def _reaches_nobody(self) -> bool:
        """Whether others are known, and none is a neighbour on the ring to hold anything."""
        core = self.core
        ring = core.neighbours()[: 2 * core.settings.ring_links]
        if len(self.pool) > 0 and max(ring, default=-1) >= 0:
            return False
        return self.bootstrap.knows_others

    async def _identify(self, address: Address) -> int:
        """Connect to whoever listens at ``address``; its key."""

        def learn(admitted: Admitted) -> None:
            self.address_book.learn(admitted.identity.key, admitted.hello.addresses or (address,))

        return (await self.pool.meet([address], learn)).key

    def _on_up(self, identity: PeerIdentity) -> None:
        # What a full book does not take is refused when its frames come.
        with suppress(CapacityError):
            self.address_book.learn(identity.key, (), identity.name)
        self.pool.try_send(identity.key, self.runtime.greeting())
        self.catch_up.found(identity.key)
        if self.revocations is not None:
            self.revocations.greet(identity.key)
        if self.renewals is not None:
            self.renewals.greet(identity.key)
        if self.schemas is not None:
            self.schemas.greet(identity.key)
        connection = self.pool.get(identity.key)
        if connection is None or not connection.admitted.dialled:
            self.counters.accepted += 1
        if connection is not None:
            note_connected(self.members, connection.admitted, self.descriptors)

    def _on_greeting(self, key: int) -> None:
        connection = self.pool.get(key)
        if connection is not None:
            self.keeper.note_met(connection.identity, self.address_book)
        self.bootstrap.on_greeting(key)

    def _on_down(self, identity: PeerIdentity, farewell: Farewell) -> None:
        self.runtime.forget(identity.key)
        count_end(self.counters, identity, farewell)
        note_disconnected(self.members, identity, farewell)
        if self.revocations is not None and not farewell.by_us:
            self.revocations.hear(farewell.proof)
        if farewell.by_us or self._nursery is None:
            return
        if farewell.cause is Cause.SHUTDOWN:
            self.runtime.report_failure(identity.key)
        elif farewell.cause is Cause.LOST:
            self._nursery.start_soon(self._look_after, identity.key)

    def _cut(self, key: int, error: RemoteProtocolError) -> None:
        connection = self.pool.get(key)
        if connection is not None:
            connection.expel(Cause.BAD_FRAME, str(error))

    def _on_loss(self, identity: PeerIdentity) -> None:
        self.catch_up.lost(identity.key)

    async def _look_after(self, key: int) -> None:
        """A connection broke: if the peer is not there any more, say so at once."""
        try:
            await self.pool.connect(key)
        except PeerUnreachable as error:
            self.runtime.report_failure(key)
            self.members.unreachable(key, str(error))

    # Running

    async def _ready(self) -> None:
        """Wait for an acknowledgement, or until there is nobody to get one from."""
        async with trio.open_nursery() as nursery:

            async def wait_for(event: trio.Event) -> None:
                await event.wait()
                nursery.cancel_scope.cancel()

            nursery.start_soon(wait_for, self.runtime.heard_back)
            nursery.start_soon(wait_for, self.bootstrap.nobody_left)

    async def start(self, nursery: trio.Nursery) -> None:
        """Listen, and start everything in ``nursery``."""
        self._nursery = nursery
        dependencies = self.dependencies
        await self.keeper.open(dependencies.key)
        await nursery.start(self.frame_sender.run)
        listening = await nursery.start(self.pool.run, dependencies.listen)
        addresses = tuple(Address(*address) for address in dependencies.advertise(listening))
        self.authentication.addresses = self.peer.addresses = addresses
        self.messages.addresses = addresses
        self.members.own.addresses = tuple(map(str, addresses))
        self.transport.me = attrs.evolve(self.transport.me, addresses=addresses)
        phase_s = dependencies.draws.uniform(0, dependencies.round_s)
        timer = SteadyTimer(dependencies.round_s, phase_s, self.counters, self.catch_up.was_paused)
        await self._recall_peers()
        await self._recall_subscriptions()
        await self._recall_catch_up()
        nursery.start_soon(self.catch_up.run)
        nursery.start_soon(self.keeper.run)
        if self.revocations is not None:
            nursery.start_soon(self.revocations.run)
        if self.renewals is not None:
            nursery.start_soon(self.renewals.run)
        if self.schemas is not None:
            nursery.start_soon(self.schemas.run)
        nursery.start_soon(self.views.run)
        nursery.start_soon(self.members.run)
        nursery.start_soon(self.reports.run)
        nursery.start_soon(self.peer.last.run)
        nursery.start_soon(self.tiers.run)
        nursery.start_soon(self.runtime.run, timer)
        nursery.start_soon(self._search, dependencies.sources(listening))
        nursery.start_soon(self.bootstrap.run)

    async def _recall_peers(self) -> None:
        desk = self.revocations
        for known in await self.keeper.known_peers() if self.dependencies.remember else ():
            revoked = desk is not None and desk.revoked.forbids(known.key, 0)
            if known.key != self.dependencies.key and not revoked:
                self.bootstrap.add(DiscoveredPeer(known.key, known.addresses, REMEMBERED))

    async def _recall_subscriptions(self) -> None:
        for stored in await self.keeper.subscriptions():
            try:
                self.peer.subscribers.restore(stored.expression, stored.client)
            except (ExpressionError, CapacityError) as error:
                # The schema or the settings have changed since.
                log.warning(
                    "a kept subscription is of no use", name=stored.client, cause=str(error)
                )

    async def _recall_catch_up(self) -> None:
        away_s = await self.keeper.away_s()
        if away_s is None:
            return
        kept_s = self.dependencies.settings.retention_rounds * self.dependencies.round_s
        if math.isinf(away_s):
            log.warning("the clock was set back: events are asked for as far back as they are kept")
        elif away_s > kept_s:
            log.warning(
                "away for longer than events are kept: older ones are missed",
                away_s=f"{away_s:.0f}",
                kept_s=f"{kept_s:.0f}",
            )
        self.catch_up.was_stopped(min(away_s, kept_s))

    async def _search(self, sources: Sequence[Source]) -> None:
        async with discover(sources, self._on_failed_source) as stream:
            async for found in stream:
                if found.key != self.dependencies.key:
                    self.bootstrap.add(found)

    def _on_failed_source(self, name: str, error: Exception) -> None:
        log.warning("a source of peers failed", source=name, cause=str(error))


def _nobody_listens(_: Delivery) -> None:
    raise AssertionError("a delivery before the application's side was made")


@asynccontextmanager
async def run_peer(dependencies: Dependencies) -> AsyncIterator[Peer]:
    """A running peer; leaving, cancelled or not, stops it within two seconds.

    Raises:
        ListenFailed: it cannot listen where it should.
        StoreError: its state file is another peer's, or cannot be written.
    """
    assembly = _Assembly(dependencies)
    with unwrapped():
        async with trio.open_nursery() as nursery:
            await assembly.start(nursery)
            try:
                yield assembly.peer
            finally:
                assembly.peer.stop()
                with trio.CancelScope(shield=True, deadline=trio.current_time() + GOODBYE_S):
                    await assembly.pool.close()
                    await assembly.keeper.write()
                    await assembly.keeper.note_alive()
                nursery.cancel_scope.cancel()
