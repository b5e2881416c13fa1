"""What a broker asks of an index of filters."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from gossamer.protocol.broker.identifiers import Id
from gossamer.protocol.content.filters import Filter


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
