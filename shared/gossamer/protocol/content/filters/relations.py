"""How two filters relate, and what advertisements allow.

All relations are sound. They are complete but for filters with negated or `contains` predicates on
strings, of which `covers` and `disjoint` may miss cases (docs/content.md says which).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from gossamer.protocol.content.filters.domains import exact_value
from gossamer.protocol.content.filters.filter import Filter


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


def covered_by(one: Filter, other: Filter) -> bool:
    """Whether whatever matches `one` matches `other` too; never true wrongly."""
    return covers(other, one)


def equal(one: Filter, other: Filter) -> bool:
    """Whether the same publications match both; never true wrongly."""
    return one == other or (covers(one, other) and covers(other, one))


def disjoint(one: Filter, other: Filter) -> bool:
    """Whether no publication matches both; never true wrongly."""
    return not intersects(one, other)


def relation(one: Filter, other: Filter) -> Relation:
    """The strongest relation between two filters."""
    above, below = covers(one, other), covers(other, one)
    if above and below:
        return Relation.EQUAL
    if above:
        return Relation.COVERS
    if below:
        return Relation.COVERED_BY
    return Relation.INTERSECTS if intersects(one, other) else Relation.DISJOINT


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
    above, below = advertises_more(one, other), advertises_more(other, one)
    if above and below:
        return Relation.EQUAL
    if above:
        return Relation.COVERS
    if below:
        return Relation.COVERED_BY
    return Relation.INTERSECTS if both_allow(one, other) else Relation.DISJOINT
