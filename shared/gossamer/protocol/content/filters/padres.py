"""Reading PADRES' text form of filters and publications (`padres_writing` writes it).

    [class,eq,'stock'],[price,>,80]        a filter
    [class,'stock'],[price,81.5]           a publication

Operators are `eq neq str-lt str-le str-gt str-ge str-prefix str-postfix str-contains` on strings
and `= <> < <= > >=` on numbers. Strings stand between single or double quotes, in which commas and
brackets are characters like others; one that PADRES takes for a word, such as `stock` or `a/b-1`,
needs none. Numbers may begin with a sign or a point (`+10`, `.5`). `isPresent` takes a value of the
type that is to be present: beside a number any number, beside a string any string. In composite
subscriptions `$S$X` is a variable for strings, `$I$X` and `$F$X` are such for numbers, quoted or
not. A semicolon may end a text; behind a publication's may stand the time of day that PADRES writes
there, which is checked for its form and left out, as publications have no time here.

More is read than PADRES takes: any number of predicates on an attribute, none on the class,
`isPresent` without a value (anything), variables of any type (`$X`); between quotes \\' and the
other escapes of gossamer's strings work, a name may stand between quotes, `eq` and `neq` take the
booleans true and false where PADRES takes these words for strings, and numeric operators take
fractions, infinities and dates.
"""

from __future__ import annotations

import re
from typing import Final

from attrs import define

from gossamer.protocol.content.filters.constraint import Constraint
from gossamer.protocol.content.filters.domains import Exact
from gossamer.protocol.content.filters.filter import Filter, Publication
from gossamer.protocol.content.filters.language import filter_of
from gossamer.protocol.content.filters.predicates import constraint_of
from gossamer.protocol.content.grammar import (
    Comparison,
    Operator,
    Placed,
    Token,
    TokenKind,
    check_length,
    tokenize,
)
from gossamer.protocol.content.schema import Schema
from gossamer.protocol.content.values import Kind
from gossamer.protocol.kernel.errors import ExpressionError

ON_STRINGS: Final = {
    "eq": Operator.EQUAL,
    "neq": Operator.NOT_EQUAL,
    "str-lt": Operator.LESS,
    "str-le": Operator.AT_MOST,
    "str-gt": Operator.GREATER,
    "str-ge": Operator.AT_LEAST,
    "str-prefix": Operator.STARTS_WITH,
    "str-postfix": Operator.ENDS_WITH,
    "str-contains": Operator.CONTAINS,
}
ON_NUMBERS: Final = {
    "=": Operator.EQUAL,
    "<>": Operator.NOT_EQUAL,
    "<": Operator.LESS,
    "<=": Operator.AT_MOST,
    ">": Operator.GREATER,
    ">=": Operator.AT_LEAST,
}
PRESENT: Final = "isPresent"
CLASS: Final = "class"
"""The attribute that PADRES wants first everywhere."""
_LEAST: Final[dict[Kind, Exact]] = {Kind.NUMBER: float("-inf"), Kind.STRING: ""}
ANY_OF_KIND: Final[dict[Kind, Constraint]] = {
    kind: constraint_of(Comparison("", Operator.AT_LEAST, least)) for kind, least in _LEAST.items()
}
"""What `isPresent` asks for, by the type of its value."""
_KNOWN: Final = " ".join((*ON_STRINGS, PRESENT, *ON_NUMBERS))
_VARIABLE: Final = re.compile(
    r"(?P<quote>['\"]?)\$(?P<type>[SIF])\$(?P<name>[A-Za-z_][\w-]*)(?P=quote)", re.ASCII
)
_QUOTED: Final = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_BARE: Final = r"[^][,;'\"\s]+"
_FIELD: Final = re.compile(rf"\s*(?P<field>{_QUOTED}|{_BARE}(?: +{_BARE})*)\s*", re.DOTALL)
_WORD: Final = re.compile(r"[A-Za-z_:/][A-Za-z0-9_:/-]*")
_SHORT_NUMBER: Final = re.compile(r"(?P<sign>[+-]?)(?P<point>\.?)(?=\d)")
_BEGINS_VALUE: Final = re.compile(r"[+-]?\.?\d|-inf|\$", re.ASCII)
_TIME: Final = re.compile(
    r"\s*[A-Z][a-z]{2} [A-Z][a-z]{2} \d{1,2} \d{1,2}:\d{2}:\d{2} [A-Za-z0-9:+-]+ \d{4}\s*;",
    re.ASCII,
)
_VALUE: Final = "a number, a word or a string in quotes"
_WORDS: Final[dict[str, Exact]] = {
    "true": True,
    "false": False,
    "inf": float("inf"),
    "-inf": float("-inf"),
}


