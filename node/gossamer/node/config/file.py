"""Configuration from its layers: preset, TOML file, environment, flags; the later one wins.

A setting has one dotted name in all of them, such as ``delivery.retention_s``: the key of a table
in the file, ``GOSSAMER_NODE_DELIVERY_RETENTION_S`` in the environment, ``--set`` on the command
line. Nothing unknown is accepted, and every value keeps the place that it came from.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import attrs

from gossamer.node.config.node import (
    DECIDED_ELSEWHERE,
    FAMILY_SECTIONS,
    PRESETS,
    PROTOCOL_SETTINGS,
    SECTIONS,
    NodeConfig,
)
from gossamer.node.errors import ConfigurationError
from gossamer.protocol.content.encodings import EncodingError, decoded
from gossamer.protocol.content.schema import Schema
from gossamer.protocol.kernel.errors import NEAR, ConfigError, choice
from gossamer.protocol.peer.settings.config import Settings

if TYPE_CHECKING:
    from gossamer.command.tables import FittingTable


PREFIX: Final = "GOSSAMER_NODE_"
# Names the file itself, so it is no setting.
FILE_VARIABLE: Final = PREFIX + "CONFIG"
MAX_FILE_BYTES: Final = 1 << 20

COMMAND_LINE: Final = "the command line"
ATTRIBUTES, LIMITS, PROTOCOL = "attributes", "limits", "protocol"
_FOLDER: Final = "identity.folder"
_SECTIONS: Final = (*SECTIONS, *FAMILY_SECTIONS)
# Up to here a float that is whole is one number alone.
_LARGEST_WHOLE_FLOAT: Final = 2**53
_NO_FLAGS: Final[Mapping[str, object]] = MappingProxyType({})


def _defaults() -> dict[str, object]:
    """Every setting with a fixed name, by its dotted name; None where the protocol decides."""
    found: dict[str, object] = {"preset": "lan"}
    for section in _SECTIONS:
        for field in attrs.fields(section):
            if field.name != "settings":
                found[f"{section.SECTION}.{field.name}"] = field.default
    return found | {f"{PROTOCOL}.{name}": None for name in PROTOCOL_SETTINGS}


DEFAULTS: Final[Mapping[str, object]] = MappingProxyType(_defaults())
# Settings that are whole numbers; 1e3 is one.
_WHOLE: Final = {
    *(name for name, default in DEFAULTS.items() if type(default) is int),
    *(f"{PROTOCOL}.{field.name}" for field in attrs.fields(Settings) if field.type in (int, "int")),
}
VARIABLES: Final[Mapping[str, str]] = MappingProxyType(
    {PREFIX + name.replace(".", "_").upper(): name for name in (*DEFAULTS, ATTRIBUTES)}
)


@attrs.frozen
class Origin:
    """Where a value came from.

    Attributes:
        source: default, preset, file, environment or flag.
        place: the preset, file or variable; "" for a default.
    """

    source: str
    place: str = ""

    def __str__(self) -> str:
        return f"{self.source} {self.place}".strip()


@attrs.frozen
class LoadedConfig:
    """A configuration and where each of its values came from.

    Attributes:
        config: the configuration, checked.
        file: the file that was read, None without one.
        origins: by dotted name; what is not in it is a default.
    """

    config: NodeConfig
    file: Path | None
    origins: Mapping[str, Origin]

    def origin(self, name: str) -> Origin:
        """Where the value of the setting ``name`` came from."""
        return self.origins.get(name, Origin("default"))

    def rows(
        self, limits: Callable[..., Any] | None = None
    ) -> Iterator[tuple[str, object, Origin]]:
        """Every setting with its value and its origin.

        Args:
            limits: the transport's class of limits, to list all of them.

        Raises:
            ConfigurationError: the class refuses a limit.
        """
        for name, value in self._values(limits).items():
            yield name, value, self.origin(name)

    def limits_as(self, kind: Callable[..., Any]) -> Any:
        """`NodeConfig.limits_as` whose error names the place of the value.

        Raises:
            ConfigurationError: the class has no such field, or refuses its value.
        """
        try:
            return self.config.limits_as(kind)
        except ConfigError as error:
            raise _placed(error, self.origins) from None

    def _values(self, limits: Callable[..., Any] | None) -> dict[str, object]:
        config = self.config
        values: dict[str, object] = {"preset": config.preset}
        for section in _SECTIONS:
            part = config.section(section.SECTION)
            for field in attrs.fields(section):
                if field.name != "settings":
                    values[f"{section.SECTION}.{field.name}"] = getattr(part, field.name)
        schema = config.schema
        settings = config.protocol.settings_for(
            1 if schema is None else len(schema), config.delivery
        )
        values |= {f"{PROTOCOL}.{name}": getattr(settings, name) for name in PROTOCOL_SETTINGS}
        shown = config.limits if limits is None else attrs.asdict(self.limits_as(limits))
        values |= {f"{LIMITS}.{name}": value for name, value in shown.items()}
        values[ATTRIBUTES] = "the cluster's" if schema is None else ", ".join(schema.names)
        return values


@attrs.frozen
class _Given:
    name: str
    value: object
    origin: Origin


def load_config(
    path: Path | None = None,
    environment: Mapping[str, str] | None = None,
    flags: Mapping[str, object] = _NO_FLAGS,
) -> LoadedConfig:
    """Read and check the whole configuration.

    Args:
        path: the TOML file; None reads the one that `FILE_VARIABLE` names, or none.
        environment: variables; those of the process by default.
        flags: values of the command line by dotted name; text is read as in the environment.

    Raises:
        ConfigurationError: a layer is unreadable, a name unknown or a value impossible.
    """
    environment = os.environ if environment is None else environment
    if path is None and environment.get(FILE_VARIABLE):
        path = Path(environment[FILE_VARIABLE])
    given = [
        *(() if path is None else _from_file(path)),
        *_from_environment(environment),
        *_from_flags(flags),
    ]
    values, origins = _layered(given)
    if path is not None and _FOLDER not in origins:
        values[_FOLDER] = path.absolute().parent
    return LoadedConfig(_build(values, origins), path, MappingProxyType(origins))


def parse_setting(text: str) -> tuple[str, str]:
    """Split the ``name=value`` of ``--set``.

    Raises:
        ConfigurationError: there is no ``=`` or no name.
    """
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        expected = "name=value, such as delivery.successors=3"
        raise ConfigurationError("", "--set", text, expected)
    return name.strip(), value.strip()


def config_table(loaded: LoadedConfig, limits: Callable[..., Any] | None = None) -> FittingTable:
    """Every value and where it came from, for people; what is no default stands out.

    Raises:
        ConfigurationError: see `LoadedConfig.rows`.
    """
    from rich.text import Text

    from gossamer.command.tables import FittingTable

    table = FittingTable("setting", "value", "from", title="configuration", title_justify="left")
    for name, value, origin in loaded.rows(limits):
        style = "dim" if origin.source == "default" else "bold"
        table.add_row(*(Text(part, style) for part in (name, show_value(value), str(origin))))
    return table


def show_value(value: object) -> str:
    """A value as `config_table` prints it: as TOML writes it, paths and empty text as words."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none"
    return str(value) or "none"


