"""Publications of this peer's applications, until they are acknowledged.

The protocol publishes again what is not answered; here is how long an application waits for it, and
how many of its publications may wait at a time: more wait for their turn (`window`).
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

import attrs
import trio

from gossamer.node.errors import NodeError, NotAcknowledged, PeerStopped, RequestError
from gossamer.node.monitoring.metrics import Counters
from gossamer.node.peer.frames.core import Core, Record
from gossamer.node.peer.frames.event_authentication import (
    EventAuthentication,
    Unsealed,
    point_bytes,
)
from gossamer.node.peer.frames.events import Event, EventFormat, EventMemory
from gossamer.node.peer.load.sender import Window
from gossamer.node.peer.unicast.last_values import may_be_last
from gossamer.node.peer.unicast.messages import ANNOUNCEMENT_TYPE, corner_of, some_event
from gossamer.node.peer.unicast.order import PublicationOrder
from gossamer.node.security.sealing import DRAW_BYTES, ID_BITS, identifier
from gossamer.protocol.content.filters.expressions import parse_expression
from gossamer.protocol.content.limits import MAX_EVENT_BYTES
from gossamer.protocol.content.schema import SchemaVersion
from gossamer.protocol.content.values import Payload, Value
from gossamer.protocol.kernel.errors import ContentError, ExpressionError, InvariantError
from gossamer.protocol.peer.space.covering import cover
from gossamer.protocol.peer.space.encoding import encode_values
from gossamer.protocol.peer.space.hashing import OrderPreservingHash

# An acknowledgement that takes this part of the time that it may take is slow, and so is one before
# which the publication was sent again.
SLOW: Final = 0.3


class Publishing(Protocol):
    """What publications need of a peer's runtime."""

    @property
    def core(self) -> Core:
        """The peer's protocol."""
        ...

    def publish(self, publications: Sequence[Record]) -> None:
        """Take commands to publish."""
        ...

    def handle(self, record: Record) -> None:
        """Take a command."""
        ...


class Sealed(NamedTuple):
    """An event that is ready to be published.

    Attributes:
        event: its identifier.
        content: all of it.
        point: where it is published.
    """

    event: int
    content: bytes
    point: Sequence[int]


@attrs.define(eq=False)
class _PublishedTogether:
    """Publications that went out together.

    Attributes:
        left: how many of them are not acknowledged.
        over: set once none is left, or the peer stops.
    """

    left: int
    over: trio.Event = attrs.field(factory=trio.Event)


@attrs.define(eq=False)
class _Waiting:
    """A publication under way.

    Attributes:
        together: what it went out with.
        began: when, of trio's clock.
        on_held: told that it is acknowledged.
    """

    together: _PublishedTogether
    began: float
    on_held: Callable[[int], None]


