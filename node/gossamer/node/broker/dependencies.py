"""What a broker's node is made with."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import attrs

from gossamer.node.broker.contract.host import FamilyHost
from gossamer.node.broker.engine.forked_work import Apart, in_a_process
from gossamer.node.peer.membership.services import Present
from gossamer.node.security.cluster import Membership
from gossamer.node.store.writer import StoreWriter
from gossamer.node.transport.base.base import Address, LocalPeer, Transport, Verify
from gossamer.node.transport.base.limits import Limits
from gossamer.protocol.brokers.core.routing import NewIndex


@attrs.frozen(kw_only=True)
class BrokerDependencies:
    """What a broker's node is made with.

    Attributes:
        key: its permanent key, by which the overlay knows it.
        name, cluster, version: what it is called, where it belongs, what it runs.
        family: of the broker, with its settings.
        new_index: makes an empty index of filters.
        large_index: the same for a broker that starts with many subscriptions.
        apart: where work that takes long is done.
        neighbours: where to dial.
        queue: messages that may wait for the broker.
        full_wait_s: how long a client that publishes waits for room to keep that for others.
        publications_first: whether they go before what others sent earlier.
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
    family: FamilyHost
    new_index: NewIndex
    large_index: NewIndex
    apart: Apart = in_a_process
    neighbours: Sequence[Address]
    queue: int = 1024
    full_wait_s: float = 30.0
    publications_first: bool = False
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

    @property
    def cluster_name(self) -> str:
        """What the cluster is called by people."""
        return self.cluster if self.member is None else self.member.authority.name
