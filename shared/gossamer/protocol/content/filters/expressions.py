"""Expressions over a schema: trees of demands on single attributes, joined by `and` and `or`.

Trees are in negation normal form: `not` is gone, each demand says what a value meets. As a missing
attribute meets no demand, neither one nor its negation holds without it (SQL's "unknown").
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from attrs import define, field, frozen

from gossamer.protocol.content.attributes import (
    Attribute,
    EnumerationAttribute,
    IntegerAttribute,
    StringAttribute,
    check_constant,
)
from gossamer.protocol.content.filters.constraint import Constraint, between
from gossamer.protocol.content.filters.domains import DOMAINS, Cut, Exact
from gossamer.protocol.content.filters.filter import narrow
from gossamer.protocol.content.filters.language import (
    MAX_COMPARISONS,
    FilterParser,
    comparison_of,
    name_of,
)
from gossamer.protocol.content.filters.predicates import STRING_OPERATORS, comparison_text
from gossamer.protocol.content.grammar import (
    Comparison,
    Operator,
    Placed,
    Token,
    TokenKind,
    faults_at,
    tokenize,
)
from gossamer.protocol.content.schema import Schema
from gossamer.protocol.content.values import Kind, span_test
from gossamer.protocol.kernel.errors import ContradictionError, ExpressionError, WrongValueError

Event = Mapping[str, Exact]
"""Exact values by attribute, as `Schema.check_event` gives them; what is absent has no key."""

Matcher = Callable[[Event], bool]


@frozen
class Demand:
    """What is asked of one attribute.

    Attributes:
        name: of the attribute.
        constraint: the values that meet it; of an enumeration their places in its list.
        ranks: these places by value; None for what is no enumeration.
    """

    name: str
    constraint: Constraint
    ranks: Mapping[str, int] | None = field(default=None, eq=False, repr=False)

    def matcher(self) -> Matcher:
        """Whether an event meets the demand, as a function that costs little to call."""
        name, ranks = self.name, self.ranks
        holds = _test(self.constraint)
        if ranks is not None:
            # A value that a newer schema has added comes after all those known.
            beyond = len(ranks)
            return lambda event: name in event and holds(ranks.get(event[name], beyond))
        return lambda event: name in event and holds(event[name])


@frozen
class Every:
    """All parts hold."""

    parts: tuple[Node, ...]

    def matcher(self) -> Matcher:
        """Whether an event meets all parts."""
        tests = [part.matcher() for part in self.parts]

        def matches(event: Event) -> bool:
            for holds in tests:
                if not holds(event):
                    return False
            return True

        return matches


@frozen
class Either:
    """At least one part holds."""

    parts: tuple[Node, ...]

    def matcher(self) -> Matcher:
        """Whether an event meets one of the parts."""
        tests = [part.matcher() for part in self.parts]

        def matches(event: Event) -> bool:
            for holds in tests:
                if holds(event):
                    return True
            return False

        return matches


Node = Demand | Every | Either


@frozen
class Expression:
    """What a subscription asks for.

    Attributes:
        text: as it was written.
        root: its tree.
    """

    text: str
    root: Node
    _matches: Matcher = field(init=False, eq=False, repr=False)

    @_matches.default
    def _matcher_of_root(self) -> Matcher:
        return self.root.matcher()

    def matches(self, event: Event) -> bool:
        """Whether an event of the schema, in canonical form, meets the expression, exactly."""
        return self._matches(event)

    def demands(self) -> Iterator[Demand]:
        """All demands on single attributes."""
        waiting = [self.root]
        while waiting:
            node = waiting.pop()
            if isinstance(node, Demand):
                yield node
            else:
                waiting.extend(node.parts)


def demand_of(attribute: Attribute, held: Demand | None, comparison: Comparison) -> Demand:
    """The demand that asks for `held` (None: anything) and for what a comparison says.

    Raises `WrongValueError` if the constant does not suit attribute or operator, and
    `ContradictionError` if no value of the attribute's domain meets both.
    """
    plain = _plain_comparison(attribute, comparison)
    ranks = attribute.ranks if isinstance(attribute, EnumerationAttribute) else None
    before = None if held is None else held.constraint
    try:
        constraint = narrow(before, plain, None)
    except ContradictionError as error:
        if ranks is None:
            raise
        raise _never(attribute, held, comparison) from error
    if not is_possible(attribute, constraint):
        raise _never(attribute, held, comparison)
    return Demand(attribute.name, constraint, ranks)


def _plain_comparison(attribute: Attribute, comparison: Comparison) -> Comparison:
    """The comparison with its constant as the attribute's constraints hold it."""
    operator = comparison.operator
    if operator is Operator.PRESENT:
        return comparison
    if operator in STRING_OPERATORS and not isinstance(attribute, StringAttribute):
        why = f"{operator.value} needs a string attribute, this is of type {attribute.type_name}"
        raise WrongValueError(attribute.name, f"a text ({why})", attribute.expected)
    if operator is Operator.EQUAL:
        constant: object = attribute.check(comparison.constant)
    else:
        constant = check_constant(attribute, comparison.constant)
    if isinstance(attribute, EnumerationAttribute):
        constant = attribute.rank(constant)
    return Comparison(attribute.name, operator, constant)


