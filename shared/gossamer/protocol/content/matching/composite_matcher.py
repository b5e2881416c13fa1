"""Matching composite subscriptions: joins of publications over a time window.

Every part waits with the publications that matched it and have not expired; equal parts with equal
windows wait together, whichever subscriptions they belong to. A new publication is joined with what
waits at the other parts, as in the join nodes of a Rete (Forgy 1982), but only publications are
kept, not their combinations: memory grows with what arrives in a window, not with the product of
that. There is no clock here: time is what the caller says, in any unit.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any, Final

from attrs import define, field, frozen

from gossamer.protocol.content.errors import ContentError
from gossamer.protocol.content.filters.composite import Composite, Part
from gossamer.protocol.content.filters.domains import exact_kind, exact_value
from gossamer.protocol.content.matching.index import MatchingIndex

Values = tuple[Any, ...]
"""The values of a part's variables, in order, each with its kind."""

_Waiting = tuple[int, object]
"""The number and the name of a publication that matched a part."""

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


@define(eq=False)
class _Store:
    """What waits at all equal parts with equal windows, by the values of their variables."""

    part: Part
    window: float
    filter_id: int
    variables: tuple[str, ...]
    places: list[_Place] = field(factory=list)
    waiting: dict[Values, deque[_Waiting]] = field(factory=dict)


@define(eq=False)
class _Place:
    """One part of one alternative of a composite subscription.

    Attributes:
        at: which of the parts.
        since: the first publication that counts.
        siblings: all parts of the alternative.
    """

    composite: int
    alternative: int
    at: int
    since: int
    store: _Store
    siblings: list[_Place]


class CompositeMatcher:
    """Composite subscriptions, each with an id and a window, matched publication by publication.

    Args:
        compiled: as for `MatchingIndex`, which holds the filters of all parts.
        most_waiting: publications kept for all parts together; beyond, those that expire first are
            dropped.
        most_matches: matches that one publication may bring about; the rest is not looked for.

    Attributes:
        dropped: publications dropped at a part before they expired.
        expired: publications that expired at a part.
        cut_short: how often a publication at a part had more matches than were looked for.
    """

    def __init__(
        self,
        *,
        compiled: bool = False,
        most_waiting: int = MOST_WAITING,
        most_matches: int = MOST_MATCHES,
    ) -> None:
        self.dropped = self.expired = self.cut_short = 0
        self._index = MatchingIndex(compiled=compiled, covering=False)
        self._most_waiting = most_waiting
        self._most_matches = most_matches
        self._places: dict[int, list[_Place]] = {}
        self._stores: dict[tuple[Part, float], _Store] = {}
        self._by_filter: dict[int, list[_Store]] = {}
        # When each expires, in which order it came, and where it waits.
        self._queue: list[tuple[float, int, _Store, Values]] = []
        self._kept = 0
        self._next_id = 0
        self._published = 0

    def __len__(self) -> int:
        """The number of composite subscriptions."""
        return len(self._places)

    @property
    def waiting(self) -> int:
        """How many publications wait, counted at every different part where they do."""
        return len(self._queue)

    def add(self, composite: Composite, window: float) -> int:
        """Add a composite subscription; returns its id.

        Publications match together if they come no further apart than the window. Raises
        `ContentError` unless that is positive.
        """
        if not window > 0:
            raise ContentError("", f"the window is {window}, expected more than 0")
        composite_id = self._next_id
        self._next_id += 1
        places: list[_Place] = []
        for number, parts in enumerate(composite.alternatives):
            siblings: list[_Place] = []
            for at, part in enumerate(parts):
                store = self._store_of(part, window)
                place = _Place(composite_id, number, at, self._published, store, siblings)
                siblings.append(place)
                store.places.append(place)
            places += siblings
        self._places[composite_id] = places
        return composite_id

    def remove(self, composite_id: int) -> None:
        """Remove a composite subscription and what waits for it; `ContentError` if unknown."""
        if composite_id not in self._places:
            raise ContentError("", f"no composite subscription has the id {composite_id}")
        empty = False
        for place in self._places.pop(composite_id):
            place.store.places.remove(place)
            if not place.store.places:
                self._drop_store(place.store)
                empty = empty or bool(place.store.waiting)
        if empty:
            self._queue = [one for one in self._queue if one[2].places]
            heapq.heapify(self._queue)

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
        matched = self._matched(publication)
        for store, values in matched:
            if any(len(place.siblings) > 1 for place in store.places):
                self._keep(now, store, values, name)
        found: list[CompositeMatch] = []
        for store, values in matched:
            for place in store.places:
                if all(other.store.waiting for other in place.siblings if other is not place):
                    self._complete(place, values, name, found)
        self._published += 1
        return found

    def _complete(
        self, place: _Place, values: Values, name: object, found: list[CompositeMatch]
    ) -> None:
        """Add the matches in which a publication serves a part and none behind it."""
        for names in _joined(place, values, name, self._published):
            if len(found) == self._most_matches:
                self.cut_short += 1
                return
            found.append(CompositeMatch(place.composite, place.alternative, names))

    def _matched(self, publication: Mapping[str, object]) -> list[tuple[_Store, Values]]:
        """The parts that a publication matches, and the values of their variables."""
        ids = sorted(self._index.match(publication))
        stores = (store for one in ids for store in self._by_filter[one])
        pairs = ((store, _values_at(store, publication)) for store in stores)
        return [(store, values) for store, values in pairs if values is not None]

    def _store_of(self, part: Part, window: float) -> _Store:
        store = self._stores.get((part, window))
        if store is None:
            filter_id = self._index.add(part.filter).id
            variables = tuple(dict.fromkeys(variable for _, variable in part.bindings))
            store = _Store(part, window, filter_id, variables)
            self._stores[part, window] = store
            self._by_filter.setdefault(filter_id, []).append(store)
        return store

    def _drop_store(self, store: _Store) -> None:
        del self._stores[store.part, store.window]
        self._by_filter[store.filter_id].remove(store)
        if self._index.remove(store.filter_id).is_gone:
            del self._by_filter[store.filter_id]

    def _keep(self, now: float, store: _Store, values: Values, name: object) -> None:
        if len(self._queue) >= self._most_waiting:
            self._forget_first()
            self.dropped += 1
        store.waiting.setdefault(values, deque()).append((self._published, name))
        heapq.heappush(self._queue, (now + store.window, self._kept, store, values))
        self._kept += 1

    def _expire(self, now: float) -> None:
        while self._queue and self._queue[0][0] < now:
            self._forget_first()
            self.expired += 1

    def _forget_first(self) -> None:
        """Let go of what expires first, which came first where it waits, too."""
        _, _, store, values = heapq.heappop(self._queue)
        waiting = store.waiting[values]
        waiting.popleft()
        if not waiting:
            del store.waiting[values]


