"""Gossamer's text form of filters and publications.

    symbol == "IBM" and price >= 80 and price < 120.5 and name startswith "A"

As the language of subscriptions over a schema (`content.language`), and besides: `!=`, `endswith`,
`contains`, `present(name)`, the values `true`, `false` and `inf`, and `not`, as in
`not price < 80`, `not name contains "x"` or `name not contains "x"`. A missing attribute never
matches, so `not price < 80` needs a price. Any text between backquotes is an attribute name. A
publication is `symbol = "IBM", price = 81.5`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import ClassVar, Final

from attrs import define, evolve

from gossamer.protocol.content.filters.constraint import Constraint
from gossamer.protocol.content.filters.domains import Exact, exact_literal
from gossamer.protocol.content.filters.filter import Filter, Publication, narrow
from gossamer.protocol.content.filters.predicates import (
    NEGATED,
    RESERVED,
    conjunction_text,
    name_text,
)
from gossamer.protocol.content.grammar import (
    Comparison,
    ConjunctionParser,
    Operator,
    Placed,
    Token,
    TokenKind,
    faults_at,
    tokenize,
)
from gossamer.protocol.content.schema import Schema
from gossamer.protocol.kernel.errors import ExpressionError

MAX_COMPARISONS: Final = 256
"""Most comparisons in a text."""
MAX_WRITTEN_COMPARISONS: Final = 4096
MAX_WRITTEN_TEXT: Final = 1 << 16
"""The same, and most characters, where the text was written by `filter_text`: filters that a
program made may be larger than what people type."""
MAX_NEGATIONS: Final = 64
"""Most `not` in a row."""

_WORDS: Final[dict[str, Exact]] = {"true": True, "false": False, "inf": math.inf}
_STRING_WORDS: Final = {
    o.value: o for o in (Operator.STARTS_WITH, Operator.ENDS_WITH, Operator.CONTAINS)
}


def parse_filter(text: str, schema: Schema | None = None) -> Filter:
    """The filter that a text describes.

    Raises `ExpressionError`, whose column points at the name, operator, value or predicate that
    does not parse, does not fit the schema if one is given, or contradicts an earlier predicate.
    """
    placed = FilterParser(text, tokenize(text)).conjunction()
    return filter_of(text, placed, schema)


def parse_written_filter(text: str) -> Filter:
    """The filter of a text as `filter_text` writes it; raises as `parse_filter` does."""
    placed = FilterParser(text, tokenize(text, MAX_WRITTEN_TEXT)).conjunction()
    return filter_of(text, placed, None, MAX_WRITTEN_COMPARISONS)


def filter_of(
    text: str, placed: list[Placed], schema: Schema | None, most: int = MAX_COMPARISONS
) -> Filter:
    """The filter of comparisons that were read from a text; raises as `parse_filter` does."""
    if len(placed) > most:
        column = placed[most].column
        raise ExpressionError(text, column, f"more than {most} comparisons")
    held: dict[str, Constraint] = {}
    for one in placed:
        comparison = comparison_of(text, one)
        with faults_at(text, one):
            name = comparison.attribute
            held[name] = narrow(held.get(name), comparison, schema)
    return Filter.from_constraints(held)


def comparison_of(text: str, placed: Placed) -> Comparison:
    """The comparison that was written; raises `ExpressionError` for one with a variable."""
    if placed.constant.kind is TokenKind.VARIABLE:
        reason = "a variable means something in composite subscriptions only"
        raise ExpressionError(text, placed.constant.column, reason)
    return Comparison(name_of(placed.name), placed.operator, placed.constant.value)


def parse_publication(text: str) -> Publication:
    """The publication that a text describes, such as `symbol = "IBM", price = 81.5`.

    Raises `ExpressionError` pointing at what does not parse, or at a name that comes twice.
    """
    return FilterParser(text, tokenize(text)).publication()


def filter_text(wanted: Filter) -> str:
    """The text of a filter, which parses back to an equal filter."""
    return conjunction_text(wanted.comparisons())


def publication_text(publication: Publication) -> str:
    """The text of a publication, which parses back to an equal publication."""
    return ", ".join(f"{name_text(n)} = {exact_literal(v)}" for n, v in publication.items())


def name_of(token: Token) -> str:
    """The attribute name that a token stands for."""
    return str(token.value) if token.kind is TokenKind.QUOTED_NAME else token.text


@define
class FilterParser(ConjunctionParser):
    """Recursive descent over the tokens of a filter or a publication."""

    reserved: ClassVar[frozenset[str]] = RESERVED
    operators: ClassVar[dict[str, Operator]] = {
        **ConjunctionParser.operators,
        Operator.NOT_EQUAL.value: Operator.NOT_EQUAL,
    }
    comparison: ClassVar[str] = (
        "a comparison (== != < <= > >=, and after a name: in startswith endswith contains)"
    )
    constants: ClassVar[str] = "a number, date, true, false or string in double quotes"

    def publication(self) -> Publication:
        """The whole text: `name = value`, with commas between."""
        found: Publication = {}
        for name, value in self._assignments():
            if name_of(name) in found:
                reason = f"attribute {name_of(name)!r} has a value already"
                raise ExpressionError(self.text, name.column, reason)
            found[name_of(name)] = value.value
        return found

    def _assignments(self) -> Iterator[tuple[Token, Token]]:
        while True:
            name = self._name()
            if self._next.text != "=":
                raise self._expected("'='")
            self._take()
            yield name, self._value()
            if self._next.kind is TokenKind.END:
                return
            self._punctuation(",")

    def _value(self) -> Token:
        if self._next.kind is TokenKind.VARIABLE:
            raise self._expected(self.constants)
        return self._literal()

    def _constraint(self) -> list[Placed]:
        negations = self._negations()
        placed = self._unnegated()
        for _ in range(negations):
            placed = [self._negated(placed)]
        return placed

    def _negations(self) -> int:
        found = 0
        while self._take_word("not"):
            found += 1
            if found > MAX_NEGATIONS:
                raise self._expected(f"at most {MAX_NEGATIONS} 'not' in a row")
        return found

    def _unnegated(self) -> list[Placed]:
        if self._next.text == "present" and self._next.kind is TokenKind.NAME:
            return [self._presence()]
        if self._starts_value():
            return self._range_around_name()
        name = self._name()
        if self._take_word("in"):
            return self._range_in_brackets(name)
        if self._take_word("not"):
            return [self._negated([Placed(name, self._string_word(), self._literal())])]
        if self._next.text in _STRING_WORDS:
            return [Placed(name, self._string_word(), self._literal())]
        return [Placed(name, self._operator(), self._literal())]

    def _presence(self) -> Placed:
        column = self._take()
        self._punctuation("(")
        name = self._name()
        self._punctuation(")")
        return Placed(name, Operator.PRESENT, column)

    def _negated(self, placed: list[Placed]) -> Placed:
        one = placed[0]
        if len(placed) > 1:
            reason = "a range cannot be negated: what is outside of it is not one range"
            raise ExpressionError(self.text, one.column, reason)
        if one.operator is Operator.PRESENT:
            reason = "a missing attribute never matches, so presence cannot be negated"
            raise ExpressionError(self.text, one.constant.column, reason)
        return evolve(one, operator=NEGATED[one.operator])

    def _string_word(self) -> Operator:
        word = _STRING_WORDS.get(self._next.text)
        if word is None:
            raise self._expected("startswith, endswith or contains")
        self._take()
        return word

    def _starts_value(self) -> bool:
        token = self._next
        is_word = token.kind is TokenKind.NAME and token.text in _WORDS
        return is_word or token.kind in (TokenKind.LITERAL, TokenKind.VARIABLE)

    def _name(self) -> Token:
        if self._next.kind is TokenKind.QUOTED_NAME:
            return self._take()
        return ConjunctionParser._name(self)

    def _literal(self) -> Token:
        if self._next.kind is TokenKind.VARIABLE:
            return self._take()
        if self._next.kind is TokenKind.NAME and self._next.text in _WORDS:
            word = self._take()
            return evolve(word, kind=TokenKind.LITERAL, value=_WORDS[word.text])
        return ConjunctionParser._literal(self)
