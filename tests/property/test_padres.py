"""What PADRES reads and means as we do, and composite subscriptions of any shape."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from attrs import frozen
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from gossamer.protocol.content import filters as api
from gossamer.protocol.content.filters import Filter
from gossamer.protocol.content.filters.composite import (
    Composite,
    Part,
    composite_padres,
    composite_text,
    parse_composite,
)
from gossamer.protocol.content.grammar import Comparison, Operator
from gossamer.protocol.content.matching.composite_matcher import CompositeMatcher
from gossamer.protocol.kernel.errors import ContentError
from support import padres_grammar as padres
from support.filter_strategies import ORDERED, TEXTUAL, all_matches, filter_or_none, filters

ODD = settings(suppress_health_check=[HealthCheck.filter_too_much])
EQUAL, LEAST = Operator.EQUAL, Operator.AT_LEAST
WORD = st.sampled_from(["", "a", "b-c", "d:/e", "class", "eq", "isPresent", ":", "Class", "0", "é"])
ODD_TEXTS = ["a", "$X", "$S$X", "$I$X", "a$b", "it's", '"', "\\", "{", "}", "é", "any", "[x]"]
TEXTS = st.sampled_from(["", "b c", "\n", *ODD_TEXTS]) | st.text(max_size=4)
NUMBERS = (
    st.integers()
    | st.floats(allow_nan=False)
    | st.fractions()
    | st.sampled_from([0, -0.0, 2**63, 2**63 - 1, -(2**63), -(2**63) - 1, 10**22, 1e300, 5e-324])
)
VALUES = TEXTS | NUMBERS | st.booleans() | st.datetimes()
Fits = Callable[[str, int], bool]
WINDOW: Final = 4
PARTS: Final = ("{a == $X}", "{b == $X}", "{a > 0}", "{b < 2 and c == $Y}", "{c == $Y}")
SMALL_PUBLICATIONS: Final = st.dictionaries(st.sampled_from("abc"), st.integers(0, 2))
PUBLICATIONS = st.fixed_dictionaries(
    {"class": st.sampled_from(["stock", "x-1", "a b"])},
    optional={
        **dict.fromkeys("xyz", st.integers(-3, 3) | st.sampled_from(["", "a", 0.5])),
        "s": st.sampled_from(["", "a", "ab", "abb", "b", "ba", 1]),
    },
)


@st.composite
def classy_filters(draw: st.DrawFn) -> Filter:
    asked = [Comparison("class", EQUAL, draw(st.sampled_from(["stock", "x-1", "a b"])))]
    for name in draw(st.sets(st.sampled_from("xyzs"), max_size=3)):
        textual = name == "s"
        operator = draw(st.sampled_from((*ORDERED, *TEXTUAL) if textual else tuple(ORDERED)))
        constant = draw(st.sampled_from(["", "ab", "b"]) if textual else st.integers(-2, 2))
        asked.append(Comparison(name, operator, constant))
    return Filter.of(asked) if filter_or_none(asked) else Filter.of(asked[:1])


@st.composite
def odd_filters(draw: st.DrawFn) -> Filter:
    asked = [Comparison(draw(WORD), EQUAL, draw(VALUES)) for _ in range(draw(st.integers(0, 2)))]
    wanted = filter_or_none([Comparison("class", EQUAL, draw(TEXTS)), *asked])
    return wanted or Filter.of([Comparison("class", EQUAL, "a")])


def written_there(write: Callable[[Any], str], what: object) -> str | None:
    try:
        return write(what)
    except ContentError as error:
        reason = str(error)
    assert "PADRES" in reason
    assert "\n" not in reason
    return None


@ODD
@given(filters() | classy_filters() | odd_filters())
@example(api.parse('class == "a" and price >= 80 and price < 120'))
@example(api.parse('class == "a" and s == "$S$X"'))
@example(api.parse('class == "a" and present(price)'))
@example(api.parse("price < 5"))
def test_padres_takes_what_is_written_and_we_read_it_back(wanted: Filter) -> None:
    text = written_there(api.to_padres, wanted)
    if text is not None:
        padres.Reader(text).subscription()
        assert api.parse(text) == wanted


@ODD
@given(classy_filters(), PUBLICATIONS)
def test_padres_matches_the_same_publications(wanted: Filter, values: dict[str, Any]) -> None:
    """One predicate an attribute is enough to be written; what is refused has a reason."""
    text = written_there(api.to_padres, wanted)
    if text is not None:
        assert padres.matches(padres.Reader(text).subscription(), values) is wanted.matches(values)
    asked = wanted.comparisons()
    negated = any(one.operator.value.startswith("not ") for one in asked)
    assert (text is None) is (negated or len(asked) > len(wanted))


@ODD
@given(st.dictionaries(WORD, VALUES, max_size=3), TEXTS | st.none())
def test_padres_takes_publications(values: dict[str, Any], kind: str | None) -> None:
    publication = api.exact_publication(values if kind is None else values | {"class": kind})
    text = written_there(api.publication_to_padres, publication)
    if text is not None:
        assert padres.Reader(text).publication() == publication
        assert api.parse_publication(text) == publication


@st.composite
def composites(draw: st.DrawFn) -> Composite:
    def part() -> Part:
        wanted = draw(classy_filters())
        name, variable = draw(st.sampled_from("pq")), draw(st.sampled_from("XY"))
        if draw(st.booleans()):
            return Part(wanted)
        least = draw(st.sampled_from(["", float("-inf")]))
        typed = [*wanted.comparisons(), Comparison(name, LEAST, least)]
        return Part(Filter.of(typed), ((name, variable),))

    return Composite(
        tuple(
            tuple(part() for _ in range(draw(st.integers(1, 4))))
            for _ in range(draw(st.integers(1, 4)))
        )
    )


@ODD
@given(composites())
def test_padres_groups_composites_as_we_do(composite: Composite) -> None:
    assert parse_composite(composite_text(composite)) == composite
    text = written_there(composite_padres, composite)
    if text is None:
        return
    assert parse_composite(text) == composite
    found = padres.alternatives(padres.Reader(text).composite())
    assert len(found) == len(composite.alternatives)
    for there, here in zip(found, composite.alternatives, strict=True):
        assert list(map(meaning_there, there)) == list(map(meaning_here, here))


def meaning_here(part: Part) -> tuple[set[tuple[str, str, bool]], str]:
    """The variables of a part with their types, and its text for PADRES without them."""
    kinds = {name: held.kind for name, held in part.filter}
    bound = {(n, variable, kinds[n].value == "string") for n, variable in part.bindings}  # type: ignore[union-attr]
    names = {name for name, _ in part.bindings}
    rest = {name: held for name, held in part.filter if name not in names}
    return bound, api.to_padres(Filter.from_constraints(rest))


def meaning_there(one: padres.Subscription) -> tuple[set[tuple[str, str, bool]], str]:
    """The same of what PADRES' grammar makes of it."""
    bound, rest = set(), dict(one.predicates)
    for name, (_, value) in one.predicates.items():
        if isinstance(value, padres.Variable):
            bound.add((name, value.name, value.of_text))
            del rest[name]
    texts = [f"[{n},{o},{repr(v) if padres.is_text(v) else v}]" for n, (o, v) in rest.items()]
    return bound, ",".join(texts)


