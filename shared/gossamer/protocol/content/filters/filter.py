"""Filters: what is asked for and announced, and how two of them relate."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from typing import Final

from attrs import field, frozen

from gossamer.protocol.content.attributes import check_constant
from gossamer.protocol.content.filters.constraint import Constraint
from gossamer.protocol.content.filters.domains import Exact, exact_value
from gossamer.protocol.content.filters.predicates import (
    comparison_text,
    comparisons_of,
    constraint_of,
    shown_text,
)
from gossamer.protocol.content.grammar import Comparison, Operator
from gossamer.protocol.content.schema import Schema
from gossamer.protocol.content.values import described
from gossamer.protocol.kernel.errors import ContentError, ContradictionError, WrongValueError

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


# How two filters relate, and what advertisements allow.
#
# All relations are sound. They are complete but for filters with negated or `contains` predicates
# on strings, of which `covers` and `disjoint` may miss cases (docs/content.md says which).

_Related = Callable[[Filter, Filter], bool]


class Relation(Enum):
    """How the publications that one filter matches lie to those that another matches."""

    EQUAL = "equal"
    COVERS = "covers"
    COVERED_BY = "covered by"
    INTERSECTS = "intersects"
    DISJOINT = "disjoint"


def covers(one: Filter, other: Filter) -> bool:
    """Whether whatever matches `other` matches `one` too; never true wrongly."""
    for name, constraint in one.constraints:
        held = other.get(name)
        if held is None or not constraint.covers(held):
            return False
    return True


def intersects(one: Filter, other: Filter) -> bool:
    """Whether some publication matches both; never false wrongly."""
    for name, constraint in one.constraints:
        held = other.get(name)
        if held is not None and not constraint.intersects(held):
            return False
    return True


def disjoint(one: Filter, other: Filter) -> bool:
    """Whether no publication matches both; never true wrongly."""
    return not intersects(one, other)


def relation(one: Filter, other: Filter) -> Relation:
    """The strongest relation between two filters."""
    return _strongest(covers, intersects, one, other)


def conforms(publication: Mapping[str, object], advertisement: Filter) -> bool:
    """Whether an advertisement allows a publication.

    It may carry any of the advertised attributes, with values as advertised, and no others.
    """
    for name, value in publication.items():
        held, exact = advertisement.get(name), exact_value(value)
        if held is None or exact is None or not held.contains(exact):
            return False
    return True


def meets(subscription: Filter, advertisement: Filter) -> bool:
    """Whether some publication that an advertisement allows matches a subscription.

    That takes every attribute of the subscription to be advertised. Never false wrongly.
    """
    for name, constraint in subscription.constraints:
        held = advertisement.get(name)
        if held is None or not held.intersects(constraint):
            return False
    return True


def advertises_more(one: Filter, other: Filter) -> bool:
    """Whether, of two advertisements, `one` allows whatever `other` does; never true wrongly."""
    for name, constraint in other.constraints:
        held = one.get(name)
        if held is None or not held.covers(constraint):
            return False
    return True


def both_allow(one: Filter, other: Filter) -> bool:
    """Whether two advertisements allow some publication, of one attribute or more, in common.

    Never false wrongly.
    """
    return any(
        held is not None and held.intersects(constraint)
        for name, constraint in other.constraints
        for held in (one.get(name),)
    )


def advertisement_relation(one: Filter, other: Filter) -> Relation:
    """The strongest relation between what two advertisements allow.

    As advertisements filters relate in another way than as subscriptions: more attributes allow
    more publications, where they match fewer.
    """
    return _strongest(advertises_more, both_allow, one, other)


def _strongest(holds_more: _Related, meet: _Related, one: Filter, other: Filter) -> Relation:
    above, below = holds_more(one, other), holds_more(other, one)
    if above or below:
        one_way = Relation.COVERS if above else Relation.COVERED_BY
        return Relation.EQUAL if above and below else one_way
    return Relation.INTERSECTS if meet(one, other) else Relation.DISJOINT
