"""What PADRES takes, written down from its grammar apart from our own reader and writer.

Tokens are the longest that fit, of equally long ones the first, as in PADRES' generated parser.
Subscriptions come out as predicates by attribute, composite ones as trees of those. Braces group,
as for PADRES' client; where there are none, what is on the left is joined first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from attrs import frozen

_WORD = "[A-Za-z0-9|&_\\-\\[\\] {}<>=.:;/,#"
_TEXT = rf"(?:''|'{_WORD}]{_WORD}$]*'" + rf'|""|"{_WORD}]{_WORD}$]*")'
_VARIABLE = "[A-Za-z_][A-Za-z0-9_-]*"
TOKENS = [
    ("class", "class"),
    ("comma", ","),
    ("eq", "eq"),
    ("isPresent", "isPresent"),
    ("on strings", "str-(?:le|lt|gt|ge|prefix|postfix|contains)|neq"),
    ("on numbers", "<=|>=|<>|=|<|>"),
    ("joint", r"&|\|\|"),
    ("colon", ":"),
    ("semicolon", ";"),
    ("name", "[A-Za-z_:/][A-Za-z0-9_:/-]*"),
    ("time", "[A-Za-z_:/][A-Za-z0-9_:/-]*(?: [A-Za-z0-9:/_-]*)*"),
    ("zeros", "0[0-9]+"),
    ("text", _TEXT),
    ("whole", "[+-]?[1-9][0-9]*|0"),
    ("decimal", r"[+-]?(?:[1-9][0-9]*|0)\.[0-9]+|[+-]?\.[0-9]+"),
    ("text variable", rf"(?P<q>['\"]?)\$S\${_VARIABLE}(?P=q)"),
    ("number variable", rf"(?P<q>['\"]?)\$[IF]\${_VARIABLE}(?P=q)"),
    ("mark", r"[\[\]{}]"),
]
_PATTERNS = [(kind, re.compile(pattern)) for kind, pattern in TOKENS]
_WHOLE = 1 << 63


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
        if text[place] in " \t\r\n":
            place += 1
            continue
        found = [(kind, one.group()) for kind, p in _PATTERNS if (one := p.match(text, place))]
        if not found:
            raise NotPadresError(f"no token at {place} of {text!r}")
        best = max(found, key=lambda one: len(one[1]))
        yield best
        place += len(best[1])


class Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = [*tokens(text), ("end", "")]

    def subscription(self) -> Subscription:
        found = self._subscription()
        self._end()
        return found

    def composite(self) -> Subscription | Joint:
        self._take("mark", "{")
        found = self._chain()
        self._take("mark", "}")
        self._end()
        return found

    def publication(self) -> dict[str, Any]:
        self._take("mark", "[")
        self._take("class")
        self._take("comma")
        found: dict[str, Any] = {"class": self._text(self._take("text", "name"))}
        self._take("mark", "]")
        while self.tokens[0][0] == "comma":
            self._take("comma")
            self._take("mark", "[")
            name = self._take("name")[1]
            self._take("comma")
            if name in found:
                raise NotPadresError(f"attribute {name!r} exists multiple times")
            found[name] = self._value(self._take("text", "name", "whole", "decimal"))
            self._take("mark", "]")
        self._end()
        return found

    def _end(self) -> None:
        """The end, a semicolon before it; who writes a text leaves the semicolon to PADRES."""
        if self.tokens[0][0] == "semicolon":
            self._take("semicolon")
            if self.tokens[0][0] == "time":
                self._take("time")
                self._take("semicolon")
        self._take("end")

    def _chain(self) -> Subscription | Joint:
        """Terms joined from left to right, whatever joins them."""
        found = self._term()
        while self.tokens[0][0] == "joint":
            operator = self._take("joint")[1]
            found = Joint(operator, found, self._term())
        return found

    def _term(self) -> Subscription | Joint:
        self._take("mark", "{")
        one = self._subscription() if self.tokens[0] == ("mark", "[") else self._chain()
        self._take("mark", "}")
        return one

    def _subscription(self) -> Subscription:
        for kind, text in (("mark", "["), ("class", ""), ("comma", ""), ("eq", ""), ("comma", "")):
            self._take(kind, *([text] if text else []))
        found: dict[str, tuple[str, Any]] = {
            "class": ("eq", self._text(self._take("text", "name")))
        }
        self._take("mark", "]")
        while self.tokens[0][0] == "comma":
            self._take("comma")
            self._predicate(found)
        return Subscription(found)

    def _predicate(self, found: dict[str, tuple[str, Any]]) -> None:
        self._take("mark", "[")
        name = self._take("name")[1]
        self._take("comma")
        kind, operator = self._take("eq", "on strings", "on numbers", "isPresent")
        self._take("comma")
        of_texts, of_numbers = ("text", "text variable", "name"), ("whole", "decimal")
        taken = {
            "on numbers": (*of_numbers, "number variable"),
            "isPresent": (*of_texts, *of_numbers, "number variable"),
        }
        value = self._value(self._take(*taken.get(kind, of_texts)))
        self._take("mark", "]")
        if name in found:
            raise NotPadresError(f"attribute {name!r} exists multiple times")
        found[name] = (operator, value)

    def _value(self, token: tuple[str, str]) -> Any:
        kind, text = token
        if kind == "whole":
            if not -_WHOLE <= int(text) < _WHOLE:
                raise NotPadresError(f"{text} is no 64-bit number")
            return int(text)
        if kind == "decimal":
            return float(text)
        if kind in ("text variable", "number variable"):
            return Variable(text.strip("'\"")[3:], kind == "text variable")
        return self._text(token)

    def _text(self, token: tuple[str, str]) -> str:
        return token[1] if token[0] == "name" else token[1][1:-1]

    def _take(self, *kinds: str) -> tuple[str, str]:
        """The next token, of one of these kinds; after `mark`, of that text."""
        kind, text = self.tokens.pop(0)
        fits = (kind, text) == kinds if kinds[0] == "mark" else kind in kinds
        if not fits:
            raise NotPadresError(f"expected {kinds}, found {text!r} in {self.text!r}")
        return kind, text


def is_text(value: object) -> bool:
    return isinstance(value, str)


def holds(operator: str, constant: Any, value: Any) -> bool:
    """Whether a predicate holds for a value, as PADRES' matchers define operators."""
    if isinstance(constant, Variable):
        return is_text(value) is constant.of_text
    if is_text(value) is not is_text(constant):
        return False
    tests: dict[str, Callable[[], Any]] = {
        "isPresent": lambda: True,
        "eq": lambda: value == constant,
        "neq": lambda: value != constant,
        "str-lt": lambda: value < constant,
        "str-le": lambda: value <= constant,
        "str-gt": lambda: value > constant,
        "str-ge": lambda: value >= constant,
        "str-prefix": lambda: value.startswith(constant),
        "str-postfix": lambda: value.endswith(constant),
        "str-contains": lambda: constant in value,
        "=": lambda: value == constant,
        "<>": lambda: value != constant,
        "<": lambda: value < constant,
        "<=": lambda: value <= constant,
        ">": lambda: value > constant,
        ">=": lambda: value >= constant,
    }
    return bool(tests[operator]())


def matches(subscription: Subscription, publication: Mapping[str, Any]) -> bool:
    return all(
        name in publication and holds(operator, constant, publication[name])
        for name, (operator, constant) in subscription.predicates.items()
    )


def alternatives(one: Subscription | Joint) -> list[tuple[Subscription, ...]]:
    if isinstance(one, Subscription):
        return [(one,)]
    left, right = alternatives(one.left), alternatives(one.right)
    if one.operator == "||":
        return left + right
    return [a + b for a in left for b in right]
