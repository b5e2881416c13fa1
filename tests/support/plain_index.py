"""An index of filters that looks at every one: slow, plain, and the oracle of the compiled one."""

from __future__ import annotations

from collections.abc import Mapping

from gossamer.protocol.broker.identifiers import Id
from gossamer.protocol.content import filters
from gossamer.protocol.content.filters import Filter


class PlainIndex:
    """Filters by key, in a dict."""

    def __init__(self) -> None:
        self._filters: dict[Id, Filter] = {}

    def add(self, key: Id, added: Filter) -> None:
        """Hold a filter under a key that is new."""
        assert key not in self._filters
        self._filters[key] = added

    def remove(self, key: Id) -> None:
        """Forget a filter that is held."""
        del self._filters[key]

    def match(self, values: Mapping[str, object]) -> set[Id]:
        """Those that match a publication."""
        return {key for key, held in self._filters.items() if held.matches(values)}

    def covering(self, wanted: Filter) -> set[Id]:
        """Those that cover a filter."""
        return {key for key, held in self._filters.items() if filters.covers(held, wanted)}

    def covered_by(self, wanted: Filter) -> set[Id]:
        """Those that a filter covers."""
        return {key for key, held in self._filters.items() if filters.covers(wanted, held)}

    def meeting(self, advertisement: Filter) -> set[Id]:
        """Subscriptions that an advertisement can serve."""
        return {key for key, held in self._filters.items() if filters.meets(held, advertisement)}

    def met_by(self, subscription: Filter) -> set[Id]:
        """Advertisements that can serve a subscription."""
        return {key for key, held in self._filters.items() if filters.meets(subscription, held)}
