"""Filters: what subscriptions ask for and what advertisements announce."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from attrs import field, frozen

from gossamer.protocol.content.attributes import check_constant
from gossamer.protocol.content.errors import ContentError, ContradictionError, WrongValueError
from gossamer.protocol.content.filters.constraint import Constraint
from gossamer.protocol.content.filters.domains import Exact, exact_value
from gossamer.protocol.content.filters.names import shown_text
from gossamer.protocol.content.filters.predicates import (
    comparison_text,
    comparisons_of,
    constraint_of,
)
from gossamer.protocol.content.operators import Comparison, Operator
from gossamer.protocol.content.schema import Schema
from gossamer.protocol.content.values import described

_EXPECTED_VALUE: Final = "a number, string, date or boolean"

Publication = dict[str, Exact]
"""Exact values by attribute."""


@frozen(cache_hash=True)
class Filter:
    """A conjunction of predicates, one constraint for every attribute they name, by name.

    Filters that ask for the same compare and hash equal, whatever the order or the number types in
    which they were written; only negated and `contains` predicates can say one thing in two ways.
    A filter prints as its text in gossamer's language.
    """

    constraints: tuple[tuple[str, Constraint], ...]
    _by_name: dict[str, Constraint] = field(init=False, repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "_by_name", dict(self.constraints))

    @classmethod
    def of(cls, comparisons: Iterable[Comparison], schema: Schema | None = None) -> Filter:
        """The conjunction of comparisons.

        Raises `WrongValueError` for constants of the wrong type, `ContradictionError` if nothing
        can match, `ContentError` without any comparison, and with a schema `UnknownAttributeError`.
        """
        held: dict[str, Constraint] = {}
        for comparison in comparisons:
            name = comparison.attribute
            held[name] = narrow(held.get(name), comparison, schema)
        return cls.from_constraints(held)

    @classmethod
    def from_constraints(cls, constraints: Mapping[str, Constraint]) -> Filter:
        """The conjunction of one constraint for each name; `ContentError` if there is none."""
        if not constraints:
            raise ContentError("", "a filter constrains at least one attribute")
        return cls(tuple(sorted(constraints.items())))

    def __str__(self) -> str:
        return shown_text(self.comparisons())

    def __repr__(self) -> str:
        return f"<Filter {self}>"

    def __iter__(self) -> Iterator[tuple[str, Constraint]]:
        return iter(self.constraints)

    def __len__(self) -> int:
        return len(self.constraints)

    def __contains__(self, attribute: object) -> bool:
        return attribute in self._by_name

    def get(self, attribute: str) -> Constraint | None:
        """What is asked of an attribute, or None if nothing is."""
        return self._by_name.get(attribute)

    def matches(self, publication: Mapping[str, object]) -> bool:
        """Whether every predicate holds for a publication; a missing attribute fails.

        Values that are none, such as NaN, satisfy nothing.
        """
        for name, constraint in self.constraints:
            exact = exact_value(publication[name]) if name in publication else None
            if exact is None or not constraint.contains(exact):
                return False
        return True

    def comparisons(self) -> list[Comparison]:
        """Comparisons that together say the same, in a fixed order."""
        return [found for name, held in self.constraints for found in comparisons_of(name, held)]


def narrow(held: Constraint | None, comparison: Comparison, schema: Schema | None) -> Constraint:
    """The constraint that satisfies both `held` (None: anything) and the comparison.

    Raises as `Filter.of` does.
    """
    if schema is not None:
        comparison = _fitting(comparison, schema)
    added = constraint_of(comparison)
    if held is None:
        return added
    name = comparison.attribute
    if held.kind is not None and added.kind is not None and held.kind is not added.kind:
        expected = f"a {held.kind.value} in its other predicates"
        raise WrongValueError(name, described(comparison.constant), expected)
    both = held.narrowed(added)
    if both is None:
        texts = [comparison_text(one) for one in (*comparisons_of(name, held), comparison)]
        number = "both" if len(texts) == 2 else "all"
        reason = f"{' and '.join(texts)} contradict each other: no value satisfies {number}"
        raise ContradictionError(name, reason)
    return both


def _fitting(comparison: Comparison, schema: Schema) -> Comparison:
    """The comparison with its constant as the schema's attribute reads it."""
    attribute = schema[comparison.attribute]
    if comparison.operator is Operator.PRESENT:
        return comparison
    constant = check_constant(attribute, comparison.constant)
    return Comparison(comparison.attribute, comparison.operator, constant)


def exact_publication(values: Mapping[str, object], schema: Schema | None = None) -> Publication:
    """A publication with its values in exact form.

    Raises `WrongValueError` for what is no value, and with a schema also for values that do not fit
    their attribute, and `UnknownAttributeError`.
    """
    if schema is not None:
        return {name: schema[name].check(value) for name, value in values.items()}
    exact: Publication = {}
    for name, value in values.items():
        found = exact_value(value)
        if found is None:
            raise WrongValueError(name, described(value), _EXPECTED_VALUE)
        exact[name] = found
    return exact
