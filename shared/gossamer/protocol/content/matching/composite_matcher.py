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
from collections import Counter, deque
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Final, TypeVar

from attrs import define, field, frozen

from gossamer.protocol.content.filters.composite import Composite
from gossamer.protocol.content.filters.domains import exact_kind, exact_value
from gossamer.protocol.content.matching.index import MatchingIndex
from gossamer.protocol.content.matching.plans import Bound, Place, Step, Value, agreed, plan
from gossamer.protocol.kernel.errors import ContentError

Attributes = tuple[str, ...]
Values = tuple[Value, ...]
_Key = TypeVar("_Key", bound=Hashable)

_NONE: Final[deque[Waiting]] = deque()


@define(eq=False)
class Waiting:
    """A publication that matched some parts.

    Attributes:
        number: how many were published before it.
        name: what the caller calls it.
        values: by attribute, of those that variables stand for.
        matched: filters of parts.
        parts: how many of them are not alone in their alternative.
    """

    number: int
    name: object
    values: Mapping[str, Value]
    matched: frozenset[int]
    parts: int

    def at(self, attributes: Attributes) -> Values | None:
        """The values of some attributes, or None if it has not all of them."""
        try:
            return tuple([self.values[name] for name in attributes])
        except KeyError:
            return None


@define(eq=False)
class Window:
    """The parts of all composite subscriptions with one window, and what waits for them.

    Parts that share variables are found by the values of these; others by their filter.

    Attributes:
        length: in the caller's unit of time.
        composites: how many these are.
        joined: filters of parts that are not alone in their alternative, counted.
    """

    length: float
    composites: int = 0
    joined: Counter[int] = field(factory=Counter)
    _alone: dict[int, list[Place]] = field(factory=dict)
    # By the attributes whose values lead from a part to its first step, and from there back: the
    # filters of both.
    _links: dict[tuple[Attributes, Attributes], dict[int, dict[int, list[Place]]]] = field(
        factory=dict
    )
    _asked_values: Counter[Attributes] = field(factory=Counter)
    _by_values: dict[Attributes, dict[Values, deque[Waiting]]] = field(factory=dict)
    _asked_filters: Counter[int] = field(factory=Counter)
    _by_filter: dict[int, deque[Waiting]] = field(factory=dict)

    def add(self, place: Place) -> None:
        """Take a part in."""
        if not place.steps:
            self._alone.setdefault(place.filter_id, []).append(place)
            return
        self.joined[place.filter_id] += 1
        first = place.steps[0]
        link = self._links.setdefault((place.here, first.attributes), {})
        link.setdefault(place.filter_id, {}).setdefault(first.filter_id, []).append(place)
        for step in place.steps:
            if step.shared:
                self._asked_values[step.attributes] += 1
                self._by_values.setdefault(step.attributes, {})
            else:
                self._asked_filters[step.filter_id] += 1

    def remove(self, place: Place) -> None:
        """Let a part go."""
        if not place.steps:
            self._alone[place.filter_id].remove(place)
            if not self._alone[place.filter_id]:
                del self._alone[place.filter_id]
            return
        _count_down(self.joined, place.filter_id)
        self._unlink(place)
        for step in place.steps:
            if not step.shared:
                if _count_down(self._asked_filters, step.filter_id):
                    self._by_filter.pop(step.filter_id, None)
            elif _count_down(self._asked_values, step.attributes):
                del self._by_values[step.attributes]

    def keep(self, new: Waiting) -> None:
        """Let a publication wait."""
        for attributes, waiting in self._by_values.items():
            values = new.at(attributes)
            if values is not None:
                waiting.setdefault(values, deque()).append(new)
        for filter_id in self._asked_filters.keys() & new.matched:
            self._by_filter.setdefault(filter_id, deque()).append(new)

    def forget(self, old: Waiting) -> None:
        """A publication waits no longer; of all that wait it came first."""
        for attributes, waiting in self._by_values.items():
            values = old.at(attributes)
            if values is not None:
                _drop_first(waiting, values, old)
        for filter_id in self._asked_filters.keys() & old.matched:
            _drop_first(self._by_filter, filter_id, old)

    def candidates(self, step: Step, values: Values) -> Iterable[Waiting]:
        """What may serve a part where shared variables have these values."""
        if step.shared:
            return self._by_values[step.attributes].get(values, _NONE)
        return self._by_filter.get(step.filter_id, _NONE)

    def places(self, new: Waiting) -> list[Place]:
        """The parts that a new publication matched and that something else may go together with,
        in order."""
        found: list[Place] = []
        for filter_id in self._alone.keys() & new.matched:
            found += self._alone[filter_id]
        for (here, there), link in self._links.items():
            values = new.at(here)
            waiting = self._by_values[there].get(values, _NONE) if there and values else _NONE
            if waiting or not there:
                for filter_id in link.keys() & new.matched:
                    found += self._reached(link[filter_id], waiting if there else None)
        return sorted(found, key=lambda place: place.key)

    def _reached(
        self, places: Mapping[int, list[Place]], waiting: Iterable[Waiting] | None
    ) -> list[Place]:
        """Of places by the filter of their first step, those where one of these may serve it; None:
        anything that waits."""
        if waiting is None:
            filter_ids = places.keys() & self._by_filter.keys()
        else:
            filter_ids = {one for other in waiting for one in places.keys() & other.matched}
        return [place for filter_id in filter_ids for place in places[filter_id]]

    def _unlink(self, place: Place) -> None:
        first = place.steps[0]
        key = place.here, first.attributes
        places = self._links[key][place.filter_id]
        places[first.filter_id].remove(place)
        if not places[first.filter_id]:
            del places[first.filter_id]
        if not places:
            del self._links[key][place.filter_id]
        if not self._links[key]:
            del self._links[key]


def _drop_first(waiting: dict[_Key, deque[Waiting]], key: _Key, old: Waiting) -> None:
    """Drop a publication, unless it came before anybody asked for it there."""
    first = waiting.get(key)
    if first and first[0] is old:
        first.popleft()
        if not first:
            del waiting[key]


def _count_down(counts: Counter[_Key], key: _Key) -> bool:
    """Count once less; returns whether nothing is left."""
    counts[key] -= 1
    if not counts[key]:
        del counts[key]
        return True
    return False


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
