"""The matching index against flat lists of filters, under any order of additions and removals."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.compiled.store import keep_compiled_code
from gossamer.protocol.content.filters import Filter, conforms, covers, intersects, meets, parse
from gossamer.protocol.content.matching.dimensions import StringOrder, number_high, number_low
from gossamer.protocol.content.matching.index import MatchingIndex
from support.draws import Draws, few_or_many
from support.filter_strategies import (
    VALUES,
    filters,
    publications,
    random_filter,
    random_publication,
)


class FlatFilters:
    """What an index holds, as a list that is gone through for every question."""

    def __init__(self, index: MatchingIndex) -> None:
        self.index = index
        self.copies: Counter[int] = Counter()
        self.held: dict[int, Filter] = {}

    def add(self, wanted: Filter) -> None:
        roots = self.roots()
        added = self.index.add(wanted)
        assert added.is_new is (wanted not in self.held.values())
        self.held[added.id] = wanted
        self.copies[added.id] += 1
        now = self.roots()
        assert (added.covered_by is None) is (added.id in now)
        assert set(added.covered_roots) == roots - now
        if added.covered_by is not None:
            assert covers(self.held[added.covered_by], wanted)

    def remove(self, filter_id: int) -> None:
        roots = self.roots()
        removed = self.index.remove(filter_id)
        self.copies[filter_id] -= 1
        assert removed.is_gone is (self.copies[filter_id] == 0)
        if removed.is_gone:
            del self.held[filter_id], self.copies[filter_id]
            assert removed.was_root is (filter_id in roots)
        assert set(removed.new_roots) == self.roots() - roots

    def put(self, wanted: Filter) -> None:
        """Add a filter, and look later what that did."""
        self.held[self.index.add(wanted).id] = wanted

    def drop(self, one: int) -> None:
        if self.index.remove(one).is_gone:
            del self.held[one]

    def roots(self) -> set[int]:
        """The filters that no other covers, or that have the least id of those that are equal."""
        return {
            one
            for one, wanted in self.held.items()
            if not any(
                covers(above, wanted) and (other < one or not covers(wanted, above))
                for other, above in self.held.items()
                if other != one
            )
        }

    def check_publication(self, publication: dict[str, Any]) -> None:
        expected = {one for one, held in self.held.items() if held.matches(publication)}
        assert same(self.index.match(publication), expected)
        expected = {one for one, held in self.held.items() if conforms(publication, held)}
        assert same(self.index.allowing(publication), expected)

    def check_filter(self, wanted: Filter) -> None:
        index, held = self.index, self.held.items()
        assert same(index.covering(wanted), {one for one, h in held if covers(h, wanted)})
        assert same(index.covered(wanted), {one for one, h in held if covers(wanted, h)})
        assert same(index.intersecting(wanted), {one for one, h in held if intersects(h, wanted)})
        met = {one for one, h in held if meets(h, wanted)}
        assert same(index.met_by_advertisement(wanted), met)
        met = {one for one, h in held if meets(wanted, h)}
        assert same(index.met_by_subscription(wanted), met)


def same(found: list[int], expected: set[int]) -> bool:
    return sorted(found) == sorted(expected)


@given(
    st.lists(filters() | st.integers(0, 99), max_size=25),
    filters(),
    st.lists(publications(), max_size=5),
)
def test_the_index_answers_as_a_list_does(
    steps: list[Filter | int], wanted: Filter, published: list[dict[str, Any]]
) -> None:
    flat = FlatFilters(MatchingIndex())
    for step in steps:
        if isinstance(step, Filter):
            flat.add(step)
        elif flat.held:
            flat.remove(sorted(flat.held)[step % len(flat.held)])
    assert set(flat.index.roots()) == flat.roots()
    flat.check_filter(wanted)
    for publication in published:
        flat.check_publication(publication)


@few_or_many(400, 2000)
def test_interleavings_end_as_a_list_does(count: int, draws: Draws) -> None:
    keep_compiled_code()
    pool = [random_filter(Random(number), "ns", 3) for number in range(300)]
    published = [random_publication(Random(number)) for number in range(100)]
    for seed in draws.numbers(count):
        rng = Random(seed)
        flat = FlatFilters(MatchingIndex(compiled=seed % 2 == 0))
        for _ in range(rng.randint(1, 12 if seed % 100 else 40)):
            if flat.held and rng.random() < 0.4:
                flat.drop(rng.choice(list(flat.held)))
            else:
                flat.put(rng.choice(pool))
        assert set(flat.index.roots()) == flat.roots(), seed
        flat.check_publication(rng.choice(published))
        flat.check_filter(rng.choice(pool))


@pytest.mark.parametrize(("seed", "names", "most"), [(1, "nsdb", 4), (2, "n", 3), (3, "s", 3)])
def test_a_large_compiled_index_answers_as_a_list_does(seed: int, names: str, most: int) -> None:
    print("seed", seed)
    keep_compiled_code()
    rng = Random(seed)
    index = MatchingIndex(compiled=True)
    flat = FlatFilters(index)
    for round_ in range(7):
        for _ in range(150):
            flat.put(random_filter(rng, names, most))
        for _ in range(60 if round_ < 5 else 300):
            if flat.held and rng.random() < 0.9:
                flat.drop(rng.choice(list(flat.held)))
        assert len(index) == len(flat.held)
        for _ in range(4):
            flat.check_filter(random_filter(rng, names, most))
        for _ in range(8):
            flat.check_publication(random_publication(rng))
    assert set(index.roots()) == flat.roots()
    for one, held in flat.held.items():
        above = index.covered_by(one)
        assert above is None or covers(flat.held[above], held)


def test_compiled_and_interpreted_tables_are_equal() -> None:
    keep_compiled_code()
    rng = Random(4)
    print("seed", 4)
    both = MatchingIndex(compiled=True), MatchingIndex()
    held: list[int] = []
    for _ in range(500):
        if held and rng.random() < 0.3:
            one = held.pop(rng.randrange(len(held)))
            assert both[0].remove(one) == both[1].remove(one)
        else:
            wanted = random_filter(rng)
            added = [index.add(wanted) for index in both]
            assert added[0] == added[1]
            held.append(added[0].id)
        publication = random_publication(rng)
        assert both[0].match(publication) == both[1].match(publication)
    for name in ("slots", "records", "nodes", "budget", "counters"):
        arrays = [getattr(index._storage.table, name) for index in both]
        assert np.array_equal(*arrays), name


@few_or_many(5, 20)
def test_marks_narrow_questions_and_stand_for_filters(count: int, draws: Draws) -> None:
    keep_compiled_code()
    for seed in draws.numbers(count):
        print("seed", seed)
        rng = Random(seed)
        both = MatchingIndex(compiled=True, covering=False), MatchingIndex(covering=False)
        held: dict[int, tuple[Filter, int, int]] = {}
        for _ in range(150):
            if held and rng.random() < 0.3:
                one = rng.choice(list(held))
                for index in both:
                    index.remove(one)
                del held[one]
            else:
                wanted = random_filter(rng, "ns", 3)
                if wanted in both[0]:
                    continue
                one, _ = (index.add(wanted, 1).id for index in both)
                held[one] = wanted, 1, 0
            for one in rng.sample(list(held), min(len(held), 2)):
                marks = rng.getrandbits(6)
                held[one] = held[one][0], marks, marks & rng.getrandbits(6)
                for index in both:
                    index.mark(one, *held[one][1:])
        marked = rng.getrandbits(6)
        check_marks(both, held, random_filter(rng, "ns", 3), random_publication(rng), marked)


def check_marks(
    both: tuple[MatchingIndex, MatchingIndex],
    held: dict[int, tuple[Filter, int, int]],
    wanted: Filter,
    publication: dict[str, Any],
    marked: int,
) -> None:
    """Questions to the filters with some marks; `held` has filters, marks and those of several."""
    some = {one: kept for one, (kept, marks, _) in held.items() if marks & marked}
    matching = {one for one, kept in some.items() if kept.matches(publication)}
    for index in both:
        assert same(index.match(publication, marked), matching)
        above = {one for one, kept in some.items() if covers(kept, wanted)}
        assert same(index.covering(wanted, marked), above)
        below = {one for one, kept in some.items() if covers(wanted, kept)}
        assert same(index.covered(wanted, marked), below)
    reached = [index.reach(publication, marked, marked & 3) for index in both]
    assert reached[0] == reached[1]
    found, listed = reached[0], set(reached[0].listed)
    assert {one for one in matching if held[one][1] & marked & 3} <= listed <= matching
    marks = holders = 0
    for one in matching - listed:
        its = held[one][1] & marked
        marks |= its
        holders += its.bit_count() + (its & held[one][2]).bit_count()
    assert (found.marks, min(found.holders, 2)) == (marks, min(holders, 2))


@given(st.sampled_from(VALUES["n"]), st.sampled_from(VALUES["n"]))
def test_number_keys_never_contradict_the_order(one: Any, other: Any) -> None:
    for side, other_side in ((0, 0), (0, 1), (1, 0), (1, 1)):
        low, high = (one, side), (other, other_side)
        low_key, low_exact = number_low(low)
        high_key, high_exact = number_high(high)
        if low < high:
            assert low_key < high_key
        elif low_exact and high_exact:
            assert low_key >= high_key
        if low <= high:
            assert number_low(low)[0] <= number_low(high)[0]
            assert number_high(low)[0] <= number_high(high)[0]


def test_strings_keep_their_order_however_labels_change() -> None:
    moves = []
    order = StringOrder(lambda old, new: moves.append((old, new)))
    cuts = [(0, "m", 0), (0, "z", 0)]
    # Whatever arrives alternately on both sides halves what lies between: labels run out.
    for number in range(120):
        cuts += [(0, f"n{number:04}", 0), (0, f"y{9999 - number:04}", 0)]
    for cut in cuts:
        order.use(cut)
        order.use(cut)
    keys = [order.key(cut) for cut in sorted(cuts)]
    assert keys == sorted(set(keys))
    assert all(key % 2 == 0 for key in keys)
    assert order.key((0, "n0003", 0)) < order.key((0, "n0003", 1)) < order.key((0, "n0004", 0))
    for cut in cuts:
        order.release(cut)
    assert len(order) == len(cuts)
    for cut in cuts:
        order.release(cut)
    assert len(order) == 0
    assert moves
    flat = FlatFilters(MatchingIndex())
    low, high = 0, 1 << 160
    for number in range(150):  # each half of the last one, so that labels run out again and again
        middle = (low + high) // 2
        low, high = (middle, high) if number % 2 else (low, middle)
        flat.put(parse(f's >= "{low:060}" and s < "{high:060}"'))
    for place in (0, low - 1, low, high - 1, high, 1 << 158, 1 << 159):
        flat.check_publication({"s": f"{place:060}"})
    flat.check_filter(parse('s startswith "0"'))
    assert set(flat.index.roots()) == flat.roots()


def test_equal_filters_share_an_id_until_all_are_removed() -> None:
    index = MatchingIndex()
    first, second = index.add(parse("x >= 80")), index.add(parse("[x,>=,80.0]"))
    assert first.id == second.id
    assert second.is_new is False
    assert index.remove(first.id).is_gone is False
    assert index.match({"x": 80}) == [first.id]
    assert index.remove(first.id).is_gone
    assert index.match({"x": 80}) == []
