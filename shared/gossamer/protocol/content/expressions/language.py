"""The text form of expressions over a schema.

    symbol in {"IBM", "HPQ"} and not (price < 80 or volume < 100) or name startswith "A"

Predicates are those of filters (`content.filters.language`): `== != < <= > >=`, `80 <= x < 120`,
`x in [80, 120.5)`, `startswith endswith contains` and `present(x)`; and sets, `x in {1, 2, 5}` and
`x not in {1, 2}`. `not` binds tighter than `and`, `and` tighter than `or`; parentheses group. A
missing attribute meets no predicate and no negated one, so `not price < 80` needs a price.
Enumerations are in the order of their list.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from attrs import define, field, frozen

from gossamer.protocol.content.errors import (
    ContentError,
    UnknownAttributeError,
    WrongValueError,
)
from gossamer.protocol.content.expressions.expression import (
    Demand,
    Either,
    Every,
    Expression,
    Node,
    demand_of,
)
from gossamer.protocol.content.filters.language import MAX_COMPARISONS, FilterParser, name_of
from gossamer.protocol.content.grammar import Placed
from gossamer.protocol.content.operators import Comparison, Operator
from gossamer.protocol.content.schema import Schema
from gossamer.protocol.content.tokens import Token, TokenKind, tokenize
from gossamer.protocol.kernel.errors import ExpressionError

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
        if placed.constant.kind is TokenKind.VARIABLE:
            reason = "a variable means something in composite subscriptions only"
            raise ExpressionError(self.text, placed.constant.column, reason)
        name = name_of(placed.name)
        comparison = Comparison(name, placed.operator, placed.constant.value)
        try:
            return demand_of(self.schema[name], held, comparison)
        except UnknownAttributeError as error:
            raise ExpressionError(self.text, placed.name.column, str(error)) from error
        except WrongValueError as error:
            raise ExpressionError(self.text, placed.constant.column, str(error)) from error
        except ContentError as error:
            raise ExpressionError(self.text, placed.column, str(error)) from error
