"""What PADRES takes, written down from its grammar apart from our own reader and writer.

Tokens are the longest that fit, of equally long ones the first, as in PADRES' generated parser.
Subscriptions come out as predicates by attribute, composite ones as trees of those. Braces group,
as for PADRES' client; where there are none, what is on the left is joined first.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeVar

from attrs import frozen

_WORD = "[A-Za-z0-9|&_\\-\\[\\] {}<>=.:;/,#"
_TEXT = rf"(?:''|'{_WORD}]{_WORD}$]*'" + rf'|""|"{_WORD}]{_WORD}$]*")'
_VARIABLE = "[A-Za-z_][A-Za-z0-9_-]*"
TOKENS = [
    ("class", "class"),
    *((mark, re.escape(mark)) for mark in ",:;[]{}"),
    ("eq", "eq"),
    ("isPresent", "isPresent"),
    ("on strings", "str-(?:le|lt|gt|ge|prefix|postfix|contains)|neq"),
    ("on numbers", "<=|>=|<>|=|<|>"),
    ("joint", r"&|\|\|"),
    ("name", "[A-Za-z_:/][A-Za-z0-9_:/-]*"),
    ("time", "[A-Za-z_:/][A-Za-z0-9_:/-]*(?: [A-Za-z0-9:/_-]*)*"),
    ("zeros", "0[0-9]+"),
    ("text", _TEXT),
    ("whole", "[+-]?[1-9][0-9]*|0"),
    ("decimal", r"[+-]?(?:[1-9][0-9]*|0)\.[0-9]+|[+-]?\.[0-9]+"),
    ("text variable", rf"(?P<q>['\"]?)\$S\${_VARIABLE}(?P=q)"),
    ("number variable", rf"(?P<q>['\"]?)\$[IF]\${_VARIABLE}(?P=q)"),
    ("space", "[ \t\r\n]"),
]
_PATTERNS = [(kind, re.compile(pattern)) for kind, pattern in TOKENS]
_NUMBERS, _TEXTS = ("whole", "decimal"), ("text", "text variable", "name")
# What may follow operators of each kind.
_OPERANDS = {
    "eq": _TEXTS,
    "on strings": _TEXTS,
    "on numbers": (*_NUMBERS, "number variable"),
    "isPresent": (*_TEXTS, *_NUMBERS, "number variable"),
}
_WHOLE = 1 << 63
T = TypeVar("T")


class NotPadresError(Exception):
    """PADRES would refuse the text."""


@frozen
class Variable:
    """A value that is the same wherever the variable stands, of one type."""

    name: str
    of_text: bool


@frozen
class Subscription:
    """Predicates, each an operator and a value, by attribute."""

    predicates: Mapping[str, tuple[str, Any]]


@frozen
class Joint:
    operator: str
    left: Subscription | Joint
    right: Subscription | Joint


def tokens(text: str) -> Iterator[tuple[str, str]]:
    place = 0
    while place < len(text):
        found = [(kind, one.group()) for kind, p in _PATTERNS if (one := p.match(text, place))]
        if not found:
            raise NotPadresError(f"no token at {place} of {text!r}")
        kind, taken = max(found, key=lambda one: len(one[1]))
        if kind != "space":
            yield kind, taken
        place += len(taken)


class Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = [*tokens(text), ("end", "")]

    def subscription(self) -> Subscription:
        return self._whole(self._subscription)

    def composite(self) -> Subscription | Joint:
        return self._whole(lambda: self._braced(self._chain))

    def publication(self) -> dict[str, Any]:
        return self._whole(self._publication)

    def _whole(self, read: Callable[[], T]) -> T:
        """All of the text, a semicolon at its end, which who writes one leaves to PADRES."""
        found = read()
        if self._comes(";"):
            self._pass(";")
            if self._comes("time"):
                self._pass("time", ";")
        self._pass("end")
        return found

    def _braced(self, read: Callable[[], T]) -> T:
        self._pass("{")
        found = read()
        self._pass("}")
        return found

    def _chain(self) -> Subscription | Joint:
        """Terms joined from left to right, whatever joins them."""
        found = self._braced(self._term)
        while self._comes("joint"):
            found = Joint(self._take("joint")[1], found, self._braced(self._term))
        return found

    def _term(self) -> Subscription | Joint:
        return self._subscription() if self._comes("[") else self._chain()

    def _subscription(self) -> Subscription:
        self._pass("[", "class", ",", "eq", ",")
        kind = self._value("text", "name")
        self._pass("]")
        return Subscription({"class": ("eq", kind)} | self._attributes(self._predicate))

    def _publication(self) -> dict[str, Any]:
        self._pass("[", "class", ",")
        kind = self._value("text", "name")
        self._pass("]")
        return {"class": kind} | self._attributes(lambda: self._value("text", "name", *_NUMBERS))

    def _attributes(self, read: Callable[[], T]) -> dict[str, T]:
        """What follows the class: attributes with what is read of each."""
        found: dict[str, T] = {}
        while self._comes(","):
            self._pass(",", "[")
            name = self._take("name")[1]
            if name in found:
                raise NotPadresError(f"attribute {name!r} exists multiple times")
            self._pass(",")
            found[name] = read()
            self._pass("]")
        return found

    def _predicate(self) -> tuple[str, Any]:
        kind, name = self._take(*_OPERANDS)
        self._pass(",")
        return name, self._value(*_OPERANDS[kind])

    def _value(self, *kinds: str) -> Any:
        kind, text = self._take(*kinds)
        if kind == "whole":
            if not -_WHOLE <= int(text) < _WHOLE:
                raise NotPadresError(f"{text} is no 64-bit number")
            return int(text)
        if kind == "decimal":
            return float(text)
        if kind in ("text variable", "number variable"):
            return Variable(text.strip("'\"")[3:], kind == "text variable")
        return text if kind == "name" else text[1:-1]

    def _comes(self, kind: str) -> bool:
        return self.tokens[0][0] == kind

    def _pass(self, *kinds: str) -> None:
        for kind in kinds:
            self._take(kind)

    def _take(self, *kinds: str) -> tuple[str, str]:
        """The next token, of one of these kinds."""
        kind, text = self.tokens.pop(0)
        if kind not in kinds:
            raise NotPadresError(f"expected {kinds}, found {text!r} in {self.text!r}")
        return kind, text


TESTS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "isPresent": lambda _value, _constant: True,
    **dict.fromkeys(("eq", "="), operator.eq),
    **dict.fromkeys(("neq", "<>"), operator.ne),
    **dict.fromkeys(("str-lt", "<"), operator.lt),
    **dict.fromkeys(("str-le", "<="), operator.le),
    **dict.fromkeys(("str-gt", ">"), operator.gt),
    **dict.fromkeys(("str-ge", ">="), operator.ge),
    "str-prefix": str.startswith,
    "str-postfix": str.endswith,
    "str-contains": operator.contains,
}


def is_text(value: object) -> bool:
    return isinstance(value, str)


def holds(name: str, constant: Any, value: Any) -> bool:
    """Whether a predicate holds for a value, as PADRES' matchers define operators."""
    if isinstance(constant, Variable):
        return is_text(value) is constant.of_text
    if is_text(value) is not is_text(constant):
        return False
    return bool(TESTS[name](value, constant))


def matches(subscription: Subscription, publication: Mapping[str, Any]) -> bool:
    return all(
        name in publication and holds(test, constant, publication[name])
        for name, (test, constant) in subscription.predicates.items()
    )


def alternatives(one: Subscription | Joint) -> list[tuple[Subscription, ...]]:
    if isinstance(one, Subscription):
        return [(one,)]
    left, right = alternatives(one.left), alternatives(one.right)
    if one.operator == "||":
        return left + right
    return [a + b for a in left for b in right]
