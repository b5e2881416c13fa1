"""Numbers of the command line: whole ones, 1e3 among them, and finite ones, within bounds."""

from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner

from gossamer.command.main import is_user_error
from gossamer.command.options import OptionError, number_option, whole_option


def given(option: Any, *arguments: str, default: float = 7) -> Any:
    """What a command gets of an option."""
    app = typer.Typer()
    found = []

    @app.command()
    def command(value: Annotated[Any, option] = default) -> None:
        found.append(value)

    done = CliRunner().invoke(app, list(arguments))
    if done.exception is not None:
        raise done.exception
    return found[0]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1000", 1000),
        ("1e3", 1000),
        ("2.5e3", 2500),
        ("-3", -3),
        ("1.0", 1),
        ("9" * 30, int("9" * 30)),
    ],
)
def test_whole_numbers_may_be_written_as_floats(text: str, number: int) -> None:
    found = given(whole_option("--count", help=""), f"--count={text}")
    assert (found, type(found)) == (number, int)


@pytest.mark.parametrize("text", ["1.5", "1e-3", "nan", "inf", "1e300", "", "many", "0x10"])
def test_nothing_else_is_a_whole_number(text: str) -> None:
    with pytest.raises(OptionError) as told:
        given(whole_option("--count", help="", low=1), f"--count={text}")
    assert str(told.value) == f"--count is {text!r}, expected a whole number of at least 1"
    assert is_user_error(told.value)


@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "", "soon"])
def test_numbers_are_finite(text: str) -> None:
    with pytest.raises(OptionError) as told:
        given(number_option("--within", help=""), f"--within={text}")
    assert str(told.value) == f"--within is {text!r}, expected a number"


def test_bounds_are_named() -> None:
    within = number_option("--within", help="", low=0.1, high=1e9)
    assert given(within, "--within=0.1") == 0.1
    with pytest.raises(OptionError, match=r"expected a number from 0\.1 to 1000000000$"):
        given(within, "--within=0")
    most = whole_option("--most", help="", high=10)
    with pytest.raises(OptionError, match=r"expected a whole number of at most 10$"):
        given(most, "--most=11")


def test_defaults_are_taken_as_they_are() -> None:
    assert given(whole_option("--count", help="")) == 7
    assert given(number_option("--within", help=""), default=0.5) == 0.5
