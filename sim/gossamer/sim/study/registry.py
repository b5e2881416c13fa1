"""Finds studies by the kind of their scenarios.

Those that come with gossamer are in a table (`gossamer.sim.built_in_studies`). Any other one is

- an entry point of the group ``gossamer.studies``, called by its kind, of an installed package; or
- named in the environment variable ``GOSSAMER_STUDIES``, or by ``--study``, which adds to it: as
  ``module:name``, or ``path/to/file.py:name``, several with commas between them.

A study is imported when a scenario or a result of its kind is met. What is named is looked at
before what is installed; the kinds of the table cannot be taken.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Final

from gossamer.protocol.kernel.errors import choice
from gossamer.sim.built_in_studies import IMPLIED, STUDIES
from gossamer.sim.errors import ScenarioError
from gossamer.sim.study.contract import AnyScenario, Study

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
    known = [text for text in os.environ.get(NAMED, "").split(",") if text]
    os.environ[NAMED] = ",".join(dict.fromkeys([*known, *named]))


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
