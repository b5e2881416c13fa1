"""Scenario files of either kind: `kind = "brokers"` at the top tells brokers from peers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import attrs

from gossamer.sim.brokers import scenario_file as brokers
from gossamer.sim.brokers.scenario import BrokerScenario
from gossamer.sim.errors import ScenarioError
from gossamer.sim.scenario import Scenario
from gossamer.sim.scenario_file import read_scenario as read_peers
from gossamer.sim.toml_files import parse_document, read_text

AnyScenario = Scenario | BrokerScenario


def read_scenario(path: Path, overrides: Mapping[str, object]) -> tuple[AnyScenario, str]:
    """Read a scenario file of either kind, see `gossamer.sim.scenario_file.read_scenario`.

    Raises:
        ScenarioError: the file is missing, unreadable, not TOML, or not a possible scenario.
    """
    text = read_text(path)
    document = parse_document(text, str(path))
    kind = overrides.get("kind", document.get("kind"))
    if kind is None:
        return read_peers(path, overrides)
    try:
        brokers.check_kind(kind)
        scenario = brokers.scenario_from_document(document, overrides)
    except ScenarioError as error:
        # What was overridden is not in the file.
        raise attrs.evolve(error, file=None if error.field in overrides else str(path)) from None
    if overrides:
        text = f"# As run, from {path.name!r}.\n\n" + brokers.scenario_to_toml(scenario)
    return scenario, text