def parse_filter(text: str, schema: Schema | None = None) -> Filter:
    """The filter that a text describes.

    Raises `ExpressionError`, whose column points at the name, operator, value or predicate that
    does not parse, does not fit the schema if one is given, or contradicts an earlier predicate.
    """
    return filter_of(text, PadresReader(text, schema).predicates(), schema)


def parse_publication(text: str) -> Publication:
    """The publication that a text describes.

    Raises `ExpressionError` pointing at what does not parse, or at a name that comes twice.
    """
    found: Publication = {}
    for fields in PadresReader(text).groups(2, 2, dated=True):
        name = fields[0].text
        if name in found:
            reason = f"attribute {name!r} has a value already"
            raise ExpressionError(text, fields[0].column, reason)
        value = value_of(text, fields[1], worded=name == CLASS)
        if value.kind is TokenKind.VARIABLE:
            reason = f"expected {_VALUE}, found {value.text!r}"
            raise ExpressionError(text, value.column, reason)
        found[name] = value.value
    return found


@define
class PadresReader:
    """Reads brackets of a text from left to right; `place` is the next character."""

    text: str
    schema: Schema | None = None
    place: int = 0

    def predicates(self) -> list[Placed]:
        """The whole text as predicates."""
        return [one for fields in self.groups(2, 3) for one in self._predicates(fields)]

    def groups(self, fewest: int, most: int, *, dated: bool = False) -> list[list[Token]]:
        """The fields of every bracket, the brackets with commas between; names are unquoted.

        Args:
            fewest, most: fields of a bracket.
            dated: whether a time of day may be behind the semicolon.
        """
        check_length(self.text)
        groups = [self._group(fewest, most)]
        while self._skip_to(","):
            groups.append(self._group(fewest, most))
        ended = self._skip_to(";")
        if ended and dated and (time := _TIME.match(self.text, self.place)):
            self.place = time.end()
        self._skip_space()
        if self.place < len(self.text):
            raise self._expected(_behind(ended, dated))
        return groups

    def _group(self, fewest: int, most: int) -> list[Token]:
        self._require("[")
        fields = [self._field()]
        while len(fields) < most and self._skip_to(","):
            fields.append(self._field())
        if len(fields) < fewest:
            raise self._expected("','")
        self._require("]")
        name = fields[0]
        if name.text.startswith(("'", '"')):
            fields[0] = Token(TokenKind.NAME, str(_string(self.text, name).value), name.column)
        return fields

    def _predicates(self, fields: list[Token]) -> list[Placed]:
        operator = fields[1]
        if operator.text == PRESENT:
            return [self._presence(fields)]
        known = ON_STRINGS.get(operator.text) or ON_NUMBERS.get(operator.text)
        if known is None:
            reason = f"unknown operator {operator.text!r}, there are {_KNOWN}"
            raise ExpressionError(self.text, operator.column, reason)
        if len(fields) < 3:
            raise ExpressionError(self.text, operator.column, f"{operator.text} needs a value")
        constant = self._constant(fields)
        found = _VARIABLE.fullmatch(constant.text)
        if found is None:
            return [Placed(fields[0], known, constant)]
        kind = Kind.STRING if found["type"] == "S" else Kind.NUMBER
        return [Placed(fields[0], known, constant), self._any_of(kind, fields[0], constant)]

    def _presence(self, fields: list[Token]) -> Placed:
        name, operator = fields[:2]
        if len(fields) < 3:
            return Placed(name, Operator.PRESENT, operator)
        given = fields[2]
        value = value_of(self.text, given)
        if value.kind is TokenKind.VARIABLE:
            return Placed(name, Operator.PRESENT, value)
        textual = isinstance(value.value, str | bool)
        return self._any_of(Kind.STRING if textual else Kind.NUMBER, name, given)

    def _any_of(self, kind: Kind, name: Token, given: Token) -> Placed:
        """Whatever is of a kind; with a schema, what the attribute holds if it is of the kind."""
        if self.schema is None or name.text not in self.schema.names:
            least = Token(TokenKind.LITERAL, given.text, given.column, _LEAST[kind])
            return Placed(name, Operator.AT_LEAST, least)
        attribute = self.schema[name.text]
        if (attribute.kind is Kind.NUMBER) is not (kind is Kind.NUMBER):
            reason = f"attribute {name.text!r} takes {attribute.expected}, not a {kind.value}"
            raise ExpressionError(self.text, given.column, reason)
        return Placed(name, Operator.PRESENT, given)

    def _constant(self, fields: list[Token]) -> Token:
        name, operator, given = fields
        of_strings = operator.text not in ("eq", "neq") or name.text == CLASS
        worded = operator.text in ON_STRINGS and (of_strings or given.text == "inf")
        constant = value_of(self.text, given, worded=worded)
        typed = _VARIABLE.fullmatch(constant.text)
        if constant.kind is TokenKind.VARIABLE and typed is None:
            return constant
        textual = isinstance(constant.value, str | bool) if typed is None else typed["type"] == "S"
        if textual is (operator.text in ON_NUMBERS):
            takes = "a string" if operator.text in ON_STRINGS else "a number"
            reason = f"attribute {name.text!r}: {operator.text} takes {takes}, not {given.text}"
            raise ExpressionError(self.text, given.column, reason)
        return constant

    def _field(self) -> Token:
        found = _FIELD.match(self.text, self.place)
        if found is None:
            self._skip_space()
            if self.text.startswith(("'", '"'), self.place):
                reason = "this string has no closing quote"
                raise ExpressionError(self.text, self.place + 1, reason)
            raise self._expected("a name, an operator or a value")
        self.place = found.end()
        return Token(TokenKind.NAME, found["field"], found.start("field") + 1)

    def _skip_space(self) -> None:
        while self.text[self.place : self.place + 1].isspace():
            self.place += 1

    def _skip_to(self, mark: str) -> bool:
        self._skip_space()
        found = self.text.startswith(mark, self.place)
        self.place += found
        return found

    def _require(self, mark: str) -> None:
        if not self._skip_to(mark):
            raise self._expected(f"'{mark}'")

    def _expected(self, what: str) -> ExpressionError:
        found = repr(self.text[self.place]) if self.place < len(self.text) else "the end"
        reason = f"expected {what}, found {found}"
        return ExpressionError(self.text, self.place + 1, reason)