@attrs.define(eq=False, slots=False)
class Publications:
    """What was published here and waits for its acknowledgement.

    Args:
        patience_s: how long to wait for one.
        retry_s: until the protocol publishes again what is not answered.
    """

    _runtime: Publishing
    _events: EventMemory
    _patience_s: float
    _counters: Counters
    _retry_s: float = math.inf

    def __attrs_post_init__(self) -> None:
        slots = self._runtime.core.settings.pending_publications
        self._window = Window(slots, min(SLOW * self._patience_s, self._retry_s)) if slots else None
        self._waiting: dict[int, _Waiting] = {}
        self._due: dict[int, Record] = {}
        self._gathers = False
        self._stopped = False

    async def publish(
        self,
        sealed: Sequence[Sealed],
        on_held: Callable[[int], None],
        application: Hashable = None,
    ) -> dict[int, NotAcknowledged | PeerStopped]:
        """Publish events; return once all are acknowledged or given up, with what went wrong.

        While they have to wait for their turn, those of each ``application`` take turns. Where the
        settings have no publication acknowledged, each counts as held at once.

        Args:
            sealed: the events.
            on_held: told the identifier of each when it is acknowledged.
            application: whose they are.

        Returns:
            By identifier, of those that were not acknowledged in time, or before the peer stopped,
            and are not published again; and of those whose turn had not come when it stopped.
        """
        if self._window is None:
            for one in sealed:
                self._events.keep(one.event, one.content)
            await self._send(sealed)
            for one in sealed:
                on_held(one.event)
            return {}
        failed: dict[int, NotAcknowledged | PeerStopped] = {}
        places = await self._window.take(application, len(sealed))
        if places == len(sealed):
            await self._publish_and_wait(sealed, on_held, failed)
            return failed
        async with trio.open_nursery() as nursery:
            left = sealed
            while True:
                portion, left = left[:places], left[places:]
                nursery.start_soon(self._publish_and_wait, portion, on_held, failed)
                if not left:
                    break
                places = await self._window.take(application, len(left))
        return failed

    def stop(self) -> None:
        """Let nobody wait any longer."""
        self._stopped = True
        for waiting in self._waiting.values():
            waiting.together.over.set()

    async def _send(self, sealed: Sequence[Sealed]) -> None:
        """Let the protocol publish events, with all that others are about to publish."""
        self._counters.events_published += len(sealed)
        for one in sealed:
            self._due[one.event] = self._runtime.core.publish(one.event, one.point)
        if self._gathers:
            return  # who came first takes them along
        # Those whose events share a signature come here in the same turn of the event loop.
        self._gathers = True
        await trio.lowlevel.cancel_shielded_checkpoint()
        self._gathers = False
        due, self._due = [*self._due.values()], {}
        self._runtime.publish(due)

    async def _publish_and_wait(
        self,
        sealed: Sequence[Sealed],
        on_held: Callable[[int], None],
        failed: dict[int, NotAcknowledged | PeerStopped],
    ) -> None:
        """Publish events that have their places, and give these back."""
        assert self._window is not None
        if self._stopped:
            failed.update((one.event, PeerStopped()) for one in sealed)
            self._window.give_back(len(sealed))
            return
        began, together = trio.current_time(), _PublishedTogether(len(sealed))
        for one in sealed:
            self._waiting[one.event] = _Waiting(together, began, on_held)
            self._events.pinned[one.event] = one.content
        try:
            await self._send(sealed)
            with trio.move_on_after(self._patience_s):
                await together.over.wait()
        finally:
            if together.left:
                failed.update(self._give_up(sealed, trio.current_time() - began))

    def _give_up(
        self, sealed: Sequence[Sealed], waited_s: float
    ) -> dict[int, NotAcknowledged | PeerStopped]:
        """Wait no longer for those of these events that are not acknowledged."""
        assert self._window is not None
        failed: dict[int, NotAcknowledged | PeerStopped] = {}
        for one in sealed:
            if self._waiting.pop(one.event, None) is None:
                continue
            self._due.pop(one.event, None)
            self._events.keep(one.event, self._events.pinned.pop(one.event))
            self._counters.events_unacknowledged += 1
            self._runtime.handle(self._runtime.core.withdraw(one.event))
            self._window.note(waited_s)
            self._window.give_back()
            patience_s = None if self._stopped else self._patience_s
            failed[one.event] = NotAcknowledged(one.event, patience_s)
        return failed

    def note(self, event: int, held: bool) -> None:
        """An event is held as promised now, or was not published since too many wait for that."""
        waiting = self._waiting.get(event)
        if waiting is None:
            return
        if not held:
            raise InvariantError(f"event {event:016x} was published beyond all slots")
        assert self._window is not None
        del self._waiting[event]
        took_s = trio.current_time() - waiting.began
        self._events.keep(event, self._events.pinned.pop(event))
        self._counters.events_acknowledged += 1
        self._counters.acknowledge_latency.observe(took_s)
        self._window.note(took_s)
        self._window.give_back()
        waiting.on_held(event)
        waiting.together.left -= 1
        if waiting.together.left == 0:
            waiting.together.over.set()


# Makes events of what applications publish, and has them sealed, noted and published.


# Its identifier, or why an event is not published or not known to be held.
Outcome = int | NodeError | ContentError


class _Content(NamedTuple):
    """What an event says.

    Attributes:
        values: by attribute, canonical.
        hashed: those of all attributes.
        data: what is sealed.
    """

    values: Mapping[str, Value]
    hashed: Sequence[int]
    data: bytes


