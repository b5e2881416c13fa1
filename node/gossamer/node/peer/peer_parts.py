"""The parts of one peer, made from its dependencies and joined."""

from __future__ import annotations

from functools import partial
from typing import Final

import attrs
import trio

from gossamer.node.errors import NodeError
from gossamer.node.monitoring.members import Member, MemberTable
from gossamer.node.monitoring.metrics import Counters
from gossamer.node.peer.application import Peer, PeerInternals, Views
from gossamer.node.peer.batches.event_batches import EventBatches, Tiers
from gossamer.node.peer.batches.exchange import Exchange, LinkedRules
from gossamer.node.peer.batches.machine_code import EVENTS, STEPS, linked_step
from gossamer.node.peer.bootstrap import Bootstrap
from gossamer.node.peer.cluster_info import schema_fingerprint
from gossamer.node.peer.connection_events import ConnectionEvents
from gossamer.node.peer.dependencies import Dependencies
from gossamer.node.peer.frames.address_book import AddressBook
from gossamer.node.peer.frames.core import Core, Delivery
from gossamer.node.peer.frames.descriptor_authentication import (
    PlainAuthentication,
    SignedAuthentication,
)
from gossamer.node.peer.frames.event_authentication import SignedEvents, make_event_authentication
from gossamer.node.peer.frames.events import EventMemory, SharedMemory
from gossamer.node.peer.frames.forgeries import Forgeries
from gossamer.node.peer.frames.frame_types import frame_types
from gossamer.node.peer.frames.wire import Wire
from gossamer.node.peer.load.overload import Overloads
from gossamer.node.peer.load.sender import Losses, PoolSender
from gossamer.node.peer.membership.admission import count_refusal
from gossamer.node.peer.membership.cluster_reports import ClusterReports
from gossamer.node.peer.membership.reachability import Reachability
from gossamer.node.peer.membership.services import MemberServices, show_certificate
from gossamer.node.peer.membership.status import DoubledIdentities, MembershipStatus
from gossamer.node.peer.persistence import Keeper
from gossamer.node.peer.runtime import Runtime
from gossamer.node.peer.unicast.cluster_time import ClusterTime
from gossamer.node.peer.unicast.messages import Messages
from gossamer.node.peer.views import PeerViews, report_of
from gossamer.node.security.certificates import PeerCertificate
from gossamer.node.security.cluster import Membership
from gossamer.node.security.descriptors import DescriptorCache
from gossamer.node.transport.base.base import Address, Farewell, LocalPeer, PeerIdentity
from gossamer.node.transport.links import ConnectionPool, PoolEvents
from gossamer.node.transport.queues.send_queue import Backlog
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
        self.counters = Counters()
        seed = dependencies.draws.getrandbits(62)
        self.core = Core(attrs.evolve(dependencies.settings, seed=seed), dependencies.key)
        self.address_book = AddressBook(
            dependencies.key, ADDRESS_CAPACITY, self._held, trio.current_time
        )
        self.keeper = Keeper(
            dependencies.writer,
            dependencies.now,
        )
        self.events = EventMemory(
            2 * dependencies.settings.event_memory,
            EVENT_MEMORY_BYTES,
            SharedMemory(dependencies.settings.held_events, HELD_BYTES),
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
        losses = Losses(self.runtime.tell_of_loss)
        self.overloads = Overloads(backlog, self.counters, self.address_book, losses)
        self.connection_events = ConnectionEvents(
            self.runtime,
            self.address_book,
            self.keeper,
            self.descriptors,
            self.counters,
            dependencies.now,
        )
        self.transport = dependencies.make_transport(
            self._introduction(), self.connection_events.verify
        )
        self.doubles = DoubledIdentities()
        # What is wrong with the addresses that it listens at, in a sentence.
        self.address_complaint = ""
        self.transport.on_refusal = self._on_refusal
        self.transport.on_refused_by = self.connection_events.on_refused_by
        self.standing = MembershipStatus(dependencies.key, reaches_nobody=self._reaches_nobody)
        self.standing.ask("identity", self.doubles.complaint)
        self.standing.ask("disk", dependencies.writer.complaint)
        self.standing.ask("overload", self.overloads.complaint)
        self.standing.ask("flood", self._flood)
        self.standing.ask("address", lambda: self.address_complaint)
        self.members = self._make_members()
        self.pool = ConnectionPool(
            self.transport,
            dependencies.limits,
            frame_types(codec),
            PoolEvents(
                on_frame=self.runtime.on_frame,
                on_bytes=self.runtime.on_bytes,
                on_up=self.connection_events.on_up,
                on_down=self._on_down,
                on_admitted=self.doubles.on_admitted,
                on_loss=self.connection_events.on_loss,
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
        self.clock = ClusterTime(self.messages, dependencies.now, dependencies.steady)
        self.standing.ask("clock", self.clock.complaint)
        self.reachability = Reachability(
            self.messages, self.pool, self.address_book, dependencies.draws
        )
        self.standing.ask("unreachable", self.reachability.complaint)
        self.services = services = self._make_services()
        self.reports = ClusterReports(
            self.members,
            self.pool,
            lambda: report_of(self.views, self.core),
            dependencies.cluster_name,
        )
        revocations = services.revocations
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
            services.certificates,
            services.revocations,
            services.renewals,
            services.schemas,
            self.overloads,
            self.reports,
            self.publishers,
            self.forgeries,
            self.connection_events.cut,
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
            self.connection_events.identify,
            self.pool.try_anew,
            draws=dependencies.draws,
            round_s=dependencies.round_s,
        )
        self.connection_events.attach(
            self.pool, self.members, self.services, self.bootstrap, self.clock
        )
        self.runtime.on_greeting = self.connection_events.on_greeting
        self.peer = self._make_peer()

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
            lambda: self.services.revoked_keys,
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

    def _make_services(self) -> MemberServices:
        dependencies, member = self.dependencies, self.dependencies.member
        if member is None or self.descriptors is None:
            return MemberServices()
        return MemberServices.make(
            dependencies.key,
            dependencies.schema_version,
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
            members=self.members,
            name=dependencies.name,
            change_schema=lambda version: self.peer.change_schema(version),
        )

    def _install(self, member: Membership) -> None:
        """Put a renewed certificate in place; connections that there are go on."""
        assert self.services.certificates is not None
        assert isinstance(self.authentication, SignedAuthentication)
        show_certificate(self.transport, self.dependencies.present, member)
        self.services.certificates.renew(member.certificate.der)
        self.authentication.renew(member.certificate)
        assert isinstance(self.event_authentication, SignedEvents)
        self.event_authentication.renew(member)
        self.views.certificate_expires_s = member.certificate.not_after
        self.members.own.certificate_expires_s = member.certificate.not_after
        self.members.own.name = member.certificate.name

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
            clock=self.clock,
            mark=self.keeper.mark,
            keep=self.keeper.note_subscription,
            acknowledge_s=dependencies.acknowledge_s,
            round_s=dependencies.round_s,
            standing=self.standing,
            messages=self.messages,
        )
        if self.publishers is not None:
            self.publishers.on_released = peer.deliver
            self.publishers.on_lacking = self.core.lacks
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
            cluster_name=dependencies.cluster_name,
            version=dependencies.version,
            round_s=dependencies.round_s,
            standing=self.standing,
            members=self.members,
            certificate_expires_s=None if certificate is None else certificate.not_after,
        )
        inside = PeerInternals(self.core.state, self.address_book.key_of)
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
        peer.ready_when(self.bootstrap.wait_until_settled)
        peer.search_by(self.bootstrap.look_for)
        peer.decide_whole_by(lambda: self.core.is_whole)
        return peer

    def was_paused(self, seconds: float) -> None:
        """The process, or its machine, was paused for so long."""
        skipped = int(seconds // self.dependencies.round_s)
        if skipped:
            self.runtime.skip_rounds(skipped)

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
        self.peer.consider_last_value(event, brought_by)

    def _flood(self) -> str:
        """Whose events have pushed out others of theirs before their time, in a sentence, or ""."""
        if not self.views.pushes_out:
            return ""
        publisher = self.events.held.main_publisher()
        who = "somebody" if publisher is None else self.overloads.name_of(publisher)
        return (
            f"{who} publishes more than is kept for those who are away: the oldest of its events "
            "make room before the retention time is over"
        )

    def _on_refusal(self, error: NodeError | None, remote: Address) -> None:
        count_refusal(self.counters, error, remote)
        self.doubles.on_refusal(error, remote)

    def _on_down(self, identity: PeerIdentity, farewell: Farewell) -> None:
        self.doubles.on_down(identity, farewell)
        self.connection_events.on_down(identity, farewell)

    def _reaches_nobody(self) -> bool:
        """Whether others are known, and none is a neighbour on the ring to hold anything."""
        core = self.core
        ring = core.neighbours()[: 2 * core.settings.ring_links]
        if len(self.pool) > 0 and max(ring, default=-1) >= 0:
            return False
        return self.bootstrap.knows_others


def _nobody_listens(_: Delivery) -> None:
    raise AssertionError("a delivery before the application's side was made")
