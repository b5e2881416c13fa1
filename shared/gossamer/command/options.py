"""Options of commands: settings of Typer, and numbers that are checked alike everywhere."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import typer

# Of every Typer app.
SETTINGS: Final[dict[str, Any]] = {
    "add_completion": False,
    "pretty_exceptions_enable": False,
    "context_settings": {"help_option_names": ["-h", "--help"]},
}
# Beyond these, floats are no exact whole numbers.
_LARGEST_WHOLE: Final = 2**53


class OptionError(Exception):
    """An option of a command has an impossible value; nothing was begun.

    Attributes:
        option: such as ``--nodes``.
        value: as it was given.
        expected: what would have been accepted, in words.
    """

    def __init__(self, option: str, value: str, expected: str) -> None:
        self.option = option
        self.value = value
        self.expected = expected
        super().__init__(f"{option} is {value!r:.80}, expected {expected}")


def whole_option(
    option: str,
    *,
    help: str,
    low: int | None = None,
    high: int | None = None,
    metavar: str = "N",
) -> Any:
    """A Typer option that takes a whole number, 1e3 among them.

    Args:
        option: its name, such as ``--nodes``.
        help: what it means.
        low, high: the least and the greatest value.
        metavar: what stands for the value in the help.
    """
    expected = f"a whole number{_bounds(low, high)}"
    return typer.Option(
        option, help=help, metavar=metavar, parser=_parser(option, _whole, low, high, expected)
    )


def number_option(
    option: str,
    *,
    help: str,
    low: float | None = None,
    high: float | None = None,
    metavar: str = "NUMBER",
) -> Any:
    """A Typer option that takes a finite number; as `whole_option`."""
    expected = f"a number{_bounds(low, high)}"
    return typer.Option(
        option, help=help, metavar=metavar, parser=_parser(option, _finite, low, high, expected)
    )


def _parser(
    option: str,
    read: Callable[[str], Any],
    low: float | None,
    high: float | None,
    expected: str,
) -> Callable[[Any], Any]:
    def parse(given: Any) -> Any:
        text = str(given)  # a default comes as the number that it is
        try:
            number = read(text)
        except (ValueError, OverflowError):
            raise OptionError(option, text, expected) from None
        if (low is not None and number < low) or (high is not None and number > high):
            raise OptionError(option, text, expected)
        return number

    return parse


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        number = float(text)
        if not number.is_integer() or abs(number) > _LARGEST_WHOLE:
            raise ValueError(text) from None
        return int(number)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def _bounds(low: float | None, high: float | None) -> str:
    if low is None:
        return "" if high is None else f" of at most {high:.12g}"
    return f" of at least {low:.12g}" if high is None else f" from {low:.12g} to {high:.12g}"
