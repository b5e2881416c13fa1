"""The parts of one peer, made from its dependencies and joined."""

from __future__ import annotations

from functools import partial
from typing import Final

import attrs
import trio

from gossamer.node.monitoring.members import Member, MemberTable
from gossamer.node.monitoring.metrics import Counters
from gossamer.node.peer.application import Peer
from gossamer.node.peer.batches.event_batches import EventBatches, Tiers
from gossamer.node.peer.batches.exchange import Exchange, LinkedRules
from gossamer.node.peer.batches.machine_code import EVENTS, STEPS, linked_step
from gossamer.node.peer.bootstrap import Bootstrap
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
    EventAuthentication,
    PlainEvents,
    SignedEvents,
)
from gossamer.node.peer.frames.events import EventMemory, SharedMemory
from gossamer.node.peer.frames.forgeries import Forgeries
from gossamer.node.peer.frames.frame_types import frame_types
from gossamer.node.peer.frames.publishers import PublisherService
from gossamer.node.peer.frames.wire import Wire
from gossamer.node.peer.inbound import ConnectionEvents, Inbound
from gossamer.node.peer.load.overload import Overloads
from gossamer.node.peer.load.sender import PoolSender
from gossamer.node.peer.membership.admission import (
    DoubledIdentities,
    MembershipStatus,
    admit,
    count_refusal,
)
from gossamer.node.peer.membership.cluster_reports import ClusterReports, Reachability
from gossamer.node.peer.membership.documents import MemberContext, SchemaService
from gossamer.node.peer.membership.renewal import RenewalService
from gossamer.node.peer.membership.revocation import RevocationService
from gossamer.node.peer.membership.services import MemberServices, show_certificate
from gossamer.node.peer.persistence import Keeper
from gossamer.node.peer.runtime import Runtime
from gossamer.node.peer.subscriptions import Subscribers
from gossamer.node.peer.unicast.cluster_time import ClusterTime
from gossamer.node.peer.unicast.messages import Messages
from gossamer.node.peer.views import PeerViews
from gossamer.node.security.certificates import PeerCertificate
from gossamer.node.security.cluster import Membership
from gossamer.node.security.descriptors import DescriptorCache
from gossamer.node.security.event_keys import PublisherCache
from gossamer.node.security.sealing import Seal
from gossamer.node.transport.base import LocalPeer
from gossamer.node.transport.links import ConnectionPool, PoolEvents
from gossamer.protocol.kernel.linking import LinkedCode
from gossamer.protocol.peer.codec import Codec
from gossamer.protocol.peer.space.hashing import uniform_hashes
from gossamer.protocol.peer.state.state import profile_words

# Peers whose handles a peer keeps; one of a cluster of thousands meets a few hundred.
ADDRESS_CAPACITY: Final = 4096
# Values of events that may have to be passed on, in bytes: a thousand large ones.
EVENT_MEMORY_BYTES: Final = 16 << 20
# The same of events held for peers that are away.
HELD_BYTES: Final = 64 << 20
# Steps of the load that a peer tells, in the threshold above which neighbours compare loads: enough
# for these comparisons, and far fewer signatures to verify than one a peer and round.
LOAD_STEPS: Final = 4


