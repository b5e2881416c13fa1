"""The subscription table: who asked for what, and from where that came."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from operator import attrgetter

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


@define(eq=False)
class Group:
    """Subscriptions with equal filters, which the index holds once.

    Attributes:
        key: of the index.
        entries: all of them.
        local: those of clients.
        remote: how many came from each neighbour.
    """

    key: Id
    entries: dict[Id, Entry] = field(factory=dict)
    local: dict[Id, Entry] = field(factory=dict)
    remote: dict[Hop, int] = field(factory=dict)

    def add(self, entry: Entry) -> None:
        """Take an entry in."""
        self.entries[entry.id] = entry
        if entry.hop.is_client:
            self.local[entry.id] = entry
        else:
            self.remote[entry.hop] = self.remote.get(entry.hop, 0) + 1

    def remove(self, entry: Entry) -> None:
        """Let an entry go."""
        del self.entries[entry.id]
        if entry.hop.is_client:
            del self.local[entry.id]
            return
        self.remote[entry.hop] -= 1
        if not self.remote[entry.hop]:
            del self.remote[entry.hop]


class SubscriptionTable:
    """Entries by identifier, indexed by filter."""

    def __init__(self, new_index: NewIndex) -> None:
        self._entries: dict[Id, Entry] = {}
        self._groups: dict[Filter, Group] = {}
        self._by_key: dict[Id, Group] = {}
        self._index: FilterIndex = new_index()
        self.next_order = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries.values())

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
        group = self._groups.get(wanted)
        if group is None:
            key = Id("", entry.order)
            group = self._groups[wanted] = self._by_key[key] = Group(key)
            self._index.add(key, wanted)
        group.add(entry)
        return entry

    def remove(self, id_: Id) -> None:
        """Forget a subscription that is here."""
        entry = self._entries.pop(id_)
        group = self._groups[entry.filter]
        group.remove(entry)
        if not group.entries:
            del self._groups[entry.filter], self._by_key[group.key]
            self._index.remove(group.key)

    def match(self, values: Mapping[str, object]) -> list[Group]:
        """What matches a publication, in no particular order."""
        return [self._by_key[key] for key in self._index.match(values)]

    def meeting(self, advertisement: Filter) -> list[Entry]:
        """What an advertisement can serve, in the order of arrival."""
        groups = (self._by_key[key] for key in self._index.meeting(advertisement))
        return in_order(entry for group in groups for entry in group.entries.values())

    def from_hop(self, hop: Hop) -> list[Entry]:
        """What came from a hop, in the order of arrival."""
        return in_order(entry for entry in self if entry.hop == hop)

    def uncovered_first(self, entries: Collection[Entry]) -> tuple[list[Entry], list[Entry]]:
        """Those that no other of them covers, and the rest, each in the order of arrival."""
        if len(entries) < 2:
            return list(entries), []
        among = {entry.id: entry for entry in entries}
        roots: list[Entry] = []
        rest: list[Entry] = []
        for entry in in_order(entries):
            (rest if self.is_covered(entry, among) else roots).append(entry)
        return roots, rest

    def is_covered(self, entry: Entry, among: Mapping[Id, Entry]) -> bool:
        """Whether another covers an entry; of two that cover each other, whether it comes later."""
        for key in self._index.covering(entry.filter):
            for other in self._by_key[key].entries.values():
                if other is entry or other.id not in among:
                    continue
                if other.order < entry.order or not covers(entry.filter, other.filter):
                    return True
        return False


def in_order(entries: Iterable[Entry]) -> list[Entry]:
    """Entries in the order of arrival."""
    return sorted(entries, key=attrgetter("order"))
