"""An index of filters that looks at every one: slow, plain, and the oracle of the compiled one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from gossamer.protocol.content import filters
from gossamer.protocol.content.filters import Filter
from gossamer.protocol.content.matching.index import Reach


class PlainIndex:
    """Filters by place, in a dict; no place is used again."""

    def __init__(self) -> None:
        self._filters: dict[int, Filter] = {}
        self._marks: dict[int, int] = {}
        self._several: dict[int, int] = {}
        self._copies: Counter[int] = Counter()
        self._next = 0

    def add(self, wanted: Filter, marks: int) -> int:
        assert self.place_of(wanted) is None
        self._next += 1
        self._filters[self._next] = wanted
        self._marks[self._next] = marks
        self._several[self._next] = 0
        self._copies[self._next] = 1
        return self._next

    def add_again(self, place: int) -> None:
        self._copies[place] += 1

    def remove(self, place: int) -> bool:
        self._copies[place] -= 1
        if self._copies[place]:
            return False
        del self._filters[place], self._marks[place], self._several[place]
        return True

    def place_of(self, wanted: Filter) -> int | None:
        return next((place for place, held in self._filters.items() if held == wanted), None)

    def mark(self, place: int, marks: int, several: int, among: int) -> None:
        """Give a filter these marks and no others among some."""
        self._marks[place] = self._marks[place] & ~among | marks
        self._several[place] = self._several[place] & ~among | several

    def match(self, values: Mapping[str, object], marked: int) -> set[int]:
        return self._where(marked, lambda held: held.matches(values))

    def reach(self, values: Mapping[str, object], marked: int, listed: int) -> Reach:
        return self._reach(self.match(values, marked), marked, listed)

    def covering(self, wanted: Filter, marked: int) -> set[int]:
        return self._where(marked, lambda held: filters.covers(held, wanted))

    def covered_by(self, wanted: Filter, marked: int) -> set[int]:
        return self._where(marked, lambda held: filters.covers(wanted, held))

    def meeting(self, advertisement: Filter, marked: int) -> set[int]:
        return self._where(marked, lambda held: filters.meets(held, advertisement))

    def met_by(self, subscription: Filter, marked: int) -> set[int]:
        return self._where(marked, lambda held: filters.meets(subscription, held))

    def directions(self, subscription: Filter, marked: int, listed: int) -> Reach:
        return self._reach(self.met_by(subscription, marked), marked, listed)

    def _where(self, marked: int, holds: Callable[[Filter], bool]) -> set[int]:
        return {
            place
            for place, held in self._filters.items()
            if self._marks[place] & marked and holds(held)
        }

    def _reach(self, places: set[int], marked: int, listed: int) -> Reach:
        met = holders = 0
        found = [place for place in places if self._marks[place] & listed]
        for place in places.difference(found):
            marks = self._marks[place] & marked
            met |= marks
            holders += marks.bit_count() + (marks & self._several[place]).bit_count()
        return Reach(met, holders, found)
