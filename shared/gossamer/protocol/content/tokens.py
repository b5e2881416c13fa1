"""Tokens of the subscription language, each with the column where it starts."""

from __future__ import annotations

import math
import re
from enum import Enum
from fractions import Fraction
from typing import Final

from attrs import frozen

from gossamer.protocol.content.limits import MAX_DIGITS
from gossamer.protocol.content.values import (
    Value,
    canonical,
    is_well_formed,
    parse_date,
    read_number,
)
from gossamer.protocol.kernel.errors import ExpressionError

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
