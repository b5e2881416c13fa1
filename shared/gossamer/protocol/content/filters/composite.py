"""Composite subscriptions: several publications within a time window, as PADRES has them.

    {{{[class,eq,'stock'],[price,=,$I$X]}&{[class,eq,'order'],[limit,=,$I$X]}}||{[class,eq,'halt']}}

Each part in braces is a filter in either language, and braces group. `&` binds tighter than `||`,
except where the first part is in PADRES' language: then neither does, and what is on the left is
joined first, as in PADRES. A variable such as `$X` stands for one value, whichever it is,
throughout an alternative. What is written for PADRES has braces around every pair, and reads alike
either way.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Sequence
from typing import Final

from attrs import define, evolve, frozen

from gossamer.protocol.content import tokens
from gossamer.protocol.content.errors import ContentError
from gossamer.protocol.content.filters import language, padres, padres_writing
from gossamer.protocol.content.filters.filter import Filter
from gossamer.protocol.content.filters.names import name_text
from gossamer.protocol.content.grammar import Placed
from gossamer.protocol.content.operators import Operator
from gossamer.protocol.content.tokens import TokenKind, tokenize
from gossamer.protocol.kernel.errors import ExpressionError

MAX_ALTERNATIVES: Final = 64
"""Most alternatives that a text may come to once its conjunctions are multiplied out."""

MAX_PARTS: Final = 16
"""Most parts of an alternative."""

MAX_DEPTH: Final = MAX_ALTERNATIVES + MAX_PARTS
"""Most braces within each other: what is written for PADRES has a pair for each part."""

MAX_TEXT: Final = 64 * tokens.MAX_TEXT
"""Longest text in characters."""

_IN_PADRES: Final = re.compile(r"[\s{]*\[")

Binding = tuple[str, str]
"""An attribute and the variable that its value is."""


@frozen
class Part:
    """What one publication has to match, and which variables its values stand for."""

    filter: Filter
    bindings: tuple[Binding, ...] = ()


@frozen
class Composite:
    """Alternatives, each a tuple of parts that some publications match within the window.

    One publication may serve several parts.
    """

    alternatives: tuple[tuple[Part, ...], ...]


def parse_composite(text: str) -> Composite:
    """The composite subscription that a text describes.

    Raises `ExpressionError`, whose column points at the fault.
    """
    return Composite(_Reader(text).whole())


def composite_text(composite: Composite) -> str:
    """The text of a composite subscription in gossamer's language; parses back to an equal one."""
    joined = (" & ".join(map(_part_text, parts)) for parts in composite.alternatives)
    return _readable(" || ".join(joined))


def composite_padres(composite: Composite) -> str:
    """The text of a composite subscription that PADRES takes; parses back to an equal one.

    Raises `ContentError` for what PADRES cannot say (see `padres_writing`).
    """
    alternatives = [_chain("&", list(map(_part_padres, parts))) for parts in composite.alternatives]
    whole = _chain("||", alternatives)
    is_part = len(alternatives) == len(composite.alternatives[0]) == 1
    return _readable("{" + whole + "}" if is_part else whole)


def _chain(operator: str, terms: Sequence[str]) -> str:
    """Terms in braces joined from left to right, each pair within braces of its own."""
    return functools.reduce(lambda left, right: f"{{{left}{operator}{right}}}", terms)


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


@define
class _Reader:
    """Recursive descent over the braces of a text; `place` is the next character."""

    text: str
    place: int = 0
    depth: int = 0
    in_padres: bool = False

    def whole(self) -> tuple[tuple[Part, ...], ...]:
        if len(self.text) > MAX_TEXT:
            reason = f"the text has {len(self.text)} characters, more than the {MAX_TEXT} allowed"
            raise ExpressionError(self.text[:40] + "...", 1, reason)
        self.in_padres = _IN_PADRES.match(self.text) is not None
        alternatives = self._alternatives()
        if self.in_padres:
            self._take(";")
        self._skip_space()
        if self.place < len(self.text):
            raise self._error(f"expected '&', '||' or the end, found {self.text[self.place]!r}")
        return alternatives

    def _alternatives(self) -> tuple[tuple[Part, ...], ...]:
        found = self._joined_by_and(self._braces())
        while self._take("||"):
            right = self._braces()
            if self.in_padres:
                found = self._joined_by_and(self._bounded(found + right))
            else:
                found = self._bounded(found + self._joined_by_and(right))
        return found

    def _joined_by_and(self, found: tuple[tuple[Part, ...], ...]) -> tuple[tuple[Part, ...], ...]:
        """What was read, and all that follows it with `&` before."""
        while self._take("&"):
            right = self._braces()
            found = self._bounded(
                tuple(one + other for one, other in itertools.product(found, right))
            )
        return found

    def _bounded(self, found: tuple[tuple[Part, ...], ...]) -> tuple[tuple[Part, ...], ...]:
        if len(found) > MAX_ALTERNATIVES:
            raise self._error(f"more than {MAX_ALTERNATIVES} alternatives")
        if max(map(len, found)) > MAX_PARTS:
            raise self._error(f"more than {MAX_PARTS} parts in an alternative")
        return found

    def _braces(self) -> tuple[tuple[Part, ...], ...]:
        if not self._take("{"):
            raise self._error("expected '{'")
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self._error(f"braces more than {MAX_DEPTH} deep")
        if self._starts_with("{"):
            found = self._alternatives()
            if not self._take("}"):
                raise self._error("expected '&', '||' or '}'")
        else:
            found = ((self._part(),),)
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
            return part_of(text)
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


def part_of(text: str) -> Part:
    """The part that a text without its braces describes, in either language."""
    if text.lstrip().startswith("["):
        placed = padres.PadresReader(text).predicates()
    else:
        placed = language.FilterParser(text, tokenize(text)).conjunction()
    bindings = tuple(_binding(text, one) for one in placed if _is_bound(one))
    return Part(language.filter_of(text, list(map(_unbound, placed)), None), bindings)


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
