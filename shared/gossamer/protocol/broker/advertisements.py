"""The advertisement table: which publications come from which direction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import define

from gossamer.protocol.broker.identifiers import Hop, Id
from gossamer.protocol.broker.index import FilterIndex, NewIndex
from gossamer.protocol.content.filters import Filter, meets


@define(eq=False)
class Offer:
    """An advertisement in the table.

    Attributes:
        id, filter: the advertisement.
        hop: the last hop, towards its publisher.
        label: a client's name for its own advertisement.
    """

    id: Id
    filter: Filter
    hop: Hop
    label: str = ""


class AdvertisementTable:
    """Advertisements by identifier, those of each neighbour indexed by filter."""

    def __init__(self, new_index: NewIndex) -> None:
        self._new_index = new_index
        self._offers: dict[Id, Offer] = {}
        self._indexes: dict[str, FilterIndex] = {}
        self._sizes: dict[str, int] = {}
        # What met the last subscription often meets the next: a short cut, never an answer.
        self._likely: dict[str, Id] = {}

    def __len__(self) -> int:
        return len(self._offers)

    def __iter__(self) -> Iterator[Offer]:
        return iter(self._offers.values())

    def __getitem__(self, id_: Id) -> Offer:
        return self._offers[id_]

    def get(self, id_: Id) -> Offer | None:
        """The advertisement of that name, or None."""
        return self._offers.get(id_)

    def hops(self) -> Mapping[Id, Hop]:
        """The last hop of every advertisement: *advID.sender* of both papers."""
        return {offer.id: offer.hop for offer in self}

    def add(self, id_: Id, announced: Filter, hop: Hop, label: str = "") -> Offer:
        """Enter an advertisement that is new."""
        offer = Offer(id_, announced, hop, label)
        self._offers[id_] = offer
        if not hop.is_client:
            if hop.name not in self._indexes:
                self._indexes[hop.name] = self._new_index()
                self._sizes[hop.name] = 0
                self._likely[hop.name] = id_
            self._indexes[hop.name].add(id_, announced)
            self._sizes[hop.name] += 1
        return offer

    def remove(self, id_: Id) -> Offer:
        """Forget an advertisement that is here, and return it."""
        offer = self._offers.pop(id_)
        if not offer.hop.is_client:
            name = offer.hop.name
            self._indexes[name].remove(id_)
            self._sizes[name] -= 1
            if not self._sizes[name]:
                del self._indexes[name], self._sizes[name], self._likely[name]
        return offer

    def from_hop(self, hop: Hop) -> list[Offer]:
        """What came from a hop, in the order of arrival."""
        return [offer for offer in self if offer.hop == hop]

    def directions(self, wanted: Filter) -> list[str]:
        """Neighbours with advertisements that a subscription meets, by name."""
        return [name for name in sorted(self._indexes) if self.serves(name, wanted)]

    def serves(self, name: str, wanted: Filter) -> bool:
        """Whether a neighbour has an advertisement that a subscription meets."""
        index = self._indexes.get(name)
        if index is None:
            return False
        likely = self._offers.get(self._likely[name])
        if likely is not None and meets(wanted, likely.filter):
            return True
        found = index.met_by(wanted)
        if found:
            self._likely[name] = min(found)
        return bool(found)

    def met_by(self, name: str, wanted: Filter) -> list[Id]:
        """The advertisements of a neighbour that a subscription meets, by name."""
        index = self._indexes.get(name)
        return [] if index is None else sorted(index.met_by(wanted))
