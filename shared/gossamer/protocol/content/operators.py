"""The operators of comparisons, and comparisons that are not yet checked against anything."""

from __future__ import annotations

from enum import Enum
from typing import Final

from attrs import frozen

from gossamer.protocol.content.values import canonical, literal


class Operator(Enum):
    """How a comparison relates an attribute to a constant; the value is its text."""

    EQUAL = "=="
    NOT_EQUAL = "!="
    LESS = "<"
    AT_MOST = "<="
    GREATER = ">"
    AT_LEAST = ">="
    STARTS_WITH = "startswith"
    ENDS_WITH = "endswith"
    CONTAINS = "contains"
    NOT_STARTS_WITH = "not startswith"
    NOT_ENDS_WITH = "not endswith"
    NOT_CONTAINS = "not contains"
    PRESENT = "present"

    # Operators are looked up for every comparison; the inherited hash would take a call each.
    __hash__ = object.__hash__


BOX_OPERATORS: Final = (
    Operator.EQUAL,
    Operator.LESS,
    Operator.AT_MOST,
    Operator.GREATER,
    Operator.AT_LEAST,
    Operator.STARTS_WITH,
)
"""What subscriptions over a schema know: comparisons that leave one range of values."""


@frozen
class Comparison:
    """One comparison of an attribute with a constant, not yet checked against a schema."""

    attribute: str
    operator: Operator
    constant: object

    def to_text(self) -> str:
        """The comparison in the subscription language."""
        exact = canonical(self.constant)
        text = repr(self.constant) if exact is None else literal(exact)
        return f"{self.attribute} {self.operator.value} {text}"
