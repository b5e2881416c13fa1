"""The subscription table: who asked for what, and from where that came."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from attrs import define, field

from gossamer.protocol.broker.identifiers import Hop, Id
from gossamer.protocol.broker.index import FilterIndex, NewIndex
from gossamer.protocol.content.filters import Filter, covers


@define(eq=False)
class Entry:
    """A subscription in the table.

    Attributes:
        id, filter: the subscription.
        hop: the last hop, which gets what matches.
        order: of arrival at this broker.
        label: a client's name for its own subscription.
        towards: neighbours with advertisements that it meets, the last hop never among them.
        held: whether its unsubscription waits until the broker is not congested.
    """

    id: Id
    filter: Filter
    hop: Hop
    order: int
    label: str = ""
    towards: set[str] = field(factory=set)
    held: bool = False


class SubscriptionTable:
    """Entries by identifier, indexed by filter."""

    def __init__(self, new_index: NewIndex) -> None:
        self._entries: dict[Id, Entry] = {}
        self._index: FilterIndex = new_index()
        self.next_order = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries.values())

    def __contains__(self, id_: Id) -> bool:
        return id_ in self._entries

    def __getitem__(self, id_: Id) -> Entry:
        return self._entries[id_]

    def get(self, id_: Id) -> Entry | None:
        """The entry of a subscription, or None."""
        return self._entries.get(id_)

    def add(self, id_: Id, wanted: Filter, hop: Hop, label: str = "") -> Entry:
        """Enter a subscription that is new."""
        entry = Entry(id_, wanted, hop, self.next_order, label)
        self.next_order += 1
        self._entries[id_] = entry
        self._index.add(id_, wanted)
        return entry

    def remove(self, id_: Id) -> None:
        """Forget a subscription that is here."""
        del self._entries[id_]
        self._index.remove(id_)

    def match(self, values: Mapping[str, object]) -> list[Entry]:
        """What matches a publication, in the order of arrival."""
        return self._in_order(self._index.match(values))

    def meeting(self, advertisement: Filter) -> list[Entry]:
        """What an advertisement can serve, in the order of arrival."""
        return self._in_order(self._index.meeting(advertisement))

    def from_hop(self, hop: Hop) -> list[Entry]:
        """What came from a hop, in the order of arrival."""
        return [entry for entry in self if entry.hop == hop]

    def uncovered_first(self, entries: Collection[Entry]) -> tuple[list[Entry], list[Entry]]:
        """Those that no other of them covers, and the rest, each in the order of arrival."""
        if len(entries) < 2:
            return list(entries), []
        among = {entry.id: entry for entry in entries}
        roots: list[Entry] = []
        rest: list[Entry] = []
        for entry in sorted(entries, key=_order):
            (rest if self.is_covered(entry, among) else roots).append(entry)
        return roots, rest

    def is_covered(self, entry: Entry, among: Mapping[Id, Entry]) -> bool:
        """Whether another covers an entry; of two that cover each other, whether it comes later."""
        for id_ in self._index.covering(entry.filter):
            other = among.get(id_)
            if other is None or other is entry:
                continue
            if other.order < entry.order or not covers(entry.filter, other.filter):
                return True
        return False

    def _in_order(self, ids: Collection[Id]) -> list[Entry]:
        return sorted((self._entries[id_] for id_ in ids), key=_order)


def _order(entry: Entry) -> int:
    return entry.order
