"""Composite subscriptions: several publications within a time window, as PADRES has them.

    {{{[class,eq,'stock'],[price,=,$I$X]}&{[class,eq,'order'],[limit,=,$I$X]}}||{[class,eq,'halt']}}

Each part in braces is a filter in either language, and braces group. `&` binds tightest, then `->`
("followed by": all on its left came before all on its right), then `||`, except where the first
part is in PADRES' language: then none does, and what is on the left is joined first, as in PADRES,
which has no `->`. A variable such as `$X` stands for one value, whichever it is, throughout an
alternative. What is written for PADRES has braces around every pair, and reads alike either way.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Sequence
from typing import Final

from attrs import define, evolve, field, frozen

from gossamer.protocol.content import grammar
from gossamer.protocol.content.filters import language, padres, padres_writing
from gossamer.protocol.content.filters.filter import Filter
from gossamer.protocol.content.filters.predicates import name_text
from gossamer.protocol.content.grammar import Operator, Placed, TokenKind, tokenize
from gossamer.protocol.content.schema import Schema
from gossamer.protocol.kernel.errors import ContentError, ExpressionError

MAX_ALTERNATIVES: Final = 64
"""Most alternatives that a text may come to once its conjunctions are multiplied out."""

MAX_PARTS: Final = 16
"""Most parts of an alternative."""

MAX_DEPTH: Final = MAX_ALTERNATIVES + MAX_PARTS
"""Most braces within each other: what is written for PADRES has a pair for each part."""

MAX_TEXT: Final = 64 * grammar.MAX_TEXT
"""Longest text in characters."""

_IN_PADRES: Final = re.compile(r"[\s{]*\[")
_FOLLOWED_BY: Final = re.compile(r"->|followed\s+by\b")

Binding = tuple[str, str]
"""An attribute and the variable that its value is."""

Order = frozenset[tuple[int, int]]
"""Pairs of parts of an alternative, by their places: the first came before the second."""

UNORDERED: Final[Order] = frozenset()


@frozen
class Part:
    """What one publication has to match, and which variables its values stand for."""

    filter: Filter
    bindings: tuple[Binding, ...] = ()


@frozen
class Composite:
    """Alternatives, each a tuple of parts that some publications match within the window.

    One publication may serve several parts, unless one of them is to come before the other.

    Attributes:
        alternatives: their parts.
        orders: of each alternative, which of its parts come before which.
    """

    alternatives: tuple[tuple[Part, ...], ...]
    orders: tuple[Order, ...] = field()

    @orders.default
    def _unordered(self) -> tuple[Order, ...]:
        return (UNORDERED,) * len(self.alternatives)


def is_composite(text: str) -> bool:
    """Whether a text is meant as a composite subscription: it begins with a brace."""
    return text.lstrip().startswith("{")


def parse_composite(text: str, schema: Schema | None = None) -> Composite:
    """The composite subscription that a text describes.

    With a schema, names and types are checked as well. Raises `ExpressionError`, whose column
    points at the fault.
    """
    found = _Reader(text, schema).whole()
    return Composite(tuple(one.parts for one in found), tuple(one.order for one in found))


def composite_text(composite: Composite) -> str:
    """The text of a composite subscription in gossamer's language; parses back to an equal one.

    Raises `ContentError` for an order that `&` and `->` cannot say.
    """
    joined = (
        _ordered_text(list(map(_part_text, parts)), 0, order)
        for parts, order in zip(composite.alternatives, composite.orders, strict=True)
    )
    return _readable(" || ".join(joined))


def composite_padres(composite: Composite) -> str:
    """The text of a composite subscription that PADRES takes; parses back to an equal one.

    Raises `ContentError` for what PADRES cannot say (see `padres_writing`), such as an order.
    """
    if any(composite.orders):
        raise ContentError("", "PADRES has no order of publications ('->')")
    alternatives = [_chain("&", list(map(_part_padres, parts))) for parts in composite.alternatives]
    whole = _chain("||", alternatives)
    is_part = len(alternatives) == len(composite.alternatives[0]) == 1
    return _readable("{" + whole + "}" if is_part else whole)


def _chain(operator: str, terms: Sequence[str]) -> str:
    """Terms in braces joined from left to right, each pair within braces of its own."""
    return functools.reduce(lambda left, right: f"{{{left}{operator}{right}}}", terms)


def _ordered_text(texts: Sequence[str], first: int, order: Order, *, joined: bool = False) -> str:
    """The text of parts in a row, the first of which has the place ``first``.

    Args:
        texts: of the parts.
        first: the place.
        order: of all parts of the alternative.
        joined: whether it stands beside a `&`, which binds tighter than `->`.
    """
    if len(texts) == 1:
        return texts[0]
    places = range(first, first + len(texts))
    within = [(one, other) for one, other in order if one in places and other in places]

    def pieces(cuts: Sequence[int], *, joined: bool) -> list[str]:
        ends = itertools.pairwise([first, *cuts, places.stop])
        return [
            _ordered_text(texts[one - first : end - first], one, order, joined=joined)
            for one, end in ends
        ]

    crossing = {cut: sum(one < cut <= other for one, other in within) for cut in places[1:]}
    free = [cut for cut, number in crossing.items() if not number]
    if free:
        return " & ".join(pieces(free, joined=True))
    full = [
        cut for cut, number in crossing.items() if number == (cut - first) * (places.stop - cut)
    ]
    if not full:
        raise ContentError("", "this order of publications cannot be said by '&' and '->'")
    text = " -> ".join(pieces(full, joined=False))
    return "{" + text + "}" if joined else text


def _readable(text: str) -> str:
    if len(text) > MAX_TEXT:
        reason = f"the composite subscription has {len(text)} characters, more than {MAX_TEXT}"
        raise ContentError("", reason)
    return text


def _part_text(part: Part) -> str:
    bindings = [f"{name_text(name)} == ${variable}" for name, variable in part.bindings]
    named = _beside_bindings(part)
    texts = [language.filter_text(named)] if named is not None else []
    return "{" + " and ".join(texts + bindings) + "}"


def _part_padres(part: Part) -> str:
    text = padres_writing.filter_text(part.filter, part.bindings)
    if "{" in text or "}" in text:
        reason = "PADRES takes braces in strings for those of composite subscriptions"
        raise ContentError("", reason)
    return "{" + text + "}"


def _beside_bindings(part: Part) -> Filter | None:
    """What a part asks for beside its bindings, which ask for presence themselves."""
    bound = {name for name, _ in part.bindings}
    asked = {name: held for name, held in part.filter if name not in bound or held.kind is not None}
    return Filter.from_constraints(asked) if asked else None


@frozen
class _Alternative:
    """Parts, and which of them come before which."""

    parts: tuple[Part, ...]
    order: Order = UNORDERED


_Found = tuple[_Alternative, ...]


@define
class _Reader:
    """Recursive descent over the braces of a text; `place` is the next character."""

    text: str
    schema: Schema | None = None
    place: int = 0
    depth: int = 0
    in_padres: bool = False

    def whole(self) -> _Found:
        if len(self.text) > MAX_TEXT:
            reason = f"the text has {len(self.text)} characters, more than the {MAX_TEXT} allowed"
            raise ExpressionError(self.text[:40] + "...", 1, reason)
        self.in_padres = _IN_PADRES.match(self.text) is not None
        alternatives = self._alternatives()
        if self.in_padres:
            self._take(";")
        self._skip_space()
        if self.place < len(self.text):
            found = self.text[self.place]
            raise self._error(f"expected '&', '->', '||' or the end, found {found!r}")
        return alternatives

    def _alternatives(self) -> _Found:
        if self.in_padres:
            return self._left_first()
        found = self._sequence()
        while self._take("||"):
            found = self._bounded(found + self._sequence())
        return found

    def _left_first(self) -> _Found:
        found = self._braces()
        while True:
            if self._take("&"):
                found = self._joined(found, self._braces())
            elif self._take_followed():
                found = self._joined(found, self._braces(), is_followed=True)
            elif self._take("||"):
                found = self._bounded(found + self._braces())
            else:
                return found

    def _sequence(self) -> _Found:
        found = self._conjunction()
        while self._take_followed():
            found = self._joined(found, self._conjunction(), is_followed=True)
        return found

    def _conjunction(self) -> _Found:
        found = self._braces()
        while self._take("&"):
            found = self._joined(found, self._braces())
        return found

    def _joined(self, left: _Found, right: _Found, *, is_followed: bool = False) -> _Found:
        """Each on the left with each on the right; where that follows, in this order."""
        if len(left) * len(right) > MAX_ALTERNATIVES:
            raise self._error(f"more than {MAX_ALTERNATIVES} alternatives")
        return self._bounded(
            tuple(_both(one, other, is_followed) for one, other in itertools.product(left, right))
        )

    def _bounded(self, found: _Found) -> _Found:
        if len(found) > MAX_ALTERNATIVES:
            raise self._error(f"more than {MAX_ALTERNATIVES} alternatives")
        if max(len(one.parts) for one in found) > MAX_PARTS:
            raise self._error(f"more than {MAX_PARTS} parts in an alternative")
        return found

    def _braces(self) -> _Found:
        if not self._take("{"):
            raise self._error("expected '{'")
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self._error(f"braces more than {MAX_DEPTH} deep")
        if self._starts_with("{"):
            found = self._alternatives()
            if not self._take("}"):
                raise self._error("expected '&', '->', '||' or '}'")
        else:
            found = (_Alternative((self._part(),)),)
        self.depth -= 1
        self._skip_space()
        return found

    def _part(self) -> Part:
        begin = self.place
        while self.place < len(self.text) and self.text[self.place] != "}":
            if self.text[self.place] in "\"'`":
                self._skip_quoted()
            else:
                self.place += 1
        if self.place == len(self.text):
            raise self._error("expected '}'")
        self.place += 1
        return self._part_of(self.text[begin : self.place - 1], begin)

    def _part_of(self, text: str, offset: int) -> Part:
        try:
            return part_of(text, self.schema)
        except ExpressionError as error:
            column = error.column + offset
            raise ExpressionError(self.text, column, error.reason) from error

    def _skip_quoted(self) -> None:
        begin, quote = self.place, self.text[self.place]
        self.place += 1
        while self.place < len(self.text) and self.text[self.place] != quote:
            self.place += 2 if self.text[self.place] == "\\" and quote != "`" else 1
        if self.place >= len(self.text):
            self.place = begin
            raise self._error("this string has no closing quote")
        self.place += 1

    def _take_followed(self) -> bool:
        self._skip_space()
        found = _FOLLOWED_BY.match(self.text, self.place)
        self.place = self.place if found is None else found.end()
        return found is not None

    def _take(self, mark: str) -> bool:
        found = self._starts_with(mark)
        self.place += len(mark) if found else 0
        return found

    def _starts_with(self, mark: str) -> bool:
        self._skip_space()
        return self.text.startswith(mark, self.place)

    def _skip_space(self) -> None:
        while self.text[self.place : self.place + 1].isspace():
            self.place += 1

    def _error(self, reason: str) -> ExpressionError:
        return ExpressionError(self.text, self.place + 1, reason)


def _both(left: _Alternative, right: _Alternative, is_followed: bool) -> _Alternative:
    """The parts of two alternatives, those of the right one later if that follows."""
    before, count = len(left.parts), len(right.parts)
    order = left.order | {(one + before, other + before) for one, other in right.order}
    if is_followed:
        order |= {(one, other + before) for one in range(before) for other in range(count)}
    return _Alternative(left.parts + right.parts, order)


def part_of(text: str, schema: Schema | None = None) -> Part:
    """The part that a text without its braces describes, in either language."""
    if text.lstrip().startswith("["):
        placed = padres.PadresReader(text).predicates()
    else:
        placed = language.FilterParser(text, tokenize(text)).conjunction()
    bindings = tuple(_binding(text, one) for one in placed if _is_bound(one))
    return Part(language.filter_of(text, list(map(_unbound, placed)), schema), bindings)


def _is_bound(placed: Placed) -> bool:
    return placed.constant.kind is TokenKind.VARIABLE


def _binding(text: str, placed: Placed) -> Binding:
    if placed.operator is not Operator.EQUAL:
        reason = "a variable is bound by equality and compared by nothing else"
        raise ExpressionError(text, placed.constant.column, reason)
    return language.name_of(placed.name), str(placed.constant.value)


def _unbound(placed: Placed) -> Placed:
    """A predicate without its variable: any value will do."""
    if not _is_bound(placed):
        return placed
    return evolve(placed, operator=Operator.PRESENT, constant=placed.name)