def _never(attribute: Attribute, held: Demand | None, comparison: Comparison) -> ContradictionError:
    also = "" if held is None else f", with what else is asked of {attribute.name}"
    reason = f"{comparison_text(comparison)} can never hold{also}: it is {attribute.expected}"
    return ContradictionError(attribute.name, reason)


def is_possible(attribute: Attribute, constraint: Constraint) -> bool:
    """Whether a value of the attribute's domain may meet a constraint; never false wrongly."""
    inside = constraint.narrowed(domain_of(attribute))
    if inside is None:
        return False
    if isinstance(attribute, IntegerAttribute | EnumerationAttribute):
        return any(least <= most for least, most in whole_numbers(inside))
    return True


def domain_of(attribute: Attribute) -> Constraint:
    """All values of an attribute's domain; the alphabet of strings does not count."""
    if isinstance(attribute, EnumerationAttribute):
        return _closed(Kind.NUMBER, 0, len(attribute.values) - 1)
    if isinstance(attribute, StringAttribute) and attribute.maximum is None:
        strings = DOMAINS[Kind.STRING]
        low, high = strings.before(attribute.minimum), strings.top
        return Constraint(Kind.STRING, low, high)
    return _closed(attribute.kind, attribute.minimum, attribute.maximum)


def _closed(kind: Kind, least: Exact, most: Exact) -> Constraint:
    found = between(kind, DOMAINS[kind].before(least), DOMAINS[kind].after(most))
    assert found is not None
    return found


def pieces(constraint: Constraint) -> list[tuple[Cut, Cut]]:
    """The stretches between cuts that hold all values of a constraint of one kind, in order."""
    begins = [constraint.low, *(end for _, end in constraint.excluded)]
    ends = [*(begin for begin, _ in constraint.excluded), constraint.high]
    return list(zip(begins, ends, strict=True))


def whole_numbers(constraint: Constraint) -> list[tuple[int, int]]:
    """The least and the greatest whole number of each stretch of a bounded set of numbers.

    Where a stretch holds none, the least is above the greatest.
    """
    return [(_first_whole(low), _first_whole(high) - 1) for low, high in pieces(constraint)]


