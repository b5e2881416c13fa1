"""The events of one publisher in its order, and the last identifiers of many in little memory.

Each publisher's events have times that only grow, and the publisher remembers its last ones. A
subscriber gets only what matches, so that gaps say nothing: of an event that comes, its peer asks
the publisher which matching events it published before, and what became of them. It holds the event
back until these are here or known to come no more:

    pending       the publisher waits for its acknowledgement: the subscriber waits, too
    acknowledged  it is held by others and comes by itself: the subscriber waits for `patience`
    given up      nobody acknowledged it in time: it is not waited for

Where the publisher does not answer, or does not remember that far, the event is held back for
`patience`. What comes after a later event has been handed on is handed on at once, as **late**: an
event is never lost for the sake of order.

Where a clock was ahead for a while and is right again (`cluster_clock`), times begin anew: for the
publisher with the next event, for a subscriber with the next event that comes.

All times of publishers are whole microseconds; those of this peer are seconds of one clock that
never goes back.
"""

from __future__ import annotations

import enum
from array import array
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
from attrs import define, frozen

from gossamer.protocol.patterns.last_values import BOUND_S

T = TypeVar("T")

# Events that a publisher remembers, and matching ones that it names in an answer.
REMEMBERED: Final = 8192
LISTED: Final = 1024
# Seconds after which a publisher is asked again while its events wait.
ASK_AGAIN_S: Final = 0.5
# How far before the first event of a publisher it is asked for earlier ones, in microseconds.
BEFORE_FIRST: Final = 5_000_000
# How far the last event's time may be ahead of what is believed to be now, in microseconds.
AHEAD: Final = round(BOUND_S * 1e6)


class Fate(enum.IntEnum):
    """What became of an event, as its publisher knows."""

    PENDING = 0
    ACKNOWLEDGED = 1
    GIVEN_UP = 2


class Listed(NamedTuple):
    """An event that a publisher remembers.

    Attributes:
        time: when it was published, in microseconds.
        event: its id; 0 as long as it has none.
        fate: what became of it.
    """

    time: int
    event: int
    fate: Fate


@define(eq=False)
class _Published(Generic[T]):
    time: int
    event: int = 0
    fate: Fate = Fate.PENDING
    content: T | None = None


class PublishedLog(Generic[T]):
    """The last events that a publisher published, oldest first; the times of events are from here.

    Attributes:
        since: events of later times are all remembered.
    """

    def __init__(self, now: int) -> None:
        """A log of nothing, begun at a time in microseconds."""
        self.since = now
        self._entries: list[_Published[T]] = []

    def reserve(self, now: int) -> int:
        """The time of the next event: now, or a microsecond after that of the last one.

        Where that one is of a clock which was ahead, all so far is forgotten.
        """
        last = self._entries[-1].time if self._entries else self.since
        if last > now + AHEAD:
            self._entries.clear()
            self.since = last = now
        entry: _Published[T] = _Published(max(now, last + 1))
        self._entries.append(entry)
        if len(self._entries) > REMEMBERED:
            dropped = REMEMBERED // 4
            self.since = self._entries[dropped - 1].time
            del self._entries[:dropped]
        return entry.time

    def note(self, time: int, event: int, content: T) -> None:
        """The event of a time is about to be published."""
        entry = self._find(time)
        if entry is not None:
            entry.event, entry.content = event, content

    def settle(self, time: int) -> None:
        """The event of a time is acknowledged."""
        entry = self._find(time)
        if entry is not None:
            entry.fate = Fate.ACKNOWLEDGED

    def give_up(self, time: int) -> None:
        """Nobody waits for the event of a time any more, if it is not acknowledged by now."""
        entry = self._find(time)
        if entry is not None and entry.fate is Fate.PENDING:
            entry.fate = Fate.GIVEN_UP

    def between(
        self, after: int, until: int, wanted: Callable[[T], bool]
    ) -> tuple[int, int, list[Listed]]:
        """The events in a span of time that may be wanted.

        Returns the span for which the answer is whole, which may be shorter at both ends, and the
        events; those whose content is not known yet are among them.
        """
        begin = bisect_right(self._entries, after, key=lambda entry: entry.time)
        found: list[Listed] = []
        for entry in self._entries[begin:]:
            if entry.time > until:
                break
            if len(found) == LISTED:
                return max(after, self.since), found[-1].time, found
            was_published = entry.content is not None or entry.fate is Fate.PENDING
            if was_published and (entry.content is None or wanted(entry.content)):
                found.append(Listed(entry.time, entry.event, entry.fate))
        return max(after, self.since), until, found

    def _find(self, time: int) -> _Published[T] | None:
        place = bisect_left(self._entries, time, key=lambda entry: entry.time)
        if place < len(self._entries) and self._entries[place].time == time:
            return self._entries[place]
        return None


