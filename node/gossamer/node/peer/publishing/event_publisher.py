"""Makes events of what applications publish, and has them sealed, noted and published."""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import NamedTuple

from gossamer.node.errors import NodeError, RequestError
from gossamer.node.peer.frames.core import Core
from gossamer.node.peer.frames.event_authentication import (
    EventAuthentication,
    Unsealed,
    point_bytes,
)
from gossamer.node.peer.frames.events import Event, EventFormat
from gossamer.node.peer.publishing.publications import Publications, Sealed
from gossamer.node.peer.unicast.last_values import may_be_last
from gossamer.node.peer.unicast.messages import ANNOUNCEMENT_TYPE, corner_of, some_event
from gossamer.node.peer.unicast.order import PublicationOrder
from gossamer.node.security.sealing import DRAW_BYTES, ID_BITS, identifier
from gossamer.protocol.content.errors import ContentError
from gossamer.protocol.content.filters.expressions import parse_expression
from gossamer.protocol.content.limits import MAX_EVENT_BYTES
from gossamer.protocol.content.schema import SchemaVersion
from gossamer.protocol.content.values import Payload, Value
from gossamer.protocol.kernel.errors import ExpressionError
from gossamer.protocol.peer.space.covering import cover
from gossamer.protocol.peer.space.encoding import encode_values
from gossamer.protocol.peer.space.hashing import OrderPreservingHash

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


class EventPublisher:
    """Publishes for the applications of one peer.

    Attributes:
        version: of the schema that events are made by.

    Args:
        key: the peer's permanent key.
        core: the peer's.
        authentication: seals events.
        publications: those under way.
        order: in which they are published.
        on_last: told of a last value that is acknowledged, and given all of its event.
        version: of the schema.
        hashes: of its attributes.
        draws: spreads events of one value.
        now: Unix seconds.
    """

    def __init__(
        self,
        key: int,
        core: Core,
        authentication: EventAuthentication,
        publications: Publications,
        order: PublicationOrder,
        on_last: Callable[[Event, bytes], None],
        version: SchemaVersion,
        hashes: Sequence[OrderPreservingHash],
        draws: random.Random,
        now: Callable[[], float],
    ) -> None:
        self._key = key
        self._core = core
        self._authentication = authentication
        self._publications = publications
        self._order = order
        self._on_last = on_last
        self._hashes = hashes
        self._draws = draws
        self._now = now
        self.change_schema(version)

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
