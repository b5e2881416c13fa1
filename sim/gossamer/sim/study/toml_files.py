"""TOML as scenarios use it: read strictly, checked key by key, written back.

Every problem is a `ScenarioError`, one sentence.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import attrs

from gossamer.protocol.content.encodings import EncodingError, decoded
from gossamer.protocol.kernel.errors import NEAR, choice
from gossamer.sim.errors import ScenarioError

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
