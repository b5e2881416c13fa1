"""The text form of subscriptions.

    symbol == "IBM" and price >= 80 and price < 120.5 and name startswith "A"

A text is a conjunction of constraints joined by `and`, each one of

    name == value    name < value    (also <= > >=, and mirrored: value < name)
    80 <= price < 120                a range, in either direction
    price in [80, 120.5)             a range; [ ] include their end, ( ) do not
    name startswith "A"

Values are numbers (`80`, `-1.5e3`, and `1/3` for an exact fraction), strings between double quotes
with the escapes \\" \\\\ \\n \\r \\t \\uXXXX \\UXXXXXXXX, and dates (`2020-01-31`,
`2020-01-31T12:00:00Z`, quoted or not; no zone means UTC). A number with a decimal point or an
exponent is the nearest 64-bit float, as in the programs that publish events; a whole number or a
fraction is exact.
"""

from __future__ import annotations

from typing import Final

from attrs import define, frozen

from gossamer.protocol.content.errors import (
    ContradictionError,
    UnknownAttributeError,
    WrongValueError,
)
from gossamer.protocol.content.schema import RESERVED_NAMES, Schema
from gossamer.protocol.content.subscription import (
    Comparison,
    Constraint,
    Operator,
    Subscription,
    narrow,
)
from gossamer.protocol.content.tokens import Token, TokenKind, tokenize
from gossamer.protocol.errors import ExpressionError

MAX_COMPARISONS: Final = 64
"""Most comparisons in a text: both ends of a range over each of 16 attributes, twice."""

_OPERATORS: Final = {o.value: o for o in Operator if o is not Operator.STARTS_WITH}
_UPWARD: Final = (Operator.LESS, Operator.AT_MOST)
_DOWNWARD: Final = (Operator.GREATER, Operator.AT_LEAST)
_MIRRORED: Final = dict(zip(_UPWARD + _DOWNWARD, _DOWNWARD + _UPWARD, strict=True))


def parse_subscription(schema: Schema, text: str) -> Subscription:
    """The subscription that a text describes over a schema.

    Raises `ExpressionError`, whose column points at the name, operator, value or constraint that
    does not parse, does not fit the schema, or contradicts an earlier constraint.
    """
    comparisons = _Parser(text, tokenize(text)).conjunction()
    if len(comparisons) > MAX_COMPARISONS:
        column = comparisons[MAX_COMPARISONS].column
        raise ExpressionError(text, column, f"more than {MAX_COMPARISONS} comparisons")
    held: dict[str, Constraint] = {}
    for placed in comparisons:
        name = placed.name.text
        held[name] = _narrowed(schema, text, held.get(name), placed)
    return Subscription.from_constraints(held)


@frozen
class _Placed:
    """A comparison and the tokens it was written with."""

    name: Token
    operator: Operator
    constant: Token

    @property
    def column(self) -> int:
        return min(self.name.column, self.constant.column)


def _narrowed(schema: Schema, text: str, held: Constraint | None, placed: _Placed) -> Constraint:
    name = placed.name.text
    comparison = Comparison(name, placed.operator, placed.constant.value)
    try:
        return narrow(schema[name], held, comparison)
    except UnknownAttributeError as error:
        raise ExpressionError(text, placed.name.column, str(error)) from error
    except WrongValueError as error:
        raise ExpressionError(text, placed.constant.column, str(error)) from error
    except ContradictionError as error:
        raise ExpressionError(text, placed.column, str(error)) from error


@define
class _Parser:
    """Recursive descent over the tokens of one text; `place` is the next token to read."""

    text: str
    tokens: list[Token]
    place: int = 0

    def conjunction(self) -> list[_Placed]:
        """The whole text: constraints joined by `and`."""
        comparisons = self._constraint()
        while self._take_word("and"):
            comparisons += self._constraint()
        if self._next.kind is not TokenKind.END:
            raise self._expected("'and'")
        return comparisons

    def _constraint(self) -> list[_Placed]:
        if self._next.kind is TokenKind.LITERAL:
            return self._range_around_name()
        name = self._name()
        if self._take_word("in"):
            return self._range_in_brackets(name)
        if self._take_word("startswith"):
            return [_Placed(name, Operator.STARTS_WITH, self._literal())]
        return [_Placed(name, self._operator(), self._literal())]

    def _range_around_name(self) -> list[_Placed]:
        left, operator, name = self._literal(), self._operator(), self._name()
        ends = [_Placed(name, _MIRRORED.get(operator, operator), left)]
        if self._next.kind is TokenKind.OPERATOR:
            token, second = self._next, self._operator()
            if not any({operator, second} <= set(way) for way in (_UPWARD, _DOWNWARD)):
                reason = f"a range goes one way, but {operator.value} is followed by {token.text}"
                raise ExpressionError(self.text, token.column, reason)
            ends.append(_Placed(name, second, self._literal()))
        return ends

    def _range_in_brackets(self, name: Token) -> list[_Placed]:
        opening = self._punctuation("[", "(")
        low = self._literal()
        self._punctuation(",")
        high = self._literal()
        closing = self._punctuation("]", ")")
        above = Operator.AT_LEAST if opening == "[" else Operator.GREATER
        below = Operator.AT_MOST if closing == "]" else Operator.LESS
        return [_Placed(name, above, low), _Placed(name, below, high)]

    @property
    def _next(self) -> Token:
        return self.tokens[self.place]

    def _take(self) -> Token:
        token = self._next
        self.place += 1
        return token

    def _take_word(self, word: str) -> bool:
        found = self._next.kind is TokenKind.NAME and self._next.text == word
        self.place += found
        return found

    def _name(self) -> Token:
        if self._next.kind is not TokenKind.NAME or self._next.text in RESERVED_NAMES:
            raise self._expected("an attribute name")
        return self._take()

    def _operator(self) -> Operator:
        operator = _OPERATORS.get(self._next.text)
        if self._next.kind is not TokenKind.OPERATOR or operator is None:
            raise self._expected("a comparison (== < <= > >=, and after a name: in startswith)")
        self._take()
        return operator

    def _literal(self) -> Token:
        if self._next.kind is not TokenKind.LITERAL:
            raise self._expected("a number, date or string in double quotes")
        return self._take()

    def _punctuation(self, *marks: str) -> str:
        if self._next.kind is not TokenKind.PUNCTUATION or self._next.text not in marks:
            raise self._expected(" or ".join(map(repr, marks)))
        return self._take().text

    def _expected(self, what: str) -> ExpressionError:
        found = repr(self._next.text) if self._next.text else "the end"
        return ExpressionError(self.text, self._next.column, f"expected {what}, found {found}")
