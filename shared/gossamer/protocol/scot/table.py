"""The routing table: {subscription, last hop, cluster bit vector} (Sec. 5)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from attrs import frozen

from gossamer.protocol.broker.identifiers import Hop, Id
from gossamer.protocol.broker.index import NewIndex
from gossamer.protocol.content.filters import Filter
from gossamer.protocol.errors import InvariantError
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


# Every filter is marked alike: a table asks for all that match.
_MARK: Final = 1


class RoutingTable:
    """Subscriptions by identifier."""

    def __init__(self, new_index: NewIndex) -> None:
        self._entries: dict[Id, Entry] = {}
        self._places: dict[int, dict[Id, Entry]] = {}
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
        place = self._index.place_of(entry.filter)
        if place is None:
            place = self._index.add(entry.filter, _MARK)
            self._places[place] = {}
        else:
            self._index.add_again(place)
        self._places[place][entry.id] = entry

    def remove(self, id_: Id) -> None:
        """Forget a subscription that is held."""
        place = self._index.place_of(self._entries.pop(id_).filter)
        if place is None:
            raise InvariantError(f"the filter of subscription {id_} is not in the index")
        del self._places[place][id_]
        if self._index.remove(place):
            del self._places[place]

    def match(self, values: Mapping[str, object]) -> list[Entry]:
        """The subscriptions that match, in no order."""
        places = self._index.match(values, _MARK)
        return [entry for place in places for entry in self._places[place].values()]
