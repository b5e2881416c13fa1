"""What a peer is made of."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import attrs

from gossamer.node.config.broker import NEVER
from gossamer.node.discovery.sources import Source
from gossamer.node.peer.frames.event_authentication import MakeEventKey
from gossamer.node.security.cluster import Membership
from gossamer.node.security.event_keys import EventKey
from gossamer.node.store.writer import StoreWriter
from gossamer.node.transport.base import Address, LocalPeer, Transport, Verify
from gossamer.node.transport.limits import Limits
from gossamer.protocol.content.schema import Schema, SchemaVersion
from gossamer.protocol.peer.settings.config import Settings


@attrs.frozen(kw_only=True)
class Dependencies:
    """What a peer is made of.

    Attributes:
        key: its permanent key.
        name, cluster, version: what it is called, where it belongs, what it runs.
        schema: of the cluster's events, as the cluster was made.
        later_schema: a later version of it, if there is one.
        settings: of the cluster's protocol; its seed becomes the peer's own.
        round_s: seconds of a gossip round.
        acknowledge_s: how long a publication may wait for its acknowledgement.
        limits: of the transport.
        make_transport: the transport that says this of the peer, and admits by this.
        listen: where to listen.
        advertise: where others reach it, from where it really listens.
        member: its membership; None without certificates.
        event_key: the key that it signs its events by, None before it has published.
        make_event_key: makes and keeps that key.
        present: has the transport show a renewed certificate on the next connections.
        writer: of its state file.
        sources: where other peers are looked for, from where it really listens.
        remember: whether peers known before a restart are tried.
        compiled: whether events are taken by compiled rules, see `Node`.
        draws: everything that is left to chance.
        now: Unix seconds.
        steady: seconds that only grow, at the pace of ``now``.
    """

    key: int
    name: str
    cluster: str
    version: str
    schema: Schema
    later_schema: SchemaVersion | None = None
    settings: Settings
    round_s: float
    acknowledge_s: float = 10.0
    limits: Limits
    make_transport: Callable[[LocalPeer, Verify], Transport]
    listen: Sequence[Address]
    advertise: Callable[[Sequence[Address]], Sequence[Address]]
    writer: StoreWriter
    member: Membership | None = None
    event_key: EventKey | None = None
    make_event_key: MakeEventKey | None = None
    present: Callable[[Transport, Membership], None] = lambda _transport, _member: None
    sources: Callable[[Sequence[Address]], Sequence[Source]] = lambda _: ()
    remember: bool = True
    compiled: str = NEVER
    draws: random.Random
    now: Callable[[], float]
    steady: Callable[[], float]

    @property
    def cluster_name(self) -> str:
        """What the cluster is called by people."""
        return self.cluster if self.member is None else self.member.authority.name

    @property
    def rest_s(self) -> float:
        """For how many seconds a peer may rest, 0 where none does."""
        rounds = self.settings.rest_rounds
        return rounds * self.round_s if rounds > 1 else 0.0

    @property
    def schema_version(self) -> SchemaVersion:
        """The version of the schema to begin with."""
        return self.later_schema or SchemaVersion.first(self.schema)
