"""Where in a user's file something is declared, and the errors that say so."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any

from gossamer.sim.errors import ScenarioError

Place = tuple[str, int]


def declaration_error(
    place: Place, what: str, value: object, expected: str, found: str | None = None
) -> ScenarioError:
    """The error about something that a user's file declares, with file and line."""
    file, line = place
    return ScenarioError(f"{file}, line {line}", what, value, expected, found)


def place_of(function: Callable[..., Any]) -> Place:
    """File and line of a function."""
    code = function.__code__
    return code.co_filename, code.co_firstlineno


def check_arguments(function: Callable[..., Any], what: str, expected: Sequence[str]) -> None:
    """Refuse a function that cannot be called with these arguments, in their order."""
    signature = inspect.signature(function)
    try:
        signature.bind(*expected)
    except TypeError:
        given = ", ".join(signature.parameters)
        raise declaration_error(
            place_of(function),
            what,
            None,
            f"({', '.join(expected)})",
            found=f"a function of ({given})",
        ) from None


def snake_case(name: str) -> str:
    """The name of a class as handlers bear it: PushPull becomes push_pull."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
