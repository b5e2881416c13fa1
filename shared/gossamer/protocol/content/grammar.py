"""The grammar that the text forms share: conjunctions of comparisons joined by `and`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from attrs import define, frozen

from gossamer.protocol.content.operators import BOX_OPERATORS, Operator
from gossamer.protocol.content.schema import RESERVED_NAMES
from gossamer.protocol.content.tokens import Token, TokenKind
from gossamer.protocol.kernel.errors import ExpressionError

_UPWARD: Final = (Operator.LESS, Operator.AT_MOST)
_DOWNWARD: Final = (Operator.GREATER, Operator.AT_LEAST)
_MIRRORED: Final = dict(zip(_UPWARD + _DOWNWARD, _DOWNWARD + _UPWARD, strict=True))


@frozen
class Placed:
    """A comparison and the tokens it was written with."""

    name: Token
    operator: Operator
    constant: Token

    @property
    def column(self) -> int:
        """Where the comparison begins."""
        return min(self.name.column, self.constant.column)


@define
class ConjunctionParser:
    """Recursive descent over the tokens of one text; `place` is the next token to read."""

    reserved: ClassVar[frozenset[str]] = RESERVED_NAMES
    operators: ClassVar[Mapping[str, Operator]] = {
        o.value: o for o in BOX_OPERATORS if o is not Operator.STARTS_WITH
    }
    comparison: ClassVar[str] = "a comparison (== < <= > >=, and after a name: in startswith)"
    constants: ClassVar[str] = "a number, date or string in double quotes"

    text: str
    tokens: list[Token]
    place: int = 0

    def conjunction(self) -> list[Placed]:
        """The whole text: constraints joined by `and`."""
        comparisons = self._constraint()
        while self._take_word("and"):
            comparisons += self._constraint()
        if self._next.kind is not TokenKind.END:
            raise self._expected("'and'")
        return comparisons

    def _constraint(self) -> list[Placed]:
        if self._next.kind is TokenKind.LITERAL:
            return self._range_around_name()
        name = self._name()
        if self._take_word("in"):
            return self._range_in_brackets(name)
        if self._take_word("startswith"):
            return [Placed(name, Operator.STARTS_WITH, self._literal())]
        return [Placed(name, self._operator(), self._literal())]

    def _range_around_name(self) -> list[Placed]:
        left, operator, name = self._literal(), self._operator(), self._name()
        ends = [Placed(name, _MIRRORED.get(operator, operator), left)]
        if self._next.kind is TokenKind.OPERATOR:
            token, second = self._next, self._operator()
            if not any({operator, second} <= set(way) for way in (_UPWARD, _DOWNWARD)):
                reason = f"a range goes one way, but {operator.value} is followed by {token.text}"
                raise ExpressionError(self.text, token.column, reason)
            ends.append(Placed(name, second, self._literal()))
        return ends

    def _range_in_brackets(self, name: Token) -> list[Placed]:
        opening = self._punctuation("[", "(")
        low = self._literal()
        self._punctuation(",")
        high = self._literal()
        closing = self._punctuation("]", ")")
        above = Operator.AT_LEAST if opening == "[" else Operator.GREATER
        below = Operator.AT_MOST if closing == "]" else Operator.LESS
        return [Placed(name, above, low), Placed(name, below, high)]

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
        if self._next.kind is not TokenKind.NAME or self._next.text in self.reserved:
            raise self._expected("an attribute name")
        return self._take()

    def _operator(self) -> Operator:
        operator = self.operators.get(self._next.text)
        if self._next.kind is not TokenKind.OPERATOR or operator is None:
            raise self._expected(self.comparison)
        self._take()
        return operator

    def _literal(self) -> Token:
        if self._next.kind is not TokenKind.LITERAL:
            raise self._expected(self.constants)
        return self._take()

    def _punctuation(self, *marks: str) -> str:
        if self._next.kind is not TokenKind.PUNCTUATION or self._next.text not in marks:
            raise self._expected(" or ".join(map(repr, marks)))
        return self._take().text

    def _expected(self, what: str) -> ExpressionError:
        found = repr(self._next.text) if self._next.text else "the end"
        return ExpressionError(self.text, self._next.column, f"expected {what}, found {found}")
