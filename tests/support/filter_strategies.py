"""Generators of filters and of expressions over a schema, with oracles that try each comparison."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from random import Random
from typing import Any

from attrs import frozen
from hypothesis import strategies as st

from gossamer.protocol.content import schema
from gossamer.protocol.content.filters import Filter
from gossamer.protocol.content.filters.composite import Composite, Part
from gossamer.protocol.content.filters.domains import exact_literal, exact_value
from gossamer.protocol.content.filters.expressions import parse_expression
from gossamer.protocol.content.filters.predicates import name_text
from gossamer.protocol.content.grammar import Comparison, Operator
from gossamer.protocol.content.matching.composite_matcher import CompositeMatch
from gossamer.protocol.kernel.errors import ContentError, ExpressionError
from gossamer.protocol.peer.space.covering import cover
from gossamer.protocol.peer.space.hashing import uniform_hashes

ORDERED = {
    Operator.EQUAL: lambda value, constant: value == constant,
    Operator.NOT_EQUAL: lambda value, constant: value != constant,
    Operator.LESS: lambda value, constant: value < constant,
    Operator.AT_MOST: lambda value, constant: value <= constant,
    Operator.GREATER: lambda value, constant: value > constant,
    Operator.AT_LEAST: lambda value, constant: value >= constant,
}
TEXTUAL = {
    Operator.STARTS_WITH: lambda value, constant: value.startswith(constant),
    Operator.ENDS_WITH: lambda value, constant: value.endswith(constant),
    Operator.CONTAINS: lambda value, constant: constant in value,
    Operator.NOT_STARTS_WITH: lambda value, constant: not value.startswith(constant),
    Operator.NOT_ENDS_WITH: lambda value, constant: not value.endswith(constant),
    Operator.NOT_CONTAINS: lambda value, constant: constant not in value,
}
EQUALITY = (Operator.EQUAL, Operator.NOT_EQUAL)
ALWAYS_COMPLETE = (*ORDERED, Operator.STARTS_WITH, Operator.NOT_STARTS_WITH, Operator.ENDS_WITH)
"""On strings; every operator on anything else."""

NUMBERS = (0, 1, 2, 0.5, Fraction(1, 3), 2**60 + 1, 1e300, math.inf, -math.inf)
TEXTS = ("", "a", "b", "ab", "ba", "aa", "a\0")
DAY = datetime(2020, 1, 31, tzinfo=UTC)
DATES = (DAY, DAY + timedelta(microseconds=1), DAY + timedelta(days=1))
CONSTANTS = {"n": NUMBERS, "s": TEXTS, "d": DATES, "b": (False, True)}

NUMBERS_AROUND = (
    *NUMBERS,
    *(-1, 0.25, 0.4, 0.75, 1.5, 3, 2**60, 2**60 + 2, Fraction(2**61 + 1, 2), 2e300, -2e300),
)
TEXTS_AROUND = tuple(
    first + "".join(letters)
    for first, most in (("", 5), ("c", 3))
    for length in range(most + 1)
    for letters in itertools.product("\0ab", repeat=length)
)
DATES_AROUND = (*DATES, DAY - timedelta(1), DAY + timedelta(microseconds=2), DAY + timedelta(2))
VALUES = {"n": NUMBERS_AROUND, "s": TEXTS_AROUND, "d": DATES_AROUND, "b": (False, True)}
"""Values of each attribute's kind that tell any two filters over the constants apart."""


def holds(comparison: Comparison, publication: Mapping[str, Any]) -> bool:
    if comparison.attribute not in publication:
        return False
    value = publication[comparison.attribute]
    if comparison.operator is Operator.PRESENT:
        return True
    if kind(value) is not kind(comparison.constant):
        return False
    return bool((ORDERED | TEXTUAL)[comparison.operator](value, comparison.constant))


def kind(value: object) -> type:
    """What may be compared with what."""
    return next((one for one in (bool, str, datetime) if isinstance(value, one)), float)


def all_hold(comparisons: Iterable[Comparison], publication: Mapping[str, Any]) -> bool:
    return all(holds(comparison, publication) for comparison in comparisons)


@st.composite
def comparisons_on(draw: st.DrawFn, name: str, complete: bool = False) -> Comparison:
    """A comparison of the attribute with one of its constants; `complete`: no pattern that may
    leave relations undecided."""
    if not complete and draw(st.integers(0, 9)) == 0:
        return Comparison(name, Operator.PRESENT, None)
    operators: tuple[Operator, ...] = tuple(ORDERED)
    if name == "s":
        operators = ALWAYS_COMPLETE if complete else (*ORDERED, *TEXTUAL)
    if name == "b":
        operators = EQUALITY
    constant = draw(st.sampled_from(CONSTANTS[name]))
    return Comparison(name, draw(st.sampled_from(operators)), constant)


