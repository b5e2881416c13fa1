"""The text form of subscriptions.

    symbol == "IBM" and price >= 80 and price < 120.5 and name startswith "A"

A text is a conjunction of constraints joined by `and`, each one of

    name == value    name < value    (also <= > >=, and mirrored: value < name)
    80 <= price < 120                a range, in either direction
    price in [80, 120.5)             a range; [ ] include their end, ( ) do not
    name startswith "A"

Values are numbers (`80`, `-1.5e3`, and `1/3` for an exact fraction), strings between double quotes
with the escapes \\" \\\\ \\n \\r \\t \\uXXXX \\UXXXXXXXX, and dates (`2020-01-31`,
`2020-01-31T12:00:00Z`, quoted or not; no zone means UTC). A number with a decimal point or an
exponent is the nearest 64-bit float, as in the programs that publish events; a whole number or a
fraction is exact.
"""

from __future__ import annotations

from typing import Final

from gossamer.protocol.content.errors import (
    ContradictionError,
    UnknownAttributeError,
    WrongValueError,
)
from gossamer.protocol.content.grammar import ConjunctionParser, Placed
from gossamer.protocol.content.operators import Comparison
from gossamer.protocol.content.schema import Schema
from gossamer.protocol.content.subscription import Constraint, Subscription, narrow
from gossamer.protocol.content.tokens import tokenize
from gossamer.protocol.kernel.errors import ExpressionError

MAX_COMPARISONS: Final = 64
"""Most comparisons in a text: both ends of a range over each of 16 attributes, twice."""


def parse_subscription(schema: Schema, text: str) -> Subscription:
    """The subscription that a text describes over a schema.

    Raises `ExpressionError`, whose column points at the name, operator, value or constraint that
    does not parse, does not fit the schema, or contradicts an earlier constraint.
    """
    comparisons = ConjunctionParser(text, tokenize(text)).conjunction()
    if len(comparisons) > MAX_COMPARISONS:
        column = comparisons[MAX_COMPARISONS].column
        raise ExpressionError(text, column, f"more than {MAX_COMPARISONS} comparisons")
    held: dict[str, Constraint] = {}
    for placed in comparisons:
        name = placed.name.text
        held[name] = _narrowed(schema, text, held.get(name), placed)
    return Subscription.from_constraints(held)


def _narrowed(schema: Schema, text: str, held: Constraint | None, placed: Placed) -> Constraint:
    name = placed.name.text
    comparison = Comparison(name, placed.operator, placed.constant.value)
    try:
        return narrow(schema[name], held, comparison)
    except UnknownAttributeError as error:
        raise ExpressionError(text, placed.name.column, str(error)) from error
    except WrongValueError as error:
        raise ExpressionError(text, placed.constant.column, str(error)) from error
    except ContradictionError as error:
        raise ExpressionError(text, placed.column, str(error)) from error
