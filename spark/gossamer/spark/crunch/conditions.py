"""Conditions as columns: what differs between runs by its key, of the type that its values have.

The text of a condition is for people. For queries each key has a column of its own besides, called
``condition.<key>``: whole numbers, numbers, true or false, or texts where values are of several
kinds. A run that says nothing of a key has none there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from gossamer.sim.results.intervals import Condition

PREFIX: Final = "condition."


class ConditionColumns:
    """The columns of some conditions.

    Args:
        conditions: all that are to be told apart.
    """

    def __init__(self, conditions: Iterable[Condition]) -> None:
        kinds: dict[str, set[type]] = {}
        for condition in dict.fromkeys(conditions):
            for key, value in condition:
                if value is not None:
                    kinds.setdefault(key, set()).add(type(value))
        self._types = {key: _common(found) for key, found in kinds.items()}

    def of(self, condition: Condition) -> dict[str, Any]:
        """The values of one condition by column; None for keys that it lacks."""
        given = dict(condition)
        return {
            PREFIX + key: None if given.get(key) is None else kind(given[key])
            for key, kind in self._types.items()
        }


def _common(kinds: set[type]) -> Callable[[Any], Any]:
    """The type of a column whose values are of these types."""
    for some, common in (({bool}, bool), ({int}, int), ({int, float}, float)):
        if kinds <= some:
            return common
    return str
