"""Matching composite subscriptions: joins of publications over a time window.

Publications wait once, with the parts that they matched, however many composite subscriptions those
belong to; only publications are kept, not their combinations (as in a Rete, Forgy 1982, but without
its memories between joins). A new one is not brought to every part that it matches: the values that
variables require lead from it to the few publications that may go together with it (`plans`), and
only with those are parts compared. There is no clock here: time is what the caller says, in any
unit. What came before what is told by the order of publications, not by their times.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from attrs import frozen

from gossamer.protocol.content.errors import ContentError
from gossamer.protocol.content.filters.composite import Composite
from gossamer.protocol.content.filters.domains import exact_kind, exact_value
from gossamer.protocol.content.matching.index import MatchingIndex
from gossamer.protocol.content.matching.plans import Bound, Place, Value, agreed, plan
from gossamer.protocol.content.matching.waiting import Waiting, Window

MOST_WAITING: Final = 100_000
MOST_MATCHES: Final = 1_000


@frozen
class CompositeMatch:
    """Publications that together match a composite subscription.

    Attributes:
        id: of the composite subscription.
        alternative: which of its alternatives they match, from 0.
        publications: for each part, what the caller named the publication.
    """

    id: int
    alternative: int
    publications: tuple[object, ...]


class CompositeMatcher:
    """Composite subscriptions, each with an id and a window, matched publication by publication.

    Args:
        compiled: as for `MatchingIndex`, which holds the filters of all parts.
        most_waiting: publications kept, each counted for every different filter of a part that it
            matched; beyond, those that expire first are dropped.
        most_matches: matches that one publication may bring about; the rest is not looked for.

    Attributes:
        dropped: publications dropped before they expired, counted in the same way.
        expired: publications that expired, likewise.
        cut_short: how often a publication at a part had more matches than were looked for.
        waiting: publications that wait, counted as those dropped.
    """

    def __init__(
        self,
        *,
        compiled: bool = False,
        most_waiting: int = MOST_WAITING,
        most_matches: int = MOST_MATCHES,
    ) -> None:
        self.dropped = self.expired = self.cut_short = 0
        self.waiting = 0
        self._index = MatchingIndex(compiled=compiled, covering=False)
        self._most_waiting = most_waiting
        self._most_matches = most_matches
        self._places: dict[int, list[Place]] = {}
        self._window_of: dict[int, Window] = {}
        self._windows: dict[float, Window] = {}
        # How many parts with a filter each window has.
        self._users: dict[int, Counter[Window]] = {}
        # Attributes that variables stand for.
        self._bound: Counter[str] = Counter()
        # When each expires, in which order it came, and where it waits.
        self._queue: list[tuple[float, int, Window, Waiting]] = []
        self._kept = 0
        self._next_id = 0
        self._published = 0

    def __len__(self) -> int:
        """The number of composite subscriptions."""
        return len(self._places)

    def add(self, composite: Composite, window: float) -> int:
        """Add a composite subscription; returns its id.

        Publications match together if they come no further apart than the window. Raises
        `ContentError` unless that is positive.
        """
        if not window > 0:
            raise ContentError("", f"the window is {window}, expected more than 0")
        composite_id = self._next_id
        self._next_id += 1
        shared = self._windows.setdefault(window, Window(window))
        places = [
            place
            for number in range(len(composite.alternatives))
            for place in self._enter(composite, composite_id, number)
        ]
        for place in places:
            shared.add(place)
            self._users.setdefault(place.filter_id, Counter())[shared] += 1
            self._bound.update(name for name, _ in place.part.bindings)
        self._places[composite_id] = places
        self._window_of[composite_id] = shared
        shared.composites += 1
        return composite_id

    def remove(self, composite_id: int) -> None:
        """Remove a composite subscription and what waits for it; `ContentError` if unknown."""
        if composite_id not in self._places:
            raise ContentError("", f"no composite subscription has the id {composite_id}")
        window = self._window_of.pop(composite_id)
        for place in self._places.pop(composite_id):
            window.remove(place)
            self._users[place.filter_id] -= Counter((window,))
            if self._index.remove(place.filter_id).is_gone:
                del self._users[place.filter_id]
            self._bound -= Counter(name for name, _ in place.part.bindings)
        window.composites -= 1
        if not window.composites:
            del self._windows[window.length]
            self._queue = [one for one in self._queue if one[2] is not window]
            heapq.heapify(self._queue)
            self.waiting = sum(one[3].parts for one in self._queue)

    def step(
        self, now: float, publication: Mapping[str, object], name: object
    ) -> list[CompositeMatch]:
        """Take a publication and return the matches that it completes.

        Args:
            now: the time, not before that of the last step.
            publication: its values.
            name: what matches are to call it.
        """
        self._expire(now)
        found: list[CompositeMatch] = []
        matched = self._index.match(publication)
        if matched:
            values = self._values(publication)
            for window, filters in self._by_window(matched):
                parts = len(filters & window.joined.keys())
                new = Waiting(self._published, name, values, filters, parts)
                if parts:
                    self._keep(now, window, new)
                for place in window.places(new):
                    self._complete(window, place, new, found)
        self._published += 1
        return found

    def _enter(self, composite: Composite, composite_id: int, number: int) -> Iterator[Place]:
        """The parts of an alternative, with their filters in the index."""
        parts, order = composite.alternatives[number], composite.orders[number]
        filter_ids = [self._index.add(part.filter).id for part in parts]
        for at, part in enumerate(parts):
            here, steps = plan(parts, filter_ids, at, order)
            since, filter_id = self._published, filter_ids[at]
            completes = all(one != at for one, _ in order)
            yield Place(composite_id, number, at, since, part, filter_id, completes, here, steps)

    def _values(self, publication: Mapping[str, object]) -> dict[str, Value]:
        """The values that variables may stand for, each with its kind."""
        found = {}
        for name in self._bound.keys() & publication.keys():
            exact = exact_value(publication[name])
            if exact is not None:
                found[name] = exact_kind(exact), exact
        return found

    def _by_window(self, matched: list[int]) -> Iterator[tuple[Window, frozenset[int]]]:
        """Windows with parts that matched, and the filters of these."""
        if len(self._windows) == 1:
            yield next(iter(self._windows.values())), frozenset(matched)
            return
        filters: dict[Window, list[int]] = {}
        for filter_id in sorted(matched):
            for window in self._users[filter_id]:
                filters.setdefault(window, []).append(filter_id)
        for window, found in filters.items():
            yield window, frozenset(found)

    def _complete(
        self, window: Window, place: Place, new: Waiting, found: list[CompositeMatch]
    ) -> None:
        """Add the matches in which a publication serves a part and none behind it.

        At parts before it may serve as well, at those behind only older ones: so every combination
        comes up once.
        """
        bound = agreed(place.part, new.values, {}) if place.completes else None
        if bound is None:
            return
        chosen = [new] * (len(place.steps) + 1)
        for _ in self._joins(window, place, new, 0, bound, chosen):
            if len(found) == self._most_matches:
                self.cut_short += 1
                return
            names = tuple([one.name for one in chosen])
            found.append(CompositeMatch(place.composite, place.alternative, names))

    def _joins(
        self,
        window: Window,
        place: Place,
        new: Waiting,
        done: int,
        bound: Bound,
        chosen: list[Waiting],
    ) -> Iterator[None]:
        """Every choice for the steps that are not done, written to `chosen`."""
        if done == len(place.steps):
            yield None
            return
        step = place.steps[done]
        since = max([place.since, *[chosen[one].number + 1 for one in step.after]])
        before = new.number + 1 if step.at < place.at else new.number
        before = min([before, *[chosen[one].number for one in step.before]])
        shared = tuple([bound[variable] for variable in step.shared])
        for other in window.candidates(step, shared):
            if not (since <= other.number < before and step.filter_id in other.matched):
                continue
            further = agreed(step.part, other.values, bound)
            if further is not None:
                chosen[step.at] = other
                yield from self._joins(window, place, new, done + 1, further, chosen)

    def _keep(self, now: float, window: Window, new: Waiting) -> None:
        while self._queue and self.waiting + new.parts > self._most_waiting:
            self.dropped += self._forget_first()
        window.keep(new)
        self.waiting += new.parts
        heapq.heappush(self._queue, (now + window.length, self._kept, window, new))
        self._kept += 1

    def _expire(self, now: float) -> None:
        while self._queue and self._queue[0][0] < now:
            self.expired += self._forget_first()

    def _forget_first(self) -> int:
        """Let go of what expires first; returns as how much it was counted."""
        _, _, window, old = heapq.heappop(self._queue)
        window.forget(old)
        self.waiting -= old.parts
        return old.parts
