"""Scenarios as TOML: read strictly, written back, every problem one sentence.

Keys at the top are the fields of `Scenario`; the tables [subscriptions], [events], [drift],
[churn], [turnover], [workload] and [network] hold those of the classes of `scenario` and `changes`,
and every [[system]] a name, a preset and any field of `config.Settings` that differs from it.
Nothing outside these is accepted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import attrs

from gossamer.sim.errors import ScenarioError
from gossamer.sim.studies.peers.inputs.changes import Drift, Turnover
from gossamer.sim.studies.peers.inputs.scenario import (
    SETTING_TYPES,
    SHARED_SETTINGS,
    Churn,
    Events,
    Scenario,
    Subscriptions,
    System,
)
from gossamer.sim.studies.peers.inputs.taken_from import TakenFrom
from gossamer.sim.studies.worlds.network import FILES, Link
from gossamer.sim.study.toml_files import (
    Document,
    check_keys,
    require_table,
    section_of,
    toml_line,
    unknown_key,
)

SECTIONS: Mapping[str, type] = MappingProxyType(
    {
        "subscriptions": Subscriptions,
        "events": Events,
        "drift": Drift,
        "churn": Churn,
        "turnover": Turnover,
        "workload": TakenFrom,
        "network": Link,
    }
)
SYSTEM = "system"
_PATHS = frozenset(
    {
        ("churn", "trace"),
        *(("workload", field.name) for field in attrs.fields(TakenFrom)),
        *(("network", name) for name in FILES),
    }
)
_SYSTEM_KEYS = ("name", "preset", *sorted(set(SETTING_TYPES) - set(SHARED_SETTINGS)))
_TOP_KEYS = tuple(
    name
    for name in (field.name for field in attrs.fields(Scenario))
    if name not in SECTIONS and name != "systems"
)
_NO_OVERRIDES: Mapping[str, object] = MappingProxyType({})


def resolve_paths(document: Document, folder: Path) -> bool:
    """Make the paths in ``document`` absolute; returns whether any was not."""
    changed = False
    for section, key in _PATHS:
        table = document.get(section)
        if isinstance(table, dict) and isinstance(table.get(key), str):
            given = table[key]
            table[key] = folder / given
            if not Path(given).is_absolute():
                table[key] = table[key].resolve()
                changed = True
    return changed


def scenario_from_document(
    document: Document, overrides: Mapping[str, object] = _NO_OVERRIDES
) -> Scenario:
    """Build a scenario from the content of a TOML file, its paths already absolute.

    With churn, ``nodes`` and ``rounds`` default to all of the trace.

    Args:
        document: the content; ``overrides`` are written into it.
        overrides: see `gossamer.sim.study.scenarios.read_scenario`.

    Raises:
        ScenarioError: a key is unknown or missing, or a value impossible.
    """
    for key, value in overrides.items():
        _override(document, key, value)
    check_keys("", document, (*_TOP_KEYS, *SECTIONS, SYSTEM))
    fields = {key: document[key] for key in _TOP_KEYS if key in document}
    for name, kind in SECTIONS.items():
        if name in document:
            fields[name] = section_of(name, kind, document[name])
    if SYSTEM in document:
        fields["systems"] = tuple(_systems(document[SYSTEM]))
    return Scenario(**fields)


def scenario_to_toml(scenario: Scenario) -> str:
    """The text of a scenario file that reads back as ``scenario``; every default is spelled out.

    Raises:
        ScenarioError: a path is no Unicode text, so that TOML cannot express it.
    """
    lines = [toml_line("", field, getattr(scenario, field)) for field in _TOP_KEYS]
    for name in SECTIONS:
        section = getattr(scenario, name)
        if section is not None:
            values = attrs.asdict(section)
            lines += ["", f"[{name}]", *(toml_line(name + ".", *item) for item in values.items())]
    for system in scenario.systems:
        values = {"name": system.name, "preset": system.preset, **system.settings}
        lines += ["", f"[[{SYSTEM}]]"]
        lines += [toml_line(f"system.{system.name}.", *item) for item in values.items()]
    return "".join(line + "\n" for line in lines if line is not None)


def _override(document: Document, dotted: str, value: object) -> None:
    """Put ``value`` in the place that ``dotted`` names; checked with everything else later."""
    section, _, key = dotted.rpartition(".")
    if (section, key) in _PATHS and isinstance(value, str | Path):
        value = Path(value).absolute().resolve()
    if not section:
        document[key] = value
    elif section in SECTIONS:
        table = document.setdefault(section, {})
        require_table(table, section)
        table[key] = value
    elif section.partition(".")[0] == SYSTEM:
        _named_system(document, section.partition(".")[2], dotted)[key] = value
    else:
        known = (*_TOP_KEYS, *(f"{name}.{key}" for name in SECTIONS))
        raise unknown_key(dotted, value, dotted, known)


def _named_system(document: Document, name: str, dotted: str) -> Document:
    default = [{"name": system.name, "preset": system.preset} for system in Scenario().systems]
    entries = document.setdefault(SYSTEM, default)
    _require_systems(entries)
    for entry in entries:
        if isinstance(entry, dict) and entry.get("name") == name:
            found: Document = entry
            return found
    names = ", ".join(f"system.{entry.get('name')}" for entry in entries if isinstance(entry, dict))
    raise ScenarioError(None, dotted, name, f"a setting of {names}", found="of no system")


def _systems(entries: object) -> Iterable[System | str]:
    for number, entry in enumerate(_require_systems(entries), start=1):
        if isinstance(entry, System | str):  # of a script
            yield entry
            continue
        if "name" not in entry:
            expected = "a name for each [[system]]"
            raise ScenarioError(
                None, "system.name", None, expected, found=f"missing from [[system]] {number}"
            )
        check_keys(f"system.{entry['name']}.", entry, (*_SYSTEM_KEYS, *SHARED_SETTINGS))
        settings = {key: value for key, value in entry.items() if key not in ("name", "preset")}
        given = {key: entry[key] for key in ("name", "preset") if key in entry}
        yield System(**given, settings=settings)


def _require_systems(entries: object) -> list[Any]:
    if not isinstance(entries, list) or not all(
        isinstance(entry, dict | System | str) for entry in entries
    ):
        raise ScenarioError(None, SYSTEM, entries, "one [[system]] table per system")
    return entries
