"""Scenarios of kind "trees" as TOML: read strictly, written back.

Keys at the top are `kind`, `name`, `seed` and `strategies`; the tables [topology], [workload] and
[planning] hold the fields of the classes of `scenario`. Nothing outside these is accepted.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import attrs

from gossamer.sim.studies.dissemination.scenario import KIND, SECTIONS, TreesScenario
from gossamer.sim.study.toml_files import (
    Document,
    check_keys,
    require_table,
    section_of,
    toml_line,
    unknown_key,
)

_KIND: Final = "kind"
_TOP_KEYS: Final = ("name", "seed", "strategies")
_PATHS: Final = frozenset({"topology", "workload"})
_FILE: Final = "file"


def scenario_from_document(document: Document, overrides: Mapping[str, object]) -> TreesScenario:
    """Build a scenario from the content of a TOML file.

    Args:
        document: the content, its paths absolute; ``overrides`` are written into it.
        overrides: values by dotted key, such as ``topology.brokers``; paths among them are
            relative to the working folder.

    Raises:
        ScenarioError: a key is unknown, or a value impossible.
    """
    for key, value in overrides.items():
        _override(document, key, value)
    check_keys("", document, (_KIND, *_TOP_KEYS, *SECTIONS))
    fields: Document = {key: document[key] for key in _TOP_KEYS if key in document}
    for name, kind in SECTIONS.items():
        if name in document:
            fields[name] = section_of(name, kind, document[name])
    return TreesScenario(**fields)


def scenario_to_toml(scenario: TreesScenario) -> str:
    """The text of a file that reads back as ``scenario``; every default is spelled out."""
    lines = [toml_line("", _KIND, KIND)]
    lines += [toml_line("", field, getattr(scenario, field)) for field in _TOP_KEYS]
    for name in SECTIONS:
        values = attrs.asdict(getattr(scenario, name))
        lines += ["", f"[{name}]", *(toml_line(f"{name}.", *item) for item in values.items())]
    return "".join(line + "\n" for line in lines if line is not None)


def resolve_paths(document: Document, folder: Path) -> bool:
    """Make the paths in ``document`` absolute, if they are none; returns whether any was not."""
    changed = False
    for section in _PATHS:
        table = document.get(section)
        if isinstance(table, dict) and isinstance(table.get(_FILE), str):
            given = Path(table[_FILE])
            table[_FILE] = given if given.is_absolute() else (folder / given).resolve()
            changed = changed or not given.is_absolute()
    return changed


def _override(document: Document, dotted: str, value: object) -> None:
    """Put ``value`` in the place that ``dotted`` names; checked with everything else later."""
    section, _, key = dotted.rpartition(".")
    if section in _PATHS and key == _FILE and isinstance(value, str | Path):
        value = Path(value).absolute().resolve()
    if not section:
        document[key] = value
    elif section in SECTIONS:
        require_table(document.setdefault(section, {}), section)[key] = value
    else:
        known = (*_TOP_KEYS, *(f"{name}.{key}" for name in SECTIONS))
        raise unknown_key(dotted, value, dotted, known)
