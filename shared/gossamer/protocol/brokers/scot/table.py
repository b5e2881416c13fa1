"""The routing table: {subscription, last hop, cluster bit vector} (Sec. 5)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import numpy as np
import numpy.typing as npt
from attrs import frozen

from gossamer.protocol.brokers.core.broker import NewIndex, SharedIndex
from gossamer.protocol.brokers.core.messages import Hop, Id, neighbour
from gossamer.protocol.brokers.scot.topology import ClusterBitVector
from gossamer.protocol.content.filters import Filter
from gossamer.protocol.kernel.errors import InvariantError

# Subscriptions by number: what several routing tables have in common, kept once.
#
# Every broker of an overlay knows every subscription, so brokers that live in one process share a
# catalogue, and a routing table keeps no more than a small number for each subscription.

Numbers = npt.NDArray[np.intp]

# Every filter is marked alike: a catalogue is asked for all that match.
_MARK: Final = 1


@frozen
class Known:
    """A subscription, as all brokers know it."""

    id: Id
    filter: Filter
    host: ClusterBitVector


class Catalogue:
    """Subscriptions that some routing table holds.

    A number is used again once no table holds its subscription.

    Attributes:
        size: all numbers are below it.
    """

    def __init__(self, new_index: NewIndex = SharedIndex) -> None:
        """An empty catalogue; `new_index` makes an empty index of filters."""
        self.size = 0
        self._known: dict[int, Known] = {}
        self._holders: npt.NDArray[np.int32] = np.zeros(16, np.int32)
        self._numbers: dict[Id, int] = {}
        self._free: list[int] = []
        self._places: dict[int, dict[int, None]] = {}
        self._index = new_index()

    @property
    def held(self) -> int:
        """How many are held."""
        return len(self._known)

    def __getitem__(self, number: int) -> Known:
        return self._known[number]

    def number_of(self, id_: Id) -> int | None:
        """The number of a subscription, or None."""
        return self._numbers.get(id_)

    def hold(self, id_: Id, wanted: Filter, host: ClusterBitVector) -> int:
        """Hold a subscription once more; returns its number."""
        number = self._numbers.get(id_)
        if number is None:
            number = self._enter(Known(id_, wanted, host))
        self._holders[number] += 1
        return number

    def hold_again(self, numbers: Numbers) -> None:
        """Hold different subscriptions that are held already once more."""
        self._holders[numbers] += 1

    def release(self, number: int) -> None:
        """Hold a subscription once less; forget it with the last."""
        self._holders[number] -= 1
        if self._holders[number] == 0:
            self._forget(number)

    def match(self, values: Mapping[str, object]) -> Numbers:
        """Those that match a publication, in no order."""
        return self._listed(self._index.match(values, _MARK))

    def covering(self, wanted: Filter) -> Numbers:
        """Those whose filter covers another, equal ones included."""
        return self._listed(self._index.covering(wanted, _MARK))

    def covered_by(self, wanted: Filter) -> Numbers:
        """Those whose filter another covers, equal ones included."""
        return self._listed(self._index.covered_by(wanted, _MARK))

    def _listed(self, places: Iterable[int]) -> Numbers:
        numbers = (number for place in places for number in self._places[place])
        return np.fromiter(numbers, np.intp)

    def _enter(self, known: Known) -> int:
        if self._free:
            number = self._free.pop()
        else:
            number = self.size
            self.size += 1
            if self.size > len(self._holders):
                self._holders = np.concatenate([self._holders, np.zeros_like(self._holders)])
        self._numbers[known.id] = number
        self._known[number] = known
        place = self._index.add(known.filter, _MARK)
        self._places.setdefault(place, {})[number] = None
        return number

    def _forget(self, number: int) -> None:
        known = self._known.pop(number)
        place = self._index.place_of(known.filter)
        if place is None:
            raise InvariantError(f"the filter of subscription {known.id} is not in the index")
        del self._places[place][number]
        if self._index.remove(place):
            del self._places[place]
        del self._numbers[known.id]
        self._free.append(number)


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


@frozen
class Matching:
    """Whom a notification concerns, by a broker's table.

    Attributes:
        own: subscriptions of the broker's own clients that match.
        neighbours: names of those that other subscriptions that match came from.
    """

    own: tuple[Entry, ...]
    neighbours: frozenset[str]


# The code of a subscription that the table does not hold, and of one of a client of the broker;
# the others stand for neighbours.
_ABSENT: Final = 0
_OWN: Final = 1


class RoutingTable:
    """Subscriptions by identifier: where each came from, as a code of two bytes.

    Whatever else is known of them stands in the catalogue.
    """

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._codes: npt.NDArray[np.uint16] = np.zeros(0, np.uint16)
        self._names = ["", ""]
        self._code_of: dict[str, int] = {}
        self._own: dict[int, tuple[Hop, str]] = {}
        self._held = 0

    def __len__(self) -> int:
        return self._held

    def __iter__(self) -> Iterator[Entry]:
        """All entries, by identifier."""
        entries = map(self._entry, np.flatnonzero(self._codes).tolist())
        return iter(sorted(entries, key=_by_id))

    def get(self, id_: Id) -> Entry | None:
        """The entry of a subscription, or None."""
        number = self._catalogue.number_of(id_)
        return None if number is None or not self._code(number) else self._entry(number)

    def __getitem__(self, id_: Id) -> Entry:
        entry = self.get(id_)
        if entry is None:
            raise KeyError(id_)
        return entry

    def add(self, entry: Entry) -> None:
        """Enter a subscription that is new."""
        number = self._catalogue.hold(entry.id, entry.filter, entry.host)
        self._grow(number + 1)
        self._codes[number] = self._code_for(entry.hop)
        self._held += 1
        if entry.hop.is_client:
            self._own[number] = entry.hop, entry.label

    def add_all(self, numbers: Numbers, name: str) -> None:
        """Enter subscriptions of the catalogue that are new, as having come from a neighbour."""
        self._grow(int(numbers.max(initial=-1)) + 1)
        self._catalogue.hold_again(numbers)
        self._codes[numbers] = self._code_for(neighbour(name))
        self._held += len(numbers)

    def remove(self, id_: Id) -> None:
        """Forget a subscription that is held."""
        number = self._catalogue.number_of(id_)
        if number is None or not self._code(number):
            raise KeyError(id_)
        self._codes[number] = _ABSENT
        self._held -= 1
        self._own.pop(number, None)
        self._catalogue.release(number)

    def match(self, values: Mapping[str, object]) -> list[Entry]:
        """The subscriptions that match, in no order."""
        return list(map(self._entry, self._held_of(self._catalogue.match(values))))

    def directions(self, values: Mapping[str, object]) -> Matching:
        """Whom a notification concerns."""
        numbers = self._catalogue.match(values)
        codes = self._codes_of(numbers)
        own = numbers[codes == _OWN].tolist()
        names = (self._names[code] for code in np.unique(codes).tolist() if code > _OWN)
        return Matching(tuple(map(self._entry, own)), frozenset(names))

    def covering(self, entry: Entry) -> list[Entry]:
        """Others from the same direction whose filter covers that of an entry."""
        return self._beside(entry, self._catalogue.covering(entry.filter))

    def covered_by(self, entry: Entry) -> list[Entry]:
        """Others from the same direction whose filter that of an entry covers."""
        return self._beside(entry, self._catalogue.covered_by(entry.filter))

    def _beside(self, entry: Entry, numbers: Numbers) -> list[Entry]:
        same = numbers[self._codes_of(numbers) == self._code_for(entry.hop)].tolist()
        found = (self._entry(number) for number in same)
        return [other for other in found if other.id != entry.id]

    def _held_of(self, numbers: Numbers) -> list[int]:
        held: list[int] = numbers[self._codes_of(numbers) != _ABSENT].tolist()
        return held

    def _codes_of(self, numbers: Numbers) -> npt.NDArray[np.uint16]:
        # The catalogue may know numbers that no entry of this table has reached yet.
        self._grow(self._catalogue.size)
        return self._codes[numbers]

    def _entry(self, number: int) -> Entry:
        known = self._catalogue[number]
        own = self._own.get(number)
        hop, label = own or (neighbour(self._names[self._codes[number]]), "")
        return Entry(known.id, known.filter, hop, known.host, label)

    def _code(self, number: int) -> int:
        return int(self._codes[number]) if number < len(self._codes) else _ABSENT

    def _code_for(self, hop: Hop) -> int:
        if hop.is_client:
            return _OWN
        code = self._code_of.get(hop.name)
        if code is None:
            code = self._code_of[hop.name] = len(self._names)
            self._names.append(hop.name)
        return code

    def _grow(self, least: int) -> None:
        if least > len(self._codes):
            larger = np.zeros(max(least, 2 * len(self._codes), 16), np.uint16)
            larger[: len(self._codes)] = self._codes
            self._codes = larger


def _by_id(entry: Entry) -> Id:
    return entry.id