def _layered(given: Iterable[_Given]) -> tuple[dict[str, object], dict[str, Origin]]:
    """What wins, and where it came from; a preset lies under everything else."""
    values: dict[str, object] = {}
    origins: dict[str, Origin] = {}
    for one in given:
        values[one.name], origins[one.name] = _to_whole(one.name, one.value), one.origin
    preset = values.get("preset")
    differences = PRESETS.get(preset, {}) if isinstance(preset, str) else {}
    for name, value in differences.items():
        if name not in values:
            values[name], origins[name] = value, Origin("preset", str(preset))
    return values, origins


def _to_whole(name: str, value: object) -> object:
    if name not in _WHOLE or not isinstance(value, float):
        return value
    return int(value) if value.is_integer() and abs(value) <= _LARGEST_WHOLE_FLOAT else value


def _build(values: Mapping[str, object], origins: Mapping[str, Origin]) -> NodeConfig:
    sections: dict[str, dict[str, object]] = {section.SECTION: {} for section in _SECTIONS}
    extra: dict[str, dict[str, object]] = {PROTOCOL: {}, LIMITS: {}}
    for name, value in values.items():
        section, dot, key = name.partition(".")
        if section == LIMITS or (section == PROTOCOL and key in PROTOCOL_SETTINGS):
            extra[section][key] = value
        elif dot:
            sections[section][key] = value
    sections[PROTOCOL]["settings"] = extra[PROTOCOL]
    try:
        parts: dict[str, Any] = {
            section.SECTION: section(**sections[section.SECTION]) for section in SECTIONS
        }
        parts["families"] = {
            section.SECTION: section(**sections[section.SECTION]) for section in FAMILY_SECTIONS
        }
        if "preset" in values:
            parts["preset"] = values["preset"]
        if ATTRIBUTES in values:
            parts["schema"] = _schema(values[ATTRIBUTES])
        return NodeConfig(**parts, limits=extra[LIMITS])
    except ConfigError as error:
        raise _placed(error, origins) from None


def _schema(tables: object) -> Schema:
    if not isinstance(tables, Mapping):
        raise ConfigError(ATTRIBUTES, tables, "a table for each attribute, [attributes.NAME]")
    return Schema.from_mapping(tables)


def _placed(error: ConfigError, origins: Mapping[str, Origin]) -> ConfigurationError:
    """The error with the file, variable or flag that the value at fault came from."""
    field = error.field
    if field.partition(".")[0] == "schema":
        field = ATTRIBUTES + field.removeprefix("schema")
    name = ATTRIBUTES if field.partition(".")[0] == ATTRIBUTES else field
    place = origins[name].place if name in origins else ""
    return ConfigurationError(place, field, error.value, error.expected)