@frozen
class Released(Generic[T]):
    """An event that is handed on.

    Attributes:
        item: the event.
        late: whether a later one of the same publisher was handed on before.
    """

    item: T
    late: bool = False


@define(eq=False)
class _Waiting(Generic[T]):
    item: T
    since: float


class Sequencer(Generic[T]):
    """The events of one publisher at one subscriber.

    Attributes:
        waiting: how many are held back.
    """

    def __init__(
        self, begins: int, patience: float, is_known: Callable[[int], bool] = lambda _: False
    ) -> None:
        """A subscriber that has got nothing of the publisher yet.

        Args:
            begins: microseconds at which the subscription began; earlier events are not waited for.
            patience: seconds, see above.
            is_known: whether the subscriber has got an event before, by its id.
        """
        self._begins = begins
        self._patience = patience
        self._is_known = is_known
        self._through: int | None = None  # events up to here were handed on, or do not match
        self._has_passed = False
        self._covered = -1  # up to here the publisher has said what there is
        self._blind_until = -1.0
        self._waiting: dict[int, _Waiting[T]] = {}
        self._missing: dict[int, tuple[Fate, float]] = {}
        self._asked_at = float("-inf")

    @property
    def waiting(self) -> int:
        """How many events are held back."""
        return len(self._waiting)

    def take(self, time: int, item: T, now: float, latest: int) -> list[Released[T]]:
        """An event comes; return what is handed on by that.

        Args:
            time: when it was published.
            item: the event.
            now: seconds.
            latest: the latest time of an event that can be believed, in microseconds.
        """
        if self._through is not None and self._through > latest:
            self._forget()
        if self._through is None:
            self._through = min(time - 1, max(self._begins, time - BEFORE_FIRST))
            self._covered = self._through
        self._missing.pop(time, None)
        if time <= self._through:
            return [Released(item, late=True)]
        self._waiting[time] = _Waiting(item, now)
        return self.release(now)

    def question(self, now: float) -> tuple[int, int] | None:
        """The span of time to ask the publisher about, None where there is nothing to ask."""
        if not self._waiting or self._through is None:
            return None
        last = max(self._waiting)
        is_new = last > self._covered
        if not is_new and now - self._asked_at < ASK_AGAIN_S:
            return None
        self._asked_at = now
        return self._through, last

    def answer(
        self, after: int, span: tuple[int, int], listed: Iterable[Listed], now: float
    ) -> list[Released[T]]:
        """The publisher says what it published; return what is handed on by that.

        Args:
            after: where the span began that it was asked about.
            span: for which its answer is whole.
            listed: what it published in that.
            now: seconds.
        """
        since, until = span
        assert self._through is not None
        forgot = since > max(after, self._through) and self._covered < since
        if forgot and self._has_passed and self._blind_until < 0:
            self._blind_until = now + self._patience
        found = {
            one.time: one.fate
            for one in listed
            if one.fate is not Fate.GIVEN_UP
            and one.time > self._through
            and one.time not in self._waiting
            and not (one.event and self._is_known(one.event))
        }
        for time in [one for one in self._missing if since < one <= until and one not in found]:
            del self._missing[time]
        for time, fate in found.items():
            before = self._missing.get(time)
            if before is None or before[0] is not fate:
                self._missing[time] = (fate, now)
        self._covered = max(self._covered, until)
        return self.release(now)

    def release(self, now: float) -> list[Released[T]]:
        """What is handed on because of the time; also where too much waits, see `release_one`."""
        released = []
        for time in sorted(self._waiting):
            if not self._may_pass(time, now):
                break
            released.append(Released(self._pass(time)))
        if not self._waiting:
            self._blind_until = -1.0
        return released

    def release_one(self) -> Released[T]:
        """Hand on the earliest event that waits, though an earlier one may come."""
        return Released(self._pass(min(self._waiting)))

    def _forget(self) -> None:
        """Know of nothing that came; what waits goes on as it is."""
        self._through, self._has_passed = None, False
        self._covered, self._blind_until = -1, -1.0
        self._missing.clear()

    def _may_pass(self, time: int, now: float) -> bool:
        patient = now - self._waiting[time].since < self._patience
        if time > self._covered:
            return not patient  # the publisher does not answer
        if now < self._blind_until and patient:
            return False
        return not any(
            fate is Fate.PENDING or now - since < self._patience
            for missing, (fate, since) in self._missing.items()
            if missing < time
        )

    def _pass(self, time: int) -> T:
        self._through, self._has_passed = time, True
        for missing in [one for one in self._missing if one < time]:
            del self._missing[missing]
        return self._waiting.pop(time).item


