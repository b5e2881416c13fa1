"""Scenario files of all kinds: ``kind`` at the top, such as "brokers", names the study.

Whatever its kind, a scenario is read strictly, values of the command line replace those of the
file, and the text that is kept with the results gives the same scenario wherever it lies.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import attrs

from gossamer.protocol.kernel.errors import choice
from gossamer.sim.errors import ScenarioError
from gossamer.sim.study.contract import AnyScenario, S, Study
from gossamer.sim.study.registry import kind_of_document, study_of_kind
from gossamer.sim.study.toml_files import Document, parse_document, read_text

_NO_OVERRIDES: Final[Mapping[str, object]] = MappingProxyType({})


def read_scenario(
    path: str | Path, overrides: Mapping[str, object] = _NO_OVERRIDES
) -> tuple[AnyScenario, str]:
    """Read a scenario file of any kind.

    Args:
        path: the file. Relative paths in it are relative to its folder.
        overrides: values that replace those of the file, by dotted key, such as ``seed``,
            ``events.per_round`` or ``system.kindred.ring_links``. Relative paths among them are
            relative to the working folder.

    Returns:
        The scenario, and a text that gives the same scenario wherever it is saved: that of the
        file, or one written anew where overrides or relative paths make the two differ.

    Raises:
        ScenarioError: the file is missing, unreadable, not TOML, or not a possible scenario.
    """
    text, document = _parsed(Path(path))
    try:
        study = study_of_kind(overrides.get("kind", kind_of_document({**document, **overrides})))
    except ScenarioError as error:
        raise _placed(error, path, overrides) from None
    return _scenario(study, Path(path), text, document, overrides)


def default_scenario(overrides: Mapping[str, object] = _NO_OVERRIDES) -> tuple[AnyScenario, str]:
    """The scenario without a file, in which all but ``overrides`` has its default; as above."""
    study = study_of_kind(overrides.get("kind", kind_of_document(overrides)))
    scenario = study.read({}, overrides)
    return scenario, "# As run, from defaults.\n\n" + study.write(scenario)


def read_scenario_of(
    study: Study[S, Any], path: str | Path, overrides: Mapping[str, object] = _NO_OVERRIDES
) -> tuple[S, str]:
    """Read a scenario file of one study, as `read_scenario`."""
    text, document = _parsed(Path(path))
    return _scenario(study, Path(path), text, document, overrides)


def _parsed(path: Path) -> tuple[str, Document]:
    text = read_text(path)
    document = parse_document(text, str(path))
    if {"scenario", "seeds"} <= document.keys():
        expected = "a scenario itself; 'gossamer sim sweep' takes a sweep of scenarios"
        raise ScenarioError(str(path), "scenario", document["scenario"], expected)
    return text, document


def _scenario(
    study: Study[S, Any],
    path: Path,
    text: str,
    document: Document,
    overrides: Mapping[str, object],
) -> tuple[S, str]:
    try:
        relative = study.resolve_paths(document, path.absolute().parent)
        scenario = study.read(document, overrides)
    except ScenarioError as error:
        raise _placed(error, path, overrides) from None
    if overrides or relative:
        text = f"# As run, from {path.name!r}.\n\n" + study.write(scenario)
    return scenario, text


@contextmanager
def placed_errors(path: Path, overrides: Mapping[str, object]) -> Iterator[None]:
    """Let errors within about the scenario of a file name it, where they name no file.

    Those about options of the command line stay as they are.
    """
    try:
        yield
    except ScenarioError as error:
        if error.field.startswith("-"):
            raise
        raise _placed(error, path, overrides) from error.__cause__


def _placed(
    error: ScenarioError, path: str | Path, overrides: Mapping[str, object]
) -> ScenarioError:
    """An error with the file at fault: what was overridden is not in the scenario's."""
    if error.file is not None:
        return error
    return attrs.evolve(error, file=None if error.field in overrides else str(path))


# Checks of a scenario's fields: first the type, then the range, each failure one sentence.
#
# Validators and converters for attrs classes. A class may carry a ``section``, the dotted prefix by
# which its fields are known in scenario files.


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


TYPE_NAMES: Mapping[type, str] = MappingProxyType(
    {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}
)


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
