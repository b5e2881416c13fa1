"""Neighbours of a broker of a SCOT: who has the wrong place is refused, and queues are measured.

Both ends begin by saying where they are, and the link is up once the other has said that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Final

import trio
from attrs import define

from gossamer.node.broker.families.scot import ScotKind
from gossamer.node.broker.links.links import Neighbour, Neighbours
from gossamer.node.broker.links.wire import BrokerFrames, encode_parts
from gossamer.node.broker.machine.engine import MICROSECONDS, Engine
from gossamer.node.errors import BadFrame, TransportBroken, TransportClosed
from gossamer.node.security.identity import key_text
from gossamer.node.transport.base.base import Cause, Farewell, PeerIdentity
from gossamer.node.transport.base.frames import encode_frame
from gossamer.node.transport.base.schema import Frame
from gossamer.node.transport.connection import Connection
from gossamer.protocol.brokers.scot.codec import plain_between, read_between
from gossamer.protocol.brokers.scot.memory.effects import Refuse, Send
from gossamer.protocol.brokers.scot.memory.messages import (
    BetweenBrokers,
    HandBack,
    NeighbourDown,
    NeighbourGone,
    NeighbourUp,
    Numbered,
    QueueReport,
    Replica,
    Synchronise,
    WaitedEnough,
    WindowEnded,
)
from gossamer.protocol.brokers.scot.memory.settings import DYNAMIC
from gossamer.protocol.brokers.scot.overlay.errors import WrongNeighbourError
from gossamer.protocol.brokers.scot.overlay.labels import BrokerLabel

WAIT_S: Final = 60.0
"""Four times the longest pause between dials."""


@define
class _Measured:
    """An output queue at the end of the last window, and frames put into it until then."""

    length: int = 0
    put: int = 0


class ScotNeighbours(Neighbours):
    """All neighbours of a broker of a SCOT."""

    def __init__(self, nursery: trio.Nursery, engine: Callable[[], Engine], kind: ScotKind) -> None:
        super().__init__(nursery, engine)
        self._kind = kind
        self._places: dict[int, BrokerLabel] = {}
        self._begun: dict[int, Connection] = {}
        self._sessions: dict[int, int] = {}
        self._measured: dict[int, _Measured] = {}

    # Where they are

    def _tell_up(self, one: Neighbour) -> None:
        """Say where this broker is; the link is up when the other has said so, at least once."""
        one.frames = BrokerFrames(read_between)
        one.announced = connection = self.pool.get(one.key)
        assert connection is not None
        here = self._kind.position.label
        place = encode_frame(
            "place", region=here.region, cluster=here.cluster, overlay=self._kind.overlay
        )
        with suppress(TransportClosed, TransportBroken):
            connection.try_send(place)
        self._begin(one)
        self.changed.unpark_all()

    def on_down(self, identity: PeerIdentity, farewell: Farewell) -> None:
        """A neighbour is connected no more, and may come back at another place."""
        self._places.pop(identity.key, None)
        super().on_down(identity, farewell)

    async def on_frame(self, identity: PeerIdentity, frame: Frame) -> None:
        """Take a part of a message, or the place of a neighbour; raises `RemoteProtocolError`."""
        if frame["type"] == "place":
            self._on_place(self.known[identity.key], frame)
            return
        await super().on_frame(identity, frame)

    def _on_place(self, one: Neighbour, frame: Frame) -> None:
        label = BrokerLabel(frame["region"], frame["cluster"])
        known = self._places.setdefault(one.key, label)
        if known != label:
            raise BadFrame("place", "label", str(label), f"{known}, where it was until now")
        connection = one.announced
        if connection is not None and frame["overlay"] != self._kind.overlay:
            reason = (
                f"broker {one.label!r} at {label} is of an overlay of {frame['overlay']}, "
                f"expected {self._kind.overlay}"
            )
            self._expel(one, connection, reason)
            return
        self._begin(one)

    def _begin(self, one: Neighbour) -> None:
        """Tell the broker that a link is up, once for each connection."""
        connection, label = one.announced, self._places.get(one.key)
        if connection is None or label is None or self._begun.get(one.key) is connection:
            return
        self._begun[one.key] = connection
        # Later than any before, also if this broker was started again.
        self._sessions[one.key] = self._engine().now
        self._engine().tell(
            None,
            NeighbourUp(key_text(one.key), label, synchronise=True),
            lambda: self._came_up(one, connection),
        )

    def refused(self, effect: Any) -> None:
        """A neighbour has the wrong place, or sent what cannot be taken."""
        if not isinstance(effect, Refuse):
            return
        if isinstance(effect.error, WrongNeighbourError):
            one = self.known.get(int(effect.error.name, 16))
            if one is not None and one.announced is not None:
                self._expel(one, one.announced, self._about_place(one, effect.error))
        elif isinstance(effect.message, BetweenBrokers) and effect.hop is not None:
            one = self.known.get(int(effect.hop.name, 16))
            if one is not None and one.connection is not None:
                one.connection.expel(Cause.BAD_FRAME, str(effect.error))

    def _about_place(self, one: Neighbour, error: WrongNeighbourError) -> str:
        return f"broker {one.label!r} at {error.label} {error.reason}"

    def _down_message(self, name: str) -> Any:
        return NeighbourDown(name)

    def _gone_message(self, name: str) -> Any:
        return NeighbourGone(name)

    # What is sent

    def _is_send(self, effect: Any) -> bool:
        return isinstance(effect, Send)

    def _begins(self, effect: Any) -> bool:
        message = effect.message
        carried = message.message if isinstance(message, Numbered) else message
        return isinstance(carried, Synchronise | Replica | HandBack)

    def _encode(self, one: Neighbour, effect: Any) -> Iterator[bytes]:
        return encode_parts(self._sessions[one.key], plain_between(effect.message))

    # How long is waited, and how long queues are

    async def wait(self) -> None:
        """Tell the broker when neighbours that have not come are not waited for any longer."""
        await trio.sleep(WAIT_S)
        self._engine().tell(None, WaitedEnough())

    async def report(self) -> None:
        """Tell the broker at the end of each window how output queues changed, until cancelled.

        Only dynamic routing asks for that.
        """
        while self._kind.of.routing == DYNAMIC:
            await trio.sleep(self._kind.of.window / MICROSECONDS)
            reports = tuple(self._reports())
            if reports:
                self._engine().tell(None, WindowEnded(reports))

    def _reports(self) -> Iterator[QueueReport]:
        for one in self.known.values():
            before = self._measured.setdefault(one.key, _Measured())
            length = len(one.waiting)
            if one.connection is not None:
                length += one.connection.queued_frames
            now = _Measured(length, one.put_count)
            if now != before:
                self._measured[one.key] = now
                entered = now.put - before.put
                left = max(0, before.length + entered - length)
                yield QueueReport(key_text(one.key), length, entered, left)
            elif before.length:
                yield QueueReport(key_text(one.key), length, 0, 0)