def _from_file(path: Path) -> Iterator[_Given]:
    origin = Origin("file", str(path))
    for section, content in _parse(path).items():
        if section == "preset" or section == ATTRIBUTES:
            yield _Given(section, content, origin)
            continue
        if section not in _table_names():
            raise _unknown(str(path), section, content, ("preset", *_table_names()))
        if not isinstance(content, dict):
            raise ConfigurationError(str(path), section, content, f"a table, [{section}]")
        for key, value in content.items():
            name = f"{section}.{key}"
            _check_name(str(path), name, value)
            if name == _FOLDER and isinstance(value, str):
                value = path.absolute().parent / value
            yield _Given(name, value, origin)


def _from_environment(environment: Mapping[str, str]) -> Iterator[_Given]:
    for variable in sorted(environment):
        if not variable.startswith(PREFIX) or variable == FILE_VARIABLE:
            continue
        rest = variable.removeprefix(PREFIX + "LIMITS_")
        name = VARIABLES.get(variable) if rest == variable else f"{LIMITS}.{rest.lower()}"
        if name is None:
            raise _unknown("environment", variable, environment[variable], VARIABLES)
        value = _read_text(name, environment[variable])
        yield _Given(name, value, Origin("environment", variable))


def _from_flags(flags: Mapping[str, object]) -> Iterator[_Given]:
    for name, value in flags.items():
        if name != ATTRIBUTES:
            _check_name(COMMAND_LINE, name, value)
        read = _read_text(name, value) if isinstance(value, str) else value
        yield _Given(name, read, Origin("flag", COMMAND_LINE))


def _table_names() -> tuple[str, ...]:
    return (*(section.SECTION for section in _SECTIONS), LIMITS, ATTRIBUTES)


def _check_name(place: str, name: str, value: object) -> None:
    section, _, key = name.partition(".")
    if name in DEFAULTS or (section == LIMITS and key):
        return
    if section == PROTOCOL and key in DECIDED_ELSEWHERE:
        expected = f"{DECIDED_ELSEWHERE[key]} in its place"
        raise ConfigurationError(place, name, value, expected, "decided elsewhere")
    siblings = [known for known in DEFAULTS if known.startswith(f"{section}.")]
    if not siblings and not choice(name, DEFAULTS).startswith(NEAR):
        expected = "one that 'gossamer node check' lists"
        raise ConfigurationError(place, name, value, expected, "an unknown setting")
    raise _unknown(place, name, value, siblings or (*DEFAULTS, ATTRIBUTES))


def _unknown(place: str, name: str, value: object, known: Iterable[str]) -> ConfigurationError:
    return ConfigurationError(place, name, value, choice(name, known), "an unknown setting")


def _read_text(name: str, text: str) -> object:
    """The value that ``text`` means for the setting ``name``; checked with everything else."""
    default = DEFAULTS.get(name)
    if isinstance(default, str | Path):
        return text
    if isinstance(default, tuple) and not text.lstrip().startswith("["):
        return tuple(part.strip() for part in text.split(",") if part.strip())
    try:
        parsed = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    return parsed["value"] if len(parsed) == 1 else text


def _parse(path: Path) -> dict[str, Any]:
    text = _read_file(path)
    try:
        return tomllib.loads(text)
    except RecursionError:
        expected = "arrays and tables nested less deeply"
        raise ConfigurationError(str(path), "the text", text, expected, "too deep") from None
    except ValueError as error:  # a fault of syntax, or an integer of thousands of digits
        expected = "valid TOML"
        raise ConfigurationError(
            str(path), "the text", text, expected, f"no TOML ({error})"
        ) from None


def _read_file(path: Path) -> str:
    what = "the configuration file"
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError:
        raise ConfigurationError(str(path), what, path, "a TOML file", "missing") from None
    except OSError as error:
        found = f"unreadable ({error.strerror or error})"
        raise ConfigurationError(str(path), what, path, "a readable file", found) from None
    if len(raw) > MAX_FILE_BYTES:
        expected = f"at most {MAX_FILE_BYTES} bytes"
        raise ConfigurationError(str(path), what, path, expected, "longer than that")
    try:
        return decoded(raw)
    except EncodingError as error:
        raise ConfigurationError(str(path), what, path, "text in UTF-8", error.reason) from None


# The configuration of the peer in a folder: its node.toml, and the layers over that.

CONFIG_NAME: Final = "node.toml"
FOLDER_VARIABLE: Final = PREFIX + "IDENTITY_FOLDER"


def load(folder: Path | None, changes: Iterable[str] | None = None) -> LoadedConfig:
    """The configuration of the peer in ``folder``.

    Args:
        folder: holds node.toml, where there is one; None takes the environment's, or the
            current folder.
        changes: of ``--set``, each ``name=value``.

    Raises:
        ConfigurationError: it cannot be read, or is impossible.
    """
    flags: dict[str, object] = dict(map(parse_setting, changes or ()))
    if folder is None:
        if os.environ.get(FILE_VARIABLE):
            return load_config(None, flags=flags)
        folder = Path(os.environ.get(FOLDER_VARIABLE, "."))
    path = folder / CONFIG_NAME
    if path.exists():
        return load_config(path, flags=flags)
    return load_config(None, flags={"identity.folder": folder, **flags})
