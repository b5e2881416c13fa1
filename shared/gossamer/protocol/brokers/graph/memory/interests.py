"""The subscriptions of all brokers, and which of them a document matches.

What a client asks for, all its filters, is one subscription: a disjunction, as a set of keywords
is (Sec. VII-A). So a client is in one group, and gets a document on one tree.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from gossamer.protocol.brokers.core.identifiers import Id
from gossamer.protocol.brokers.core.index import NewIndex
from gossamer.protocol.content.filters import Filter, to_text
from gossamer.protocol.kernel.errors import InvariantError

Matches = dict[Id, list[Filter]]
"""Subscriptions that a document matches, and by which of their filters."""

# Every filter is marked alike: a table asks for all that match.
_MARK: Final = 1


class InterestTable:
    """Subscriptions by identifier, whose broker is the client's host broker."""

    def __init__(self, new_index: NewIndex) -> None:
        self._filters: dict[Id, set[Filter]] = {}
        self._hosts: dict[str, set[Id]] = {}
        self._index = new_index()
        self._places: dict[int, tuple[Filter, set[Id]]] = {}

    def __len__(self) -> int:
        return len(self._filters)

    def __contains__(self, interest: object) -> bool:
        return interest in self._filters

    def __iter__(self) -> Iterator[Id]:
        return iter(sorted(self._filters))

    def filters(self, interest: Id) -> tuple[Filter, ...]:
        """The filters of a subscription, in an order that depends on nothing else."""
        return tuple(sorted(self._filters.get(interest, ()), key=to_text))

    def of(self, broker: str) -> list[Id]:
        """The subscriptions at a broker, in order."""
        return sorted(self._hosts.get(broker, ()))

    def add(self, interest: Id, wanted: Iterable[Filter]) -> None:
        """Enter a subscription, or filters that it has not yet."""
        for one in wanted:
            held = self._filters.setdefault(interest, set())
            self._hosts.setdefault(interest.broker, set()).add(interest)
            if one not in held:
                held.add(one)
                self._enter(interest, one)

    def remove(self, interest: Id, gone: Iterable[Filter]) -> None:
        """Forget filters of a subscription, and it itself when none is left."""
        held = self._filters.get(interest, set())
        for one in gone:
            if one in held:
                held.discard(one)
                self._leave(interest, one)
        if not held and interest in self._filters:
            del self._filters[interest]
            self._hosts[interest.broker].discard(interest)

    def replace(self, broker: str, interests: Mapping[Id, Iterable[Filter]]) -> None:
        """Let these be the subscriptions at a broker, and no others."""
        for one in self.of(broker):
            kept = set(interests.get(one, ()))
            self.remove(one, self._filters[one] - kept)
        for one, wanted in interests.items():
            self.add(one, wanted)

    def match(self, values: Mapping[str, object]) -> Matches:
        """The subscriptions that a document matches, and by which filters."""
        found: Matches = {}
        for place in sorted(self._index.match(values, _MARK)):
            wanted, holders = self._places[place]
            for interest in holders:
                found.setdefault(interest, []).append(wanted)
        return found

    def _enter(self, interest: Id, wanted: Filter) -> None:
        place = self._index.place_of(wanted)
        if place is None:
            place = self._index.add(wanted, _MARK)
            self._places[place] = (wanted, set())
        else:
            self._index.add_again(place)
        self._places[place][1].add(interest)

    def _leave(self, interest: Id, wanted: Filter) -> None:
        place = self._index.place_of(wanted)
        if place is None:
            raise InvariantError(f"a filter of subscription {interest} is not in the index")
        self._places[place][1].discard(interest)
        if self._index.remove(place):
            del self._places[place]
