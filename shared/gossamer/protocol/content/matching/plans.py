"""In which order the parts of a composite subscription are looked for once one of them matched.

Next comes always a part that shares most variables with those before it: the values of these lead
to the publications that may serve it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import define, frozen

from gossamer.protocol.content.filters.composite import UNORDERED, Order, Part

Value = tuple[Any, Any]
"""An exact value and its kind."""
Bound = dict[str, Value]
"""The values of variables."""


@frozen
class Step:
    """A part to be looked for.

    Attributes:
        at: which of the parts.
        part: what it asks for.
        filter_id: of its filter, in the index.
        shared: variables that have a value by then.
        attributes: of the part, whose values these are.
        after: parts with a publication by then that came before the one for this part.
        before: such parts that came after it.
    """

    at: int
    part: Part
    filter_id: int
    shared: tuple[str, ...]
    attributes: tuple[str, ...]
    after: tuple[int, ...] = ()
    before: tuple[int, ...] = ()


@define(eq=False)
class Place:
    """One part of one alternative of a composite subscription, and how to complete it.

    Attributes:
        at: which of the parts.
        since: the first publication that counts.
        part: what it asks for.
        filter_id: of its filter, in the index.
        completes: whether it may be the last to come.
        here: attributes of this part that have the values shared with the first step.
        steps: to find all other parts.
    """

    composite: int
    alternative: int
    at: int
    since: int
    part: Part
    filter_id: int
    completes: bool
    here: tuple[str, ...]
    steps: tuple[Step, ...]

    @property
    def key(self) -> tuple[int, int, int]:
        """Its place among all."""
        return self.composite, self.alternative, self.at


def plan(
    parts: Sequence[Part], filter_ids: Sequence[int], at: int, order: Order = UNORDERED
) -> tuple[tuple[str, ...], tuple[Step, ...]]:
    """`Place.here` and `Place.steps` for one of the parts."""
    attributes = [{variable: name for name, variable in reversed(part.bindings)} for part in parts]
    bound = set(attributes[at])
    left = [other for other in range(len(parts)) if other != at]
    steps = []
    chosen = [at]
    while left:
        following = max(left, key=lambda other: len(bound & attributes[other].keys()))
        left.remove(following)
        shared = tuple(sorted(bound & attributes[following].keys()))
        there = tuple(attributes[following][variable] for variable in shared)
        after = tuple(one for one in chosen if (one, following) in order)
        before = tuple(one for one in chosen if (following, one) in order)
        filter_id = filter_ids[following]
        steps.append(Step(following, parts[following], filter_id, shared, there, after, before))
        chosen.append(following)
        bound |= attributes[following].keys()
    here = tuple(attributes[at][variable] for variable in steps[0].shared) if steps else ()
    return here, tuple(steps)


def agreed(part: Part, values: Mapping[str, Value], bound: Bound) -> Bound | None:
    """The values of variables, with those that a publication has at a part; None if a variable
    would have two."""
    found = dict(bound)
    for attribute, variable in part.bindings:
        value = values[attribute]
        if found.setdefault(variable, value) != value:
            return None
    return found
