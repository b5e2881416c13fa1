"""The routing table: {subscription, last hop, cluster bit vector} (Sec. 5)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import frozen

from gossamer.protocol.broker.identifiers import Hop, Id
from gossamer.protocol.broker.index import NewIndex
from gossamer.protocol.content.filters import Filter
from gossamer.protocol.scot.labels import ClusterBitVector


@frozen
class Entry:
    """A subscription as a broker knows it.

    Attributes:
        hop: the client or neighbour that it came from.
        host: the bit of its host cluster; none in an unclustered SCOT.
        label: what the client calls it, at its host broker.
    """

    id: Id
    filter: Filter
    hop: Hop
    host: ClusterBitVector
    label: str = ""


class RoutingTable:
    """Subscriptions by identifier."""

    def __init__(self, new_index: NewIndex) -> None:
        self._entries: dict[Id, Entry] = {}
        self._index = new_index()

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        """All entries, by identifier."""
        return (self._entries[id_] for id_ in sorted(self._entries))

    def get(self, id_: Id) -> Entry | None:
        """The entry of a subscription, or None."""
        return self._entries.get(id_)

    def __getitem__(self, id_: Id) -> Entry:
        return self._entries[id_]

    def add(self, entry: Entry) -> None:
        """Enter a subscription that is new."""
        self._entries[entry.id] = entry
        self._index.add(entry.id, entry.filter)

    def remove(self, id_: Id) -> Entry:
        """Forget a subscription that is held."""
        self._index.remove(id_)
        return self._entries.pop(id_)

    def match(self, values: Mapping[str, object]) -> list[Entry]:
        """The subscriptions that match, by identifier."""
        return [self._entries[id_] for id_ in sorted(self._index.match(values))]
