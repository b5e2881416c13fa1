"""The subscription table: who asked for what, from where that came, and marks in the index."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from operator import attrgetter
from typing import Final, NamedTuple

from attrs import define, field

from gossamer.protocol.brokers.core.broker import SharedIndex
from gossamer.protocol.brokers.core.messages import Hop, Id
from gossamer.protocol.content.filters import Filter, covers
from gossamer.protocol.content.matching.search import MARKS_FREE

# Marks of filters in a broker's index: who told it of them, and whom it told.
#
# An index answers by marks instead of listing what matches, so a neighbour has marks of its own
# while there are any left. Those beyond share theirs, and for them, as for clients, filters are
# listed and looked up.


# What filters without a mark of their neighbour's own have: subscriptions of clients or that came
# from, or were sent to, a neighbour, advertisements of one; and what is kept at one for nobody.
LISTED: Final = 1
SENT_SOMEWHERE: Final = 2
OFFERED_SOMEWHERE: Final = 4
PRESERVED: Final = 8
_SHARED: Final = 4
_CAME, _SENT, _OFFERED, _EACH = range(4)
OWN_MARKS: Final = (MARKS_FREE - _SHARED) // _EACH
"""Neighbours with marks of their own."""


def _every(mark: int) -> int:
    return sum(1 << (_SHARED + _EACH * place + mark) for place in range(OWN_MARKS))


ALL_CAME: Final = LISTED | _every(_CAME)
ALL_SENT: Final = SENT_SOMEWHERE | PRESERVED | _every(_SENT)
ALL_OFFERED: Final = OFFERED_SOMEWHERE | _every(_OFFERED)
"""The marks of subscriptions in the table, of those at neighbours, and of advertisements."""


class Marks:
    """Three marks for each neighbour, which are used again when it is forgotten."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        self._names: dict[int, str] = {}
        self._free = list(reversed(range(OWN_MARKS)))

    def came(self, hop: Hop) -> int:
        """The mark of subscriptions that came from a hop."""
        return LISTED if hop.is_client else self._mark(hop.name, _CAME, LISTED)

    def sent(self, name: str) -> int:
        """The mark of subscriptions that were sent to a neighbour."""
        return self._mark(name, _SENT, SENT_SOMEWHERE)

    def offered(self, name: str) -> int:
        """The mark of advertisements that came from a neighbour."""
        return self._mark(name, _OFFERED, OFFERED_SOMEWHERE)

    def names(self, marks: int) -> Iterable[str]:
        """The neighbours that have some of these marks for their own."""
        marks >>= _SHARED
        place = 0
        while marks:
            if marks & (1 << _EACH) - 1:
                yield self._names[place]
            marks >>= _EACH
            place += 1

    def assign(self, name: str) -> None:
        """A neighbour is new."""
        if self._free:
            place = self._free.pop()
            self._places[name] = place
            self._names[place] = name

    def forget(self, name: str) -> None:
        """A neighbour is gone, and nothing has its marks any more."""
        place = self._places.pop(name, None)
        if place is not None:
            del self._names[place]
            self._free.append(place)

    def _mark(self, name: str, mark: int, shared: int) -> int:
        place = self._places.get(name)
        return shared if place is None else 1 << (_SHARED + _EACH * place + mark)