def comparison_lists(
    names: str = "nsdb", most: int = 5, complete: bool = False
) -> st.SearchStrategy[list[Comparison]]:
    one = st.sampled_from(names).flatmap(lambda name: comparisons_on(name, complete))
    return st.lists(one, min_size=1, max_size=most)


def filter_or_none(comparisons: list[Comparison]) -> Filter | None:
    try:
        return Filter.of(comparisons)
    except ContentError:
        return None


def filters(
    names: str = "nsdb", most: int = 5, complete: bool = False
) -> st.SearchStrategy[Filter]:
    found = comparison_lists(names, most, complete).map(filter_or_none)
    return found.filter(lambda one: one is not None)  # type: ignore[return-value]


@st.composite
def publications(draw: st.DrawFn) -> dict[str, Any]:
    found = {}
    for name in draw(st.sets(st.sampled_from("nsdb"), max_size=4)):
        source = draw(st.sampled_from("nsdb")) if draw(st.integers(0, 9)) == 0 else name
        pool = CONSTANTS[source] if draw(st.booleans()) else VALUES[source]
        found[name] = draw(st.sampled_from(pool))
    return found


def random_filter(rng: Random, names: str = "nsdb", most: int = 4) -> Filter:
    """A filter over the constants, or over many more numbers and strings."""
    while True:
        drawn = [random_comparison(rng, rng.choice(names)) for _ in range(rng.randint(1, most))]
        if (found := filter_or_none(drawn)) is not None:
            return found


def random_comparison(rng: Random, name: str) -> Comparison:
    """A comparison as `comparisons_on` draws it, of constants from a larger pool."""
    if rng.random() < 0.05:
        return Comparison(name, Operator.PRESENT, None)
    if name == "b":
        return Comparison(name, rng.choice(EQUALITY), rng.random() < 0.5)
    if name == "s" and rng.random() < 0.3:
        return Comparison(name, rng.choice(tuple(TEXTUAL)), random_value(rng, name))
    return Comparison(name, rng.choice(tuple(ORDERED)), random_value(rng, name))


def random_value(rng: Random, name: str) -> Any:
    if rng.random() < 0.5 or name in "db":
        return rng.choice(VALUES[name])
    if name == "s":
        return "".join(rng.choices("abcd", k=rng.randint(1, 4)))
    return rng.choice((rng.randint(0, 50), rng.randint(0, 500) / 10))


def random_publication(rng: Random) -> dict[str, Any]:
    names = rng.sample("nsdb", rng.randint(0, 4))
    return {
        name: random_value(rng, rng.choice("nsdb") if rng.random() < 0.05 else name)
        for name in names
    }


def all_matches(
    composite_id: int,
    composite: Composite,
    window: float,
    published: Sequence[tuple[int, Mapping[str, Any]]],
) -> list[CompositeMatch]:
    """All matches that the last publication is part of, by trying every combination."""
    last = len(published) - 1
    recent = [n for n, (time, _) in enumerate(published) if time >= published[-1][0] - window]
    return [
        CompositeMatch(composite_id, number, chosen)
        for number, parts in enumerate(composite.alternatives)
        for chosen in itertools.product(recent, repeat=len(parts))
        if last in chosen
        and all(chosen[one] < chosen[other] for one, other in composite.orders[number])
        and _agree(parts, [published[n][1] for n in chosen])
    ]


def _agree(parts: Sequence[Part], publications: list[Mapping[str, Any]]) -> bool:
    """Whether every publication matches its part and variables have one value each."""
    bound: dict[str, Any] = {}
    return all(
        part.filter.matches(publication)
        and all(
            bound.setdefault(variable, publication[attribute]) == publication[attribute]
            for attribute, variable in part.bindings
        )
        for part, publication in zip(parts, publications, strict=True)
    )


# Expressions over a schema.


SIZES = ("S", "M", "L", "XL")
SCHEMA = schema.Schema(
    [
        schema.FloatAttribute("x", -10, 10),
        schema.IntegerAttribute("n", 0, 9),
        schema.StringAttribute("s"),
        schema.DateAttribute("d", DAY, DAY + timedelta(days=3)),
        schema.EnumerationAttribute("e", SIZES),
        schema.BooleanAttribute("b"),
        schema.DecimalAttribute("c", 0, 5, 2),
    ]
)
"""One attribute of every type."""

