"""Matching composite subscriptions: joins of publications over a time window.

Every part waits with the publications that matched it and have not expired. A new publication is
joined with those of the other parts, as in the join nodes of a Rete (Forgy 1982), but only
publications are kept, not their combinations: memory grows with what arrives in a window, not with
the product of that. There is no clock here: time is what the caller says, in any unit.
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
class _Waiting:
    """A publication that matched a part, as long as it may still be joined."""

    expires_at: float
    number: int
    place: _Place
    values: Values
    name: object

    def __lt__(self, other: _Waiting) -> bool:
        return (self.expires_at, self.number) < (other.expires_at, other.number)


@define(eq=False)
class _Place:
    """One part of one alternative, and what waits there by the values of its variables."""

    composite: int
    alternative: int
    part: Part
    variables: tuple[str, ...]
    window: float
    siblings: list[_Place]
    filter_id: int = -1
    waiting: dict[Values, deque[_Waiting]] = field(factory=dict)


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
        self._by_filter: dict[int, list[_Place]] = {}
        self._queue: list[_Waiting] = []
        self._next_id = 0
        self._next_number = 0

    def __len__(self) -> int:
        """The number of composite subscriptions."""
        return len(self._places)

    @property
    def waiting(self) -> int:
        """How many publications wait, counted at every part where they do."""
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
        self._places[composite_id] = []
        for number, parts in enumerate(composite.alternatives):
            siblings: list[_Place] = []
            for part in parts:
                variables = tuple(dict.fromkeys(variable for _, variable in part.bindings))
                place = _Place(composite_id, number, part, variables, window, siblings)
                siblings.append(place)
                place.filter_id = self._index.add(part.filter).id
                self._by_filter.setdefault(place.filter_id, []).append(place)
            self._places[composite_id] += siblings
        return composite_id

    def remove(self, composite_id: int) -> None:
        """Remove a composite subscription and what waits for it; `ContentError` if unknown."""
        if composite_id not in self._places:
            raise ContentError("", f"no composite subscription has the id {composite_id}")
        for place in self._places.pop(composite_id):
            self._index.remove(place.filter_id)
            self._by_filter[place.filter_id].remove(place)
            if not self._by_filter[place.filter_id]:
                del self._by_filter[place.filter_id]
        self._queue = [one for one in self._queue if one.place.composite != composite_id]
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
        found: list[CompositeMatch] = []
        for place in self._matched(publication):
            values = _values_at(place, publication)
            if values is None:
                continue
            for names in _joined(place, values, name):
                if len(found) == self._most_matches:
                    self.cut_short += 1
                    break
                found.append(CompositeMatch(place.composite, place.alternative, names))
            if len(place.siblings) > 1:
                self._keep(now, place, values, name)
        return found

    def _matched(self, publication: Mapping[str, object]) -> list[_Place]:
        ids = self._index.match(publication)
        return [place for one in sorted(ids) for place in self._by_filter[one]]

    def _keep(self, now: float, place: _Place, values: Values, name: object) -> None:
        if len(self._queue) >= self._most_waiting:
            self._forget(heapq.heappop(self._queue))
            self.dropped += 1
        one = _Waiting(now + place.window, self._next_number, place, values, name)
        self._next_number += 1
        place.waiting.setdefault(values, deque()).append(one)
        heapq.heappush(self._queue, one)

    def _expire(self, now: float) -> None:
        while self._queue and self._queue[0].expires_at < now:
            self._forget(heapq.heappop(self._queue))
            self.expired += 1

    def _forget(self, oldest: _Waiting) -> None:
        """Let go of what expires first, which came first at its place, too."""
        waiting = oldest.place.waiting[oldest.values]
        waiting.popleft()
        if not waiting:
            del oldest.place.waiting[oldest.values]


def _values_at(place: _Place, publication: Mapping[str, object]) -> Values | None:
    """The values of a part's variables; None if a variable would have two values."""
    bound: dict[str, Any] = {}
    for attribute, variable in place.part.bindings:
        exact = exact_value(publication[attribute])
        value = (exact_kind(exact), exact)
        if bound.setdefault(variable, value) != value:
            return None
    return tuple(bound[variable] for variable in place.variables)


def _joined(new: _Place, values: Values, name: object) -> Iterator[tuple[object, ...]]:
    """Names of publications, one a part, that match together with a new one at its part."""
    bound = dict(zip(new.variables, values, strict=True))
    names: dict[int, object] = {id(new): name}
    others = [place for place in new.siblings if place is not new]
    for _ in _joins(others, 0, bound, names):
        yield tuple(names[id(place)] for place in new.siblings)


def _joins(
    others: list[_Place], at: int, bound: dict[str, Any], names: dict[int, object]
) -> Iterator[None]:
    """Every choice for the parts from `at` on that agrees with the variables bound so far."""
    if at == len(others):
        yield None
        return
    place = others[at]
    for values in _agreeing(place, bound):
        further = bound | dict(zip(place.variables, values, strict=True))
        for one in place.waiting[values]:
            names[id(place)] = one.name
            yield from _joins(others, at + 1, further, names)


def _agreeing(place: _Place, bound: Mapping[str, Any]) -> list[Values]:
    """The values waiting at a part that agree with the variables bound so far."""
    if all(variable in bound for variable in place.variables):
        values = tuple(bound[variable] for variable in place.variables)
        return [values] if values in place.waiting else []
    return [
        values
        for values in place.waiting
        if all(
            bound.get(variable, value) == value
            for variable, value in zip(place.variables, values, strict=True)
        )
    ]
