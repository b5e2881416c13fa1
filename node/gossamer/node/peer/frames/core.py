"""One peer of the protocol, driven record by record: no clock, no network, no other peers.

Records are lists of Python integers here, which interpreted rules read several times faster than
arrays. The peer knows itself as handle `SELF`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import attrs
import numpy as np

from gossamer.protocol.kernel.errors import CapacityError
from gossamer.protocol.kernel.records import (
    BODY,
    CURSORS,
    FROM,
    KIND,
    LENGTH,
    REFUSED,
    TAIL,
    TO,
    UNREACHABLE,
    Outbox,
)
from gossamer.protocol.peer import step as rules
from gossamer.protocol.peer.quiet import quiet_rounds
from gossamer.protocol.peer.record_table.records import (
    COMPARE_SOON,
    EVENT_VALUES,
    LINK_BROKE,
    PUBLISH,
    ROUNDS_SKIPPED,
    WITHDRAW,
)
from gossamer.protocol.peer.recovery.repairing import lack
from gossamer.protocol.peer.rendezvous.arc_return import arc_begins
from gossamer.protocol.peer.rendezvous.delivery import note_delivered
from gossamer.protocol.peer.settings.config import Settings
from gossamer.protocol.peer.settings.profile import IDENTIFIER
from gossamer.protocol.peer.space.ring import RING_BITS, held_boxes, point_of, points_of
from gossamer.protocol.peer.state.event_logs import IS_WHOLE
from gossamer.protocol.peer.state.links import HANDLE_MASK
from gossamer.protocol.peer.state.state import COUNTERS, State, make_state
from gossamer.protocol.peer.topology.placement import Int64s, want_place

Record = list[int]
# What a step wrote, as words, and the cursors of its outbox.
Written = tuple[memoryview, Sequence[int]]

SELF: Final = 0
# Events whose points are found sooner all at once, by arrays, than one by one.
WORTH_ARRAYS: Final = 4


class Delivery(NamedTuple):
    """An event that has reached a peer which wants it.

    Attributes:
        event: its identifier.
        hops: how many peers it came through from its publisher.
        tree_hops: how many of them in its delivery tree.
        brought_by: key of the neighbour that it came from, the peer's own for its own events.
    """

    event: int
    hops: int
    tree_hops: int
    brought_by: int


@attrs.frozen
class Box:
    """A subscription as the protocol knows it.

    Attributes:
        ranges: lowest and highest hashed value of every attribute, one after another.
        constrained: bit a is set where attribute a is constrained.
    """

    ranges: tuple[int, ...]
    constrained: int


class Core:
    """A peer's state, and the one door to it.

    Attributes:
        state: of one row, `SELF`.
        settings: what its rules go by.
        now: the round, which only timestamps of samplers follow.
    """

    def __init__(self, settings: Settings, key: int, identifier: int | None = None) -> None:
        """A peer that knows nobody.

        Args:
            settings: those of the overlay; the seed may be this peer's own.
            key: its permanent key.
            identifier: where it stands on the ring; by default at its key.
        """
        identifiers = None if identifier is None else np.array([identifier], np.int64)
        self.settings = settings
        self.state: State = make_state(settings, 1, np.array([key], np.int64), identifiers)
        self.now = 0
        # By subscription: to cut one into intervals of keys takes a while.
        self._held: dict[Box, list[Box]] = {}
        self._unboxed = self.state.unboxed()
        # The system gives memory to what is written, a small part of it.
        self._words = np.zeros(rules.largest_step(settings), np.int64).data
        self._cursor = [0] * CURSORS
        self._out = Outbox(self._words, self._cursor)  # type: ignore[arg-type]
        self._step = rules.step.linked
        self._take: Callable[[Record, int], Written] = self._take_interpreted

    @property
    def profile(self) -> tuple[int, ...]:
        """What this peer tells of itself."""
        return tuple(self.state.sampler.profile[SELF].tolist())

    @property
    def identifier(self) -> int:
        """Its place on the ring."""
        return int(self.state.sampler.profile[SELF, IDENTIFIER])

    @property
    def arc_start(self) -> int:
        """Where the part of the ring begins that it answers for."""
        return int(arc_begins.interpreted(self.state, SELF))

    @property
    def counters(self) -> list[int]:
        """The counters of `gossamer.protocol.peer.state.state`."""
        counters: list[int] = self.state.counters[SELF].tolist()
        assert len(counters) == COUNTERS
        return counters

    def neighbours(self) -> list[int]:
        """Handles of the link slots, in their order; -1 where one is empty."""
        return [word & HANDLE_MASK if word >= 0 else -1 for word in self.state.links[SELF].tolist()]

    def members(self) -> list[int]:
        """Handles of the random view."""
        return [word & HANDLE_MASK for word in self.state.sampler.views[SELF].tolist() if word >= 0]

    @property
    def is_whole(self) -> bool:
        """Whether nothing is known to be missing here."""
        return bool(self.state.comparison[SELF, IS_WHOLE : IS_WHOLE + 1].all())

    @property
    def is_alone(self) -> bool:
        """Whether it knows nobody."""
        return not self.members() and max(self.neighbours(), default=-1) < 0

    def take(self, record: Record) -> list[Record]:
        """Take a record, which may be overwritten; return what this peer wants to happen.

        Raises:
            CapacityError: a step wrote more than any should; its last records are lost.
        """
        out, cursor = self._take(record, self.now)
        if cursor[REFUSED]:
            raise CapacityError("a peer's outbox", len(out))
        words = out[: cursor[TAIL]].tolist()
        written = []
        at = 0
        while at < len(words):
            end = at + words[at + LENGTH]
            written.append(words[at:end])
            at = end
        return written

    def take_by(self, take: Callable[[Record, int], Written]) -> None:
        """Let another form of `step` take what comes: a record, and the time in rounds."""
        self._take = take

    def _take_interpreted(self, record: Record, now: int) -> Written:
        cursor = self._cursor
        cursor[:] = [0] * CURSORS
        self._step(self._unboxed, SELF, now, record, 0, self._out)
        return self._words, cursor

    def quiet_rounds(self) -> int:
        """For how many rounds from now it sends nothing if nothing comes."""
        return int(quiet_rounds.linked(self._unboxed, SELF))

    def timer(self, kind: int) -> Record:
        """The record of a timer that fires."""
        return [BODY, kind, SELF, SELF]

    def point_of(self, values: Sequence[int], draw: int) -> Sequence[int]:
        """Where an event of these hashed values is; a number drawn for it spreads equal ones."""
        return point_of(self.settings, values, draw)

    def points_of(
        self, values: Sequence[Sequence[int]], draws: Sequence[int]
    ) -> Sequence[Sequence[int]]:
        """`point_of` for each of many events."""
        if len(values) < WORTH_ARRAYS:
            return [*map(self.point_of, values, draws)]
        hashed, drawn = np.array(values, np.int64), np.array(draws, np.int64)
        points: list[list[int]] = points_of(self.settings, hashed, drawn).tolist()
        return points

    def publish(self, event: int, point: Sequence[int]) -> Record:
        """The command to publish an event at this point."""
        # What stands before the values, but for the event, is not read.
        return header(PUBLISH, SELF, [event, *[0] * (EVENT_VALUES - 1), *point])

    def withdraw(self, event: int) -> Record:
        """The command to wait for no acknowledgement of an event any more."""
        return header(WITHDRAW, SELF, [event])

    def rounds_skipped(self, rounds: int) -> Record:
        """The news that the peer was held up for so many rounds, which others have counted."""
        return header(ROUNDS_SKIPPED, SELF, [rounds])

    def compare_soon(self, handle: int) -> Record:
        """The news for a peer that it was not sent all that is for it."""
        return [BODY, COMPARE_SOON, handle, SELF]

    def link_broke(self, handle: int) -> Record:
        """The news that what was on its way to a peer may be lost."""
        return header(LINK_BROKE, SELF, [handle])

    def join(self, contact: int, profile: Sequence[int]) -> Record:
        """The command to join through ``contact``, whose profile is given."""
        made: Record = rules.join_record(SELF, contact, np.array(profile, np.int64)).tolist()
        return made

    def subscribe(self, boxes: Mapping[Box, int] | Sequence[Box]) -> None:
        """Let the subscriptions be these and no others; beyond that nothing happens at once.

        Those of a mapping are in force for so many rounds already: what was missed is made good.

        Raises:
            CapacityError: there are more than the settings allow; nothing changed.
        """
        limit = self.settings.subscriptions
        if len(boxes) > limit:
            raise CapacityError("subscriptions", limit, "raise protocol.subscriptions")
        settings = self.settings
        self._held = {box: self._held.get(box) or _held_rows(settings, box) for box in boxes}
        rows = [row for held in self._held.values() for row in held]
        past = boxes if isinstance(boxes, Mapping) else dict.fromkeys(boxes, 0)
        since_when = np.array([past[box] for box, held in self._held.items() for _ in held])
        rules.subscribe(self.state, SELF, *_arrays(settings.coordinates, rows), since_when)
        if settings.placement == "interest":
            want_place(self.state, settings, SELF, *_arrays(settings.attributes, [*boxes]))

    def wanted_arcs(self) -> Iterator[list[tuple[int, int]]]:
        """For each subscription, the parts of the ring at which events lie that it may want."""
        for box, rows in self._held.items():
            if self.settings.routes_by_key:
                yield [(row.ranges[-2], row.ranges[-1]) for row in rows]
                continue
            ends = list(zip(box.ranges[0::2], box.ranges[1::2], strict=True))
            named = [one for place, one in enumerate(ends) if box.constrained >> place & 1]
            yield named or [(0, (1 << RING_BITS) - 1)]

    def has_got(self, events: Iterable[int]) -> None:
        """The applications have these events, as from a process of before."""
        for event in events:
            note_delivered.interpreted(self.state, SELF, event)

    def lacks(self, event: int) -> None:
        """The applications were not given an event that was delivered: it is asked for again."""
        lack.interpreted(self.state, SELF, event)

    def restart(self) -> None:
        """Forget everybody, and keep subscriptions and what was delivered."""
        rules.restart(self.state, SELF)


def _arrays(coordinates: int, boxes: Sequence[Box]) -> tuple[Int64s, Int64s]:
    """Boxes as the rules take them."""
    ranges = np.array([box.ranges for box in boxes], np.int64)
    return ranges.reshape(-1, 2 * coordinates), np.array(
        [box.constrained for box in boxes], np.int64
    )


def _held_rows(settings: Settings, box: Box) -> list[Box]:
    """A subscription as the overlay holds it: a box for every interval of keys."""
    ranges, bits = held_boxes(settings, *_arrays(settings.attributes, [box]))
    rows = zip(ranges.tolist(), bits.tolist(), strict=True)
    return [Box(tuple(ends), constrained) for ends, constrained in rows]


def unreachable(record: Record) -> Record:
    """A copy of ``record`` as it comes back to whom it was from."""
    copy = list(record)
    copy[KIND] += UNREACHABLE
    return copy


def header(kind: int, source: int, body: Sequence[int]) -> Record:
    """A record to this peer."""
    record = [BODY + len(body), kind, SELF, source, *body]
    assert record[TO] == SELF
    assert record[FROM] == source
    return record