def _first_whole(cut: Cut) -> int:
    """The least whole number above a cut between numbers."""
    number, lies_above = cut
    floor = int(number // 1)
    return floor if floor == number and not lies_above else floor + 1


def _test(constraint: Constraint) -> Callable[[Exact], bool]:
    """`Constraint.contains` for exact values of the constraint's own kind."""
    if constraint.kind is None:
        return lambda _: True
    point = constraint.point
    if point is not None:
        return lambda value: bool(value == point)
    if constraint.kind is not Kind.NUMBER or not constraint.is_interval:
        return constraint.contains
    (least, above), (most, up_to) = constraint.low, constraint.high
    return span_test(least, most, above=bool(above), below=not up_to)


# The text form of expressions over a schema.
#
#     symbol in {"IBM", "HPQ"} and not (price < 80 or volume < 100) or name startswith "A"
#
# Predicates are those of filters (`content.filters.language`): `== != < <= > >=`, `80 <= x < 120`,
# `x in [80, 120.5)`, `startswith endswith contains` and `present(x)`; and sets, `x in {1, 2, 5}`
# and `x not in {1, 2}`. `not` binds tighter than `and`, `and` tighter than `or`; parentheses group.
# A missing attribute meets no predicate and no negated one, so `not price < 80` needs a price.
# Enumerations are in the order of their list.

MAX_DEPTH: Final = 32
"""Most parentheses around a predicate."""


@frozen
class _Joined:
    """Parts as they were written, joined by `and` or by `or`; negations are at the predicates."""

    parts: tuple[_Written, ...]
    is_every: bool


_Written = Placed | _Joined


def parse_expression(schema: Schema, text: str) -> Expression:
    """The expression that a text describes over a schema.

    Raises `ExpressionError`, whose column points at the name, operator, value or predicate that
    does not parse, does not fit the schema, or contradicts another.
    """
    written = ExpressionParser(text, tokenize(text)).expression()
    return Expression(text, _Binder(schema, text).bound(written))


@define
class ExpressionParser(FilterParser):
    """Recursive descent over the tokens of an expression."""

    _depth: int = field(default=0, init=False)
    _comparisons: int = field(default=0, init=False)

    def expression(self) -> _Written:
        """The whole text."""
        found = self._alternatives(negated=False)
        if self._next.kind is not TokenKind.END:
            raise self._expected("'and' or 'or'")
        return found

    def _alternatives(self, *, negated: bool) -> _Written:
        return self._joined("or", self._conjunction, negated, is_every=negated)

    def _conjunction(self, negated: bool) -> _Written:
        return self._joined("and", self._factor, negated, is_every=not negated)

    def _joined(
        self, word: str, part: Callable[[bool], _Written], negated: bool, *, is_every: bool
    ) -> _Written:
        parts = [part(negated)]
        while self._take_word(word):
            parts.append(part(negated))
        return _join(parts, is_every)

    def _factor(self, negated: bool) -> _Written:
        if self._negations() % 2:
            negated = not negated
        if self._next.kind is TokenKind.PUNCTUATION and self._next.text == "(":
            return self._group(negated)
        return self._predicate(negated)

    def _group(self, negated: bool) -> _Written:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self._expected(f"parentheses at most {MAX_DEPTH} deep")
        self._punctuation("(")
        found = self._alternatives(negated=negated)
        if self._next.text != ")":
            raise self._expected("'and', 'or' or ')'")
        self._take()
        self._depth -= 1
        return found

    def _predicate(self, negated: bool) -> _Written:
        if self._is_exclusion():
            name = self._name()
            self.place += 2
            placed, negated = self._range_in_brackets(name), not negated
        else:
            placed = self._unnegated()
        self._count(placed)
        # A set is the only one of several predicates that says which values are equal.
        is_set = len(placed) > 1 and placed[0].operator is Operator.EQUAL
        if negated:
            placed = [self._negated([one]) for one in placed]
        return _join(placed, is_every=is_set == negated)

    def _is_exclusion(self) -> bool:
        """Whether `not in` follows the next token."""
        following = self.tokens[self.place + 1 : self.place + 3]
        return [token.text for token in following] == ["not", "in"]

    def _range_in_brackets(self, name: Token) -> list[Placed]:
        if self._next.text != "{":
            return FilterParser._range_in_brackets(self, name)
        self._take()
        values = [self._member()]
        while self._next.text == ",":
            self._take()
            values.append(self._member())
        if self._next.text != "}":
            raise self._expected("',' or '}'")
        self._take()
        return [Placed(name, Operator.EQUAL, value) for value in values]

    def _member(self) -> Token:
        if self._next.kind is TokenKind.VARIABLE:
            raise self._expected(self.constants)
        return self._literal()

    def _count(self, placed: list[Placed]) -> None:
        self._comparisons += len(placed)
        if self._comparisons > MAX_COMPARISONS:
            reason = f"more than {MAX_COMPARISONS} comparisons"
            raise ExpressionError(self.text, placed[0].column, reason)


def _join(parts: list[_Written] | list[Placed], is_every: bool) -> _Written:
    """The parts joined; what is joined in the same way inside them is taken apart."""
    if len(parts) == 1:
        return parts[0]
    flat: list[_Written] = []
    for part in parts:
        is_same = isinstance(part, _Joined) and part.is_every == is_every
        flat.extend(part.parts if is_same and isinstance(part, _Joined) else (part,))
    return _Joined(tuple(flat), is_every)


@frozen
class _Binder:
    """Gives what was written its meaning over a schema."""

    schema: Schema
    text: str

    def bound(self, written: _Written) -> Node:
        """The tree of what was written."""
        if isinstance(written, Placed):
            return self._demand(None, written)
        if not written.is_every:
            return Either(tuple(self.bound(part) for part in written.parts))
        held: dict[str, Demand] = {}
        others: list[Node] = []
        for part in written.parts:
            if isinstance(part, Placed):
                name = name_of(part.name)
                held[name] = self._demand(held.get(name), part)
            else:
                others.append(self.bound(part))
        parts = (*held.values(), *others)
        return parts[0] if len(parts) == 1 else Every(parts)

    def _demand(self, held: Demand | None, placed: Placed) -> Demand:
        comparison = comparison_of(self.text, placed)
        with faults_at(self.text, placed):
            return demand_of(self.schema[comparison.attribute], held, comparison)
