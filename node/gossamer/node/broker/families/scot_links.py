"""Neighbours of a SCOT broker: who has the wrong place is refused, and queues are measured.

Both ends begin by saying where they are, and the link is up once the other has said that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final

import trio
from attrs import define

from gossamer.node.broker.engine import MICROSECONDS, Engine
from gossamer.node.broker.families.scot_settings import MAX_CLUSTERS, is_part
from gossamer.node.broker.host import FamilyHost
from gossamer.node.broker.links import Neighbour, Neighbours
from gossamer.node.broker.wire import OVERLAY_FRAMES
from gossamer.node.errors import BadFrame, TransportBroken
from gossamer.node.security.identity import key_text
from gossamer.node.transport.base import Farewell, PeerIdentity
from gossamer.node.transport.connection import Connection
from gossamer.node.transport.frames import encode_frame
from gossamer.node.transport.schema import Flag, Frame, FrameTypes, Integer, Text
from gossamer.protocol.brokers.core.effects import Refuse
from gossamer.protocol.brokers.core.messages import NeighbourDown
from gossamer.protocol.brokers.scot.messages import (
    InputQueue,
    NeighbourAnnounced,
    QueueReport,
    WaitedEnough,
    WindowEnded,
)
from gossamer.protocol.brokers.scot.settings import DYNAMIC, ScotSettings
from gossamer.protocol.brokers.scot.state import WrongNeighbourError
from gossamer.protocol.brokers.scot.topology import BrokerLabel
from gossamer.protocol.content.limits import MAX_NAME

MAX_OVERLAY: Final = 1 << 16
"""Characters of what a broker says of its overlay: each edge of the tree of regions is named."""

SCOT_FRAMES: Final[FrameTypes] = OVERLAY_FRAMES.extended(
    {
        "place": {
            "region": Text(MAX_NAME),
            "cluster": Integer(0, MAX_CLUSTERS - 1),
            "overlay": Text(MAX_OVERLAY),
            "takes_over": Flag(),
        }
    }
)
"""What SCOT brokers send each other once they are connected."""

WAIT_S: Final = 60.0
"""Four times the longest pause between dials."""


@define
class _Measured:
    """A queue at the end of the last window, and what was put into it until then."""

    length: int = 0
    put: int = 0


class ScotNeighbours(Neighbours):
    """All neighbours of a SCOT broker."""

    def __init__(
        self,
        nursery: trio.Nursery,
        engine: Callable[[], Engine],
        family: FamilyHost,
        settings: ScotSettings,
        here: BrokerLabel,
        overlay: str,
    ) -> None:
        super().__init__(nursery, engine, family)
        self._settings = settings
        self._here = here
        self._overlay = overlay
        self._places: dict[int, BrokerLabel] = {}
        self._taking_over: dict[int, bool] = {}
        self._begun: dict[int, Connection] = {}
        self._measured: dict[int, _Measured] = {}
        self._input = _Measured()
        self._noting = False

    # Where they are

    def greet(self, one: Neighbour, connection: Connection) -> None:
        """Say where this broker is; the link is up when the other has said so, at least once."""
        place = encode_frame(
            "place",
            region=self._here.region,
            cluster=self._here.cluster,
            overlay=self._overlay,
            takes_over=self._settings.take_over,
        )
        with suppress(TransportBroken):
            connection.try_send(place)
        self._begin(one)

    def on_down(self, identity: PeerIdentity, farewell: Farewell) -> None:
        """A neighbour is connected no more, and may come back at another place."""
        self._places.pop(identity.key, None)
        self._taking_over.pop(identity.key, None)
        super().on_down(identity, farewell)

    async def on_frame(self, identity: PeerIdentity, frame: Frame) -> None:
        """Take a part of a message, or the place of a neighbour; raises `RemoteProtocolError`."""
        if frame["type"] == "place":
            one = self.heard(identity)
            if one is not None:
                self._on_place(one, frame)
            return
        await super().on_frame(identity, frame)

    def _on_place(self, one: Neighbour, frame: Frame) -> None:
        label = BrokerLabel(frame["region"], frame["cluster"])
        known = self._places.setdefault(one.key, label)
        if known != label:
            raise BadFrame("place", "label", str(label), f"{known}, where it was until now")
        self._note_taking_over(one, frame["takes_over"])
        connection = one.announced
        if connection is not None and not self._fits(frame["overlay"]):
            reason = (
                f"broker {one.label!r} at {label} is of an overlay of {frame['overlay']}, "
                f"expected {self._overlay}"
            )
            self._expel(one, connection, reason)
            return
        self._begin(one)

    def _fits(self, overlay: str) -> bool:
        """Whether one of both overlays is part of the other: then it is growing."""
        return is_part(overlay, self._overlay) or is_part(self._overlay, overlay)

    def _note_taking_over(self, one: Neighbour, takes_over: bool) -> None:
        """Begin the link anew if that is another than it began with.

        A neighbour may have been restarted so fast that it was not seen to go.
        """
        before = self._taking_over.get(one.key, takes_over)
        self._taking_over[one.key] = takes_over
        if before != takes_over and self._begun.pop(one.key, None) is not None:
            self._engine().submit(None, NeighbourDown(key_text(one.key)), one.drop)

    def _begin(self, one: Neighbour) -> None:
        """Tell the broker that a link is up, once for each connection."""
        connection, label = one.announced, self._places.get(one.key)
        if connection is None or label is None or self._begun.get(one.key) is connection:
            return
        self._begun[one.key] = connection
        takes_over = self._taking_over[one.key]
        name = key_text(one.key)
        up = NeighbourAnnounced(name, label, synchronise=True, takes_over=takes_over)
        self.tell_up(one, connection, up)

    def unfit(self, effect: Refuse) -> tuple[Neighbour, str] | None:
        """Who says to be at a place where no neighbour is, or another one."""
        error = effect.error
        if not isinstance(error, WrongNeighbourError):
            return None
        one = self.known.get(int(error.name, 16))
        if one is None:
            return None
        return one, f"broker {one.label!r} at {error.label} {error.reason}"

    # How long is waited, and how long queues are

    async def run(self) -> None:
        """Wait for neighbours, and measure queues, until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._wait)
            nursery.start_soon(self._report)

    async def _wait(self) -> None:
        """Tell the broker when neighbours that have not come are not waited for any longer."""
        await trio.sleep(WAIT_S)
        self._engine().submit(None, WaitedEnough())

    async def _report(self) -> None:
        """Tell the broker at the end of each window how output queues changed, until cancelled.

        Only dynamic routing asks for that. A window lasts until the broker has taken note of the
        one before: that may take longer where much waits.
        """
        while self._settings.routing == DYNAMIC:
            await trio.sleep(self._settings.window / MICROSECONDS)
            if self._noting:
                continue
            reports, waiting = tuple(self._reports()), self._waiting()
            if reports or waiting is not None:
                self._noting = True
                self._engine().submit_first(WindowEnded(reports, waiting), self._noted)

    def _noted(self) -> None:
        self._noting = False

    def _waiting(self) -> InputQueue | None:
        """What neighbours are to know of the input queue; None unless it changed."""
        if not self._settings.input_queues:
            return None
        engine, before = self._engine(), self._input
        now = self._input = _Measured(engine.brought - engine.carried_out, engine.brought)
        if not (now.length or before.length):
            return None
        entered = now.put - before.put
        return InputQueue(now.length, entered, max(0, before.length + entered - now.length))

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
