"""Scenario files of all kinds: `kind` at the top, such as "brokers", tells them from peers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import attrs

from gossamer.sim.errors import ScenarioError
from gossamer.sim.studies.dissemination import scenario_file as trees
from gossamer.sim.studies.dissemination.scenario import TreesScenario
from gossamer.sim.studies.peers.inputs.scenario import Scenario
from gossamer.sim.studies.peers.inputs.scenario_file import read_scenario as read_peers
from gossamer.sim.studies.scot import scenario_file as scot
from gossamer.sim.studies.scot.scenario import ScotScenario
from gossamer.sim.studies.tree_brokers import scenario_file as brokers
from gossamer.sim.studies.tree_brokers.scenario import BrokerScenario
from gossamer.sim.study.toml_files import parse_document, read_text

AnyScenario = Scenario | BrokerScenario | ScotScenario | TreesScenario

# By kind, the module that reads and writes it.
_FILES = {"brokers": brokers, "scot": scot, "trees": trees}


def read_scenario(path: Path, overrides: Mapping[str, object]) -> tuple[AnyScenario, str]:
    """Read a scenario file of any kind, see `gossamer.sim.studies.peers.inputs.scenario_file.read_scenario`.

    Raises:
        ScenarioError: the file is missing, unreadable, not TOML, or not a possible scenario.
    """
    text = read_text(path)
    document = parse_document(text, str(path))
    kind = overrides.get("kind", document.get("kind"))
    if kind is None:
        return read_peers(path, overrides)
    try:
        files = _FILES[_known(kind)]
        relative = files is trees and trees.resolve_paths(document, path.absolute().parent)
        scenario = files.scenario_from_document(document, overrides)
    except ScenarioError as error:
        # What was overridden is not in the file.
        raise attrs.evolve(error, file=None if error.field in overrides else str(path)) from None
    if overrides or relative:
        text = f"# As run, from {path.name!r}.\n\n" + files.scenario_to_toml(scenario)
    return scenario, text


def _known(kind: object) -> str:
    """Refuse a kind of scenario that there is not."""
    if not isinstance(kind, str) or kind not in _FILES:
        choices = ", ".join(map(repr, _FILES))
        expected = f"{choices}, or nothing for peers without servers"
        raise ScenarioError(None, "kind", kind, expected)
    return kind