_CONSTANTS: dict[str, tuple[Any, ...]] = {
    "x": (-10, -1.5, 0, 0.1, 1, 5e-324, 9.999999999999998, 10),
    "n": (0, 1, 2, 5, 8, 9),
    "d": tuple(DAY + timedelta(days=k) for k in range(4)),
    "s": TEXTS,
    "e": SIZES,
    "b": (False, True),
    "c": (0, 0.1, 0.3, 1.07, 5),
}
_AROUND: dict[str, tuple[Any, ...]] = {
    **_CONSTANTS,
    "x": (*_CONSTANTS["x"], -9.5, 0.10000000000000002, 1e-320, 3.5),
    "n": tuple(range(10)),
    "c": (*_CONSTANTS["c"], 0.2, 0.29, 0.31, 4.99),
    "s": TEXTS_AROUND,
    "d": (*_CONSTANTS["d"], DAY + timedelta(microseconds=1), DAY + timedelta(hours=30)),
}


@frozen
class Written:
    """An expression as text, and as the oracle reads it."""

    text: str
    word: str  # "and", "or", "not", "in", "not in", or "" for a single comparison
    parts: tuple[Written, ...] = ()
    comparisons: tuple[Comparison, ...] = ()

    def says(self, event: Mapping[str, Any]) -> bool | None:
        """Whether it holds; None where an attribute that decides it is missing (SQL's unknown)."""
        if self.word == "not":
            inner = self.parts[0].says(event)
            return None if inner is None else not inner
        if self.parts:
            said = [part.says(event) for part in self.parts]
            decisive = self.word == "or"
            if decisive in said:
                return decisive
            return None if None in said else not decisive
        name = self.comparisons[0].attribute
        if name not in event:
            return None
        found = any(_holds(one, event) for one in self.comparisons)
        return found is not (self.word == "not in")

    def matches(self, event: Mapping[str, Any]) -> bool:
        return self.says(event) is True


def _holds(comparison: Comparison, event: Mapping[str, Any]) -> bool:
    if comparison.attribute != "e" or comparison.operator is Operator.PRESENT:
        return holds(comparison, event)
    place, constant = SIZES.index(event["e"]), SIZES.index(str(comparison.constant))
    return bool(ORDERED[comparison.operator](place, constant))


def random_written(rng: Random, depth: int = 3) -> Written:
    kind = rng.random()
    if depth == 0 or kind < 0.35:
        return _random_comparison(rng)
    if kind < 0.5:
        inner = random_written(rng, depth - 1)
        if "present(" not in inner.text:
            return Written(f"not ({inner.text})", "not", (inner,))
        return inner
    word = "and" if kind < 0.75 else "or"
    parts = tuple(random_written(rng, depth - 1) for _ in range(rng.randint(2, 3)))
    return Written(f" {word} ".join(f"({part.text})" for part in parts), word, parts)


def _random_comparison(rng: Random) -> Written:
    name = rng.choice(SCHEMA.names)
    if rng.random() < 0.05:
        one = Comparison(name, Operator.PRESENT, None)
        return Written(f"present({name})", "", comparisons=(one,))
    if rng.random() < 0.15:
        word = rng.choice(("in", "not in"))
        values = rng.sample(_CONSTANTS[name], rng.randint(1, min(3, len(_CONSTANTS[name]))))
        listed = ", ".join(exact_literal(exact_value(value)) for value in values)
        found = tuple(Comparison(name, Operator.EQUAL, value) for value in values)
        return Written(f"{name} {word} {{{listed}}}", word, comparisons=found)
    operators = (*ORDERED, *TEXTUAL) if name == "s" else tuple(ORDERED)
    if name == "b":
        operators = EQUALITY
    one = Comparison(name, rng.choice(operators), rng.choice(_CONSTANTS[name]))
    value = exact_literal(exact_value(one.constant))
    return Written(f"{name_text(name)} {one.operator.value} {value}", "", comparisons=(one,))


def random_event(rng: Random, *, absent: float = 0.0) -> dict[str, Any]:
    kept = [name for name in SCHEMA.names if rng.random() >= absent] or [rng.choice(SCHEMA.names)]
    return {name: rng.choice(_AROUND[name]) for name in kept}


def matchable(draws: Random) -> Iterator[Written]:
    hashes = uniform_hashes(SCHEMA)
    while True:
        written = random_written(draws)
        try:
            parsed = parse_expression(SCHEMA, written.text)
        except ExpressionError:
            continue
        if cover(SCHEMA, hashes, parsed):
            yield written
