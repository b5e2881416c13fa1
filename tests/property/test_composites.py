"""Composite subscriptions of any shape: their text, and their matches against all combinations."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any, Final

from attrs import frozen
from hypothesis import given
from hypothesis import strategies as st

from gossamer.protocol.content.filters.composite import (
    Composite,
    composite_text,
    parse_composite,
)
from gossamer.protocol.content.matching.composite_matcher import CompositeMatch, CompositeMatcher

WINDOW: Final = 4
PARTS: Final = ("{a == $X}", "{b == $X}", "{a > 0}", "{b < 2 and c == $Y}", "{c == $Y}")
PUBLICATIONS: Final = st.dictionaries(st.sampled_from("abc"), st.integers(0, 2))


@frozen
class Pattern:
    """What was drawn: a part, or an operator between two of these."""

    text: str
    left: Pattern | None = None
    right: Pattern | None = None

    def written(self) -> str:
        """With braces around every pair."""
        if self.left is None or self.right is None:
            return self.text
        return f"{{{self.left.written()} {self.text} {self.right.written()}}}"

    def found(self, size: int, fits: Fits) -> set[tuple[int, ...]]:
        if self.left is None or self.right is None:
            return {(number,) for number in range(size) if fits(self.text, number)}
        left, right = self.left.found(size, fits), self.right.found(size, fits)
        if self.text == "||":
            return left | right
        return {
            one + other
            for one, other in itertools.product(left, right)
            if self.text == "&" or max(one) < min(other)
        }


class Fits:
    """Which of the publications match a part."""

    def __init__(self, publications: list[dict[str, int]]) -> None:
        self._publications = publications

    def __call__(self, text: str, number: int) -> bool:
        part = parse_composite(text).alternatives[0][0]
        return part.filter.matches(self._publications[number])


def patterns(parts: tuple[str, ...] = PARTS) -> st.SearchStrategy[Pattern]:
    return st.recursive(
        st.builds(Pattern, st.sampled_from(parts)),
        lambda inner: st.builds(Pattern, st.sampled_from(["&", "->", "||"]), inner, inner),
        max_leaves=4,
    )


@given(patterns())
def test_texts_read_back_as_equal_ones(pattern: Pattern) -> None:
    composite = parse_composite(pattern.written())
    text = composite_text(composite)
    assert parse_composite(text) == composite
    assert composite_text(parse_composite(text)) == text
    assert parse_composite(pattern.written().replace("->", "followed by")) == composite


@given(patterns(("{a > 0}", "{b > 0}", "{c > 0}")), st.lists(PUBLICATIONS, max_size=6))
def test_operators_mean_what_they_mean_one_inside_the_other(
    pattern: Pattern, publications: list[dict[str, int]]
) -> None:
    matcher = CompositeMatcher()
    matcher.add(parse_composite(pattern.written()), window=1)
    found = {
        match.publications
        for number, publication in enumerate(publications)
        for match in matcher.step(0, publication, number)
    }
    assert found == pattern.found(len(publications), Fits(publications))


@given(st.lists(patterns(), min_size=1, max_size=3), st.lists(PUBLICATIONS, max_size=8))
def test_matches_are_those_of_all_combinations(
    drawn: list[Pattern], publications: list[dict[str, int]]
) -> None:
    matcher = CompositeMatcher()
    held = [parse_composite(pattern.written()) for pattern in drawn]
    ids = [matcher.add(composite, WINDOW) for composite in held]
    for number, publication in enumerate(publications):
        found = Counter(matcher.step(number, publication, number))
        expected = Counter(
            match
            for one, composite in zip(ids, held, strict=True)
            for match in combinations(one, composite, publications[: number + 1])
        )
        assert found == expected


def combinations(
    id_: int, composite: Composite, published: list[dict[str, int]]
) -> list[CompositeMatch]:
    """All matches that the last publication is part of, one time unit after the one before it."""
    last = len(published) - 1
    recent = range(max(0, last - WINDOW), last + 1)
    return [
        CompositeMatch(id_, number, chosen)
        for number, parts in enumerate(composite.alternatives)
        for chosen in itertools.product(recent, repeat=len(parts))
        if last in chosen
        and all(chosen[one] < chosen[other] for one, other in composite.orders[number])
        and all(one.filter.matches(published[at]) for one, at in zip(parts, chosen, strict=True))
        and agree([(one.bindings, published[at]) for one, at in zip(parts, chosen, strict=True)])
    ]


def agree(bound: list[tuple[tuple[tuple[str, str], ...], dict[str, Any]]]) -> bool:
    values: dict[str, Any] = {}
    return all(
        values.setdefault(variable, publication[attribute]) == publication[attribute]
        for bindings, publication in bound
        for attribute, variable in bindings
    )
