"""An index of filters that looks at every one: slow, plain, and the oracle of the compiled one."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from attrs import define

from gossamer.protocol.content import filters
from gossamer.protocol.content.filters import Filter
from gossamer.protocol.content.matching.index import Reach


@define
class Held:
    """A filter, its marks, those of them that several have, and how often it is held."""

    filter: Filter
    marks: int
    several: int = 0
    copies: int = 1


class PlainIndex:
    """Filters by place, in a dict; no place is used again."""

    def __init__(self) -> None:
        self._held: dict[int, Held] = {}
        self._next = 0

    def add(self, wanted: Filter, marks: int) -> int:
        place = self.place_of(wanted)
        if place is not None:
            self.add_again(place)
            return place
        self._next += 1
        self._held[self._next] = Held(wanted, marks)
        return self._next

    def add_again(self, place: int) -> None:
        self._held[place].copies += 1

    def remove(self, place: int) -> bool:
        held = self._held[place]
        held.copies -= 1
        if not held.copies:
            del self._held[place]
        return not held.copies

    def place_of(self, wanted: Filter) -> int | None:
        return next((place for place, one in self._held.items() if one.filter == wanted), None)

    def mark(self, place: int, marks: int, several: int, among: int) -> None:
        """Give a filter these marks and no others among some."""
        held = self._held[place]
        held.marks = held.marks & ~among | marks
        held.several = held.several & ~among | several

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
            for place, held in self._held.items()
            if held.marks & marked and holds(held.filter)
        }

    def _reach(self, places: set[int], marked: int, listed: int) -> Reach:
        met = holders = 0
        found = [place for place in places if self._held[place].marks & listed]
        for place in places.difference(found):
            held = self._held[place]
            marks = held.marks & marked
            met |= marks
            holders += marks.bit_count() + (marks & held.several).bit_count()
        return Reach(met, holders, found)