def test_the_longest_composite_is_written_and_read() -> None:
    parts = tuple(Part(api.parse(f'class == "{number}"')) for number in range(16))
    composite = Composite((*[(one,) for one in parts * 3], parts, *[(one,) for one in parts[:15]]))
    assert len(composite.alternatives) == 64
    text = composite_padres(composite)
    padres.Reader(text).composite()
    assert parse_composite(text) == composite


@frozen
class Pattern:
    """What was drawn: a part, or an operator between two of these."""

    text: str
    left: Pattern | None = None
    right: Pattern | None = None

    def written(self) -> str:
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


def fitting(publications: list[dict[str, int]]) -> Fits:
    """Whether the publication of some number matches a part."""
    return lambda text, number: (
        parse_composite(text).alternatives[0][0].filter.matches(publications[number])
    )


def patterns(parts: tuple[str, ...] = PARTS) -> st.SearchStrategy[Pattern]:
    return st.recursive(
        st.builds(Pattern, st.sampled_from(parts)),
        lambda inner: st.builds(Pattern, st.sampled_from(["&", "->", "||"]), inner, inner),
        max_leaves=4,
    )


@given(patterns())
def test_texts_read_back_as_equal_ones(pattern: Pattern) -> None:
    composite = parse_composite(pattern.written())
    again = parse_composite(composite_text(composite))
    assert (again, composite_text(again)) == (composite, composite_text(composite))
    assert parse_composite(pattern.written().replace("->", "followed by")) == composite


@given(patterns(("{a > 0}", "{b > 0}", "{c > 0}")), st.lists(SMALL_PUBLICATIONS, max_size=6))
def test_operators_mean_the_same_nested(
    pattern: Pattern, publications: list[dict[str, int]]
) -> None:
    matcher = CompositeMatcher()
    matcher.add(parse_composite(pattern.written()), window=1)
    found = {
        match.publications
        for number, publication in enumerate(publications)
        for match in matcher.step(0, publication, number)
    }
    assert found == pattern.found(len(publications), fitting(publications))


@given(st.lists(patterns(), min_size=1, max_size=3), st.lists(SMALL_PUBLICATIONS, max_size=8))
def test_all_combinations_match(drawn: list[Pattern], publications: list[dict[str, int]]) -> None:
    matcher = CompositeMatcher()
    held = [parse_composite(pattern.written()) for pattern in drawn]
    ids = [matcher.add(composite, WINDOW) for composite in held]
    published = list(enumerate(publications))
    for number, publication in published:
        found = Counter(matcher.step(number, publication, number))
        expected = Counter(
            match
            for one, composite in zip(ids, held, strict=True)
            for match in all_matches(one, composite, WINDOW, published[: number + 1])
        )
        assert found == expected
