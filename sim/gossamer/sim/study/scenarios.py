"""Scenario files of all kinds: ``kind`` at the top, such as "brokers", names the study.

Whatever its kind, a scenario is read strictly, values of the command line replace those of the
file, and the text that is kept with the results gives the same scenario wherever it lies.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import attrs

from gossamer.protocol.kernel.errors import choice
from gossamer.sim.built_in_studies import IMPLIED, STUDIES
from gossamer.sim.errors import ScenarioError
from gossamer.sim.study.contract import AnyScenario, Study
from gossamer.sim.study.scenario_format import parse_document, read_text

# Finds studies by the kind of their scenarios.
#
# Those that come with gossamer are in a table (`gossamer.sim.built_in_studies`). Any other one is
#
# - an entry point of the group ``gossamer.studies``, called by its kind, of an installed package;
#   or
# - named in the environment variable ``GOSSAMER_STUDIES``, or by ``--study``, which adds to it: as
#   ``module:name``, or ``path/to/file.py:name``, several with commas between them.
#
# A study is imported when a scenario or a result of its kind is met. What is named is looked at
# before what is installed; the kinds of the table cannot be taken.


GROUP: Final = "gossamer.studies"
NAMED: Final = "GOSSAMER_STUDIES"
PEERS: Final = "peers"  # of scenarios that say no kind

AnyStudy = Study[Any, Any]


def study_of_kind(kind: object) -> AnyStudy:
    """The study of scenarios of a kind; of peers if None.

    Raises:
        ScenarioError: there is none, or one that is named cannot be imported.
    """
    wanted = PEERS if kind is None else kind
    if isinstance(wanted, str):
        if wanted in STUDIES:
            return _load(STUDIES[wanted])
        for study in _named():
            if study.kind == wanted:
                return study
        installed = _installed(tuple(sys.path))
        if wanted in installed:
            return _load(installed[wanted])
    known = choice(kind, [name for name in known_kinds() if name != PEERS])
    expected = f"nothing for peers without servers, or {known}"
    raise ScenarioError(None, "kind", kind, expected)


def kind_of_document(document: Mapping[str, Any]) -> object:
    """The kind of a scenario file's content: as it says, or as one of its keys implies."""
    implied = (kind for key, kind in IMPLIED.items() if key in document)
    return document.get("kind", next(implied, None))


def study_of(scenario: AnyScenario) -> AnyStudy:
    """The study of a scenario."""
    return study_of_kind(scenario.kind)


def study_of_values(scenario: Mapping[str, Any]) -> AnyStudy:
    """The study of a scenario as plain values, as summaries and records have it.

    Raises:
        ScenarioError: see `study_of_kind`.
    """
    return study_of_kind(scenario.get("kind"))


def known_kinds() -> list[str]:
    """The kinds of all studies that can be found, those of gossamer first."""
    found = [*STUDIES, *(study.kind for study in _named())]
    found += _installed(tuple(sys.path))
    return list(dict.fromkeys(found))


def name_studies(named: Sequence[str]) -> None:
    """Add to what ``GOSSAMER_STUDIES`` names, also for the processes that this one begins.

    Raises:
        ScenarioError: one of them cannot be imported, or is no study.
    """
    for text in named:
        _load(text)
    os.environ[NAMED] = ",".join(dict.fromkeys([*named_studies(), *named]))


def named_studies() -> list[str]:
    """What ``GOSSAMER_STUDIES`` names."""
    return [text.strip() for text in os.environ.get(NAMED, "").split(",") if text.strip()]


@lru_cache
def _installed(_path: tuple[str, ...]) -> Mapping[str, str]:
    """Where the studies of installed packages are, by kind; looked up once for an import path."""
    return {point.name: point.value for point in sorted(entry_points(group=GROUP))}


def _named() -> Iterator[AnyStudy]:
    return map(_load, named_studies())


