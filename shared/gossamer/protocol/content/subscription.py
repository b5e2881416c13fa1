"""Subscriptions, conjunctions of equalities and ranges (Vinifera, Sec. IV-A), and their text.

A subscription holds one constraint for each attribute it names. A constraint is an immutable set
of values that knows `contains`, `intersect` and `to_text`; comparisons on one attribute narrow it
until it is one such set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from attrs import field, frozen

from gossamer.protocol.content.attributes import (
    Attribute,
    EnumerationAttribute,
    IntegerAttribute,
    StringAttribute,
    check_constant,
)
from gossamer.protocol.content.grammar import (
    BOX_OPERATORS,
    Comparison,
    ConjunctionParser,
    Operator,
    faults_at,
    tokenize,
)
from gossamer.protocol.content.schema import Schema
from gossamer.protocol.content.values import (
    Kind,
    Value,
    canonical,
    kind_of,
    literal,
    prefix_successor,
    quoted,
    span_test,
)
from gossamer.protocol.kernel.errors import (
    ContentError,
    ContradictionError,
    ExpressionError,
    WrongValueError,
)


@frozen
class Bound:
    """One end of an interval; `closed` if the value itself belongs to the interval."""

    value: Any  # a canonical Value; values of one kind are ordered, which types cannot say
    closed: bool


@frozen
class Interval:
    """All values of one kind between two bounds; None leaves that side unbounded.

    The caller gives at least one bound, canonical values of one kind, and no empty interval.
    """

    low: Bound | None
    high: Bound | None
    kind: Kind = field(init=False, eq=False, repr=False)

    @kind.default
    def _kind_of_bounds(self) -> Kind:
        bound = self.low or self.high
        assert bound is not None
        return kind_of(bound.value)

    def contains(self, value: object) -> bool:
        """Whether the value lies between the bounds, exactly; other kinds never do."""
        exact = canonical(value)
        return exact is not None and kind_of(exact) is self.kind and self.test()(exact)

    def test(self) -> Callable[[Any], bool]:
        """`contains` for canonical values of this kind, as a function that costs little to call."""
        if self.high is None:
            assert self.low is not None
            least = self.low.value
            return (lambda v: v >= least) if self.low.closed else (lambda v: v > least)
        most = self.high.value
        if self.low is None:
            return (lambda v: v <= most) if self.high.closed else (lambda v: v < most)
        least = self.low.value
        return span_test(least, most, above=not self.low.closed, below=not self.high.closed)

    def intersect(self, other: Constraint) -> Interval | None:
        """The values in both, or None if there are none."""
        if not isinstance(other, Interval) or other.kind is not self.kind:
            return None
        low = _tighter_low(self.low, other.low)
        high = _tighter_high(self.high, other.high)
        return None if _is_empty(low, high) else Interval(low, high)

    def to_text(self, attribute: str) -> str:
        """The constraint in the subscription language."""
        low, high = self.low, self.high
        if low is not None and low == high:
            return f"{attribute} == {literal(low.value)}"
        if self.kind is Kind.STRING and low is not None and self == _starting_with(low.value):
            return f"{attribute} startswith {quoted(low.value)}"
        parts = []
        if low is not None:
            parts.append(f"{attribute} {'>=' if low.closed else '>'} {literal(low.value)}")
        if high is not None:
            parts.append(f"{attribute} {'<=' if high.closed else '<'} {literal(high.value)}")
        return " and ".join(parts)


@frozen
class EnumerationRange:
    """The values of an enumeration from rank `first` to rank `last`, both included."""

    values: tuple[str, ...] = field(repr=False)
    first: int
    last: int
    _members: frozenset[str] = field(init=False, eq=False, repr=False)

    @_members.default
    def _members_between(self) -> frozenset[str]:
        return frozenset(self.values[self.first : self.last + 1])

    def contains(self, value: object) -> bool:
        """Whether the value is one of the range; anything but a string never is."""
        return isinstance(value, str) and value in self._members

    def test(self) -> Callable[[Any], bool]:
        """`contains` for strings, as a function that costs little to call."""
        return self._members.__contains__

    def intersect(self, other: Constraint) -> EnumerationRange | None:
        """The values in both, or None if there are none."""
        if not isinstance(other, EnumerationRange) or other.values != self.values:
            return None
        first, last = max(self.first, other.first), min(self.last, other.last)
        return None if last < first else EnumerationRange(self.values, first, last)

    def to_text(self, attribute: str) -> str:
        """The constraint in the subscription language."""
        if self.first == self.last:
            return f"{attribute} == {quoted(self.values[self.first])}"
        at_least = f"{attribute} >= {quoted(self.values[self.first])}"
        at_most = f"{attribute} <= {quoted(self.values[self.last])}"
        if self.first > 0 and self.last == len(self.values) - 1:
            return at_least
        return at_most if self.first == 0 else f"{at_least} and {at_most}"


Constraint = Interval | EnumerationRange


@frozen
class Subscription:
    """A conjunction of constraints, at most one for an attribute, in the order of their names.

    Equal subscriptions compare and hash equal, whatever the order or the number types in which
    they were written.
    """

    constraints: tuple[tuple[str, Constraint], ...]

    @classmethod
    def of(cls, schema: Schema, comparisons: Iterable[Comparison]) -> Subscription:
        """The conjunction of comparisons on attributes of the schema.

        Raises `UnknownAttributeError`, `WrongValueError` for constants of the wrong type,
        `ContradictionError` if no event can match, and `ContentError` without any comparison or
        for an operator that leaves no range.
        """
        held: dict[str, Constraint] = {}
        for comparison in comparisons:
            name = comparison.attribute
            held[name] = narrow(schema[name], held.get(name), comparison)
        return cls.from_constraints(held)

    @classmethod
    def from_constraints(cls, constraints: Mapping[str, Constraint]) -> Subscription:
        """The conjunction of one constraint for each name; `ContentError` if there is none."""
        if not constraints:
            raise ContentError("", "a subscription constrains at least one attribute")
        return cls(tuple(sorted(constraints.items(), key=lambda item: item[0])))

    def matches(self, event: Mapping[str, object]) -> bool:
        """Whether every constraint holds for the event, exactly; a missing attribute fails."""
        return all(
            name in event and constraint.contains(event[name])
            for name, constraint in self.constraints
        )

    def matcher(self) -> Callable[[Mapping[str, Value]], bool]:
        """`matches` for events as `Schema.check_event` gives them, of the same schema.

        A function to be made once and asked often.
        """
        tests = [(name, constraint.test()) for name, constraint in self.constraints]

        def matches(event: Mapping[str, Value]) -> bool:
            for name, holds in tests:
                if not holds(event[name]):
                    return False
            return True

        return matches

    def to_text(self) -> str:
        """The subscription in the language, which parses back to an equal subscription."""
        return " and ".join(constraint.to_text(name) for name, constraint in self.constraints)


def narrow(attribute: Attribute, held: Constraint | None, comparison: Comparison) -> Constraint:
    """The constraint that satisfies both `held` (None: anything) and the comparison.

    Raises `WrongValueError` if the constant does not suit the attribute and `ContradictionError`
    if nothing in the attribute's domain satisfies both.
    """
    added = _constraint(attribute, comparison)
    if held is None:
        return added
    both = held.intersect(added)
    if both is None or not meets_domain(attribute, both):
        held_text, added_text = held.to_text(attribute.name), comparison.to_text()
        reason = f"{held_text} and {added_text} contradict each other: no value satisfies both"
        raise ContradictionError(attribute.name, reason)
    return both


def _constraint(attribute: Attribute, comparison: Comparison) -> Constraint:
    if comparison.operator not in BOX_OPERATORS:
        reason = f"subscriptions over a schema know no {comparison.operator.value}"
        raise ContentError(attribute.name, reason)
    if comparison.operator is Operator.STARTS_WITH:
        return _prefix(attribute, comparison.constant)
    if comparison.operator is Operator.EQUAL:
        constant = attribute.check(comparison.constant)
    else:
        constant = check_constant(attribute, comparison.constant)
    alone: Constraint | None
    if isinstance(attribute, EnumerationAttribute):
        alone = _enumeration_range(attribute, comparison.operator, attribute.rank(constant))
    else:
        alone = _interval(comparison.operator, constant)
    if alone is None or not meets_domain(attribute, alone):
        raise _never(attribute, comparison.to_text())
    return alone


def _prefix(attribute: Attribute, constant: object) -> Interval:
    if not isinstance(attribute, StringAttribute):
        why = f"startswith needs a string attribute, this is of type {attribute.type_name}"
        raise WrongValueError(attribute.name, f"a prefix ({why})", attribute.expected)
    prefix = str(check_constant(attribute, constant))
    interval = _starting_with(prefix)
    if not meets_domain(attribute, interval):
        raise _never(attribute, interval.to_text(attribute.name))
    return interval


def _never(attribute: Attribute, text: str) -> ContradictionError:
    reason = f"{text} can never hold: {attribute.name} is {attribute.expected}"
    return ContradictionError(attribute.name, reason)


def _starting_with(prefix: str) -> Interval:
    successor = prefix_successor(prefix)
    return Interval(Bound(prefix, True), None if successor is None else Bound(successor, False))


def _interval(operator: Operator, constant: Value) -> Interval:
    closed = Bound(constant, operator in (Operator.EQUAL, Operator.AT_MOST, Operator.AT_LEAST))
    if operator is Operator.EQUAL:
        return Interval(closed, closed)
    if operator in (Operator.LESS, Operator.AT_MOST):
        return Interval(None, closed)
    return Interval(closed, None)


def _enumeration_range(
    attribute: EnumerationAttribute, operator: Operator, rank: int
) -> EnumerationRange | None:
    first, last = {
        Operator.EQUAL: (rank, rank),
        Operator.LESS: (0, rank - 1),
        Operator.AT_MOST: (0, rank),
        Operator.GREATER: (rank + 1, len(attribute.values) - 1),
        Operator.AT_LEAST: (rank, len(attribute.values) - 1),
    }[operator]
    return None if last < first else EnumerationRange(attribute.values, first, last)


def meets_domain(attribute: Attribute, constraint: Constraint) -> bool:
    """Whether some value of the attribute's domain may satisfy the constraint.

    False for constraints on another type. On strings the ends of the domain count, and its alphabet
    only where a single value is left.
    """
    if isinstance(constraint, EnumerationRange):
        return isinstance(attribute, EnumerationAttribute) and attribute.values == constraint.values
    if isinstance(attribute, EnumerationAttribute) or attribute.kind is not constraint.kind:
        return False
    if isinstance(attribute, IntegerAttribute):
        least, most = whole_numbers(constraint)
        least = attribute.minimum if least is None else max(least, attribute.minimum)
        most = attribute.maximum if most is None else min(most, attribute.maximum)
        return least <= most
    if isinstance(attribute, StringAttribute) and constraint.low == constraint.high:
        # As text this is an equation, which is read of values of the domain only.
        return constraint.low is not None and attribute.has(constraint.low.value)
    high = None if attribute.maximum is None else Bound(attribute.maximum, True)
    return constraint.intersect(Interval(Bound(attribute.minimum, True), high)) is not None


def whole_numbers(interval: Interval) -> tuple[int | None, int | None]:
    """The least and the greatest whole number in an interval of numbers, None where unbounded."""
    low, high = interval.low, interval.high
    least = most = None
    if low is not None:
        floor = low.value // 1
        least = int(floor) if low.closed and floor == low.value else int(floor) + 1
    if high is not None:
        floor = high.value // 1
        most = int(floor) - 1 if not high.closed and floor == high.value else int(floor)
    return least, most


def _tighter_low(one: Bound | None, other: Bound | None) -> Bound | None:
    if one is None or other is None:
        return one or other
    return max(one, other, key=lambda bound: (bound.value, not bound.closed))


def _tighter_high(one: Bound | None, other: Bound | None) -> Bound | None:
    if one is None or other is None:
        return one or other
    return min(one, other, key=lambda bound: (bound.value, bound.closed))


def _is_empty(low: Bound | None, high: Bound | None) -> bool:
    if low is None or high is None:
        return False
    return bool(low.value > high.value) or (
        low.value == high.value and not (low.closed and high.closed)
    )


# The text form of subscriptions.
#
#     symbol == "IBM" and price >= 80 and price < 120.5 and name startswith "A"
#
# A text is a conjunction of constraints joined by `and`, each one of
#
#     name == value    name < value    (also <= > >=, and mirrored: value < name)
#     80 <= price < 120                a range, in either direction
#     price in [80, 120.5)             a range; [ ] include their end, ( ) do not
#     name startswith "A"
#
# Values are numbers (`80`, `-1.5e3`, and `1/3` for an exact fraction), strings between double
# quotes with the escapes \\" \\\\ \\n \\r \\t \\uXXXX \\UXXXXXXXX, and dates (`2020-01-31`,
# `2020-01-31T12:00:00Z`, quoted or not; no zone means UTC). A number with a decimal point or an
# exponent is the nearest 64-bit float, as in the programs that publish events; a whole number or a
# fraction is exact.

MAX_COMPARISONS: Final = 64
"""Most comparisons in a text: both ends of a range over each of 16 attributes, twice."""


def parse_subscription(schema: Schema, text: str) -> Subscription:
    """The subscription that a text describes over a schema.

    Raises `ExpressionError`, whose column points at the name, operator, value or constraint that
    does not parse, does not fit the schema, or contradicts an earlier constraint.
    """
    comparisons = ConjunctionParser(text, tokenize(text)).conjunction()
    if len(comparisons) > MAX_COMPARISONS:
        column = comparisons[MAX_COMPARISONS].column
        raise ExpressionError(text, column, f"more than {MAX_COMPARISONS} comparisons")
    held: dict[str, Constraint] = {}
    for placed in comparisons:
        name = placed.name.text
        comparison = Comparison(name, placed.operator, placed.constant.value)
        with faults_at(text, placed):
            held[name] = narrow(schema[name], held.get(name), comparison)
    return Subscription.from_constraints(held)
