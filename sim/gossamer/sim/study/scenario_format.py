"""How scenarios stand in TOML: read strictly, every default spelled out when written.

`ScenarioFormat` says it of one kind; a kind that has more to it, such as [[system]], derives a
class. Every problem is a `ScenarioError`, one sentence.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Final, Generic, TypeVar

import attrs

from gossamer.protocol.content.encodings import EncodingError, decoded
from gossamer.protocol.kernel.errors import NEAR, choice
from gossamer.sim.errors import ScenarioError

# TOML as scenarios use it: read strictly, checked key by key, written back.
#
# Every problem is a `ScenarioError`, one sentence.


Document = dict[str, Any]


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


def read_text(path: Path) -> str:
    """The text of a file; raises `ScenarioError` where there is none that can be read."""
    file, what = str(path), "the scenario file"
    try:
        return decoded(path.read_bytes()).replace("\r\n", "\n")
    except EncodingError as error:
        raise ScenarioError(file, what, file, "text in UTF-8", found=error.reason) from None
    except FileNotFoundError:
        raise ScenarioError(file, what, file, "a TOML file", found="missing") from None
    except IsADirectoryError:
        raise ScenarioError(file, what, file, "a TOML file", found="a folder") from None
    except OSError as error:
        found = f"unreadable ({error.strerror or error})"
        raise ScenarioError(file, what, file, "a readable file", found=found) from error


def parse_document(text: str, file: str) -> Document:
    """The content of a TOML file; raises `ScenarioError` with line and column of a fault."""
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


def section_of(name: str, kind: type, table: object) -> Any:
    """An object of the attrs class ``kind`` from a table, or as it is; raises `ScenarioError`."""
    if isinstance(table, kind):
        return table
    fields = attrs.fields(kind)
    checked = require_table(table, name)
    check_keys(name + ".", checked, [field.name for field in fields])
    for field in fields:
        if field.default is attrs.NOTHING and field.name not in checked:
            raise ScenarioError(
                None, f"{name}.{field.name}", None, "a value, as it has no default", found="missing"
            )
    return kind(**checked)


def require_table(table: object, name: str) -> Document:
    """``table``, which has to be one; raises `ScenarioError`."""
    if not isinstance(table, dict):
        raise ScenarioError(None, name, table, f"a table, [{name}]")
    return table


def check_keys(prefix: str, table: Mapping[str, Any], known: Iterable[str]) -> None:
    """Raise `ScenarioError` about the first key that is not known."""
    known = list(known)
    for key in table:
        if key not in known:
            raise unknown_key(prefix + key, table[key], key, known)


def unknown_key(dotted: str, value: object, key: str, known: Iterable[str]) -> ScenarioError:
    """The error about a key that is not known, with the known one that is most like it."""
    prefix = dotted.removesuffix(key)
    near = difflib.get_close_matches(key, known := list(known), n=1)
    expected = f"{NEAR} {prefix + near[0]!r}?" if near else choice(key, known)
    return ScenarioError(None, dotted, value, expected, found="an unknown key")


def toml_line(prefix: str, key: str, value: object) -> str | None:
    """``key = value`` in TOML; None has no line, as TOML has no null."""
    return None if value is None else f"{key} = {_toml_value(prefix + key, value)}"


def _toml_value(field: str, value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_toml_value(field, item) for item in value) + "]"
    if isinstance(value, Mapping):
        held = (toml_line(f"{field}.", key, item) for key, item in value.items())
        return "{ " + ", ".join(line for line in held if line is not None) + " }"
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


KIND: Final = "kind"
# A table of a file, and the field of a scenario that holds all of them.
SYSTEM: Final = "system"
SYSTEMS: Final = "systems"

T = TypeVar("T")


@attrs.frozen(kw_only=True, slots=False)
class ScenarioFormat(Generic[T]):
    """Keys at the top, tables, and tables of settings; nothing outside of these is accepted.

    Attributes:
        scenario: the attrs class; its fields are keys at the top, but for those of tables.
        sections: the attrs classes of tables by name.
        settings: tables of settings by name, with the settings that each takes.
        paths: section and key of values that are paths.
        more: further keys at the top, which a derived class reads.
        tables: those of them that are tables, whose values may be overridden one by one.
    """

    scenario: type[T]
    sections: Mapping[str, type]
    settings: Mapping[str, Collection[str]] = attrs.field(factory=dict)
    paths: Collection[tuple[str, str]] = ()

    more: ClassVar[tuple[str, ...]] = ()
    tables: ClassVar[tuple[str, ...]] = ()

    @cached_property
    def top(self) -> tuple[str, ...]:
        """Keys at the top that are fields of the scenario."""
        elsewhere = {*self.sections, *self.settings, *self.more, SYSTEMS}
        fields: Iterable[Any] = attrs.fields(self.scenario)  # type: ignore[arg-type]
        return tuple(field.name for field in fields if field.name not in elsewhere)

    def resolve_paths(self, document: Document, folder: Path) -> bool:
        """As `gossamer.sim.study.contract.Study.resolve_paths`."""
        changed = False
        for section, key in self.paths:
            table = document.get(section)
            if isinstance(table, dict) and isinstance(table.get(key), str):
                given = Path(table[key])
                table[key] = given if given.is_absolute() else (folder / given).resolve()
                changed |= not given.is_absolute()
        return changed

    def read(self, document: Document, overrides: Mapping[str, object]) -> T:
        """As `gossamer.sim.study.contract.Study.read`."""
        for dotted, value in overrides.items():
            self._override(document, dotted, value)
        check_keys("", document, (KIND, *self.top, *self.sections, *self.settings, *self.more))
        fields = {key: document[key] for key in self.top if key in document}
        for name, kind in self.sections.items():
            if name in document:
                fields[name] = section_of(name, kind, document[name])
        for name, known in self.settings.items():
            if name in document:
                fields[name] = require_table(document[name], name)
                check_keys(f"{name}.", fields[name], known)
        return self.scenario(**{**fields, **self.read_more(document)})

    def write(self, scenario: T) -> str:
        """As `gossamer.sim.study.contract.Study.write`."""
        values = {KIND: getattr(scenario, KIND)}
        lines = _lines("", values | {field: getattr(scenario, field) for field in self.top})
        for name in (*self.sections, *self.settings):
            table = getattr(scenario, name)
            if table is not None:
                written = table if name in self.settings else attrs.asdict(table)
                lines += table_lines(f"[{name}]", f"{name}.", written)
        lines += self.write_more(scenario)
        return "".join(f"{line}\n" for line in lines)

    def read_more(self, document: Document) -> Document:
        """Fields of the scenario beside sections and settings; raises `ScenarioError`."""
        del document
        return {}

    def write_more(self, scenario: T) -> list[str]:
        """Lines of what `read_more` reads."""
        del scenario
        return []

    def systems_of(self, document: Document) -> list[Any]:
        """The [[system]] entries that ``system.<name>.<setting>`` overrides."""
        return require_systems(document.get(SYSTEM, []))

    def _override(self, document: Document, dotted: str, value: object) -> None:
        """Put ``value`` in the place that ``dotted`` names; checked with everything else later."""
        section, _, key = dotted.rpartition(".")
        tables = (*self.sections, *self.settings, *self.tables)
        if (section, key) in self.paths and isinstance(value, str | Path):
            value = Path(value).absolute().resolve()
        if not section:
            document[key] = value
        elif section in tables:
            require_table(document.setdefault(section, {}), section)[key] = value
        elif section.partition(".")[0] == SYSTEM and SYSTEM in self.more:
            self._system(document, section.partition(".")[2], dotted)[key] = value
        else:
            known = (*self.top, *(f"{name}.{key}" for name in tables))
            raise unknown_key(dotted, value, dotted, known)

    def _system(self, document: Document, name: str, dotted: str) -> Document:
        entries = [entry for entry in self.systems_of(document) if isinstance(entry, dict)]
        for entry in entries:
            if entry.get("name") == name:
                return entry
        names = ", ".join(f"system.{entry.get('name')}" for entry in entries)
        expected = f"a setting of {names or 'settings, as there is no [[system]]'}"
        raise ScenarioError(None, dotted, name, expected, found="of no system")


def table_lines(title: str, prefix: str, values: Mapping[str, object]) -> list[str]:
    """A table in TOML, behind an empty line."""
    return ["", title, *_lines(prefix, values)]


def require_systems(entries: object, *kinds: type) -> list[Any]:
    """[[system]] entries, tables or of further ``kinds``; raises `ScenarioError` of others."""
    if isinstance(entries, list) and all(isinstance(entry, (dict, *kinds)) for entry in entries):
        return entries
    raise ScenarioError(None, SYSTEM, entries, "one [[system]] table per system")


def name_of_system(entry: Mapping[str, Any], place: int) -> Any:
    """The name of a [[system]], which has to have one; raises `ScenarioError`."""
    if "name" not in entry:
        found = f"missing from [[system]] {place}"
        raise ScenarioError(None, "system.name", None, "a name for each [[system]]", found=found)
    return entry["name"]


def _lines(prefix: str, values: Mapping[str, object]) -> list[str]:
    lines = (toml_line(prefix, key, value) for key, value in values.items())
    return [line for line in lines if line is not None]
