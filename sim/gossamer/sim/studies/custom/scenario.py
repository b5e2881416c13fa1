"""What a simulation of a protocol of one's own is to run: typed, checked when built."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Final

import attrs

from gossamer.sim.custom.language.declarations import settings_with
from gossamer.sim.custom.loading import (
    PROTOCOL,
    ProtocolClass,
    protocol_named,
    resolve_protocol,
    split_name,
)
from gossamer.sim.errors import ScenarioError
from gossamer.sim.studies.peers.inputs.changes import Turnover
from gossamer.sim.studies.peers.inputs.scenario import (
    MOST_NODES,
    MOST_ROUNDS,
    Churn,
    check_distinct,
    check_name_and_size,
    check_system_name,
    size_field,
)
from gossamer.sim.studies.worlds.attributes import FILE, Attribute
from gossamer.sim.studies.worlds.network import ABSENT_IN_CYCLES, FILES, Link, check_absent
from gossamer.sim.studies.worlds.sessions import Sessions
from gossamer.sim.study.scenario_format import (
    SYSTEM,
    Document,
    ScenarioFormat,
    name_of_system,
    require_systems,
    require_table,
    table_lines,
)
from gossamer.sim.study.scenarios import (
    check,
    number_field,
    of_type,
    one_of,
    share_field,
    whole_field,
)

KIND: Final = "protocol"
ENGINES: Final = ("event", "windows", "cycle")
# What is expected in place of windows where messages may take no time.
TIME_FOR_WINDOWS: Final = (
    '"event", as messages may take less than 0.001 s; "windows" needs a latency in [network] '
    "between all nodes (of files, access_s adds to it)"
)
# Columns of the table of nodes that every run has; attributes stand beside them.
NODE_COLUMNS: Final = ("node", "up", "sent_bytes", "received_bytes")


@attrs.frozen(kw_only=True)
class CustomSystem:
    """One of the systems that a run compares.

    Attributes:
        name: of its column in tables and its folder in results.
        protocol: what its nodes run.
        settings: all of them, by name.
    """

    name: str = attrs.field(validator=of_type(str, "letters, digits, '-', '_' and '.'"))
    protocol: ProtocolClass
    settings: Mapping[str, Any]

    def __attrs_post_init__(self) -> None:
        check_system_name(self.name)


def system_of(name: str, protocol: ProtocolClass, given: Mapping[str, Any], prefix: str) -> Any:
    """A system with these settings, the others by default; raises `ScenarioError`."""
    settings = settings_with(protocol.declared, given, prefix)
    return CustomSystem(name=name, protocol=protocol, settings=settings)


# Not the class itself: mypy does not see what that is called with.
def _to_systems(systems: Iterable[CustomSystem]) -> tuple[CustomSystem, ...]:
    return tuple(systems)


@attrs.frozen(kw_only=True)
class CustomScenario:
    """A whole run.

    Attributes:
        name: for titles, and for the default name of the result folder.
        systems: compared under the same conditions and seed.
        churn: who is online when; everybody if None.
        sessions, turnover: models of who is, in place of a trace.
        leaving: share of the nodes that go down by any of them that say so (``on_leave``).
        nodes: number of nodes; with churn, nodes of the trace that take part.
        rounds: to run at most; an observer may end the run earlier.
        round_s: length of a round.
        seed: of everything random.
        engine: "event", "windows" (events on all cores) or "cycle".
        clock_drift: by which share nodes' clocks are too fast or too slow at most.
        network: what links do.
        attributes: of nodes, by name.
    """

    kind: ClassVar[str] = KIND

    name: str = attrs.field(validator=of_type(str, "a text"))
    systems: tuple[CustomSystem, ...] = attrs.field(converter=_to_systems)
    churn: Churn | None = None
    sessions: Sessions | None = None
    turnover: Turnover | None = None
    nodes: int | None = size_field(2, MOST_NODES, 1000)
    rounds: int | None = size_field(1, MOST_ROUNDS, 100)
    round_s: float = number_field(
        "a time from 0.001 to 1000000 s", lambda time_s: 0.001 <= time_s <= 1e6, default=1.0
    )
    seed: int = whole_field(0, (1 << 62) - 1, default=1)
    engine: str = attrs.field(default="event", validator=one_of(*ENGINES))
    clock_drift: float = number_field(
        "a share from 0, below 1", lambda share: 0 <= share < 1, default=0.0
    )
    leaving: float = share_field(0.0)
    network: Link = attrs.field(factory=Link)
    attributes: Mapping[str, Attribute] = attrs.field(factory=dict)

    def __attrs_post_init__(self) -> None:
        check_name_and_size(self)
        chosen = [one for one in ("churn", "sessions", "turnover") if getattr(self, one)]
        expected = "only one of [churn], [sessions] and [turnover], which say who is online"
        check(len(chosen) <= 1, ", ".join(chosen), chosen, expected)
        check_distinct([system.name for system in self.systems])
        capacity, expected = self.network.event_capacity, "none where nodes take all messages"
        if capacity is not None:
            field = "network.event_capacity"
            raise ScenarioError(None, field, capacity, expected, found="an unknown key")
        if self.engine == "cycle":
            self._check_cycles()
        takes_time = self.engine != "windows" or self.network.latency != "none"
        check(takes_time, "engine", self.engine, TIME_FOR_WINDOWS)
        for name, one in self.attributes.items():
            expected = "a name that tables of nodes do not use for something else"
            check(name not in NODE_COLUMNS, f"attributes.{name}", one.given, expected)

    def _check_cycles(self) -> None:
        """Refuse what the cycle engine would pass over in silence."""
        check_absent(self.network, "cycle", ABSENT_IN_CYCLES)
        if self.clock_drift > 0:
            expected = '0 in the cycle engine (engine = "event" knows more)'
            raise ScenarioError(None, "clock_drift", self.clock_drift, expected)


# Scenarios of protocols of one's own as TOML.
#
# Keys at the top are `protocol`, and the fields of `CustomScenario`; the tables [churn] and
# [network] hold those of their classes, [settings] those that the protocol declares. Every
# [[system]] has a name, may have a protocol of its own, and settings that differ.


_SETTINGS, _ATTRIBUTES = "settings", "attributes"


class CustomFormat(ScenarioFormat[CustomScenario]):
    """With [[system]] tables, or a protocol and its [settings]; and files of attributes."""

    more = (PROTOCOL, _SETTINGS, _ATTRIBUTES, SYSTEM)
    tables = (_SETTINGS, _ATTRIBUTES)

    def resolve_paths(self, document: Document, folder: Path) -> bool:
        changed = super().resolve_paths(document, folder)
        attributes = document.get(_ATTRIBUTES)
        for given in attributes.values() if isinstance(attributes, dict) else ():
            if isinstance(given, dict) and isinstance(given.get(FILE), str):
                changed |= not Path(given[FILE]).is_absolute()
                given[FILE] = (folder / given[FILE]).resolve()
        entries = document.get(SYSTEM)
        systems = entries if isinstance(entries, list) else []
        for table in (document, *systems):
            changed |= resolve_protocol(table, folder)
        return changed

    def read_more(self, document: Document) -> Document:
        """Beside the rest; raises `SimulationError` where executing a protocol's file does."""
        attributes = require_table(document.get(_ATTRIBUTES, {}), _ATTRIBUTES)
        systems = _systems(document)
        return {
            "name": document.get("name", systems[0].protocol.file.stem),
            "attributes": {name: Attribute(name, given) for name, given in attributes.items()},
            "systems": systems,
        }

    def write_more(self, scenario: CustomScenario) -> list[str]:
        attributes = {name: one.given for name, one in scenario.attributes.items()}
        lines = table_lines(f"[{_ATTRIBUTES}]", f"{_ATTRIBUTES}.", attributes) if attributes else []
        for system in scenario.systems:
            protocol = f"{system.protocol.file}:{system.protocol.name}"
            values = {"name": system.name, PROTOCOL: protocol, **system.settings}
            lines += table_lines(f"[[{SYSTEM}]]", f"{SYSTEM}.{system.name}.", values)
        return lines

    def _override(self, document: Document, dotted: str, value: object) -> None:
        if dotted == PROTOCOL and isinstance(value, str):
            file, name = split_name(value)
            value = f"{file.absolute().resolve()}:{name}"
        named = dotted.startswith(f"{_ATTRIBUTES}.")
        if named and isinstance(value, dict) and isinstance(value.get(FILE), str):
            value = value | {FILE: Path(value[FILE]).absolute().resolve()}
        super()._override(document, dotted, value)


