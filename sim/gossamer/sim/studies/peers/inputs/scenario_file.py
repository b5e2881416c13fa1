"""Scenarios of peers as TOML.

The tables [subscriptions], [events], [drift], [churn], [turnover], [workload] and [network] hold
the fields of the classes of `scenario` and `changes`, and every [[system]] a name, a preset and any
field of `config.Settings` that differs from it, or a protocol and its settings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import attrs

from gossamer.sim.churn.files import ENDINGS
from gossamer.sim.custom.loading import PROTOCOL, resolve_protocol
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
from gossamer.sim.study.scenario_format import (
    SYSTEM,
    Document,
    ScenarioFormat,
    check_keys,
    name_of_system,
    require_systems,
    table_lines,
)

_NOT_SETTINGS = ("name", "preset", PROTOCOL)
_SYSTEM_KEYS = (*_NOT_SETTINGS, *sorted(set(SETTING_TYPES) - set(SHARED_SETTINGS)))


class PeersFormat(ScenarioFormat[Scenario]):
    """With [[system]] tables; with churn, ``nodes`` and ``rounds`` default to all of the trace."""

    more = (SYSTEM,)

    def resolve_paths(self, document: Document, folder: Path) -> bool:
        changed = super().resolve_paths(document, folder)
        entries = document.get(SYSTEM)
        for one in entries if isinstance(entries, list) else ():
            changed |= resolve_protocol(one, folder)
        return changed

    def read_more(self, document: Document) -> Document:
        return {"systems": tuple(_systems(document[SYSTEM]))} if SYSTEM in document else {}

    def write_more(self, scenario: Scenario) -> list[str]:
        lines = []
        for system in scenario.systems:
            values = {"name": system.name, "preset": system.preset, **system.settings}
            if system.protocol is not None:
                values[PROTOCOL] = f"{system.protocol.file}:{system.protocol.name}"
            lines += table_lines(f"[[{SYSTEM}]]", f"{SYSTEM}.{system.name}.", values)
        return lines

    def systems_of(self, document: Document) -> list[Any]:
        default = [{"name": system.name, "preset": system.preset} for system in Scenario().systems]
        return require_systems(document.setdefault(SYSTEM, default), System, str)


FORMAT: Final = PeersFormat(
    scenario=Scenario,
    sections={
        "subscriptions": Subscriptions,
        "events": Events,
        "drift": Drift,
        "churn": Churn,
        "turnover": Turnover,
        "workload": TakenFrom,
        "network": Link,
    },
    paths=(
        ("churn", "trace"),
        *(("workload", field.name) for field in attrs.fields(TakenFrom)),
        *(("network", name) for name in FILES),
    ),
)


def _systems(entries: object) -> Iterable[System | str]:
    for place, entry in enumerate(require_systems(entries, System, str), start=1):
        if isinstance(entry, System | str):  # of a script
            yield entry
            continue
        prefix = f"{SYSTEM}.{name_of_system(entry, place)}."
        if PROTOCOL not in entry:
            check_keys(prefix, entry, (*_SYSTEM_KEYS, *SHARED_SETTINGS))
        settings = {key: value for key, value in entry.items() if key not in _NOT_SETTINGS}
        given = {key: entry[key] for key in _NOT_SETTINGS if key in entry}
        yield System(**given, settings=settings)


# A scenario around a churn trace, for those who have nothing but the trace.


def replay_scenario(
    trace: Path, preset: str, overrides: Mapping[str, object]
) -> tuple[Scenario, str]:
    """The system ``preset`` beside the baseline, under all of ``trace``; and the text of its file.

    Raises:
        ScenarioError: the preset is unknown or an override impossible.
    """
    document: dict[str, Any] = {
        "name": _stem(trace),
        # Measuring the whole overlay costs more than a round of it; over days, samples will do.
        "measure_every": 10,
        "events": {"per_round": 0.5},
        "churn": {"trace": trace.resolve()},
        "system": [{"name": one, "preset": one} for one in dict.fromkeys((preset, "baseline"))],
    }
    scenario = FORMAT.read(document, overrides)
    return scenario, f"# Replay of {trace.name!r}.\n\n" + FORMAT.write(scenario)


def _stem(trace: Path) -> str:
    ending = next((ending for ending in ENDINGS if trace.name.endswith(ending)), "")
    return trace.name.removesuffix(ending) or trace.name