NOWHERE: Final = -1
_MARKS: Final = ALL_CAME | ALL_SENT


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
        filter: of all of them.
        place: in the index.
        entries: those in the table.
        local: those of clients.
        remote: how many came from each neighbour.
        sent: by neighbour those that were sent there, whoever holds them.
        preserved: how many of these are kept for nobody.
        marks, several: as the index knows them.
    """

    filter: Filter
    place: int = NOWHERE
    entries: dict[Id, Entry] = field(factory=dict)
    local: dict[Id, Entry] = field(factory=dict)
    remote: dict[Hop, int] = field(factory=dict)
    sent: dict[str, dict[Id, None]] = field(factory=dict)
    preserved: int = 0
    marks: int = 0
    several: int = 0

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


class Matched(NamedTuple):
    """Who gets a publication.

    Attributes:
        neighbours: last hops of matching subscriptions, by name.
        remote: at least how many subscriptions came from there; 0 and 1 are exact.
        local: those of clients, in the order of arrival.
    """

    neighbours: list[str]
    remote: int
    local: list[Entry]


class _Question:
    """A question about what was sent, whose answers for several neighbours are found together."""

    def __init__(
        self,
        ask: Callable[[Filter, int], Collection[int]],
        marks: Marks,
        sent: Callable[[str, Iterable[int]], list[Id]],
    ) -> None:
        self._ask = ask
        self._marks = marks
        self._sent = sent
        self._wanted: Filter | None = None
        self._names: Collection[str] = ()
        self._known: dict[str, list[Id]] = {}

    def ask_for_all(self, wanted: Filter, names: Collection[str]) -> None:
        """Once it is asked for one of these neighbours, find the answers for all."""
        self._wanted, self._names = wanted, names
        self._known.clear()

    def answer(self, name: str, wanted: Filter) -> list[Id]:
        """What was sent to a neighbour and lies to a filter as the question says."""
        if wanted is not self._wanted or name not in self._names:
            return self._sent(name, self._ask(wanted, self._marks.sent(name)))
        if name not in self._known:
            marked = 0
            for other in self._names:
                marked |= self._marks.sent(other)
            places = self._ask(wanted, marked)
            self._known = {other: self._sent(other, places) for other in self._names}
        return self._known[name]

    def forget(self, name: str) -> None:
        """What was sent to a neighbour changed."""
        self._known.pop(name, None)


class SubscriptionTable:
    """Entries by identifier, and one index of their filters and of those sent to neighbours."""

    def __init__(self, index: SharedIndex, marks: Marks) -> None:
        self._entries: dict[Id, Entry] = {}
        self._groups: dict[int, Group] = {}
        self._index = index
        self._marks = marks
        self._covering = _Question(index.covering, marks, self._sent)
        self._covered_by = _Question(index.covered_by, marks, self._sent)
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
        group = self._group_of(wanted)
        group.add(entry)
        self._changed(group)
        return entry

    def remove(self, id_: Id) -> None:
        """Forget a subscription that is here."""
        entry = self._entries.pop(id_)
        group = self._group_of(entry.filter)
        group.remove(entry)
        self._changed(group)

    def matched(self, values: Mapping[str, object], besides: Hop) -> Matched:
        """Who gets a publication that came from a hop, which is not asked again if a neighbour."""
        marked = ALL_CAME
        if not besides.is_client:
            marked &= ~self._marks.came(besides) | LISTED
        reach = self._index.reach(values, marked, LISTED)
        names = set(self._marks.names(reach.marks))
        remote = reach.holders
        local: list[Entry] = []
        for place in reach.listed:
            group = self._groups[place]
            # A client may have unsubscribed although the broker has not got round to it.
            local += [entry for entry in group.local.values() if not entry.held]
            for hop, number in group.remote.items():
                if hop != besides:
                    names.add(hop.name)
                    remote += number
        return Matched(sorted(names), remote, in_order(local))

    def meeting(self, advertisement: Filter) -> list[Entry]:
        """What an advertisement can serve, in the order of arrival."""
        groups = (self._groups[place] for place in self._index.meeting(advertisement, ALL_CAME))
        return in_order(entry for group in groups for entry in group.entries.values())

    def from_hop(self, hop: Hop) -> list[Entry]:
        """What came from a hop, in the order of arrival."""
        return in_order(entry for entry in self if entry.hop == hop)

    # What was sent to neighbours, in the table or not.

    def add_sent(self, name: str, id_: Id, wanted: Filter) -> None:
        """A subscription was sent to a neighbour."""
        group = self._group_of(wanted)
        group.sent.setdefault(name, {})[id_] = None
        self._sent_changed(name)
        self._changed(group)

    def remove_sent(self, name: str, id_: Id, wanted: Filter, preserved: bool) -> None:
        """A subscription was taken back from a neighbour, where it may have been preserved."""
        group = self._group_of(wanted)
        del group.sent[name][id_]
        if not group.sent[name]:
            del group.sent[name]
        group.preserved -= preserved
        self._sent_changed(name)
        self._changed(group)

    def preserve(self, wanted: Filter) -> None:
        """A subscription that was sent is kept for nobody."""
        group = self._group_of(wanted)
        group.preserved += 1
        self._changed(group)

    def ask_for_all(self, wanted: Filter, names: Collection[str]) -> None:
        """The next two questions will be put for each of these neighbours in turn.

        They are answered for all at once; what changes for one of them makes its answers void.
        """
        self._covering.ask_for_all(wanted, names)
        self._covered_by.ask_for_all(wanted, names)

    def sent_covering(self, name: str, wanted: Filter) -> list[Id]:
        """What was sent to a neighbour and covers a filter."""
        return self._covering.answer(name, wanted)

    def sent_covered_by(self, name: str, wanted: Filter) -> list[Id]:
        """What was sent to a neighbour and a filter covers."""
        return self._covered_by.answer(name, wanted)

    def preserved_matching(self, name: str, values: Mapping[str, object]) -> list[Id]:
        """What was sent to a neighbour and matches, of filters that are preserved somewhere."""
        return self._sent(name, self._index.match(values, PRESERVED))

    def _sent(self, name: str, places: Iterable[int]) -> list[Id]:
        return [id_ for place in places for id_ in self._groups[place].sent.get(name, ())]

    def _sent_changed(self, name: str) -> None:
        self._covering.forget(name)
        self._covered_by.forget(name)

    # Which of some subscriptions cover others of them.

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
        for place in self._index.covering(entry.filter, ALL_CAME):
            for other in self._groups[place].entries.values():
                if other is entry or other.id not in among:
                    continue
                if other.order < entry.order or not covers(entry.filter, other.filter):
                    return True
        return False

    def _group_of(self, wanted: Filter) -> Group:
        place = self._index.place_of(wanted)
        group = None if place is None else self._groups.get(place)
        return Group(wanted) if group is None else group

    def _changed(self, group: Group) -> None:
        """Mark a group by who holds it and where it was sent; nobody and nowhere: forget it."""
        if not group.entries and not group.sent:
            self._forget(group)
            return
        marks = LISTED if group.local else 0
        several = 0
        for hop, number in group.remote.items():
            came = self._marks.came(hop)
            marks |= came
            several |= came if number > 1 else 0
        for name in group.sent:
            marks |= self._marks.sent(name)
        marks |= PRESERVED if group.preserved else 0
        if group.place == NOWHERE:
            self._enter(group, marks)
        if (marks, several) != (group.marks, group.several):
            group.marks, group.several = marks, several
            self._index.mark(group.place, marks, several, _MARKS)

    def _enter(self, group: Group, marks: int) -> None:
        place = self._index.place_of(group.filter)
        if place is None:
            place = self._index.add(group.filter, marks)
            group.marks = marks
        else:
            self._index.add_again(place)
        group.place = place
        self._groups[place] = group

    def _forget(self, group: Group) -> None:
        del self._groups[group.place]
        if not self._index.remove(group.place):
            self._index.mark(group.place, 0, 0, _MARKS)


def in_order(entries: Iterable[Entry]) -> list[Entry]:
    """Entries in the order of arrival."""
    return sorted(entries, key=attrgetter("order"))
