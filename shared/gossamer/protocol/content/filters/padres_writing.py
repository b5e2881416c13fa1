"""Filters and publications as PADRES takes them, and refusals of what it would read otherwise.

What PADRES takes (its grammar and its matchers): the attribute `class` first, equal to a string; at
most one predicate on each other attribute; names of letters, digits and `_ - : /` that do not begin
with a digit and are no words of the language; whole numbers of 64 bits, other numbers written with
a decimal point and no exponent; strings of few characters, that do not begin with `$`. It has no
booleans, dates or infinities. Presence and variables are those of a number or of a string.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Final

from gossamer.protocol.content.filters import predicates
from gossamer.protocol.content.filters.constraint import Constraint
from gossamer.protocol.content.filters.domains import Exact, exact_literal
from gossamer.protocol.content.filters.filter import Filter, Publication
from gossamer.protocol.content.filters.padres import (
    ANY_OF_KIND,
    CLASS,
    ON_NUMBERS,
    ON_STRINGS,
    PRESENT,
)
from gossamer.protocol.content.grammar import MAX_TEXT, Comparison
from gossamer.protocol.content.values import Kind
from gossamer.protocol.kernel.errors import ContentError

_NAME: Final = re.compile(r"[A-Za-z_:/][A-Za-z0-9_:/-]*")
_WORDS: Final = frozenset({CLASS, PRESENT, ":", *ON_STRINGS})
_LATER: Final = r"A-Za-z0-9|&_\-\[\] {}<>=.:;/,#"
_STRING: Final = re.compile(rf"(?:[{_LATER}][{_LATER}$]*)?")
_WHOLE: Final = 1 << 63
_STRING_NAMES: Final = {operator: name for name, operator in ON_STRINGS.items()}
_NUMBER_NAMES: Final = {operator: name for name, operator in ON_NUMBERS.items()}
_PRESENCE: Final = {Kind.NUMBER: "0", Kind.STRING: "'any'"}
_VARIABLE: Final = {Kind.NUMBER: ("=", "$I$"), Kind.STRING: ("eq", "$S$")}


def filter_text(wanted: Filter, bindings: Sequence[tuple[str, str]] = ()) -> str:
    """The text of a filter, which parses back to an equal filter.

    Args:
        wanted: the filter.
        bindings: attributes and the variables that their values are, in a composite subscription.

    Raises:
        ContentError: PADRES has no text for it.
    """
    bound = [name for name, _ in bindings]
    held = wanted.get(CLASS)
    kind = None if held is None or CLASS in bound else held.point
    brackets = [f"[{CLASS},eq,{_string(CLASS, _class_of(kind))}]"]
    for name, constraint in wanted:
        if name != CLASS and name not in bound:
            brackets.append(_predicate(_name(name), constraint))
    for name, variable in bindings:
        if bound.count(name) > 1:
            reason = (
                f"PADRES takes one predicate on an attribute, and {name!r} is several variables"
            )
            raise ContentError(name, reason)
        brackets.append(_binding(_name(name), variable, wanted.get(name)))
    return _readable(",".join(brackets))


def publication_text(publication: Publication) -> str:
    """The text of a publication, which parses back to an equal publication.

    Raises:
        ContentError: PADRES has no text for it.
    """
    kind = _class_of(publication.get(CLASS))
    others = (
        f"[{_name(name)},{_value(name, value)}]"
        for name, value in publication.items()
        if name != CLASS
    )
    return _readable(",".join([f"[{CLASS},{_string(CLASS, kind)}]", *others]))


def _class_of(value: Exact | None) -> str:
    if isinstance(value, str):
        return value
    reason = f'PADRES takes what is of one class only, expected {CLASS} == "..." with a string'
    raise ContentError(CLASS, reason)


def _predicate(name: str, held: Constraint) -> str:
    """The only predicate on an attribute."""
    if held.kind is None:
        reason = (
            f"PADRES asks for the presence of a number or of a string, not of either, "
            f'expected {name} >= -inf or {name} >= ""'
        )
        raise ContentError(name, reason)
    if held == ANY_OF_KIND.get(held.kind):
        return f"[{name},{PRESENT},{_PRESENCE[held.kind]}]"
    comparisons = predicates.comparisons_of(name, held)
    if len(comparisons) > 1:
        texts = " and ".join(map(predicates.comparison_text, comparisons))
        raise ContentError(name, f"PADRES takes one predicate on an attribute, not {texts}")
    return _comparison(name, comparisons[0])


def _comparison(name: str, comparison: Comparison) -> str:
    value = _value(name, comparison.constant)
    names = _STRING_NAMES if isinstance(comparison.constant, str) else _NUMBER_NAMES
    operator = names.get(comparison.operator)
    if operator is None:
        raise ContentError(name, f"PADRES has no operator for {comparison.operator.value!r}")
    return f"[{name},{operator},{value}]"


def _binding(name: str, variable: str, held: Constraint | None) -> str:
    kind = None if held is None else held.kind
    if held is None or kind is None or held != ANY_OF_KIND.get(kind):
        reason = (
            f"PADRES has variables for numbers and for strings, and no other predicate beside "
            f'one, expected {name} >= -inf or {name} >= "" beside {name} == ${variable}'
        )
        raise ContentError(name, reason)
    operator, prefix = _VARIABLE[kind]
    return f"[{name},{operator},{prefix}{variable}]"


def _name(name: str) -> str:
    # PADRES takes every spelling of its class for it where it looks for variables.
    if _NAME.fullmatch(name) and name not in _WORDS and name.lower() != CLASS:
        return name
    raise _refusal(name, f"has no attribute named {name!r}")


def _value(name: str, value: Exact) -> str:
    if isinstance(value, str):
        return _string(name, value)
    if isinstance(value, int) and not isinstance(value, bool) and -_WHOLE <= value < _WHOLE:
        return str(value)
    if isinstance(value, int | float | Fraction) and not isinstance(value, bool):
        return _decimal(name, value)
    raise _refusal(name, f"has numbers and strings only, not {exact_literal(value)}")


def _decimal(name: str, value: int | float | Fraction) -> str:
    """A number as a decimal fraction without exponent, which stands for exactly this float."""
    try:
        nearest = float(value)
    except OverflowError:
        nearest = math.inf
    if nearest != value or math.isinf(nearest):
        raise _refusal(name, f"has 64-bit numbers only, not {exact_literal(value)[:60]}")
    text = format(Decimal(repr(nearest)), "f")
    return text if "." in text else f"{text}.0"


def _string(name: str, text: str) -> str:
    if _STRING.fullmatch(text):
        return f"'{text}'"
    raise _refusal(name, f"has no strings such as {exact_literal(text)[:60]}")


def _readable(text: str) -> str:
    if len(text) > MAX_TEXT:
        reason = f"the text for PADRES has {len(text)} characters, more than {MAX_TEXT}"
        raise ContentError("", reason)
    return text


def _refusal(name: str, reason: str) -> ContentError:
    return ContentError(name, f"attribute {name!r}: PADRES {reason}")
