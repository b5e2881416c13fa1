"""An index of filters that remembers what matched, for publications that say the same again."""

from __future__ import annotations

from collections.abc import Mapping

from gossamer.protocol.brokers.core.routing import SharedIndex
from gossamer.protocol.content.filters import Filter
from gossamer.protocol.content.matching.search import HELD

_Key = tuple[int, tuple[tuple[str, object], ...]]


class RememberingIndex(SharedIndex):
    """A `SharedIndex` with the same answers.

    It saves most of the matching where few different publications are routed, as in a burst by
    topic, while the filters do not change.
    """

    def __init__(self) -> None:
        """An empty index."""
        super().__init__()
        self._matched: dict[_Key, list[int]] = {}
        self._ask = self.match
        self.match = self._remember

    def add(self, wanted: Filter, marks: int) -> int:
        """Hold a filter that is new, with these marks; returns its place."""
        self._matched.clear()
        return super().add(wanted, marks)

    def remove(self, place: int) -> bool:
        """Hold a filter once less; returns whether it is gone."""
        self._matched.clear()
        return super().remove(place)

    def _remember(self, publication: Mapping[str, object], marked: int = HELD) -> list[int]:
        key = marked, tuple(sorted(publication.items()))
        found = self._matched.get(key)
        if found is None:
            found = self._matched[key] = self._ask(publication, marked)
        return found
