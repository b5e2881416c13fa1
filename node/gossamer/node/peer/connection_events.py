"""What a peer does when its transport asks who may come in, and tells of connections."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import trio

from gossamer.node.errors import PeerUnreachable, RefusedByPeer
from gossamer.node.monitoring.members import MemberTable
from gossamer.node.monitoring.metrics import Counters
from gossamer.node.peer.bootstrap import Bootstrap
from gossamer.node.peer.frames.address_book import AddressBook
from gossamer.node.peer.membership.admission import (
    admit,
    count_end,
    note_connected,
    note_disconnected,
)
from gossamer.node.peer.membership.services import MemberServices
from gossamer.node.peer.persistence import Keeper
from gossamer.node.peer.runtime import Runtime
from gossamer.node.peer.unicast.cluster_time import ClusterTime
from gossamer.node.security.descriptors import DescriptorCache
from gossamer.node.transport.base.base import (
    Address,
    Admitted,
    Cause,
    Farewell,
    Hello,
    PeerIdentity,
)
from gossamer.node.transport.links import ConnectionPool
from gossamer.protocol.kernel.errors import CapacityError, RemoteProtocolError


class ConnectionEvents:
    """Tells the parts of one peer what concerns them.

    Args:
        runtime: takes the frames of the connections.
        address_book: learns who is where.
        keeper: remembers who was met.
        descriptors: verify certificates; None without them.
        counters: where ends of connections are counted.
        now: Unix seconds.
    """

    def __init__(
        self,
        runtime: Runtime,
        address_book: AddressBook,
        keeper: Keeper,
        descriptors: DescriptorCache | None,
        counters: Counters,
        now: Callable[[], float],
    ) -> None:
        self._runtime = runtime
        self._address_book = address_book
        self._keeper = keeper
        self._descriptors = descriptors
        self._counters = counters
        self._now = now
        self._nursery: trio.Nursery | None = None

    def attach(
        self,
        pool: ConnectionPool,
        members: MemberTable,
        services: MemberServices,
        bootstrap: Bootstrap,
        clock: ClusterTime,
    ) -> None:
        """What is made after the transport: needed before the first connection."""
        self._pool, self._members = pool, members
        self._services, self._bootstrap, self._clock = services, bootstrap, clock

    def start(self, nursery: trio.Nursery) -> None:
        """Look from now on, in ``nursery``, whether peers whose connections break are there."""
        self._nursery = nursery

    def verify(self, certificate: bytes | None, hello: Hello) -> PeerIdentity:
        """Who a peer is that showed ``certificate`` and says ``hello``.

        Raises:
            PeerRefused: it is no member.
        """
        if certificate is None or self._descriptors is None:
            return PeerIdentity(hello.key)
        revoked = self._services.revoked
        assert revoked is not None
        return admit(certificate, hello, self._descriptors, revoked, self._counters, self._now())

    def on_refused_by(self, error: RefusedByPeer) -> None:
        """Another peer does not let this one in."""
        self._services.hear(error.proof)

    async def identify(self, address: Address) -> int:
        """Connect to whoever listens at ``address``; its key."""

        def learn(admitted: Admitted) -> None:
            self._address_book.learn(admitted.identity.key, admitted.hello.addresses or (address,))

        return (await self._pool.meet([address], learn)).key

    def on_up(self, identity: PeerIdentity) -> None:
        """A peer is connected."""
        # What a full book does not take is refused when its frames come.
        with suppress(CapacityError):
            self._address_book.learn(identity.key, (), identity.name)
        self._pool.try_send(identity.key, self._runtime.greeting())
        self._services.greet(identity.key)
        self._clock.connected()
        connection = self._pool.get(identity.key)
        if connection is None or not connection.admitted.dialled:
            self._counters.accepted += 1
        if connection is not None:
            note_connected(self._members, connection.admitted, self._descriptors)

    def on_greeting(self, key: int) -> None:
        """A connected peer has introduced itself."""
        connection = self._pool.get(key)
        if connection is not None:
            self._keeper.note_met(connection.identity, self._address_book)
        self._bootstrap.on_greeting(key)

    def on_down(self, identity: PeerIdentity, farewell: Farewell) -> None:
        """A peer is connected no more."""
        self._runtime.forget(identity.key)
        count_end(self._counters, identity, farewell)
        note_disconnected(self._members, identity, farewell)
        if not farewell.by_us:
            self._services.hear(farewell.proof)
        if farewell.by_us or self._nursery is None:
            return
        if farewell.cause is Cause.SHUTDOWN:
            # What came to it while it said its goodbyes went no further.
            self._runtime.report_loss(identity.key)
            self._runtime.report_failure(identity.key)
        elif farewell.cause is Cause.LOST:
            self._nursery.start_soon(self._look_after, identity.key)

    def on_loss(self, identity: PeerIdentity) -> None:
        """A connection ended in disorder: what was on its way may be lost."""
        self._runtime.report_loss(identity.key)

    def cut(self, key: int, error: RemoteProtocolError) -> None:
        """A peer has broken a rule by what it sent a while ago."""
        connection = self._pool.get(key)
        if connection is not None:
            connection.expel(Cause.BAD_FRAME, str(error))

    async def _look_after(self, key: int) -> None:
        """A connection broke: if the peer is not there any more, say so at once."""
        try:
            await self._pool.connect(key)
        except PeerUnreachable as error:
            self._runtime.report_failure(key)
            self._members.unreachable(key, str(error))