def value_of(text: str, given: Token, *, worded: bool = False) -> Token:
    """A field as a value or a variable; `ExpressionError` if it is neither.

    Args:
        text: the whole text, for the error.
        given: the field.
        worded: whether true, false and inf are strings, as PADRES takes them.
    """
    variable = _VARIABLE.fullmatch(given.text)
    if variable is not None:
        return Token(TokenKind.VARIABLE, given.text, given.column, variable["name"])
    if given.text.startswith(("'", '"')):
        return _string(text, given)
    if given.text in _WORDS and not worded:
        return Token(TokenKind.LITERAL, given.text, given.column, _WORDS[given.text])
    if _WORD.fullmatch(given.text):
        return Token(TokenKind.LITERAL, given.text, given.column, given.text)
    return _number(text, given)


def _number(text: str, given: Token) -> Token:
    """A field as a number, a date or a variable of any type."""
    expected = ExpressionError(text, given.column, f"expected {_VALUE}, found {given.text!r}")
    if _BEGINS_VALUE.match(given.text) is None:
        raise expected
    written = _SHORT_NUMBER.sub(_in_full, given.text, count=1)
    try:
        tokens = tokenize(written)
    except ExpressionError as error:
        place = min(max(error.column - 1 + len(given.text) - len(written), 0), len(given.text) - 1)
        raise ExpressionError(text, given.column + place, error.reason) from None
    if len(tokens) != 2 or tokens[0].kind not in (TokenKind.LITERAL, TokenKind.VARIABLE):
        raise expected
    token = tokens[0]
    return Token(token.kind, token.text, given.column, token.value)


def _in_full(found: re.Match[str]) -> str:
    """How a number begins that PADRES lets begin with a plus or a point."""
    sign = "-" if found["sign"] == "-" else ""
    return f"{sign}0." if found["point"] else sign


def _behind(ended: bool, dated: bool) -> str:
    """What a text may have behind its brackets."""
    if not ended:
        return "',', ';' or the end"
    return "a time such as 'Fri Nov 20 17:07:43 EST 2009;' or the end" if dated else "the end"


def _string(text: str, given: Token) -> Token:
    """A field between quotes, read as the same string between double quotes."""
    inner = given.text[1:-1]
    if given.text.startswith("'"):
        inner = re.sub(r"\\.|\"", _escaped_for_double_quotes, inner, flags=re.DOTALL)
    try:
        token = tokenize(f'"{inner}"')[0]
    except ExpressionError as error:
        raise ExpressionError(text, given.column, error.reason) from None
    return Token(token.kind, given.text, given.column, token.value)


def _escaped_for_double_quotes(found: re.Match[str]) -> str:
    return {'"': '\\"', "\\'": "'"}.get(found.group(), found.group())
