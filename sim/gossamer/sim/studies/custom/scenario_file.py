"""Scenarios of protocols of one's own as TOML: read strictly, written back.

Keys at the top are `protocol`, and the fields of `CustomScenario`; the tables [churn] and [network]
hold those of their classes, [settings] those that the protocol declares. Every [[system]] has a
name, may have a protocol of its own, and settings that differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import attrs

from gossamer.sim.custom.language.declarations import ProtocolType
from gossamer.sim.errors import ScenarioError
from gossamer.sim.studies.custom.loading import load_class, sources_of, split_name
from gossamer.sim.studies.custom.scenario import (
    KIND,
    CustomScenario,
    ProtocolClass,
    protocol_of_class,
    system_of,
)
from gossamer.sim.studies.peers.inputs.changes import Turnover
from gossamer.sim.studies.peers.inputs.scenario import Churn
from gossamer.sim.studies.worlds.attributes import FILE, Attribute
from gossamer.sim.studies.worlds.network import FILES, Link
from gossamer.sim.studies.worlds.sessions import Sessions
from gossamer.sim.study.toml_files import (
    Document,
    check_keys,
    require_table,
    section_of,
    toml_line,
    unknown_key,
)

_TOP: Final = ("name", "nodes", "rounds", "round_s", "seed", "engine", "clock_drift", "leaving")
_SECTIONS: Final[Mapping[str, type]] = {
    "churn": Churn,
    "sessions": Sessions,
    "turnover": Turnover,
    "network": Link,
}
_LINK_KEYS: Final = tuple(
    field.name for field in attrs.fields(Link) if field.name != "event_capacity"
)
_PROTOCOL, _SETTINGS, _SYSTEM, _ATTRIBUTES = "protocol", "settings", "system", "attributes"
_PATHS: Final = (("churn", "trace"), *(("network", name) for name in FILES))


def resolve_paths(document: Document, folder: Path) -> bool:
    """Make the paths in ``document`` absolute; returns whether any was not."""
    changed = False
    for section, key in _PATHS:
        table = document.get(section)
        if isinstance(table, dict) and isinstance(table.get(key), str):
            changed |= not Path(table[key]).is_absolute()
            table[key] = (folder / table[key]).resolve()
    attributes = document.get(_ATTRIBUTES)
    for given in attributes.values() if isinstance(attributes, dict) else ():
        if isinstance(given, dict) and isinstance(given.get(FILE), str):
            changed |= not Path(given[FILE]).is_absolute()
            given[FILE] = (folder / given[FILE]).resolve()
    entries = document.get(_SYSTEM)
    systems = entries if isinstance(entries, list) else []
    for table in (document, *(entry for entry in systems if isinstance(entry, dict))):
        if isinstance(table.get(_PROTOCOL), str):
            file, name = split_name(table[_PROTOCOL])
            changed |= not file.is_absolute()
            table[_PROTOCOL] = f"{(folder / file).resolve()}:{name}"
    return changed


def scenario_from_document(document: Document, overrides: Mapping[str, object]) -> CustomScenario:
    """Build a scenario from the content of a TOML file, its paths already absolute.

    Raises:
        ScenarioError: a key is unknown or missing, a value impossible, or the protocol's file is
            at fault.
        SimulationError: executing that file raised something.
    """
    for key, value in overrides.items():
        _override(document, key, value)
    check_keys(
        "", document, ("kind", _PROTOCOL, *_TOP, *_SECTIONS, _SETTINGS, _ATTRIBUTES, _SYSTEM)
    )
    fields: Document = {key: document[key] for key in _TOP if key in document}
    if "network" in document:
        check_keys("network.", require_table(document["network"], "network"), _LINK_KEYS)
    for name, kind in _SECTIONS.items():
        if name in document:
            fields[name] = section_of(name, kind, document[name])
    attributes = require_table(document.get(_ATTRIBUTES, {}), _ATTRIBUTES)
    fields["attributes"] = {name: Attribute(name, given) for name, given in attributes.items()}
    fields["systems"] = _systems(document)
    fields.setdefault("name", fields["systems"][0].protocol.file.stem)
    return CustomScenario(**fields)


def scenario_to_toml(scenario: CustomScenario) -> str:
    """The text of a scenario file that reads back as ``scenario``; every default is spelled out."""
    lines = [toml_line("", "kind", KIND)]
    lines += [toml_line("", field, getattr(scenario, field)) for field in _TOP]
    for name in _SECTIONS:
        section = getattr(scenario, name)
        if section is not None:
            values = attrs.asdict(section)
            values.pop("event_capacity", None)
            lines += ["", f"[{name}]", *(toml_line(f"{name}.", *item) for item in values.items())]
    if scenario.attributes:
        lines += ["", f"[{_ATTRIBUTES}]"]
        lines += [
            toml_line("attributes.", name, one.given) for name, one in scenario.attributes.items()
        ]
    for system in scenario.systems:
        protocol = f"{system.protocol.file}:{system.protocol.name}"
        values = {"name": system.name, _PROTOCOL: protocol, **system.settings}
        lines += ["", f"[[{_SYSTEM}]]"]
        lines += [toml_line(f"system.{system.name}.", *item) for item in values.items()]
    return "".join(line + "\n" for line in lines if line is not None)


def _systems(document: Document) -> list[Any]:
    common = require_table(document.get(_SETTINGS, {}), _SETTINGS)
    entries = document.get(_SYSTEM)
    if entries is None:
        protocol = _protocol(document)
        return [system_of(protocol.name.lower(), protocol, common, f"{_SETTINGS}.")]
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ScenarioError(None, _SYSTEM, entries, "one [[system]] table per system")
    return [_system(document, common, entry, place) for place, entry in enumerate(entries, 1)]


def _system(document: Document, common: Document, entry: Document, place: int) -> Any:
    if "name" not in entry:
        missing = f"missing from [[system]] {place}"
        raise ScenarioError(None, "system.name", None, "a name for each [[system]]", missing)
    protocol = _protocol(entry if _PROTOCOL in entry else document)
    own = {key: value for key, value in entry.items() if key not in ("name", _PROTOCOL)}
    prefix = f"system.{entry['name']}."
    # What all systems share is checked under its own name.
    known = protocol.declared.settings
    shared = {key: value for key, value in common.items() if key in known or _PROTOCOL not in entry}
    system_of("checked", protocol, shared, f"{_SETTINGS}.")
    return system_of(entry["name"], protocol, {**shared, **own}, prefix)


def _protocol(table: Document) -> ProtocolClass:
    if _PROTOCOL not in table:
        expected = "the file and class of a protocol, such as rumor.py:Rumor"
        raise ScenarioError(None, _PROTOCOL, None, expected, found="missing")
    given = table[_PROTOCOL]
    if isinstance(given, ProtocolType):
        return protocol_of_class(given)
    file, name = split_name(given)
    found = load_class(file, name)
    return ProtocolClass(file, name, sources_of(file), found.declared)


def _override(document: Document, dotted: str, value: object) -> None:
    """Put ``value`` in the place that ``dotted`` names; checked with everything else later."""
    section, _, key = dotted.rpartition(".")
    if (section, key) in _PATHS and isinstance(value, str | Path):
        value = Path(value).absolute().resolve()
    if section == _ATTRIBUTES and isinstance(value, dict) and isinstance(value.get(FILE), str):
        value = value | {FILE: Path(value[FILE]).absolute().resolve()}
    if dotted == _PROTOCOL and isinstance(value, str):
        file, name = split_name(value)
        value = f"{file.absolute().resolve()}:{name}"
    if not section:
        document[key] = value
    elif section in (*_SECTIONS, _SETTINGS, _ATTRIBUTES):
        require_table(document.setdefault(section, {}), section)[key] = value
    elif section.partition(".")[0] == _SYSTEM:
        for entry in document.get(_SYSTEM, []):
            if entry.get("name") == section.partition(".")[2]:
                entry[key] = value
                return
        names = ", ".join(f"system.{entry.get('name')}" for entry in document.get(_SYSTEM, []))
        expected = f"a setting of {names or 'settings, as there is no [[system]]'}"
        raise ScenarioError(None, dotted, value, expected, found="of no system")
    else:
        known = (*_TOP, *(f"{name}.{key}" for name in (*_SECTIONS, _SETTINGS, _ATTRIBUTES)))
        raise unknown_key(dotted, value, dotted, known)
