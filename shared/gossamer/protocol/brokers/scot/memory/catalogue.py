"""Subscriptions by number: what several routing tables have in common, kept once.

Every broker of an overlay knows every subscription, so brokers that live in one process share a
catalogue, and a routing table keeps no more than a small number for each subscription.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np
import numpy.typing as npt
from attrs import frozen

from gossamer.protocol.brokers.core.identifiers import Id
from gossamer.protocol.brokers.core.index import NewIndex, SharedIndex
from gossamer.protocol.brokers.scot.overlay.labels import ClusterBitVector
from gossamer.protocol.content.filters import Filter
from gossamer.protocol.kernel.errors import InvariantError

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
        place = self._index.place_of(known.filter)
        if place is None:
            place = self._index.add(known.filter, _MARK)
            self._places[place] = {}
        else:
            self._index.add_again(place)
        self._places[place][number] = None
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
