"""Hypothesis generators of attributes, schemas, events, comparisons and subscriptions."""

from __future__ import annotations

import string
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from gossamer.protocol.content import schema as kinds
from gossamer.protocol.content.grammar import BOX_OPERATORS, Comparison, Operator
from gossamer.protocol.content.subscription import Constraint, Subscription, narrow
from gossamer.protocol.kernel.errors import ContradictionError
from support.filter_strategies import ORDERED as TESTS

ORDERED = [o for o in BOX_OPERATORS if o is not Operator.STARTS_WITH]
CHARACTERS = st.characters(exclude_categories=["Cs"])
TEXTS = st.text(CHARACTERS, max_size=6)
INSTANTS = st.datetimes(
    datetime(1900, 1, 1),
    datetime(2200, 1, 1),
    timezones=st.sampled_from([UTC, timezone(timedelta(hours=-5, minutes=-30))]),
)
FINITE = st.floats(-1e9, 1e9)


@st.composite
def integer_attributes(
    draw: st.DrawFn, name: str = "n", widest: int = 2**62
) -> kinds.IntegerAttribute:
    minimum = draw(st.integers(-(2**64), 2**64) | st.integers(-100, 100))
    width = draw(st.integers(0, widest - 1) | st.integers(0, min(widest - 1, 20)))
    return kinds.IntegerAttribute(name, minimum, minimum + width)


@st.composite
def float_attributes(draw: st.DrawFn, name: str = "x") -> kinds.FloatAttribute:
    ends = FINITE | st.integers(-1000, 1000) | st.decimals(-10, 10, places=3)
    low, high = sorted(draw(st.lists(ends, min_size=2, max_size=2, unique_by=Fraction)))
    return kinds.FloatAttribute(name, low, high)  # type: ignore[arg-type]  # it takes decimals too


@st.composite
def string_attributes(draw: st.DrawFn, name: str = "s") -> kinds.StringAttribute:
    """String attributes with and without alphabet, ends, and a prefix common to both ends."""
    alphabet = draw(st.none() | st.just("abc") | st.just(string.ascii_letters + string.digits))
    texts = TEXTS if alphabet is None else st.text(st.sampled_from(alphabet), max_size=6)
    prefix = draw(st.just("") | texts)
    low, high = sorted(draw(st.lists(texts, min_size=2, max_size=2, unique=True)))
    if draw(st.booleans()):
        return kinds.StringAttribute(name, alphabet, prefix + low, prefix + high)
    return kinds.StringAttribute(name, alphabet, low if draw(st.booleans()) else "")


@st.composite
def date_attributes(draw: st.DrawFn, name: str = "d") -> kinds.DateAttribute:
    low, high = sorted(draw(st.tuples(INSTANTS, INSTANTS)))
    return kinds.DateAttribute(name, low, high)


def enumeration_attributes(name: str = "e") -> st.SearchStrategy[kinds.EnumerationAttribute]:
    values = st.lists(TEXTS, min_size=1, max_size=8, unique=True)
    return values.map(lambda listed: kinds.EnumerationAttribute(name, tuple(listed)))


def attributes(name: str = "a") -> st.SearchStrategy[kinds.Attribute]:
    return st.one_of(
        integer_attributes(name),
        float_attributes(name),
        string_attributes(name),
        date_attributes(name),
        enumeration_attributes(name),
    )


@st.composite
def schemas(draw: st.DrawFn) -> kinds.Schema:
    names = draw(st.lists(st.sampled_from(["price", "name", "x1", "_y"]), min_size=1, unique=True))
    return kinds.Schema([draw(attributes(name)) for name in names])