# The last identifiers of many, in little memory.
#
# A peer remembers tens of thousands of events that it has dealt with, for as long as it runs. A
# dictionary takes some 140 bytes for each; here they are sorted words, of 16.


# Identifiers that are sorted in at once: a search takes longer the more wait, and sorting is dear.
BLOCK: Final = 1024

Words = npt.NDArray[np.int64]


class RecentNumbers:
    """The last different numbers that were added, of those that fit into a signed word of 64 bits.

    What is forgotten are the oldest, so many at a time that between ``most`` less `BLOCK` and
    ``most`` numbers are remembered once there were that many.

    Args:
        most: how many are remembered at most, at least twice `BLOCK`.
        numbers: the first ones, oldest first.
    """

    def __init__(self, most: int, numbers: Iterable[int] = ()) -> None:
        assert most >= 2 * BLOCK
        self._most = most
        self._new: dict[int, None] = {}
        self._blocks: deque[Words] = deque()
        # To look into an array of NumPy's costs several times as much as into one of Python's.
        self._sorted = array("q")
        for number in numbers:
            self._new[number] = None
        if len(self._new) >= BLOCK:
            known = np.fromiter(self._new, np.int64, len(self._new))[-(most - BLOCK) :]
            # The oldest are the block that may be smaller.
            self._blocks.extend(np.split(known, range(len(known) % BLOCK, len(known), BLOCK)))
            self._new = {}
            self._sort()

    def __contains__(self, number: int) -> bool:
        if number in self._new:
            return True
        place = bisect_left(self._sorted, number)
        return place < len(self._sorted) and self._sorted[place] == number

    def __len__(self) -> int:
        return len(self._new) + len(self._sorted)

    def add(self, number: int) -> None:
        """Remember a number that is not remembered yet."""
        self._new[number] = None
        if len(self._new) == BLOCK:
            self._blocks.append(np.fromiter(self._new, np.int64, BLOCK))
            self._new = {}
            while sum(map(len, self._blocks)) + BLOCK > self._most:
                self._blocks.popleft()
            self._sort()

    def _sort(self) -> None:
        self._sorted = array("q", np.sort(np.concatenate(self._blocks)).tobytes())
