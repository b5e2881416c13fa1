"""The matching index: filters by what they match, cover and intersect.

>>> from gossamer.protocol.content.filters import parse
>>> from gossamer.protocol.content.matching.index import MatchingIndex
>>> index = MatchingIndex()
>>> wide = index.add(parse("price >= 80")).id
>>> narrow = index.add(parse('price > 90 and symbol == "IBM"'))
>>> narrow.covered_by == wide, index.roots() == [wide]
(True, True)
>>> index.match({"symbol": "IBM", "price": 81.5}) == [wide]
True
>>> index.remove(wide).new_roots == [narrow.id]
True
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from attrs import frozen

from gossamer.protocol.content.filters.filter import Filter, conforms, covers, intersects, meets
from gossamer.protocol.content.matching import storage
from gossamer.protocol.content.matching.dimensions import Box, Dimensions, rows_of
from gossamer.protocol.content.matching.search import ENOUGH, HELD, LISTED, MARKED, NONE, ROOT
from gossamer.protocol.content.matching.storage import Question, Questions, Storage
from gossamer.protocol.content.values import Kind
from gossamer.protocol.kernel.errors import ContentError

_ENOUGH_COVERING = 4
"""Covering filters to choose the most specific from: below it, fewer have to find another."""


@frozen
class Added:
    """What adding a filter changed.

    Attributes:
        id: of the filter; equal filters share one.
        is_new: whether no equal filter was there.
        covered_by: a filter that covers it, or None if it is a root.
        covered_roots: roots that it covers, which are none any more.
    """

    id: int
    is_new: bool
    covered_by: int | None
    covered_roots: list[int]


@frozen
class Removed:
    """What removing a filter changed.

    Attributes:
        is_gone: whether it had been added no more than once.
        was_root: whether it was a root until now; False unless it is gone.
        new_roots: filters that it covered and that no other covers.
    """

    is_gone: bool
    was_root: bool
    new_roots: list[int]


class Reach(NamedTuple):
    """Whom a publication reaches.

    Attributes:
        marks: of the filters that are not listed.
        holders: at least how many hold these; 0 and 1 are exact.
        listed: filters with a mark that was to be listed, and those that took more than keys.
    """

    marks: int
    holders: int
    listed: list[int]


class MatchingIndex:
    """A set of filters, each with an id, found by publications and by other filters.

    An id is an integer that may be used again once its filter is gone. Roots are the filters that
    no other covers; of several that cover each other, the one with the least id.

    Args:
        compiled: run rules compiled, for large tables; the compiler is loaded then.
        covering: keep track of roots; without, `add` and `remove` cost less and tell nothing.
    """

    def __init__(self, *, compiled: bool = False, covering: bool = True) -> None:
        self._covering = covering
        self._dimensions = Dimensions(self._move_strings)
        self._questions = Questions(self._dimensions)
        self._storage = Storage(compiled)
        self._filters: dict[int, Filter] = {}
        self._ids: dict[Filter, int] = {}
        self._copies: dict[int, int] = {}
        self._boxed: tuple[Filter | None, Box] = (None, Box([], True))

    def __len__(self) -> int:
        """The number of different filters."""
        return len(self._filters)

    def __contains__(self, wanted: object) -> bool:
        """Whether an equal filter is there."""
        return wanted in self._ids

    def __getitem__(self, filter_id: int) -> Filter:
        """The filter with an id; `ContentError` if there is none."""
        found = self._filters.get(filter_id)
        if found is None:
            raise ContentError("", f"no filter has the id {filter_id}")
        return found

    def id_of(self, wanted: Filter) -> int | None:
        """The id of an equal filter, or None."""
        return self._ids.get(wanted)

    def add(self, wanted: Filter, marks: int = 0) -> Added:
        """Add a filter with these marks (see `mark`); an equal one is counted once more."""
        known = self._ids.get(wanted)
        if known is not None:
            self._copies[known] += 1
            return Added(known, False, self.covered_by(known), [])
        box = self._dimensions.enter(wanted)
        self._storage.reserve_dimensions(len(self._dimensions))
        slot = self._storage.take_slot(rows_of(box), not box.exact, marks)
        self._boxed = wanted, box
        self._filters[slot], self._ids[wanted], self._copies[slot] = wanted, slot, 1
        above = self._cover_of(slot) if self._covering else NONE
        below = self._roots_below(slot) if self._covering and above == NONE else []
        for root in below:
            self._storage.hang_root(root, slot)
        if above != NONE:
            self._storage.hang(slot, above)
        self._storage.insert(slot)
        return Added(slot, True, None if above == NONE else above, below)

    def add_again(self, filter_id: int) -> None:
        """Count a filter that is there once more."""
        self._copies[filter_id] += 1

    def remove(self, filter_id: int) -> Removed:
        """Remove a filter, or one of several equal ones; `ContentError` if there is none."""
        wanted = self[filter_id]
        self._copies[filter_id] -= 1
        if self._copies[filter_id]:
            return Removed(False, False, [])
        was_root = self._storage.parent(filter_id) == NONE
        self._storage.remove(filter_id)
        self._storage.unhang(filter_id)
        new_roots = self._hang_elsewhere(filter_id)
        self._storage.give_back(filter_id)
        self._dimensions.release(wanted)
        self._boxed = None, self._boxed[1]
        del self._filters[filter_id], self._ids[wanted], self._copies[filter_id]
        return Removed(True, was_root, new_roots)

    def mark(self, filter_id: int, marks: int, several: int = 0, among: int = HELD - 1) -> None:
        """Give a filter these marks, bits below 2^60, and no others among some.

        A mark says who holds a filter, and questions can be put to the filters of some marks only.
        `several`: the marks that stand for more than one holder.
        """
        self._storage.mark(filter_id, marks, several, among)

    def match(self, publication: Mapping[str, object], marked: int = HELD) -> list[int]:
        """The filters that a publication matches, in no particular order.

        Values that are none, such as NaN, satisfy nothing.
        """
        words = self._questions.matching(publication)
        return self._checked(words, lambda held: held.matches(publication), marked)

    def reach(self, publication: Mapping[str, object], marked: int, listed: int) -> Reach:
        """Whom a publication reaches, by marks, which is a good deal less work than listing.

        Args:
            publication: what is to match.
            marked: the marks that are asked for.
            listed: of these, the ones whose filters are listed, for what else is known of them.
        """
        words = self._questions.matching(publication)
        return self._reach(words, lambda held: held.matches(publication), marked, listed)

    def reach_of_subscription(self, subscription: Filter, marked: int, listed: int) -> Reach:
        """As `reach`, of advertisements whose publications may match a subscription."""
        words = storage.met_by_subscription(self._box(subscription))
        return self._reach(words, lambda held: meets(subscription, held), marked, listed)

    def roots(self) -> list[int]:
        """The filters that no other covers, in ascending order."""
        return self._storage.roots()

    def is_root(self, filter_id: int) -> bool:
        """Whether no other filter covers one."""
        return self._storage.parent(filter_id) == NONE

    def covered_by(self, filter_id: int) -> int | None:
        """A filter that covers one, as specific as was found, or None for a root."""
        parent = self._storage.parent(filter_id)
        return None if parent == NONE else parent

    def covering(self, wanted: Filter, marked: int = HELD) -> list[int]:
        """All filters that cover a filter, an equal one included."""
        words = storage.covering(self._box(wanted))
        return self._checked(words, lambda held: covers(held, wanted), marked)

    def covered(self, wanted: Filter, marked: int = HELD) -> list[int]:
        """All filters that a filter covers, an equal one included."""
        words = storage.covered(self._box(wanted))
        return self._checked(words, lambda held: covers(wanted, held), marked)

    def intersecting(self, wanted: Filter) -> list[int]:
        """All filters that share a publication with a filter."""
        words = storage.intersecting(self._box(wanted))
        return self._checked(words, lambda held: intersects(held, wanted))

    def met_by_advertisement(self, advertisement: Filter, marked: int = HELD) -> list[int]:
        """Of subscriptions in the index, those that an advertisement's publications may match."""
        words = storage.met_by_advertisement(self._box(advertisement))
        return self._checked(words, lambda held: meets(held, advertisement), marked)

    def met_by_subscription(self, subscription: Filter, marked: int = HELD) -> list[int]:
        """Of advertisements in the index, those whose publications may match a subscription."""
        words = storage.met_by_subscription(self._box(subscription))
        return self._checked(words, lambda held: meets(subscription, held), marked)

    def allowing(self, publication: Mapping[str, object]) -> list[int]:
        """Of advertisements in the index, those that allow a publication."""
        words = self._questions.allowing(publication)
        return self._checked(words, lambda held: conforms(publication, held))

    def _checked(
        self, words: Question | None, holds: Callable[[Filter], bool], marked: int = HELD
    ) -> list[int]:
        if words is None:
            return []
        words[MARKED] = words[LISTED] = marked
        certain, doubtful = self._storage.search(words)
        if not doubtful:
            return certain
        return certain + [one for one in doubtful if holds(self._filters[one])]

    def _reach(
        self, words: Question, holds: Callable[[Filter], bool], marked: int, listed: int
    ) -> Reach:
        words[MARKED], words[LISTED] = marked, listed
        certain, doubtful = self._storage.search(words)
        marks, holders = self._storage.met()
        return Reach(
            marks, holders, certain + [one for one in doubtful if holds(self._filters[one])]
        )

    def _box(self, wanted: Filter) -> Box:
        """A filter by kinds and keys, which hold until the next addition or removal.

        Several questions about one filter are asked in a row, the first of them often `add`.
        """
        if wanted is not self._boxed[0]:
            slot = self._ids.get(wanted)
            box = self._dimensions.box(wanted) if slot is None else self._box_at(slot)
            self._boxed = wanted, box
        return self._boxed[1]

    def _box_at(self, slot: int) -> Box:
        exact = not self._storage.is_doubtful(slot)
        return self._dimensions.box_of(self._storage.rows(slot), exact)

    def _cover_of(self, slot: int) -> int:
        """A specific filter that covers one, which is not in the tree or is in its place."""
        words = storage.covering(self._box_at(slot))
        words[ENOUGH] = _ENOUGH_COVERING
        certain, doubtful = self._storage.search(words)
        others = [other for other in certain if other != slot]
        if not others:
            others = [other for other in doubtful if self._is_above(other, slot)]
        return max(others, key=lambda other: len(self._filters[other]), default=NONE)

    def _roots_below(self, slot: int) -> list[int]:
        words = storage.covered(self._box_at(slot))
        if words is None:
            return []
        words[MARKED] = words[LISTED] = ROOT
        certain, doubtful = self._storage.search(words)
        return certain + [other for other in doubtful if self._is_above(slot, other)]

    def _is_above(self, upper: int, lower: int) -> bool:
        """Whether one filter covers another, and comes first if that covers it as well."""
        one, other = self._filters[upper], self._filters[lower]
        return covers(one, other) and (upper < lower or not covers(other, one))

    def _hang_elsewhere(self, slot: int) -> list[int]:
        """Find other filters for those that hang below one to hang from; returns new roots."""
        new_roots = []
        for child in self._storage.children(slot):
            above = self._cover_of(child)
            if above == NONE:
                self._storage.make_root(child)
                new_roots.append(child)
            else:
                self._storage.unhang(child)
                self._storage.hang(child, above)
        return new_roots

    def _move_strings(self, old: list[int], new: list[int]) -> None:
        self._storage.move_keys(self._dimensions.of_kind(Kind.STRING), old, new)