@st.composite
def values_of(draw: st.DrawFn, attribute: kinds.Attribute) -> object:
    """Values of the attribute's domain, both ends often among them."""
    if isinstance(attribute, kinds.EnumerationAttribute):
        return draw(st.sampled_from(attribute.values))
    if isinstance(attribute, kinds.StringAttribute):
        return draw(_strings_of(attribute))
    if isinstance(attribute, kinds.IntegerAttribute):
        least, most = attribute.minimum, attribute.maximum
        return draw(st.integers(least, most) | st.sampled_from([least, most]))
    if isinstance(attribute, kinds.DateAttribute):
        first, last = attribute.minimum, attribute.maximum
        microseconds = draw(st.integers(0, (last - first) // timedelta(microseconds=1)))
        return draw(st.just(first + timedelta(microseconds=microseconds)) | st.just(last))
    low, high = attribute.minimum, attribute.maximum
    share = draw(st.fractions(0, 1) | st.floats(0, 1).map(Fraction))
    exact = Fraction(low) + share * (Fraction(high) - Fraction(low))
    rounded = float(exact)
    return rounded if low <= rounded <= high and draw(st.booleans()) else exact


def _strings_of(attribute: kinds.StringAttribute) -> st.SearchStrategy[str]:
    letters = CHARACTERS if attribute.alphabet is None else st.sampled_from(attribute.alphabet)
    tails = st.text(letters, max_size=5)

    def bounded(text: str) -> str:
        above = max(text, attribute.minimum)
        return above if attribute.maximum is None else min(above, attribute.maximum)

    return st.builds(
        lambda keep, tail: bounded(attribute.minimum[:keep] + tail),
        st.integers(0, len(attribute.minimum)),
        tails,
    )


@st.composite
def constants_for(draw: st.DrawFn, attribute: kinds.Attribute) -> object:
    if isinstance(attribute, kinds.EnumerationAttribute):
        return draw(values_of(attribute))
    inside = values_of(attribute)
    if isinstance(attribute, kinds.StringAttribute):
        return draw(inside | TEXTS)
    if isinstance(attribute, kinds.DateAttribute):
        return draw(inside | INSTANTS | INSTANTS.map(datetime.date))
    return draw(inside | FINITE | st.integers() | st.fractions() | st.decimals(-100, 100, places=2))


@st.composite
def comparisons(draw: st.DrawFn, schema: kinds.Schema) -> Comparison:
    """Comparisons that suit some attribute of the schema, though they may never hold."""
    attribute = draw(st.sampled_from(schema.attributes))
    operators = ORDERED + [Operator.STARTS_WITH] * isinstance(attribute, kinds.StringAttribute)
    operator = draw(st.sampled_from(operators))
    if operator is Operator.EQUAL:
        return Comparison(attribute.name, operator, draw(values_of(attribute)))
    return Comparison(attribute.name, operator, draw(constants_for(attribute)))


@st.composite
def consistent_comparisons(draw: st.DrawFn, schema: kinds.Schema) -> list[Comparison]:
    """One or more comparisons that do not contradict each other."""
    held: dict[str, Constraint] = {}
    kept = []
    for comparison in draw(st.lists(comparisons(schema), max_size=6)):
        name = comparison.attribute
        try:
            held[name] = narrow(schema[name], held.get(name), comparison)
        except ContradictionError:
            continue
        kept.append(comparison)
    if not kept:
        first = schema.attributes[0]
        kept.append(Comparison(first.name, Operator.EQUAL, draw(values_of(first))))
    return kept


@st.composite
def subscriptions(draw: st.DrawFn, schema: kinds.Schema) -> Subscription:
    return Subscription.of(schema, draw(consistent_comparisons(schema)))


@st.composite
def events(draw: st.DrawFn, schema: kinds.Schema) -> dict[str, object]:
    return {attribute.name: draw(values_of(attribute)) for attribute in schema}


def holds(schema: kinds.Schema, comparison: Comparison, event: Mapping[str, object]) -> bool:
    attribute = schema[comparison.attribute]
    value, constant = event[attribute.name], comparison.constant
    if comparison.operator is Operator.STARTS_WITH:
        return str(value).startswith(str(constant))
    left, right = _comparable(attribute, value), _comparable(attribute, constant)
    return bool(TESTS[comparison.operator](left, right))


def _comparable(attribute: kinds.Attribute, value: object) -> Any:
    """What stands for a value in comparisons, of one type for all values of an attribute."""
    if isinstance(attribute, kinds.EnumerationAttribute):
        assert isinstance(value, str)
        return attribute.values.index(value)
    if isinstance(value, int | float | Decimal | Fraction):
        return Fraction(value)
    if isinstance(value, str):
        return [ord(character) for character in value]
    if isinstance(value, datetime):
        return value.astimezone(UTC)
    assert isinstance(value, date)
    return datetime(value.year, value.month, value.day, tzinfo=UTC)
