"""Scenario files of all kinds: ``kind`` at the top, such as "brokers", names the study.

Whatever its kind, a scenario is read strictly, values of the command line replace those of the
file, and the text that is kept with the results gives the same scenario wherever it lies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import attrs

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