@lru_cache
def _load(text: str) -> AnyStudy:
    """The study at ``module:name`` or ``file.py:name``; raises `ScenarioError`."""
    module, colon, name = text.rpartition(":")
    if not colon or not module or not name:
        expected = "module:name, or file.py:name"
        raise ScenarioError(None, "the study", text, expected)
    try:
        holder = module_of_file(Path(module)) if module.endswith(".py") else import_module(module)
        return _checked(getattr(holder, name), text)
    except (ImportError, AttributeError) as error:
        expected = f"a study that can be imported ({error})"
        raise ScenarioError(None, "the study", text, expected) from error


def module_of_file(file: Path) -> Any:
    """The module of a file, under its own name, so that other processes find what it defines.

    Raises:
        ImportError: there is no such file, or a module of that name is elsewhere.
    """
    file = file.resolve()
    if not file.is_file():
        raise ImportError(f"there is no file {file}")
    if str(file.parent) not in sys.path:
        sys.path.append(str(file.parent))
    module = import_module(file.stem)
    if Path(module.__file__ or "").resolve() != file:
        raise ImportError(f"a module {file.stem} is elsewhere, at {module.__file__}")
    return module


def _checked(found: object, text: str) -> AnyStudy:
    if not isinstance(found, Study):
        raise ScenarioError(None, "the study", text, f"an object of {Study.__name__}")
    return found


_NO_OVERRIDES: Final[Mapping[str, object]] = MappingProxyType({})


def read_scenario(
    path: str | Path | None, overrides: Mapping[str, object] = _NO_OVERRIDES
) -> tuple[AnyScenario, str]:
    """Read a scenario file of any kind.

    Args:
        path: the file. Relative paths in it are relative to its folder. Without one, all but
            ``overrides`` has its default.
        overrides: values that replace those of the file, by dotted key, such as ``seed``,
            ``events.per_round`` or ``system.kindred.ring_links``. Relative paths among them are
            relative to the working folder.

    Returns:
        The scenario, and a text that gives the same scenario wherever it is saved: that of the
        file, or one written anew where overrides or relative paths make the two differ.

    Raises:
        ScenarioError: the file is missing, unreadable, not TOML, or not a possible scenario.
    """
    if path is None:
        study = study_of_kind(overrides.get("kind", kind_of_document(overrides)))
        scenario = study.read({}, overrides)
        return scenario, "# As run, from defaults.\n\n" + study.write(scenario)
    path = Path(path)
    text = read_text(path)
    document = parse_document(text, str(path))
    if {"scenario", "seeds"} <= document.keys():
        expected = "a scenario itself; 'gossamer sim sweep' takes a sweep of scenarios"
        raise ScenarioError(str(path), "scenario", document["scenario"], expected)
    try:
        study = study_of_kind(overrides.get("kind", kind_of_document({**document, **overrides})))
        relative = study.resolve_paths(document, path.absolute().parent)
        scenario = study.read(document, overrides)
    except ScenarioError as error:
        raise _placed(error, path, overrides) from None
    if overrides or relative:
        text = f"# As run, from {path.name!r}.\n\n" + study.write(scenario)
    return scenario, text


@contextmanager
def placed_errors(path: Path | None, overrides: Mapping[str, object]) -> Iterator[None]:
    """Let errors within about the scenario of a file name it, where they name no file.

    Those about options of the command line stay as they are.
    """
    try:
        yield
    except ScenarioError as error:
        if path is None or error.field.startswith("-"):
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


def whole_field(low: int, high: int, *, default: object, optional: bool = False) -> Any:
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


def number_field(
    expected: str, holds: Callable[[float], bool], *, default: Any, optional: bool = False
) -> Any:
    """A field of finite floats for which ``holds``, described as ``expected``."""
    fits = number(expected, holds, optional=optional)
    return attrs.field(default=default, converter=to_float, validator=fits)


def share_field(default: float) -> Any:
    """A field of shares from 0 to 1."""
    return number_field("a share from 0 to 1", lambda share: 0 <= share <= 1, default=default)


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


def to_whole(value: object) -> Any:
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
