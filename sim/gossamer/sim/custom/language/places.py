"""Where in a user's file something is declared, and the errors that say so."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from gossamer.sim.errors import ScenarioError

Place = tuple[str, int]

# Files in which declarations are read, and code that attrs writes, are not where they stand.
_OURS: Final = (str(Path(__file__).parent), "<attrs")


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


def place_of_caller() -> Place:
    """File and line of the user's statement that is being executed."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OURS):
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


def check_arguments(function: Callable[..., Any], what: str, expected: Sequence[str]) -> None:
    """Refuse a function that does not take these arguments, or takes them in another order."""
    signature = inspect.signature(function)
    given = list(signature.parameters)
    try:
        signature.bind(*expected)
        fits = not in_another_order(given, expected)
    except TypeError:
        fits = False
    if not fits:
        raise declaration_error(
            place_of(function),
            what,
            None,
            f"({', '.join(expected)})",
            found=f"a function of ({', '.join(given)})",
        )


def in_another_order(given: Sequence[str], expected: Sequence[str]) -> bool:
    """Whether a name stands where another one is expected, and is itself expected elsewhere.

    Names that are not expected at all may stand anywhere: what is called so is up to the user.
    """
    pairs = zip(given, expected, strict=False)
    return any(name != place and name in expected for name, place in pairs)


def snake_case(name: str) -> str:
    """The name of a class as handlers bear it: PushPull becomes push_pull."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