@attrs.define(eq=False, slots=False)
class EventPublisher:
    """Publishes for the applications of one peer.

    Attributes:
        version: of the schema that events are made by.

    Args:
        on_last: told of a last value that is acknowledged, and given all of its event.
        now: Unix seconds.
    """

    _key: int
    _core: Core
    _authentication: EventAuthentication
    _publications: Publications
    _order: PublicationOrder
    _on_last: Callable[[Event, bytes], None]
    _version: SchemaVersion
    _hashes: Sequence[OrderPreservingHash]
    _draws: random.Random
    _now: Callable[[], float]

    def __attrs_post_init__(self) -> None:
        self.change_schema(self._version)

    def change_schema(self, version: SchemaVersion) -> None:
        """Make events by a later version of the schema from now on."""
        self.version = version
        self._format = EventFormat(version)

    async def publish(
        self,
        events: Sequence[Mapping[str, object]],
        times: Sequence[int],
        payload: Payload | None,
        application: Hashable,
    ) -> list[Outcome]:
        """Publish events of these values, of ``times`` in the order of all; return what came of it.

        Args:
            events: of attributes and their values.
            times: of each, of `PublicationOrder.reserve`.
            payload: of all.
            application: whose they are; those of each take turns.
        """
        made = [
            self._content(values, time, payload) for values, time in zip(events, times, strict=True)
        ]
        both = zip(made, times, strict=True)
        good = [(one, time) for one, time in both if isinstance(one, _Content)]
        sealed = await self._seal([(one.data, one.hashed) for one, _ in good])
        by_event = dict[int, tuple[Sealed, bytes, int]]()
        for one, (content, time) in zip(sealed, good, strict=True):
            by_event[one.event] = one, content.data, time
            self._order.note(time, one.event, content.values)

        def on_held(event: int) -> None:
            one, content, time = by_event[event]
            self._order.settle(time)
            if may_be_last(content):
                self._on_last(self._format.from_bytes(event, content), one.content)

        failed = await self._publications.publish(sealed, on_held, application) if sealed else {}
        published = iter(failed.get(one.event, one.event) for one in sealed)
        return [next(published) if isinstance(one, _Content) else one for one in made]

    async def announce(self, expression: str, data: bytes) -> None:
        """Publish an event that comes to all who subscribe to ``expression``, and says ``data``.

        Raises:
            ExpressionError: the expression does not fit the schema, or matches nothing.
            NotAcknowledged, PeerStopped: as of `Peer.publish`.
        """
        wanted = parse_expression(self.version.known, expression)
        boxes = cover(self.version.known, self._hashes, wanted)
        if not boxes:
            raise ExpressionError(expression, 1, "no event can match all of this")
        values = self.version.check_event(some_event(self.version))
        payload = Payload(data, ANNOUNCEMENT_TYPE)
        content = self._format.to_bytes(values, self._key, self._now(), payload)
        (sealed,) = await self._seal([(content, corner_of(boxes[0]))])
        failed = await self._publications.publish([sealed], lambda _: None)
        if failed:
            raise failed[sealed.event]

    def _content(
        self, values: Mapping[str, object], time: int, payload: Payload | None
    ) -> _Content | NodeError | ContentError:
        """What an event says, or what is wrong with it."""
        try:
            exact = self.version.check_event(values)
        except ContentError as error:
            return error
        data = self._format.to_bytes(exact, self._key, time / 1e6, payload)
        if len(data) > MAX_EVENT_BYTES:
            return RequestError(
                f"an event of {len(data)} bytes, expected at most {MAX_EVENT_BYTES}"
            )
        return _Content(exact, encode_values(self._hashes, exact), data)

    async def _seal(self, events: Sequence[tuple[bytes, Sequence[int]]]) -> list[Sealed]:
        """Events of this content and these hashed values."""
        draws = [self._draws.getrandbits(ID_BITS) for _ in events]
        points = self._core.points_of([hashed for _, hashed in events], draws)
        unsealed = [
            Unsealed(data, draw.to_bytes(DRAW_BYTES, "big"), point_bytes(point))
            for (data, _), draw, point in zip(events, draws, points, strict=True)
        ]
        all_sealed = await self._authentication.seal(unsealed)
        return [
            Sealed(identifier(sealed), sealed, point)
            for sealed, point in zip(all_sealed, points, strict=True)
        ]
