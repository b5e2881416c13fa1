"""What a broker asks of an index of filters, and the matching index as such."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from gossamer.protocol.broker.identifiers import Id
from gossamer.protocol.content.filters import Filter
from gossamer.protocol.content.matching.index import MatchingIndex


class FilterIndex(Protocol):
    """Filters by identifier; the order of answers does not matter, brokers sort them.

    Relations are those of `content.filters`, which are sound.
    """

    def add(self, key: Id, added: Filter) -> None:
        """Hold a filter under a key that is new."""

    def remove(self, key: Id) -> None:
        """Forget a filter that is held."""

    def match(self, values: Mapping[str, object]) -> Collection[Id]:
        """Those that match a publication."""

    def covering(self, wanted: Filter) -> Collection[Id]:
        """Those that cover a filter, equal ones included."""

    def covered_by(self, wanted: Filter) -> Collection[Id]:
        """Those that a filter covers, equal ones included."""

    def meeting(self, advertisement: Filter) -> Collection[Id]:
        """Subscriptions that some publication which an advertisement allows can match."""

    def met_by(self, subscription: Filter) -> Collection[Id]:
        """Advertisements that allow some publication which a subscription matches."""


NewIndex = Callable[[], FilterIndex]


class SharedIndex:
    """A `MatchingIndex` whose filters have as many keys as they like; equal filters share."""

    def __init__(self, *, compiled: bool = False) -> None:
        """An empty index; `compiled` loads the compiler, for large tables."""
        self._index = MatchingIndex(compiled=compiled, covering=False)
        self._keys: dict[int, dict[Id, None]] = {}
        self._places: dict[Id, int] = {}

    def add(self, key: Id, added: Filter) -> None:
        """Hold a filter under a key that is new."""
        place = self._index.id_of(added)
        if place is None:
            place = self._index.add(added).id
            self._keys[place] = {}
        self._keys[place][key] = None
        self._places[key] = place

    def remove(self, key: Id) -> None:
        """Forget a filter that is held."""
        place = self._places.pop(key)
        keys = self._keys[place]
        del keys[key]
        if not keys:
            del self._keys[place]
            self._index.remove(place)

    def match(self, values: Mapping[str, object]) -> list[Id]:
        """Those that match a publication."""
        return self._keys_at(self._index.match(values))

    def covering(self, wanted: Filter) -> list[Id]:
        """Those that cover a filter, equal ones included."""
        return self._keys_at(self._index.covering(wanted))

    def covered_by(self, wanted: Filter) -> list[Id]:
        """Those that a filter covers, equal ones included."""
        return self._keys_at(self._index.covered(wanted))

    def meeting(self, advertisement: Filter) -> list[Id]:
        """Subscriptions that some publication which an advertisement allows can match."""
        return self._keys_at(self._index.met_by_advertisement(advertisement))

    def met_by(self, subscription: Filter) -> list[Id]:
        """Advertisements that allow some publication which a subscription matches."""
        return self._keys_at(self._index.met_by_subscription(subscription))

    def _keys_at(self, places: list[int]) -> list[Id]:
        return [key for place in places for key in self._keys[place]]


def compiled_index() -> FilterIndex:
    """An empty index with compiled rules, for brokers with large tables."""
    return SharedIndex(compiled=True)
