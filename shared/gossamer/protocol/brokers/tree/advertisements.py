"""The advertisement table: which publications come from which direction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import define, field

from gossamer.protocol.brokers.core.broker import SharedIndex
from gossamer.protocol.brokers.core.messages import Hop, Id
from gossamer.protocol.brokers.tree.tables import ALL_OFFERED, OFFERED_SOMEWHERE, Marks
from gossamer.protocol.content.filters import Filter


@define(eq=False)
class Offer:
    """An advertisement in the table.

    Attributes:
        id, filter: the advertisement.
        hop: the last hop, towards its publisher.
        label: a client's name for its own advertisement.
        unsettled: neighbours that may want what nobody here knows of (`messages.Settled`).
    """

    id: Id
    filter: Filter
    hop: Hop
    label: str = ""
    unsettled: set[str] = field(factory=set)


@define(eq=False)
class _Group:
    """Equal advertisements of neighbours, which the index holds once: by neighbour."""

    place: int
    offers: dict[str, dict[Id, None]] = field(factory=dict)
    marks: int = 0


class AdvertisementTable:
    """Advertisements by identifier, those of neighbours indexed by filter."""

    def __init__(self, index: SharedIndex, marks: Marks) -> None:
        self._offers: dict[Id, Offer] = {}
        self._groups: dict[int, _Group] = {}
        self._index = index
        self._marks = marks

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
            group = self._group_of(announced)
            group.offers.setdefault(hop.name, {})[id_] = None
            self._changed(group)
        return offer

    def remove(self, id_: Id) -> Offer:
        """Forget an advertisement that is here, and return it."""
        offer = self._offers.pop(id_)
        if not offer.hop.is_client:
            group = self._group_of(offer.filter)
            del group.offers[offer.hop.name][id_]
            if not group.offers[offer.hop.name]:
                del group.offers[offer.hop.name]
            self._changed(group)
        return offer

    def from_hop(self, hop: Hop) -> list[Offer]:
        """What came from a hop, in the order of arrival."""
        return [offer for offer in self if offer.hop == hop]

    def directions(self, wanted: Filter) -> list[str]:
        """Neighbours with advertisements that a subscription meets, by name."""
        if not self._groups:
            return []
        reach = self._index.directions(wanted, ALL_OFFERED, OFFERED_SOMEWHERE)
        names = set(self._marks.names(reach.marks))
        for place in reach.listed:
            names.update(self._groups[place].offers)
        return sorted(names)

    def serves(self, name: str, wanted: Filter) -> bool:
        """Whether a neighbour has an advertisement that a subscription meets."""
        mark = self._marks.offered(name)
        reach = self._index.directions(wanted, mark, mark & OFFERED_SOMEWHERE)
        return bool(reach.marks) or any(
            name in self._groups[place].offers for place in reach.listed
        )

    def met_by(self, name: str, wanted: Filter) -> list[Id]:
        """The advertisements of a neighbour that a subscription meets, by name."""
        places = self._index.met_by(wanted, self._marks.offered(name))
        return sorted(id_ for place in places for id_ in self._groups[place].offers.get(name, ()))

    def _group_of(self, announced: Filter) -> _Group:
        place = self._index.place_of(announced)
        group = None if place is None else self._groups.get(place)
        if group is None:
            place = self._index.add(announced, 0)
            group = self._groups[place] = _Group(place)
        return group

    def _changed(self, group: _Group) -> None:
        """Mark a group by who announced it; nobody: forget it."""
        if not group.offers:
            del self._groups[group.place]
            if not self._index.remove(group.place):
                self._index.mark(group.place, 0, 0, ALL_OFFERED)
            return
        marks = 0
        for name in group.offers:
            marks |= self._marks.offered(name)
        if marks != group.marks:
            group.marks = marks
            self._index.mark(group.place, marks, marks, ALL_OFFERED)
