"""Publications that wait for others, and the ways to find those that go together with a new one."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Hashable, Iterable, Mapping
from typing import Final, TypeVar

from attrs import define, field

from gossamer.protocol.content.matching.plans import Place, Step, Value

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
