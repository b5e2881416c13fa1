"""One peer of the protocol, driven record by record: no clock, no network, no other peers.

Records are lists of Python integers here, which interpreted rules read several times faster than
arrays. The peer knows itself as handle `SELF`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

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
from gossamer.protocol.peer.record_table.records import (
    CATCH_UP,
    EVENT_VALUES,
    LINK_BROKE,
    PUBLISH,
    WITHDRAW,
)
from gossamer.protocol.peer.rendezvous.arc_return import arc_begins
from gossamer.protocol.peer.settings.config import Settings
from gossamer.protocol.peer.settings.profile import IDENTIFIER
from gossamer.protocol.peer.space.routing_key import held_boxes, point_of
from gossamer.protocol.peer.state.links import HANDLE_MASK
from gossamer.protocol.peer.state.state import COUNTERS, State, make_state

Record = list[int]

SELF: Final = 0


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
        self._unboxed = self.state.unboxed()
        # The system gives memory to what is written, a small part of it.
        self._words = np.zeros(rules.largest_step(settings), np.int64).data
        self._cursor = [0] * CURSORS
        self._out = Outbox(self._words, self._cursor)  # type: ignore[arg-type]
        self._step = rules.step.linked

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
    def is_alone(self) -> bool:
        """Whether it knows nobody."""
        return not self.members() and max(self.neighbours(), default=-1) < 0

    def take(self, record: Record) -> list[Record]:
        """Take a record, which may be overwritten; return what this peer wants to happen.

        Raises:
            CapacityError: a step wrote more than any should; its last records are lost.
        """
        words, cursor = self._words, self._cursor
        cursor[:] = [0] * CURSORS
        self._step(self._unboxed, SELF, self.now, record, 0, self._out)
        if cursor[REFUSED]:
            raise CapacityError("a peer's outbox", len(words))
        written = []
        at = 0
        while at < cursor[TAIL]:
            end = at + words[at + LENGTH]
            written.append(words[at:end].tolist())
            at = end
        return written

    def timer(self, kind: int) -> Record:
        """The record of a timer that fires."""
        return [BODY, kind, SELF, SELF]

    def publish(self, event: int, values: Sequence[int]) -> Record:
        """The command to publish an event of these hashed values."""
        # What stands before the values, but for the event, is not read.
        point = point_of(self.settings, values, event)
        return header(PUBLISH, SELF, [event, *[0] * (EVENT_VALUES - 1), *point])

    def withdraw(self, event: int) -> Record:
        """The command to wait for no acknowledgement of an event any more."""
        return header(WITHDRAW, SELF, [event])

    def catch_up(self, rounds: int) -> Record:
        """The command to ask for what was missed in so many rounds."""
        return header(CATCH_UP, SELF, [rounds])

    def link_broke(self, handle: int) -> Record:
        """The news that what was on its way to a peer may be lost."""
        return header(LINK_BROKE, SELF, [handle])

    def join(self, contact: int, profile: Sequence[int]) -> Record:
        """The command to join through ``contact``, whose profile is given."""
        made: Record = rules.join_record(SELF, contact, np.array(profile, np.int64)).tolist()
        return made

    def subscribe(self, boxes: Sequence[Box]) -> None:
        """Let the subscriptions be these and no others; beyond that nothing happens at once.

        Raises:
            CapacityError: there are more than the settings allow; nothing changed.
        """
        limit = self.settings.subscriptions
        if len(boxes) > limit:
            raise CapacityError("subscriptions", limit, "raise protocol.subscriptions")
        ranges = np.array([box.ranges for box in boxes], np.int64)
        masks = np.array([box.constrained for box in boxes], np.int64)
        shape = len(boxes), 2 * self.settings.attributes
        held, masks = held_boxes(self.settings, ranges.reshape(shape), masks)
        rules.subscribe(self.state, SELF, held, masks)

    def restart(self) -> None:
        """Forget everybody, and keep subscriptions and what was delivered."""
        rules.restart(self.state, SELF)


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
