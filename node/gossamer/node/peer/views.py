"""What a peer shows of itself: the page's snapshot, Prometheus' gauges, its report to members."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import attrs
import trio

from gossamer.node.monitoring.logs import log
from gossamer.node.monitoring.members import SECTORS, MemberTable, Report
from gossamer.node.monitoring.metrics import (
    LINKS,
    NO_LINK,
    RANDOM_VIEW,
    Counters,
    Gauges,
    RateMeter,
)
from gossamer.node.page.snapshot import PeerView, Queues, Rates, Snapshot, ring_fraction
from gossamer.node.peer.frames.address_book import AddressBook, Entry
from gossamer.node.peer.frames.core import SELF, Core
from gossamer.node.peer.frames.events import EventMemory
from gossamer.node.peer.frames.frame_types import MAX_TROUBLE, MAX_TROUBLES
from gossamer.node.peer.load.overload import Overloads
from gossamer.node.peer.load.sender import PoolSender
from gossamer.node.peer.membership.admission import MembershipStatus
from gossamer.node.peer.subscriptions import Subscribers
from gossamer.node.transport.connection import Connection
from gossamer.node.transport.links import ConnectionPool
from gossamer.protocol.peer.settings.config import LOAD_UNIT, LOAD_WINDOW
from gossamer.protocol.peer.settings.profile import IDENTIFIER, LINK_KINDS, LOAD, link_kinds
from gossamer.protocol.peer.space.ring import RING_BITS
from gossamer.protocol.peer.state.links import HANDLE_MASK
from gossamer.protocol.peer.state.state import (
    FAILURES_FORGOTTEN,
    FORGOTTEN,
    HOPS_EXCEEDED,
    MERGED,
    PUSHED_OUT,
    REFUSED_ENTRIES,
    REPEATED,
)

_SECTOR_BITS: Final = RING_BITS - (SECTORS.bit_length() - 1)
_EVENTS_A_ROUND: Final = LOAD_UNIT * LOAD_WINDOW
# Seconds after which it is logged again that a table is too small.
OUTGROWN_AGAIN_S: Final = 60.0
# Where the protocol counts what found no room, by table.
_OUTGROWN: Final[Mapping[str, int]] = MappingProxyType(
    {
        "event memory": FORGOTTEN,
        "held events": PUSHED_OUT,
        "routing table": REFUSED_ENTRIES,
        "boxes": MERGED,
        "failures": FAILURES_FORGOTTEN,
    }
)
# Of these, the tables by which no event is lost.
_HARMLESS: Final = frozenset({"boxes", "failures"})


@attrs.define(eq=False)
class PeerViews:
    """Looks at one peer.

    Attributes:
        name, cluster, cluster_name, version: of the peer, its cluster and its software.
        round_s: seconds of a round.
        standing: of the peer in its cluster.
        members: those met so far.
    """

    core: Core
    address_book: AddressBook
    pool: ConnectionPool
    frame_sender: PoolSender
    overloads: Overloads
    subscribers: Subscribers
    events: EventMemory
    counters: Counters
    name: str
    cluster: str
    cluster_name: str
    version: str
    round_s: float
    standing: MembershipStatus
    members: MemberTable
    _started_at: float = attrs.field(factory=trio.current_time)
    _meters: dict[str, RateMeter] = attrs.field(factory=dict)
    _frames_told: dict[Connection, tuple[int, int]] = attrs.field(factory=dict)
    _outgrown_at: dict[str, float] = attrs.field(factory=dict)
    _pushed_out_at: float = -math.inf

    async def run(self) -> None:
        """Count now and then what only a look at the connections tells; until cancelled.

        Each round, or as rarely as the peer may have one.
        """
        pause_s = self.core.settings.rest_rounds * self.round_s
        while True:
            await trio.sleep(pause_s)
            self.count_link_frames()
            self.note_outgrown()

    def complaint(self) -> str:
        """Whose events have pushed out others of theirs within a minute, in a sentence, or ""."""
        if trio.current_time() - self._pushed_out_at >= OUTGROWN_AGAIN_S:
            return ""
        publisher = self.events.held.main_publisher()
        who = "somebody" if publisher is None else self.overloads.text_of(publisher)
        return (
            f"{who} publishes more than is kept for those who are away: the oldest of its events "
            "make room before the retention time is over"
        )

    def note_outgrown(self) -> None:
        """Count what found no room since the last time; log it where events may be lost by it."""
        told = self.core.counters
        if told[PUSHED_OUT] > self.counters.outgrown["held events"]:
            self._pushed_out_at = trio.current_time()
        for table, column in _OUTGROWN.items():
            more = told[column] - self.counters.outgrown[table]
            self.counters.outgrown[table] = told[column]
            if more > 0 and table not in _HARMLESS:
                self._log_outgrown(table, told[column])

    def _log_outgrown(self, table: str, so_far: int) -> None:
        """Log it at first, and then now and again while it goes on."""
        now = trio.current_time()
        if now - self._outgrown_at.get(table, -OUTGROWN_AGAIN_S) >= OUTGROWN_AGAIN_S:
            self._outgrown_at[table] = now
            log.warning("a table is too small", table=table, without_room=so_far)

    def gauges(self) -> Gauges:
        """What is the case right now; what others count joins the counters."""
        self._gather_counts()
        links = dict.fromkeys(LINKS, 0)
        for sorts in self._links().values():
            for sort in sorts:
                links[sort] += 1
        queued = [connection.queued_bytes for connection in self.pool]
        return Gauges(
            links=links,
            connections=len(self.pool),
            known_peers=len(self.address_book) - 1,
            subscriptions=len(self.subscribers),
            routing_entries=int(self.core.state.table_count[SELF]),
            clients=len({one.name for one in self.subscribers if one.name}),
            queued_bytes=sum(queued),
            queued_frames=self.frame_sender.waiting,
            overloading=len(self.overloads),
            stored_events=0,
            load=int(self.core.state.load[SELF]) / _EVENTS_A_ROUND,
            position=ring_fraction(self.core.identifier),
            certificate_expires_s=self.members.own.certificate_expires_s,
            troubles=self.standing.counts(),
            members=self.members.counts(),
        )

    def _gather_counts(self) -> None:
        counters, pool = self.counters, self.pool
        told = self.core.counters
        counters.redundant["duplicate"] = told[REPEATED]
        counters.dropped["hop limit"] = told[HOPS_EXCEEDED]
        counters.dials, counters.dials_failed = pool.dials, pool.dials_failed
        traffic = pool.traffic
        counters.bytes_received, counters.bytes_sent = traffic.taken, traffic.written
        counters.reads_paused = traffic.throttled

    def count_link_frames(self) -> None:
        """Count the frames since the last time by what their peers are to this one now."""
        links, before = self._links(), self._frames_told
        self._frames_told = {}
        for connection in self.pool:
            stats = connection.stats
            frames = self._frames_told[connection] = stats.frames_in, stats.frames_out
            entry = self.address_book.find(connection.identity.key)
            sorts = () if entry is None else links.get(entry.handle, ())
            sort = next((one for one in LINKS if one in sorts), NO_LINK)
            taken, written = before.get(connection, (0, 0))
            self.counters.link_frames_received[sort] += frames[0] - taken
            self.counters.link_frames_sent[sort] += frames[1] - written

    def figures(self) -> dict[str, float]:
        """What a report of this peer has, by the names of `monitoring.cluster.FIGURES`."""
        gauges = self.gauges()
        return {
            "uptime_s": trio.current_time() - self._started_at,
            "position": gauges.position,
            "arc_start": ring_fraction(self.core.arc_start),
            "load": gauges.load,
            **attrs.asdict(self._rates()),
            "queued_bytes": gauges.queued_bytes,
            "late_rounds": self._rate("late rounds", self.counters.rounds_late),
            "overloading": gauges.overloading,
            "subscriptions": gauges.subscriptions,
            "known_peers": gauges.known_peers,
        }

    def snapshot(self) -> Snapshot:
        """The overlay as this peer sees it."""
        gauges, counters = self.gauges(), self.counters
        longest = max((connection.queued_bytes for connection in self.pool), default=0)
        return Snapshot(
            key=self.address_book.key_of(SELF),
            name=self.name,
            cluster=self.cluster,
            cluster_name=self.cluster_name,
            version=self.version,
            uptime_s=trio.current_time() - self._started_at,
            round=int(self.core.state.round[SELF]),
            round_s=self.round_s,
            position=gauges.position,
            arc_start=ring_fraction(self.core.arc_start),
            load=gauges.load,
            subscriptions=gauges.subscriptions,
            clients=gauges.clients,
            routing_entries=gauges.routing_entries,
            stored_events=gauges.stored_events,
            rates=self._rates(),
            queues=Queues(
                frames=gauges.queued_frames, bytes=gauges.queued_bytes, longest_bytes=longest
            ),
            dropped=dict(counters.dropped),
            known_peers=gauges.known_peers,
            peers=tuple(self._peer_views()),
            troubles=self.standing.troubles(),
            members=gauges.members,
            changes=self.members.recent(),
        )

    def _rates(self) -> Rates:
        counters = self.counters
        return Rates(
            published=self._rate("published", counters.events_published),
            delivered=self._rate("delivered", counters.events_delivered),
            forwarded=self._rate("forwarded", counters.events_forwarded),
            dropped=self._rate("dropped", sum(counters.dropped.values())),
            received_bytes=self._rate("received", counters.bytes_received),
            sent_bytes=self._rate("sent", counters.bytes_sent),
        )

    def _rate(self, name: str, count: int) -> float:
        meter = self._meters.get(name)
        if meter is None:
            meter = self._meters[name] = RateMeter(trio.current_time)
            meter.rate(count)
            return 0.0
        # A connection that ends takes the counts of its peer with it.
        return max(0.0, meter.rate(count))

    def _links(self) -> Mapping[int, list[str]]:
        """What leads to each peer, by handle."""
        sorts: dict[int, list[str]] = {}
        kinds = (LINK_KINDS[kind] for kind in link_kinds(self.core.settings))
        for handle, sort in zip(self.core.neighbours(), kinds, strict=True):
            if handle >= 0:
                sorts.setdefault(handle, []).append(sort)
        for handle in self.core.members():
            sorts.setdefault(handle, []).append(RANDOM_VIEW)
        return sorts

    def _profiles(self) -> Mapping[int, tuple[int, int]]:
        """Place and load of the peers in links and random view, by handle, as they last told."""
        state = self.core.state
        tells_load = state.params.ring_links > 0
        known = {}
        for words, profiles in (
            (state.sampler.views[SELF], state.sampler.view_profile[SELF]),
            (state.links[SELF], state.link_profile[SELF]),
        ):
            for word, profile in zip(words.tolist(), profiles.tolist(), strict=True):
                if word >= 0:
                    load = profile[LOAD] if tells_load else 0
                    known[word & HANDLE_MASK] = (profile[IDENTIFIER], load)
        return known

    def _peer_views(self) -> list[PeerView]:
        links, profiles = self._links(), self._profiles()
        return [self._peer_view(entry, links, profiles) for entry in self.address_book]

    def _peer_view(
        self,
        entry: Entry,
        links: Mapping[int, list[str]],
        profiles: Mapping[int, tuple[int, int]],
    ) -> PeerView:
        # A peer that is only known stands at its key, where all begin.
        identifier, load = profiles.get(entry.handle, (entry.key, 0))
        view = PeerView(
            key=entry.key,
            name=entry.name,
            position=ring_fraction(identifier),
            links=tuple(dict.fromkeys(links.get(entry.handle, ()))),
            load=load / _EVENTS_A_ROUND,
            heard_s=None if entry.heard_at is None else trio.current_time() - entry.heard_at,
        )
        connection = self.pool.get(entry.key)
        if connection is None:
            return view
        stats = connection.stats
        return attrs.evolve(
            view,
            connected=True,
            round_trip_s=stats.round_trip_s,
            received_per_s=self._rate(f"from {entry.key}", stats.frames_in),
            sent_per_s=self._rate(f"to {entry.key}", stats.frames_out),
            queued_bytes=connection.queued_bytes,
        )

    def report(self) -> Report:
        """The report of this peer: what its page shows, without what it knows of others."""
        return Report(
            figures=self.figures(),
            wanted=wanted_sectors(self.core),
            troubles=[one[:MAX_TROUBLE] for one in self.standing.troubles()][:MAX_TROUBLES],
        )


def wanted_sectors(core: Core) -> list[int]:
    """For each sector of the ring, how many subscriptions want events that lie there."""
    found = [0] * SECTORS
    for arcs in core.wanted_arcs():
        sectors = {
            sector
            for low, high in arcs
            for sector in range(low >> _SECTOR_BITS, (high >> _SECTOR_BITS) + 1)
        }
        for sector in sectors:
            found[sector] += 1
    return found
