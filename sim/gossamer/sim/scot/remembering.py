"""An index of filters that remembers what matched, for publications that say the same again."""

from __future__ import annotations

from collections.abc import Mapping

from gossamer.protocol.broker.identifiers import Id
from gossamer.protocol.broker.index import SharedIndex
from gossamer.protocol.content.filters import Filter

_Key = tuple[tuple[str, object], ...]


class RememberingIndex(SharedIndex):
    """A `SharedIndex` with the same answers.

    It saves most of the work where few different publications are routed, as in a burst by topic,
    while the filters do not change.
    """

    def __init__(self) -> None:
        """An empty index."""
        super().__init__()
        self._matched: dict[_Key, list[Id]] = {}

    def add(self, key: Id, added: Filter) -> None:
        """Hold a filter under a key that is new."""
        self._matched.clear()
        super().add(key, added)

    def remove(self, key: Id) -> None:
        """Forget a filter that is held."""
        self._matched.clear()
        super().remove(key)

    def match(self, values: Mapping[str, object]) -> list[Id]:
        """Those that match a publication, in order."""
        key = tuple(sorted(values.items()))
        found = self._matched.get(key)
        if found is None:
            found = self._matched[key] = sorted(super().match(values))
        return found
