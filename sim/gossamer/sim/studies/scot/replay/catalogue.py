"""A catalogue that remembers what matched, for publications that say the same again."""

from __future__ import annotations

from collections.abc import Mapping

from gossamer.protocol.brokers.core.messages import Id
from gossamer.protocol.brokers.core.routing import NewIndex, SharedIndex
from gossamer.protocol.brokers.scot.memory.table import Catalogue, Numbers
from gossamer.protocol.brokers.scot.memory.topology import ClusterBitVector
from gossamer.protocol.content.filters import Filter

_Key = tuple[tuple[str, object], ...]


class RememberingCatalogue(Catalogue):
    """A `Catalogue` with the same answers, shared by all brokers of a simulation.

    Where few different publications are routed it saves most of the matching: each is matched once
    for all brokers, while subscriptions do not change.
    """

    def __init__(self, new_index: NewIndex = SharedIndex) -> None:
        """An empty catalogue."""
        super().__init__(new_index)
        self._matched: dict[_Key, Numbers] = {}

    def hold(self, id_: Id, wanted: Filter, host: ClusterBitVector) -> int:
        """Hold a subscription once more; returns its number."""
        before = self.held
        number = super().hold(id_, wanted, host)
        if self.held != before:
            self._matched.clear()
        return number

    def release(self, number: int) -> None:
        """Hold a subscription once less; forget it with the last."""
        before = self.held
        super().release(number)
        if self.held != before:
            self._matched.clear()

    def match(self, values: Mapping[str, object]) -> Numbers:
        """Those that match a publication, in no order."""
        key = tuple(sorted(values.items()))
        found = self._matched.get(key)
        if found is None:
            found = self._matched[key] = super().match(values)
        return found