def _values_at(store: _Store, publication: Mapping[str, object]) -> Values | None:
    """The values of a part's variables; None if a variable would have two values."""
    bound: dict[str, Any] = {}
    for attribute, variable in store.part.bindings:
        exact = exact_value(publication[attribute])
        value = (exact_kind(exact), exact)
        if bound.setdefault(variable, value) != value:
            return None
    return tuple(bound[variable] for variable in store.variables)


def _joined(new: _Place, values: Values, name: object, number: int) -> Iterator[tuple[object, ...]]:
    """Names of publications, one a part, that match together with a new one at its part.

    At parts before that the new one may serve as well, at those behind only older ones: so every
    combination comes up once.
    """
    bound = dict(zip(new.store.variables, values, strict=True))
    names: list[object] = [None] * len(new.siblings)
    names[new.at] = name
    others = [
        (place, number + 1 if place.at < new.at else number)
        for place in new.siblings
        if place is not new
    ]
    for _ in _joins(others, bound, names):
        yield tuple(names)


def _joins(
    others: list[tuple[_Place, int]], bound: dict[str, Any], names: list[object]
) -> Iterator[None]:
    """Every choice for some parts, of publications before a number, that agrees with variables."""
    if not others:
        yield None
        return
    place, before = others[0]
    for values in _agreeing(place.store, bound):
        further = bound | dict(zip(place.store.variables, values, strict=True))
        for number, name in place.store.waiting[values]:
            if place.since <= number < before:
                names[place.at] = name
                yield from _joins(others[1:], further, names)


def _agreeing(store: _Store, bound: Mapping[str, Any]) -> list[Values]:
    """The values waiting at a part that agree with the variables bound so far."""
    if all(variable in bound for variable in store.variables):
        values = tuple(bound[variable] for variable in store.variables)
        return [values] if values in store.waiting else []
    return [
        values
        for values in store.waiting
        if all(
            bound.get(variable, value) == value
            for variable, value in zip(store.variables, values, strict=True)
        )
    ]
