"""The grammar that the text forms share: tokens, operators, comparisons joined by `and`."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from fractions import Fraction
from typing import ClassVar, Final

from attrs import define, frozen

from gossamer.protocol.content.limits import MAX_DIGITS
from gossamer.protocol.content.schema import RESERVED_NAMES
from gossamer.protocol.content.values import (
    Value,
    canonical,
    is_well_formed,
    literal,
    parse_date,
    read_number,
)
from gossamer.protocol.kernel.errors import (
    ContentError,
    ExpressionError,
    UnknownAttributeError,
    WrongValueError,
)

MAX_TEXT: Final = 4096
"""Longest text in characters, far above what people write and quick to refuse beyond."""

_WHITESPACE: Final = re.compile(r"[ \t\r\n]*")
_DATE: Final = re.compile(r"\d{4}-\d[0-9T:.Z+-]*", re.ASCII)
_INFINITY: Final = re.compile(r"-inf(?![\w.])", re.ASCII)
_NUMBER: Final = re.compile(r"-?\d+(?:/\d+|(?:\.\d+)?(?:[eE][+-]?\d+)?)", re.ASCII)
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_QUOTED_NAME: Final = re.compile(r"`([^`]+)`")
_VARIABLE: Final = re.compile(r"\$([A-Za-z_][A-Za-z0-9_-]*)")
_WORD: Final = re.compile(r"[\w.]")
_OPERATOR: Final = re.compile(r"[=<>!&|~^]+")
_ESCAPE: Final = re.compile(r'\\(?:(["\\nrt])|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8}))')
_ESCAPED: Final = {'"': '"', "\\": "\\", "n": "\n", "r": "\r", "t": "\t"}


class TokenKind(Enum):
    """What a token is; the value is its name in messages."""

    NAME = "a name"
    QUOTED_NAME = "a name between backquotes"
    VARIABLE = "a variable"
    LITERAL = "a value"
    OPERATOR = "an operator"
    PUNCTUATION = "a bracket or comma"
    END = "the end"


@frozen
class Token:
    """A token, its text, the 1-based column of its first character, and its value.

    The value is that of a literal, or the name between backquotes or behind a dollar sign.
    """

    kind: TokenKind
    text: str
    column: int
    value: Value | None = None


def tokenize(text: str, most: int = MAX_TEXT) -> list[Token]:
    """The tokens of a text of at most so many characters, with one of kind END just behind them.

    Raises `ExpressionError` at the first character that starts no token.
    """
    check_length(text, most)
    tokens: list[Token] = []
    position = _after_whitespace(text, 0)
    while position < len(text):
        token, position = _next_token(text, position)
        tokens.append(token)
        position = _after_whitespace(text, position)
    return [*tokens, Token(TokenKind.END, "", len(text) + 1)]


def check_length(text: str, most: int = MAX_TEXT) -> None:
    """Let a text pass unless it is longer than allowed; `ExpressionError` otherwise."""
    if len(text) > most:
        reason = f"the text has {len(text)} characters, more than the {most} allowed"
        raise ExpressionError(text[:40] + "...", 1, reason)


def _after_whitespace(text: str, position: int) -> int:
    found = _WHITESPACE.match(text, position)
    return position if found is None else found.end()


def _next_token(text: str, position: int) -> tuple[Token, int]:
    column = position + 1
    if text[position] == '"':
        return _string(text, position)
    if text[position] in "[](),{}":
        return Token(TokenKind.PUNCTUATION, text[position], column), position + 1
    if found := _DATE.match(text, position):
        instant = parse_date(found.group())
        if instant is None:
            raise ExpressionError(text, column, f"{found.group()} is not a date")
        return Token(TokenKind.LITERAL, found.group(), column, instant), found.end()
    if found := _NUMBER.match(text, position):
        return _number(text, found), found.end()
    if found := _NAME.match(text, position):
        return Token(TokenKind.NAME, found.group(), column), found.end()
    if found := _INFINITY.match(text, position):
        return Token(TokenKind.LITERAL, found.group(), column, -math.inf), found.end()
    for kind, pattern in ((TokenKind.QUOTED_NAME, _QUOTED_NAME), (TokenKind.VARIABLE, _VARIABLE)):
        if found := pattern.match(text, position):
            if not is_well_formed(found.group()):
                raise ExpressionError(text, column, "a lone surrogate is no character")
            return Token(kind, found.group(), column, found.group(1)), found.end()
    if found := _OPERATOR.match(text, position):
        return Token(TokenKind.OPERATOR, found.group(), column), found.end()
    raise ExpressionError(text, column, f"unexpected character {text[position]!r}")


def _number(text: str, found: re.Match[str]) -> Token:
    digits, column = found.group(), found.start() + 1
    if _WORD.match(text, found.end()):
        raise ExpressionError(text, found.end() + 1, f"unexpected character after number {digits}")
    numerator, slash, denominator = digits.partition("/")
    value: Value | None
    if slash or digits.lstrip("-").isdigit():
        if max(len(numerator.lstrip("-").lstrip("0")), len(denominator.lstrip("0"))) > MAX_DIGITS:
            reason = f"a number of more than {MAX_DIGITS} digits"
            raise ExpressionError(text, column, reason)
        value = _quotient(int(numerator), int(denominator)) if slash else int(digits)
    else:
        value = read_number(digits)
    if value is None:
        raise ExpressionError(text, column, f"{digits} is not a finite number")
    return Token(TokenKind.LITERAL, digits, column, value)


def _quotient(numerator: int, denominator: int) -> Value | None:
    return canonical(Fraction(numerator, denominator)) if denominator else None


def _string(text: str, start: int) -> tuple[Token, int]:
    characters: list[str] = []
    position = start + 1
    while position < len(text) and text[position] != '"':
        character, position = _character(text, position)
        characters.append(character)
    if position == len(text):
        raise ExpressionError(text, start + 1, "this string has no closing quote")
    position += 1
    value = "".join(characters)
    return Token(TokenKind.LITERAL, text[start:position], start + 1, value), position


def _character(text: str, position: int) -> tuple[str, int]:
    if text[position] != "\\":
        character, end = text[position], position + 1
    else:
        found = _ESCAPE.match(text, position)
        if found is None:
            raise ExpressionError(text, position + 1, f"unknown escape {text[position:][:2]}")
        simple, short, long = found.groups()
        code = int(short or long or "0", 16)
        if code > 0x10FFFF:
            raise ExpressionError(text, position + 1, f"{found.group()} is no character")
        character, end = _ESCAPED[simple] if simple else chr(code), found.end()
    if canonical(character) is None:
        raise ExpressionError(text, position + 1, "a lone surrogate is no character")
    return character, end


class Operator(Enum):
    """How a comparison relates an attribute to a constant; the value is its text."""

    EQUAL = "=="
    NOT_EQUAL = "!="
    LESS = "<"
    AT_MOST = "<="
    GREATER = ">"
    AT_LEAST = ">="
    STARTS_WITH = "startswith"
    ENDS_WITH = "endswith"
    CONTAINS = "contains"
    NOT_STARTS_WITH = "not startswith"
    NOT_ENDS_WITH = "not endswith"
    NOT_CONTAINS = "not contains"
    PRESENT = "present"

    # Operators are looked up for every comparison; the inherited hash would take a call each.
    __hash__ = object.__hash__


BOX_OPERATORS: Final = (
    Operator.EQUAL,
    Operator.LESS,
    Operator.AT_MOST,
    Operator.GREATER,
    Operator.AT_LEAST,
    Operator.STARTS_WITH,
)
"""What subscriptions over a schema know: comparisons that leave one range of values."""


@frozen
class Comparison:
    """One comparison of an attribute with a constant, not yet checked against a schema."""

    attribute: str
    operator: Operator
    constant: object

    def to_text(self) -> str:
        """The comparison in the subscription language."""
        exact = canonical(self.constant)
        text = repr(self.constant) if exact is None else literal(exact)
        return f"{self.attribute} {self.operator.value} {text}"


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


@contextmanager
def faults_at(text: str, placed: Placed) -> Iterator[None]:
    """Point at what is wrong with a comparison: at its name, its constant or where it begins."""
    try:
        yield
    except UnknownAttributeError as error:
        raise ExpressionError(text, placed.name.column, str(error)) from error
    except WrongValueError as error:
        raise ExpressionError(text, placed.constant.column, str(error)) from error
    except ContentError as error:
        raise ExpressionError(text, placed.column, str(error)) from error


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