FORMAT: Final = CustomFormat(
    scenario=CustomScenario,
    sections={"churn": Churn, "sessions": Sessions, "turnover": Turnover, "network": Link},
    paths=(("churn", "trace"), *(("network", name) for name in FILES)),
)


def _systems(document: Document) -> list[Any]:
    common = require_table(document.get(_SETTINGS, {}), _SETTINGS)
    entries = document.get(SYSTEM)
    if entries is None:
        protocol = _protocol(document)
        return [system_of(protocol.name.lower(), protocol, common, f"{_SETTINGS}.")]
    systems = enumerate(require_systems(entries), start=1)
    return [_system(document, common, entry, place) for place, entry in systems]


def _system(document: Document, common: Document, entry: Document, place: int) -> Any:
    prefix = f"{SYSTEM}.{name_of_system(entry, place)}."
    protocol = _protocol(entry if PROTOCOL in entry else document)
    own = {key: value for key, value in entry.items() if key not in ("name", PROTOCOL)}
    # What all systems share is checked under its own name.
    known = protocol.declared.settings
    shared = {key: value for key, value in common.items() if key in known or PROTOCOL not in entry}
    system_of("checked", protocol, shared, f"{_SETTINGS}.")
    return system_of(entry["name"], protocol, {**shared, **own}, prefix)


def _protocol(table: Document) -> ProtocolClass:
    if PROTOCOL not in table:
        expected = "the file and class of a protocol, such as rumor.py:Rumor"
        raise ScenarioError(None, PROTOCOL, None, expected, found="missing")
    return protocol_named(table[PROTOCOL])
