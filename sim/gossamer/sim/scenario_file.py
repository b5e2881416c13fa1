"""Scenarios as TOML: read strictly, written back, every problem one sentence.

Keys at the top are the fields of `Scenario`; the tables [subscriptions], [events], [churn] and
[network] hold those of the classes of `scenario`, and every [[system]] a name, a preset and any
field of `config.Settings` that differs from it. Nothing outside these is accepted.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import attrs

from gossamer.sim.errors import ScenarioError
from gossamer.sim.scenario import (
    SETTING_TYPES,
    SHARED_SETTINGS,
    Churn,
    Events,
    Link,
    Scenario,
    Subscriptions,
    System,
)

SECTIONS: Mapping[str, type] = MappingProxyType(
    {"subscriptions": Subscriptions, "events": Events, "churn": Churn, "network": Link}
)
SYSTEM = "system"
_PATHS = frozenset({("churn", "trace"), ("network", "matrix")})
_SYSTEM_KEYS = ("name", "preset", *sorted(set(SETTING_TYPES) - set(SHARED_SETTINGS)))
_TOP_KEYS = tuple(
    name
    for name in (field.name for field in attrs.fields(Scenario))
    if name not in SECTIONS and name != "systems"
)
_NO_OVERRIDES: Mapping[str, object] = MappingProxyType({})

Document = dict[str, Any]


def read_scenario(
    path: str | Path, overrides: Mapping[str, object] = _NO_OVERRIDES
) -> tuple[Scenario, str]:
    """Read a scenario file.

    Args:
        path: the file. Relative paths in it are relative to its folder.
        overrides: values that replace those of the file, by dotted key, such as ``seed``,
            ``events.per_round`` or ``system.vinifera.ring_links``. Relative paths among them are
            relative to the working folder.

    Returns:
        The scenario, and a text that gives the same scenario wherever it is saved: that of the
        file, or one written anew where overrides or relative paths make the two differ.

    Raises:
        ScenarioError: the file is missing, unreadable, not TOML, or not a possible scenario.
    """
    path = Path(path)
    text = _read_text(path)
    document = _parse(text, str(path))
    try:
        relative = _resolve_paths(document, path.absolute().parent)
        scenario = scenario_from_document(document, overrides)
    except ScenarioError as error:
        # What was overridden is not in the file.
        raise attrs.evolve(error, file=None if error.field in overrides else str(path)) from None
    if overrides or relative:
        text = f"# As run, from {path.name!r}.\n\n" + scenario_to_toml(scenario)
    return scenario, text


def scenario_from_document(
    document: Document, overrides: Mapping[str, object] = _NO_OVERRIDES
) -> Scenario:
    """Build a scenario from the content of a TOML file, its paths already absolute.

    With churn, ``nodes`` and ``rounds`` default to all of the trace.

    Args:
        document: the content; ``overrides`` are written into it.
        overrides: see `read_scenario`.

    Raises:
        ScenarioError: a key is unknown or missing, or a value impossible.
    """
    for key, value in overrides.items():
        _override(document, key, value)
    _check_keys("", document, (*_TOP_KEYS, *SECTIONS, SYSTEM))
    fields = {key: document[key] for key in _TOP_KEYS if key in document}
    for name, kind in SECTIONS.items():
        if name in document:
            fields[name] = _section(name, kind, document[name])
    if SYSTEM in document:
        fields["systems"] = tuple(_systems(document[SYSTEM]))
    if "churn" in fields:
        fields = {"nodes": None, "rounds": None} | fields
    return Scenario(**fields)


def scenario_to_toml(scenario: Scenario) -> str:
    """The text of a scenario file that reads back as ``scenario``; every default is spelled out.

    Raises:
        ScenarioError: a path is no Unicode text, so that TOML cannot express it.
    """
    lines = [_line("", field, getattr(scenario, field)) for field in _TOP_KEYS]
    for name in SECTIONS:
        section = getattr(scenario, name)
        if section is not None:
            values = attrs.asdict(section)
            lines += ["", f"[{name}]", *(_line(name + ".", *item) for item in values.items())]
    for system in scenario.systems:
        values = {"name": system.name, "preset": system.preset, **system.settings}
        lines += ["", f"[[{SYSTEM}]]"]
        lines += [_line(f"system.{system.name}.", *item) for item in values.items()]
    return "".join(line + "\n" for line in lines if line is not None)


def parse_override(text: str) -> tuple[str, object]:
    """Split ``key=value``; the value is read as TOML, or taken as text where it is none.

    Raises:
        ScenarioError: there is no ``=`` or no key.
    """
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise ScenarioError(None, "--set", text, "key=value, such as events.per_round=2")
    try:
        parsed = tomllib.loads(f"value = {value}")
    except (ValueError, RecursionError):
        return key.strip(), value.strip()
    return key.strip(), parsed["value"] if len(parsed) == 1 else value.strip()


def _read_text(path: Path) -> str:
    file, what = str(path), "the scenario file"
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        found = f"not UTF-8 at byte {error.start + 1}"
        raise ScenarioError(file, what, file, "text in UTF-8", found=found) from None
    except FileNotFoundError:
        raise ScenarioError(file, what, file, "a TOML file", found="missing") from None
    except IsADirectoryError:
        raise ScenarioError(file, what, file, "a TOML file", found="a folder") from None
    except OSError as error:
        found = f"unreadable ({error.strerror or error})"
        raise ScenarioError(file, what, file, "a readable file", found=found) from error


def _parse(text: str, file: str) -> Document:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        reason, place = _syntax_fault(str(error), text)
        found = f"no TOML ({reason})"
        raise ScenarioError(file, place, text, "valid TOML", found=found) from None
    except RecursionError:
        expected = "arrays and tables nested less deeply"
        raise ScenarioError(file, "the text", text, expected, found="nested too deeply") from None
    except ValueError as error:  # an integer of thousands of digits
        expected = "numbers of a sensible length"
        raise ScenarioError(file, "the text", text, expected, found=f"odd ({error})") from None


def _syntax_fault(message: str, text: str) -> tuple[str, str]:
    """What the TOML parser objects to, and where, from its message."""
    match = re.fullmatch(r"(.*) \(at line (\d+), column (\d+)\)", message, re.DOTALL)
    if match:
        return match[1], f"line {match[2]}, column {match[3]}"
    lines = text.splitlines() or [""]
    reason = message.removesuffix(" (at end of document)")
    return reason, f"line {len(lines)}, column {len(lines[-1]) + 1}"


def _resolve_paths(document: Document, folder: Path) -> bool:
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


def _override(document: Document, dotted: str, value: object) -> None:
    """Put ``value`` in the place that ``dotted`` names; checked with everything else later."""
    section, _, key = dotted.rpartition(".")
    if (section, key) in _PATHS and isinstance(value, str | Path):
        value = Path(value).absolute().resolve()
    if not section:
        document[key] = value
    elif section in SECTIONS:
        table = document.setdefault(section, {})
        _require_table(table, section)
        table[key] = value
    elif section.partition(".")[0] == SYSTEM:
        _named_system(document, section.partition(".")[2], dotted)[key] = value
    else:
        known = (*_TOP_KEYS, *(f"{name}.{key}" for name in SECTIONS))
        raise _unknown_key(dotted, value, dotted, known)


def _named_system(document: Document, name: str, dotted: str) -> Document:
    default = [{"name": system.name, "preset": system.preset} for system in Scenario().systems]
    entries = document.setdefault(SYSTEM, default)
    _require_systems(entries)
    for entry in entries:
        if entry.get("name") == name:
            found: Document = entry
            return found
    names = ", ".join(f"system.{entry.get('name')}" for entry in entries)
    raise ScenarioError(None, dotted, name, f"a setting of {names}", found="of no system")


def _section(name: str, kind: type, table: object) -> Any:
    fields = attrs.fields(kind)
    checked = _require_table(table, name)
    _check_keys(name + ".", checked, [field.name for field in fields])
    for field in fields:
        if field.default is attrs.NOTHING and field.name not in checked:
            raise ScenarioError(
                None, f"{name}.{field.name}", None, "a value, as it has no default", found="missing"
            )
    return kind(**checked)


def _systems(entries: object) -> Iterable[System]:
    for number, entry in enumerate(_require_systems(entries), start=1):
        if "name" not in entry:
            expected = "a name for each [[system]]"
            raise ScenarioError(
                None, "system.name", None, expected, found=f"missing from [[system]] {number}"
            )
        _check_keys(f"system.{entry['name']}.", entry, (*_SYSTEM_KEYS, *SHARED_SETTINGS))
        settings = {key: value for key, value in entry.items() if key not in ("name", "preset")}
        given = {key: entry[key] for key in ("name", "preset") if key in entry}
        yield System(**given, settings=settings)


def _require_table(table: object, name: str) -> Document:
    if not isinstance(table, dict):
        raise ScenarioError(None, name, table, f"a table, [{name}]")
    return table


def _require_systems(entries: object) -> list[Document]:
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ScenarioError(None, SYSTEM, entries, "one [[system]] table per system")
    return entries


def _check_keys(prefix: str, table: Mapping[str, Any], known: Iterable[str]) -> None:
    known = list(known)
    for key in table:
        if key not in known:
            raise _unknown_key(prefix + key, table[key], key, known)


def _unknown_key(dotted: str, value: object, key: str, known: Iterable[str]) -> ScenarioError:
    known = list(known)
    near = difflib.get_close_matches(key, known, n=1)
    prefix = dotted.removesuffix(key)
    expected = f"{prefix + near[0]!r}" if near else "one of " + ", ".join(known)
    return ScenarioError(None, dotted, value, expected, found="an unknown key")


def _line(prefix: str, key: str, value: object) -> str | None:
    """``key = value`` in TOML; None has no line, as TOML has no null."""
    return None if value is None else f"{key} = {_toml_value(prefix + key, value)}"


def _toml_value(field: str, value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    return _toml_text(field, str(value))


def _toml_text(field: str, text: str) -> str:
    """A basic string; what TOML forbids in one is escaped."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ScenarioError(None, field, text, "text that UTF-8 can express") from None
    escaped = "".join(
        f"\\u{ord(c):04x}" if ord(c) < 0x20 or ord(c) == 0x7F else "\\" + c if c in '"\\' else c
        for c in text
    )
    return f'"{escaped}"'
