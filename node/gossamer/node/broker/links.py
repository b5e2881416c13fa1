"""Neighbours: what their connections bring goes to the broker, what it sends goes to them.

A session of the protocol needs a link on which nothing overtakes and nothing is lost but its end.
So frames go over the one connection with which the broker was told that the link is up, and never
over another that took its place: for that, the link goes down and comes up again.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final

import trio
from attrs import define, field

from gossamer.node.broker.engine import Engine
from gossamer.node.broker.host import FamilyHost
from gossamer.node.broker.wire import BrokerFrames, encode_parts
from gossamer.node.errors import PeerUnreachable, TransportBroken
from gossamer.node.monitoring.logs import log
from gossamer.node.security.identity import key_text
from gossamer.node.transport.base import Address, Admitted, Cause, Farewell, PeerIdentity
from gossamer.node.transport.connection import Connection
from gossamer.node.transport.limits import BackOff
from gossamer.node.transport.links import ConnectionPool
from gossamer.node.transport.schema import Frame
from gossamer.protocol.brokers.core.effects import Refuse, Send
from gossamer.protocol.brokers.core.messages import NeighbourDown, NeighbourGone, neighbour

# Bytes that wait for a neighbour before its link is given up; it is told everything again when it
# comes back, which then costs less.
BACKLOG_BYTES: Final = 64 << 20


@define(eq=False)
class Neighbour:
    """A neighbour and the connection to it.

    Attributes:
        key: its permanent key.
        label: what people call it.
        announced: the connection that the broker was to be told of; None once that is gone, and no
            other took its place.
        connection: over which the session goes that the broker is in; None while it is down.
        frames: messages that came, in parts.
        session: of the connection over which messages go.
        waiting: frames for it that are not queued at the connection yet.
        waiting_bytes: their size.
        beginning: whether what a session begins with is being put.
        begun_bytes: the size of that, and of what waited before.
        refused: why it is not to be a neighbour: it would close a cycle, or has the wrong place.
        put_count: frames that were ever put.
    """

    key: int
    label: str
    announced: Connection | None = None
    connection: Connection | None = None
    frames: BrokerFrames | None = None
    session: int = 0
    waiting: deque[bytes] = field(factory=deque)
    waiting_bytes: int = 0
    beginning: bool = False
    begun_bytes: int = 0
    refused: str = ""
    put_count: int = 0
    _work: trio.Event = field(factory=trio.Event)

    def put(self, frame: bytes) -> None:
        """Have a frame sent after those before it."""
        self.waiting.append(frame)
        self.waiting_bytes += len(frame)
        self.put_count += 1
        self._work.set()

    def drop(self) -> None:
        """Forget what waits: the link is down."""
        self.connection = None
        self.waiting.clear()
        self.waiting_bytes = 0
        self._work.set()

    async def pump(self, connection: Connection) -> None:
        """Send what waits over a connection, until it ends or another took its place."""
        while self.connection is connection:
            if not self.waiting:
                self._work = trio.Event()
                await self._work.wait()
                continue
            frame = self.waiting.popleft()
            self.waiting_bytes -= len(frame)
            try:
                await connection.send(frame)
            except TransportBroken:
                return


class Neighbours:
    """All neighbours; the pool reports to it, and it to the engine.

    Families whose links are to be more derive from this.

    Attributes:
        known: neighbours by key, those that are away included.
        changed: unparked whenever one comes or goes.
    """

    def __init__(
        self, nursery: trio.Nursery, engine: Callable[[], Engine], family: FamilyHost
    ) -> None:
        self.known: dict[int, Neighbour] = {}
        self.changed = trio.lowlevel.ParkingLot()
        self.pool: ConnectionPool
        self._nursery = nursery
        self._engine = engine
        self._family = family

    # What the pool reports

    def on_up(self, identity: PeerIdentity) -> None:
        """A neighbour is connected."""
        one = self.known.get(identity.key)
        if one is None:
            one = self.known[identity.key] = Neighbour(identity.key, label_of(identity))
        one.refused = ""
        log.info("neighbour is connected", broker=key_text(one.key), name=one.label)
        self._meet(one)

    def on_admitted(self, admitted: Admitted) -> None:
        """If a connection takes the place of another, a new session begins before it is read."""
        one = self.known.get(admitted.identity.key)
        if one is None or one.announced is None or one.announced is self.pool.get(one.key):
            return
        self._engine().submit(None, NeighbourDown(key_text(one.key)), one.drop)
        self._meet(one)

    def on_down(self, identity: PeerIdentity, farewell: Farewell) -> None:
        """A neighbour is connected no more; if either side refused the other, it is none."""
        one = self.known.get(identity.key)
        if one is None:
            return
        gone = farewell.cause in (Cause.REFUSED, Cause.REVOKED)
        if gone and not one.refused:
            one.refused = farewell.detail or str(farewell)
        one.announced = None
        name = key_text(one.key)
        level = log.warning if gone else log.info
        level("neighbour is gone", broker=name, name=one.label, cause=str(farewell))
        message = NeighbourGone(name) if gone else NeighbourDown(name)
        self._engine().submit(None, message, one.drop)
        self.changed.unpark_all()

    async def on_frame(self, identity: PeerIdentity, frame: Frame) -> None:
        """Take a part of a message; what a connection brings that was replaced is left out.

        Raises:
            RemoteProtocolError: it breaks a rule; that costs the connection.
        """
        one = self.heard(identity)
        if one is None:
            return
        assert one.frames is not None
        found = one.frames.take(frame)
        if found is not None:
            hop = neighbour(key_text(one.key))
            await self._engine().submit_with_patience(
                hop, found, still=lambda: self.heard(identity) is one
            )

    def heard(self, identity: PeerIdentity) -> Neighbour | None:
        """Who said just this over its connection, if that is the one in use, and else None."""
        one = self.known.get(identity.key)
        if one is None or one.announced is None or one.announced.identity is not identity:
            return None
        return one

    def _meet(self, one: Neighbour) -> None:
        """A connection is there: begin to put together what comes over it."""
        one.frames = BrokerFrames(self._family.codec.read_between)
        one.announced = self.pool.get(one.key)
        assert one.announced is not None
        self.greet(one, one.announced)
        self.changed.unpark_all()

    def greet(self, one: Neighbour, connection: Connection) -> None:
        """What comes first on a connection: here, the broker is told that the link is up."""
        self.tell_up(one, connection, self._family.link_up(key_text(one.key)))

    def tell_up(self, one: Neighbour, connection: Connection, message: object) -> None:
        """Tell the broker that a link is up; from then on messages go over this connection."""
        self._engine().submit(None, message, lambda: self._came_up(one, connection))

    def _came_up(self, one: Neighbour, connection: Connection) -> None:
        one.drop()
        one.connection = connection
        # Later than any before, also if this broker was started again.
        one.session = max(self._engine().now, one.session + 1)
        self._nursery.start_soon(one.pump, connection)

    async def run(self) -> None:
        """What is to be done besides, until cancelled: here, nothing."""

    # What the broker wants

    def send(self, effects: Iterable[Any]) -> None:
        """Send messages; while a link is down they are lost, as the protocol expects.

        What a session begins with may be long. Beyond that, who lets too much wait is given up.
        """
        for effect in effects:
            if not isinstance(effect, Send):
                continue
            one = self.known.get(int(effect.neighbour, 16))
            if one is not None and one.connection is not None:
                self._put(one, one.connection, effect.message)
        for one in self.known.values():
            if one.beginning:
                one.beginning = False
                one.begun_bytes = one.waiting_bytes

    def _put(self, one: Neighbour, connection: Connection, message: Any) -> None:
        if self._family.begins(message):
            one.beginning = True
        for part in encode_parts(one.session, self._family.codec.plain_between(message)):
            one.put(part)
        if not one.beginning and one.waiting_bytes > one.begun_bytes + BACKLOG_BYTES:
            detail = f"more than {BACKLOG_BYTES >> 20} MiB wait for it"
            connection.expel(Cause.STALLED, detail)
            one.drop()

    def refused(self, effect: Refuse) -> None:
        """If what a neighbour sent could not be taken, that costs it its connection."""
        unfit = self.unfit(effect)
        if unfit is not None:
            one, reason = unfit
            if one.announced is not None:
                self._expel(one, one.announced, reason)
            return
        source = self.source_of(effect)
        if source is not None and source.connection is not None:
            source.connection.expel(Cause.BAD_FRAME, str(effect.error))

    def unfit(self, effect: Refuse) -> tuple[Neighbour, str] | None:
        """Who is no neighbour to have, and why, if that is what a refusal says."""
        del effect
        return None

    def source_of(self, effect: Refuse) -> Neighbour | None:
        """The neighbour that sent what was refused."""
        if effect.hop is None or effect.hop.is_client:
            return None
        return self.known.get(int(effect.hop.name, 16))

    def _expel(self, one: Neighbour, connection: Connection, reason: str) -> None:
        """End a link that is not to be."""
        one.refused = reason
        log.error("link refused", broker=key_text(one.key), name=one.label, cause=reason)
        connection.expel(Cause.REFUSED, reason)

    def label(self, name: str) -> str:
        """What people call a broker, where that is known here."""
        found = next((one for one in self.known.values() if key_text(one.key) == name), None)
        return name if found is None or found.label == name else f"{found.label} ({name})"

    def described(self) -> list[str]:
        """Every neighbour and how its link is, for people."""
        return [
            f"{one.label}: {one.refused or ('up' if one.connection is not None else 'down')}"
            for one in self.known.values()
        ]

    @property
    def backlog(self) -> int:
        """Frames in the longest queue to a neighbour."""
        return max((len(one.waiting) for one in self.known.values()), default=0)


def label_of(identity: PeerIdentity) -> str:
    """What people call a broker."""
    return identity.name or key_text(identity.key)


# Finding neighbours: every address that is named is dialled until its broker is connected.
#
# One end of a link names the other, or both do. Any broker of the cluster may come: its certificate
# says that it belongs.

BACK_OFF: Final = BackOff(first_s=0.2, longest_s=15.0)
# Before a link is tried again that would have closed a cycle: somebody has to change something.
REFUSED_S: Final = 60.0


class Dialler:
    """Keeps one named neighbour connected."""

    def __init__(
        self, address: Address, pool: ConnectionPool, neighbours: Neighbours, draws: random.Random
    ) -> None:
        self._address = address
        self._pool = pool
        self._neighbours = neighbours
        self._draws = draws
        self._key: int | None = None

    async def run(self) -> None:
        """Dial, wait until the connection ends, and dial again, until cancelled."""
        failures = 0
        while True:
            if self._is_connected():
                failures = 0
                await self._neighbours.changed.park()
                continue
            if self._is_refused():
                await trio.sleep(REFUSED_S)
            try:
                await self._pool.meet([self._address], self._learn)
            except PeerUnreachable as error:
                failures += 1
                log.warning("neighbour is not reached", at=str(self._address), cause=str(error))
                await trio.sleep(BACK_OFF.delay_s(failures, self._draws))

    def _learn(self, admitted: Admitted) -> None:
        self._key = admitted.identity.key

    def _is_refused(self) -> bool:
        one = None if self._key is None else self._neighbours.known.get(self._key)
        return one is not None and bool(one.refused)

    def _is_connected(self) -> bool:
        """Whether the broker behind the address is connected, whoever dialled."""
        if self._key is not None:
            return self._pool.get(self._key) is not None
        for connection in self._pool:
            if self._address in connection.admitted.hello.addresses:
                self._key = connection.identity.key
                return True
        return False
