"""From comparisons to constraints, and back to the comparisons that say the same."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from attrs import evolve

from gossamer.protocol.content.filters.constraint import PRESENT, Constraint, Patterns, between
from gossamer.protocol.content.filters.domains import (
    DOMAINS,
    Cut,
    Exact,
    Interval,
    Strings,
    exact_kind,
    exact_literal,
    exact_value,
)
from gossamer.protocol.content.grammar import Comparison, Operator
from gossamer.protocol.content.values import Kind, described, is_well_formed
from gossamer.protocol.kernel.errors import ContentError, ContradictionError, WrongValueError

_ON_PATTERNS: Final[dict[Operator, Callable[[str], Patterns]]] = {
    Operator.ENDS_WITH: lambda text: Patterns(suffix=text),
    Operator.CONTAINS: lambda text: Patterns(parts={text}),
    Operator.NOT_ENDS_WITH: lambda text: Patterns(no_suffixes={text}),
    Operator.NOT_CONTAINS: lambda text: Patterns(no_parts={text}),
}
STRING_OPERATORS: Final = frozenset({Operator.STARTS_WITH, Operator.NOT_STARTS_WITH, *_ON_PATTERNS})
_EXPECTED: Final = "a number, string, date or boolean"
ORDERS: Final = frozenset({Operator.LESS, Operator.AT_MOST, Operator.GREATER, Operator.AT_LEAST})
_ORDERLY: Final = ORDERS | {Operator.EQUAL, Operator.STARTS_WITH}
_NEGATED: Final = {
    Operator.EQUAL: Operator.NOT_EQUAL,
    Operator.LESS: Operator.AT_LEAST,
    Operator.AT_MOST: Operator.GREATER,
    Operator.STARTS_WITH: Operator.NOT_STARTS_WITH,
    Operator.ENDS_WITH: Operator.NOT_ENDS_WITH,
    Operator.CONTAINS: Operator.NOT_CONTAINS,
}
NEGATED: Final = _NEGATED | {other: one for one, other in _NEGATED.items()}
"""What holds of a value of the right kind where the operator does not; `PRESENT` has none."""


def constraint_of(comparison: Comparison) -> Constraint:
    """The values that satisfy a comparison.

    Raises `WrongValueError` if the constant is no value or not of a type that the operator takes,
    and `ContradictionError` if no value satisfies the comparison.
    """
    if comparison.operator is Operator.PRESENT:
        return PRESENT
    constant = exact_value(comparison.constant)
    _check_type(comparison, constant)
    alone = _constraint(comparison.operator, exact_kind(constant), constant)
    if alone is None:
        reason = f"{comparison_text(comparison)} can never hold"
        raise ContradictionError(comparison.attribute, reason)
    return alone


def _check_type(comparison: Comparison, constant: Exact | None) -> None:
    if constant is None:
        expected = _EXPECTED
    elif comparison.operator in STRING_OPERATORS and not isinstance(constant, str):
        expected = f"a string for {comparison.operator.value}"
    elif comparison.operator in ORDERS and isinstance(constant, bool):
        expected = f"a value that has an order for {comparison.operator.value}"
    else:
        return
    raise WrongValueError(comparison.attribute, described(comparison.constant), expected)


def _constraint(operator: Operator, kind: Kind, constant: Exact) -> Constraint | None:
    domain = DOMAINS[kind]
    if operator in _ORDERLY:
        return _nonempty(kind, *_interval(operator, kind, constant))
    if operator in _ON_PATTERNS:
        return between(kind, domain.bottom, domain.top, patterns=_ON_PATTERNS[operator](constant))
    gap = _interval(NEGATED[operator], kind, constant)
    return between(kind, domain.bottom, domain.top, [gap])


def _nonempty(kind: Kind, low: Cut, high: Cut) -> Constraint | None:
    return Constraint(kind, low, high) if low < high else None


def _interval(operator: Operator, kind: Kind, constant: Exact) -> Interval:
    domain = DOMAINS[kind]
    if operator is Operator.STARTS_WITH:
        return Strings.starting_with(constant)
    if operator in (Operator.AT_LEAST, Operator.GREATER):
        after = operator is Operator.GREATER
        return (domain.after(constant) if after else domain.before(constant)), domain.top
    if operator in (Operator.AT_MOST, Operator.LESS):
        before = operator is Operator.LESS
        return domain.bottom, (domain.before(constant) if before else domain.after(constant))
    return domain.before(constant), domain.after(constant)


def comparisons_of(attribute: str, constraint: Constraint) -> list[Comparison]:
    """Comparisons that together say what a constraint says, in a fixed order."""
    pairs = _pairs(constraint)
    return [Comparison(attribute, operator, value) for operator, value in pairs]


def comparison_text(comparison: Comparison) -> str:
    """A comparison in the filter language; raises `WrongValueError` if its constant is no value."""
    if comparison.operator is Operator.PRESENT:
        return f"present({comparison.attribute})"
    constant = exact_value(comparison.constant)
    if constant is None:
        raise WrongValueError(comparison.attribute, described(comparison.constant), _EXPECTED)
    return f"{comparison.attribute} {comparison.operator.value} {exact_literal(constant)}"


def _pairs(constraint: Constraint) -> Iterator[tuple[Operator, Exact]]:
    if constraint.kind is None:
        yield Operator.PRESENT, None
        return
    point = constraint.point
    if point is not None:
        yield Operator.EQUAL, point
        return
    patterns = list(_pattern_pairs(constraint.demands))
    low = constraint.demands.written_low(constraint.low)
    ends = list(_end_pairs(constraint.kind, low, constraint.high))
    if not ends and not patterns and not constraint.excluded:
        ends = [_every_value(constraint.kind)]
    yield from ends
    for low, high in constraint.excluded:
        yield _gap_pair(constraint.kind, low, high)
    yield from patterns


def _end_pairs(kind: Kind, low: Cut, high: Cut) -> Iterator[tuple[Operator, Exact]]:
    domain = DOMAINS[kind]
    if kind is Kind.STRING and (prefix := _prefix_of(low, high)) is not None:
        yield Operator.STARTS_WITH, prefix
        return
    if low > domain.bottom and domain.begins(low) != (Operator.AT_LEAST, ""):
        yield domain.begins(low)
    if high < domain.top:
        yield domain.ends(high)


def _prefix_of(low: Cut, high: Cut) -> str | None:
    """The prefix whose interval lies between two cuts, or None if there is none."""
    prefix = str(Strings.above(low))
    return prefix if prefix and Strings.starting_with(prefix)[1] == high else None


def _gap_pair(kind: Kind, low: Cut, high: Cut) -> tuple[Operator, Exact]:
    point = DOMAINS[kind].point(low, high)
    if point is None:
        return Operator.NOT_STARTS_WITH, Strings.above(low)
    return Operator.NOT_EQUAL, point


def _pattern_pairs(patterns: Patterns) -> Iterator[tuple[Operator, Exact]]:
    if patterns.suffix:
        yield Operator.ENDS_WITH, patterns.suffix
    for operator, texts in (
        (Operator.CONTAINS, patterns.parts),
        (Operator.NOT_ENDS_WITH, patterns.no_suffixes),
        (Operator.NOT_CONTAINS, patterns.no_parts),
    ):
        for text in sorted(texts):
            yield operator, text


def _every_value(kind: Kind) -> tuple[Operator, Exact]:
    domain = DOMAINS[kind]
    return Operator.AT_LEAST, domain.bottom[0] if kind is not Kind.STRING else ""


RESERVED: Final = frozenset(
    {"and", "or", "not", "in", "present", "true", "false", "inf"}
    | {"startswith", "endswith", "contains"}
)
"""Words that are attribute names between backquotes only."""

_PLAIN_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def name_text(name: str) -> str:
    """An attribute name as text holds it; `ContentError` if none can, as it has a backquote."""
    if not isinstance(name, str) or not is_well_formed(name):
        raise ContentError("", f"expected the name of an attribute, not {described(name)}")
    if _PLAIN_NAME.fullmatch(name) and name not in RESERVED:
        return name
    if "`" in name or not name:
        raise ContentError(name, f"the name {name[:60]!r} cannot be written between backquotes")
    return f"`{name}`"


def conjunction_text(comparisons: Iterable[Comparison]) -> str:
    """The text of comparisons joined by `and`; raises as `name_text` does."""
    named = (evolve(one, attribute=name_text(one.attribute)) for one in comparisons)
    return " and ".join(map(comparison_text, named))


def shown_text(comparisons: Iterable[Comparison]) -> str:
    """The same for people to look at, whatever the names are."""
    shown = (evolve(one, attribute=_shown_name(one.attribute)) for one in comparisons)
    return " and ".join(map(comparison_text, shown))


def _shown_name(name: str) -> str:
    try:
        return name_text(name)
    except ContentError:
        return repr(name)
