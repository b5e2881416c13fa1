"""Subscriptions of applications: what they want, and the events that wait for them."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Final, Self

import attrs
import trio

from gossamer.node.errors import RequestError, brief
from gossamer.node.monitoring.logs import log
from gossamer.node.monitoring.metrics import Counters
from gossamer.node.peer.frames.core import Box
from gossamer.node.peer.frames.events import Event
from gossamer.node.store.store import StoredSubscription
from gossamer.protocol.content.filters.expressions import Expression, parse_expression
from gossamer.protocol.content.schema import Schema
from gossamer.protocol.kernel.errors import CapacityError, ExpressionError
from gossamer.protocol.peer.space.covering import MOST_BOXES, coarser, cover
from gossamer.protocol.peer.space.encoding import EncodedBox
from gossamer.protocol.peer.space.hashing import OrderPreservingHash

# Events noted as delivered in one write.
BATCH: Final = 256
DEFAULT_ROOM: Final = 4096
# Events that an application is given in one turn of the event loop, at least; where more wait, such
# a share of them: a turn is long when a peer is busy, and so many more come in it.
TURN: Final = 16
SHARE: Final = 8

# Notes that an application gets events; says which it has not got before.
Mark = Callable[[str, Sequence[Event]], Awaitable[Sequence[Event]]]

Cover = tuple[EncodedBox, ...]


@attrs.define(eq=False, slots=False)
class Subscription:
    """A stream of the events that match an expression; for one task at a time.

        async with peer.subscribe('price > 80') as events:
            async for event in events:
                ...

    Events wait here until they are taken. Where more than ``room`` wait, the oldest is dropped,
    counted and logged: a slow application loses events, and holds up nobody else.

    Attributes:
        expression: its text.
        name: of the application, "" where it has none.
        dropped: how many events found no room.
        cover: boxes that hold all that matches, by which events find their way here.
        since: by the clock, when it came in force; infinitely long ago where nobody knows.
    """

    _wanted: Expression
    cover: Cover
    name: str
    _room: int
    _mark: Mark | None
    _on_close: Callable[[Subscription], None]
    since: float

    def __attrs_post_init__(self) -> None:
        self.expression = self._wanted.text
        self.dropped = 0
        self._wants = self._wanted.matches
        self._waiting: deque[Event] = deque()
        self._ready: deque[Event] = deque()
        self._news = trio.Event()
        self._closed = True
        self._left_of_turn = 0
        self._lost = 0

    @property
    def is_open(self) -> bool:
        """Whether somebody takes events from it."""
        return not self._closed

    def open(self) -> None:
        """Let events be taken from it until it is closed."""
        self._closed = False

    def matches(self, event: Event) -> bool:
        """Whether the event's exact values meet the expression."""
        return self._wants(event.values)

    def offer(self, event: Event) -> bool:
        """Let an event wait here; False if another was dropped for it."""
        self._waiting.append(event)
        self._news.set()
        if len(self._waiting) <= self._room:
            return True
        self._waiting.popleft()
        self.dropped += 1
        if self._lost == 0:
            log.warning("an application is too slow: it loses events", **self._named())
        self._lost += 1
        return False

    def close(self) -> None:
        """End the stream; what waits can still be taken.

        Events go on to wait for an application that has a name, until it comes back or
        `Peer.unsubscribe` is called; without a name nothing is wanted any more.
        """
        if not self._closed:
            self._closed = True
            self._news.set()
            self._on_close(self)

    def __len__(self) -> int:
        """How many events wait."""
        return len(self._waiting) + len(self._ready)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        # Others have their turn once in so many events: it costs as much as an event does.
        if self._left_of_turn:
            await trio.lowlevel.checkpoint_if_cancelled()
            self._left_of_turn -= 1
        else:
            await trio.lowlevel.checkpoint()
            self._left_of_turn = max(TURN, len(self) // SHARE) - 1
        while not self._ready:
            if not self._waiting:
                if self._closed:
                    raise StopAsyncIteration
                self._news = trio.Event()
                await self._news.wait()
                continue
            await self._make_ready()
        return self._ready.popleft()

    def _named(self) -> dict[str, str]:
        """Whose it is, for people."""
        named = {"name": self.name} if self.name else {}
        return {**named, "subscription": self.expression}

    async def _make_ready(self) -> None:
        """Note a batch of what waits as delivered, and keep what was not delivered before."""
        size = min(len(self._waiting), BATCH)
        batch = [self._waiting.popleft() for _ in range(size)]
        if self._lost and not self._waiting:
            log.warning("an application has caught up", **self._named(), lost=self._lost)
            self._lost = 0
        if self._mark is None:
            self._ready.extend(batch)
            return
        # Cancelled in the middle, events would be noted as delivered and never be.
        with trio.CancelScope(shield=True):
            self._ready.extend(await self._mark(self.name, batch))


@attrs.define(eq=False)
class Subscribers:
    """The subscriptions of one peer.

    Attributes:
        schema, hashes: of the cluster.
        limit: how many different subscriptions there may be, and how many boxes the overlay holds
            for them: with more, those of each subscription are coarser (setting `subscriptions`).
        counters: where dropped and delivered events are counted.
        on_change: told the boxes wanted whenever they change, and for how many seconds each is
            in force already.
        on_named: told name and expression of a subscription that is to outlive the peer, and
            whether it is wanted or not any more.
        mark: notes deliveries to named applications, None where nothing is kept.
        clock: seconds.
    """

    schema: Schema
    hashes: Sequence[OrderPreservingHash]
    limit: int
    counters: Counters
    on_change: Callable[[Mapping[Box, float]], None]
    on_named: Callable[[str, str, bool], None] = lambda _name, _expression, _wanted: None
    mark: Mark | None = None
    clock: Callable[[], float] = trio.current_time
    _all: list[Subscription] = attrs.field(factory=list)
    _closed: bool = False

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[Subscription]:
        return iter(list(self._all))

    def add(
        self, expression: str, name: str = "", room: int = DEFAULT_ROOM, past_s: float = 0.0
    ) -> Subscription:
        """A subscription in force for ``past_s``; that of a named application may be there already.

        Raises:
            ExpressionError: the expression does not parse or fit the schema; nothing changed.
            CapacityError: there are as many as allowed; nothing changed.
            RequestError: the application takes events from it already; nothing changed.
        """
        kept = self._find(expression, name)
        if kept is None:
            kept = self.restore(expression, name, room, past_s)
            if name:
                self.on_named(name, expression, True)
        elif kept.is_open:
            raise RequestError(
                f"application {brief(name)} takes events of {brief(expression)} already, "
                "expected another name or the end of that stream"
            )
        kept.open()
        return kept

    def restore(
        self, expression: str, name: str, room: int = DEFAULT_ROOM, past_s: float = 0.0
    ) -> Subscription:
        """A new subscription for which events wait; raises as `add`."""
        wanted = parse_expression(self.schema, expression)
        boxes = cover(self.schema, self.hashes, wanted)
        if not boxes:
            raise ExpressionError(expression, 1, "no event can match all of this")
        covers = self._covers()
        if boxes not in covers and len(covers) >= self.limit:
            raise CapacityError("subscriptions", self.limit, "raise protocol.subscriptions")
        mark = self.mark if name else None
        since = self.clock() - past_s
        made = Subscription(wanted, boxes, name, room, mark, self._on_close, since)
        self._all.append(made)
        if past_s > 0 or boxes not in covers:
            self._tell()
        return made

    def recall(self, kept: Iterable[StoredSubscription], now: float) -> None:
        """Restore what applications with names wanted before this peer was started.

        By Unix time ``now``: what is of later, the clock was set back.
        """
        for stored in kept:
            try:
                self.restore(stored.expression, stored.client, past_s=stored.past_s(now))
            except (ExpressionError, CapacityError) as error:
                # The schema or the settings have changed since.
                log.warning(
                    "a kept subscription is of no use", name=stored.client, cause=str(error)
                )

    def remove(self, expression: str, name: str) -> bool:
        """Want this no more for a named application; return whether it was wanted."""
        kept = self._find(expression, name) if name else None
        if kept is None:
            return False
        self._remove(kept)
        kept.close()
        self.on_named(name, expression, False)
        return True

    def deliver(self, event: Event) -> bool:
        """Offer an event to all who want it; return whether anybody does."""
        takers = [one for one in self._all if one.matches(event)]
        for taker in takers:
            self.counters.events_delivered += 1
            if not taker.offer(event):
                self.counters.drop("queue full")
        return bool(takers)

    def close(self) -> None:
        """End all streams; nothing is told of it."""
        self._closed = True
        for subscription in self:
            subscription.close()

    def _find(self, expression: str, name: str) -> Subscription | None:
        """What a named application has asked for before."""
        same = (one for one in self._all if one.name == name and one.expression == expression)
        return next(same, None) if name else None

    def _on_close(self, subscription: Subscription) -> None:
        if not subscription.name:
            self._remove(subscription)

    def _remove(self, subscription: Subscription) -> None:
        self._all.remove(subscription)
        if subscription.cover not in self._covers():
            self._tell()

    def _covers(self) -> dict[Cover, None]:
        """The different covers of all subscriptions, in their order."""
        return dict.fromkeys(subscription.cover for subscription in self._all)

    def _tell(self) -> None:
        """Tell the boxes wanted, as fine as there is room for."""
        if self._closed:
            return
        covers = self._covers()
        most = MOST_BOXES
        while most > 1 and sum(min(len(boxes), most) for boxes in covers) > self.limit:
            most //= 2
        now = self.clock()
        past_s = dict[Box, float]()
        for one in self._all:
            for box in map(_box, coarser(one.cover, most)):
                past_s[box] = max(past_s.get(box, 0.0), now - one.since)
        self.on_change(past_s)


def _box(encoded: EncodedBox) -> Box:
    """A box as the protocol knows it; one of everything is a range of the first attribute."""
    ends = zip(encoded.low, encoded.high, strict=True)
    mask = sum(1 << place for place, known in enumerate(encoded.constrained) if known)
    return Box(tuple(end for pair in ends for end in pair), mask or 1)