class PeerParts:
    """One peer that does not run yet; see `gossamer.node.peer.assembly`."""

    def __init__(self, dependencies: Dependencies) -> None:
        self.dependencies = dependencies
        self._hashes = uniform_hashes(dependencies.schema)
        self.counters = Counters()
        seed = dependencies.draws.getrandbits(62)
        self.core = Core(attrs.evolve(dependencies.settings, seed=seed), dependencies.key)
        self.address_book = AddressBook(dependencies.key, ADDRESS_CAPACITY, trio.current_time)
        self.keeper = Keeper(dependencies.writer, dependencies.now)
        self.events = EventMemory(
            2 * dependencies.settings.event_memory,
            EVENT_MEMORY_BYTES,
            SharedMemory(dependencies.settings.held_events, HELD_BYTES),
        )
        self.descriptors = self._make_descriptors()
        self.authentication = self._make_authentication()
        codec = Codec(dependencies.settings)
        forgeries = Forgeries(self.address_book, self.counters)
        self.wire = Wire(
            codec,
            self.address_book,
            self.authentication,
            self.events,
            forgeries.note_two_contents,
        )
        self.members = self._make_members()
        self.transport = dependencies.make_transport(
            self._introduction(),
            partial(admit, self.descriptors, self.counters, dependencies.now),
        )
        self.pool = ConnectionPool(
            self.transport,
            dependencies.limits,
            frame_types(codec),
            self.address_book.addresses_of,
            draws=dependencies.draws,
            rest_s=dependencies.rest_s,
        )
        self.overloads = Overloads(self.pool.backlog, self.counters, self.address_book)
        self.frame_sender = PoolSender(self.pool, self.counters, self.overloads.note_dropped)
        self.messages = Messages(dependencies.key, self.pool, self.address_book, self.counters)
        self.clock = ClusterTime(self.messages, dependencies.now, dependencies.steady)
        self.reachability = Reachability(
            self.messages, self.pool, self.address_book, dependencies.draws
        )
        publishers = self._make_publishers(forgeries)
        self.event_authentication = self._make_event_authentication(publishers, forgeries)
        self.runtime = Runtime(
            self.core,
            self.address_book,
            self.wire,
            self.events,
            self.counters,
            self.frame_sender,
            publishers,
            dependencies.round_s,
        )
        self.bootstrap = Bootstrap(
            self.runtime,
            self.address_book,
            self.pool,
            self.keeper,
            draws=dependencies.draws,
            round_s=dependencies.round_s,
        )
        self.subscribers = Subscribers(
            dependencies.schema_version.known,
            self._hashes,
            dependencies.settings.subscriptions,
            self.counters,
            self.runtime.want,
            self.keeper.note_subscription,
            self.keeper.mark,
        )
        doubles = DoubledIdentities()
        self.standing = MembershipStatus(dependencies.key, reaches_nobody=self.bootstrap.is_cut_off)
        self.views = self._make_views()
        self.reports = ClusterReports(
            self.members, self.pool, self.views.report, dependencies.cluster_name
        )
        # What is wrong with the addresses that it listens at, in a sentence.
        self.address_complaint = ""
        self.standing.ask("identity", doubles.complaint)
        self.standing.ask("disk", dependencies.writer.complaint)
        self.standing.ask("overload", self.overloads.complaint)
        self.standing.ask("flood", self.views.complaint)
        self.standing.ask("address", lambda: self.address_complaint)
        self.standing.ask("clock", self.clock.complaint)
        self.standing.ask("unreachable", self.reachability.complaint)
        self.peer = self._make_peer()
        self.services = self._make_services()
        services = (self.bootstrap, self.messages, self.reports, publishers, *self.services.all)
        self.inbound = Inbound(
            self.runtime,
            self.wire,
            self.authentication,
            forgeries,
            self.overloads,
            self.counters,
            self.pool.cut,
            [one for one in services if one is not None],
            self.services.certificates,
        )
        self.connection_events = ConnectionEvents(
            self.inbound,
            self.runtime,
            self.pool,
            self.address_book,
            self.descriptors,
            self.counters,
            self.members,
            self.services.revocations,
            doubles,
            self.clock,
        )
        self.transport.on_refusal = self.connection_events.on_refusal
        self.transport.on_refused_by = self.connection_events.on_refused_by
        self.pool_events = PoolEvents(
            on_frame=self.inbound.on_frame,
            on_bytes=self.inbound.on_bytes,
            on_up=self.connection_events.on_up,
            on_down=self.connection_events.on_down,
            on_admitted=doubles.on_admitted,
            on_loss=self.connection_events.on_loss,
            on_busy=partial(count_refusal, self.counters),
            on_dropped=self.overloads.note_dropped,
        )
        self.tiers = Tiers(
            dependencies.compiled,
            self.counters,
            {EVENTS: self._take_in_batches, STEPS: self._step_compiled},
        )

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
            tuple if self.descriptors is None else self.descriptors.revoked_keys,
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

    def _make_publishers(self, forgeries: Forgeries) -> PublisherService | None:
        member, descriptors = self.dependencies.member, self.descriptors
        if member is None or descriptors is None:
            return None
        return PublisherService(
            member.identity.key,
            PublisherCache(member.authority, descriptors, lambda: descriptors.revoked),
            self.events,
            Seal(self.dependencies.settings.coordinates),
            forgeries,
            self.counters,
            self.pool.try_send,
            lambda: [connection.identity.key for connection in self.pool],
            self.dependencies.now,
            lambda event: self.runtime.lacks(event),
        )

    def _make_event_authentication(
        self, publishers: PublisherService | None, forgeries: Forgeries
    ) -> EventAuthentication:
        dependencies, coordinates = self.dependencies, self.dependencies.settings.coordinates
        make_key = dependencies.make_event_key
        if dependencies.member is None or publishers is None or make_key is None:
            return PlainEvents(coordinates)
        return SignedEvents(
            Seal(coordinates),
            dependencies.member,
            dependencies.event_key,
            make_key,
            publishers,
            forgeries,
        )

    def _make_services(self) -> MemberServices:
        dependencies, member = self.dependencies, self.dependencies.member
        if member is None or self.descriptors is None:
            return MemberServices()
        certificates = CertificateService(
            self.descriptors,
            (dependencies.key, member.certificate.der),
            self.pool.try_send,
            dependencies.now,
        )
        context = MemberContext(
            member,
            dependencies.writer,
            self.descriptors,
            self.address_book,
            self.pool,
            self.counters,
            self.standing,
            self.members,
            dependencies.draws,
            dependencies.now,
        )
        revocations = RevocationService(context, self.runtime.report_failure)
        install = partial(self._install, certificates)
        renewals = RenewalService(context, revocations, install, dependencies.name)
        schemas = SchemaService(context, dependencies.schema_version, self.peer.change_schema)
        return MemberServices(certificates, revocations, renewals, schemas)

    def _install(self, certificates: CertificateService, member: Membership) -> None:
        """Put a renewed certificate in place; connections that there are go on."""
        assert isinstance(self.authentication, SignedAuthentication)
        show_certificate(self.transport, self.dependencies.present, member)
        certificates.renew(member.certificate.der)
        self.authentication.renew(member.certificate)
        assert isinstance(self.event_authentication, SignedEvents)
        self.event_authentication.renew(member)
        self.members.own.certificate_expires_s = member.certificate.not_after
        self.members.own.name = member.certificate.name

    def _make_views(self) -> PeerViews:
        dependencies = self.dependencies
        return PeerViews(
            self.core,
            self.address_book,
            self.pool,
            self.frame_sender,
            self.overloads,
            self.subscribers,
            self.events,
            self.counters,
            name=dependencies.name,
            cluster=dependencies.cluster,
            cluster_name=dependencies.cluster_name,
            version=dependencies.version,
            round_s=dependencies.round_s,
            standing=self.standing,
            members=self.members,
        )

    def _make_peer(self) -> Peer:
        dependencies = self.dependencies
        return Peer(
            self.runtime,
            self.events,
            self.event_authentication,
            self.counters,
            key=dependencies.key,
            version=dependencies.schema_version,
            hashes=self._hashes,
            subscribers=self.subscribers,
            draws=dependencies.draws,
            clock=self.clock,
            acknowledge_s=dependencies.acknowledge_s,
            messages=self.messages,
            standing=self.standing,
            bootstrap=self.bootstrap,
            views=self.views,
            reports=self.reports,
        )

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
