"""Checks of a scenario's fields: first the type, then the range, each failure one sentence.

Validators and converters for attrs classes. A class may carry a ``section``, the dotted prefix by
which its fields are known in scenario files.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import attrs

from gossamer.protocol.kernel.errors import choice
from gossamer.sim.errors import ScenarioError

Validator = Callable[[Any, Any, Any], None]

# Up to here a float that is whole is one number alone.
_LARGEST_WHOLE_FLOAT: Final = 2**53


def check(holds: bool, field: str, value: object, expected: str) -> None:
    """Raise `ScenarioError` about ``field`` unless ``holds``."""
    if not holds:
        raise ScenarioError(None, field, value, expected)


def whole_field(low: int, high: int, *, default: Any, optional: bool = False) -> Any:
    """A field of integers from ``low`` to ``high``; 1e3 is one, bools and fractions are none."""
    expected = f"a whole number from {low} to {high}"
    fits = _validator(lambda value: type(value) is int and low <= value <= high, expected, optional)
    return attrs.field(default=default, converter=to_whole, validator=fits)


def number(expected: str, holds: Callable[[float], bool], *, optional: bool = False) -> Validator:
    """A validator of finite floats for which ``holds``; to be used behind `to_float`."""
    return _validator(
        lambda value: type(value) is float and math.isfinite(value) and holds(value),
        expected,
        optional,
    )


def one_of(*choices: str) -> Validator:
    """A validator of texts that are among ``choices``."""

    def validate(instance: Any, attribute: Any, value: Any) -> None:
        section = getattr(instance, "section", "")
        holds = type(value) is str and value in choices
        check(holds, section + attribute.name, value, choice(value, choices))

    return validate


def of_type(kind: type, expected: str, *, optional: bool = False) -> Validator:
    """A validator of instances of ``kind``, described as ``expected``."""
    return _validator(lambda value: isinstance(value, kind), expected, optional)


def to_whole(value: Any) -> Any:
    """A float that is a whole number, such as 1e3, as an integer; anything else as it is."""
    if type(value) is float and value.is_integer() and abs(value) <= _LARGEST_WHOLE_FLOAT:
        return int(value)
    return value


def to_whole_values(values: Mapping[str, Any], kinds: Mapping[str, type]) -> dict[str, Any]:
    """Settings by name, those of them `to_whole` that are of the kind int."""
    return {
        name: to_whole(value) if kinds.get(name) is int else value for name, value in values.items()
    }


def to_float(value: float) -> float:
    """The whole number ``value`` as a float; anything else, and what no float holds, as it is."""
    if type(value) is int and abs(value) < 2**1023:
        return float(value)
    return value


def to_path(value: Path | str) -> Path:
    """The text ``value`` as a path; anything else as it is."""
    return Path(value) if isinstance(value, str) else value


def matches_type(value: object, kind: type) -> bool:
    """Whether ``value`` is of ``kind`` exactly, but for whole numbers, which are floats too."""
    return type(value) is kind or (kind is float and type(value) is int)


def _validator(holds: Callable[[Any], bool], expected: str, optional: bool = False) -> Validator:
    def validate(instance: Any, attribute: Any, value: Any) -> None:
        if optional and value is None:
            return
        section = getattr(instance, "section", "")
        check(holds(value), section + attribute.name, value, expected)

    return validate
