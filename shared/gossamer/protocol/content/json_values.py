"""Values of events in JSON, exactly: what is written reads back as an equal value.

JSON has no infinities and no fractions, which are written as ``{"number": "1/3"}``. Dates are
written as text; only a schema tells them from other text.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import datetime
from fractions import Fraction
from typing import Any, Final

from gossamer.protocol.content.limits import MAX_DIGITS
from gossamer.protocol.content.values import literal, quoted, read_number

_NUMBER: Final = "number"
_INFINITE: Final = {"inf": math.inf, "-inf": -math.inf}


def read_json(text: str) -> Any:
    """What a JSON text says, numbers as they are written.

    Raises:
        ValueError: it is no JSON, or gives a name two values, of which one would be lost.
        RecursionError: it is nested too deeply.
    """
    return json.loads(
        text, object_pairs_hook=_object, parse_constant=_no_constant, parse_float=_exact_float
    )


def values_of_json(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values of an event of which `read_json` made these."""
    return {name: _exact(value) for name, value in values.items()}


def values_to_json(values: Mapping[str, Any]) -> dict[str, object]:
    """Canonical values of an event as `json.dumps` writes them."""
    return {name: _plain(value) for name, value in values.items()}


def _exact(value: Any) -> Any:
    if isinstance(value, dict) and value.keys() == {_NUMBER} and isinstance(value[_NUMBER], str):
        text = value[_NUMBER]
        number = _INFINITE.get(text, read_number(text))
        return value if number is None else number
    return value


def _plain(value: Any) -> object:
    if isinstance(value, Fraction) or (isinstance(value, float) and math.isinf(value)):
        return {_NUMBER: literal(value)}
    return literal(value) if isinstance(value, datetime) else value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"{quoted(name[:60])} has two values, expected one")
        found[name] = value
    return found


def _no_constant(text: str) -> object:
    raise ValueError(f"{text} is no number of JSON")


def _exact_float(text: str) -> object:
    number = read_number(text)
    if number is None:
        raise ValueError(f"a number of more than {MAX_DIGITS} digits")
    return number
