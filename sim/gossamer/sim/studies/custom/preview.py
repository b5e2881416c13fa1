"""What a scenario would run, and about how much memory that takes."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import psutil
from rich.console import Group

from gossamer.command.tables import FittingTable
from gossamer.sim.custom import Node
from gossamer.sim.custom.conditions import whole_seconds
from gossamer.sim.custom.protocol import arrays_of, make_state, parts_of
from gossamer.sim.engine.latency import Latency
from gossamer.sim.engine.windows.window_engine import suits_windows
from gossamer.sim.errors import ScenarioError
from gossamer.sim.studies.custom.scenario import CustomScenario, CustomSystem
from gossamer.sim.studies.custom.simulation import Prepared
from gossamer.sim.studies.worlds.links import make_latency
from gossamer.sim.studies.worlds.preview import latency_words, network_words

# Measured and rounded up: a process with all libraries, a plain node, and what engines have a node.
_PROCESS_BYTES: Final = 400 * 2**20
_PLAIN_NODE_BYTES: Final = 2000
_ENGINE_BYTES: Final = 200


def bytes_of(scenario: CustomScenario, nodes: int) -> int:
    """About how many bytes a run needs.

    Raises:
        ScenarioError: this machine has less.
    """
    needed = _PROCESS_BYTES + nodes * sum(map(_bytes_a_node, scenario.systems))
    present = psutil.virtual_memory().total
    if needed > present:
        expected = f"so few that about {needed / 2**30:.1f} GiB are not more than this machine has"
        raise ScenarioError(None, "nodes", nodes, expected)
    return needed


def _bytes_a_node(system: CustomSystem) -> int:
    declared = system.protocol.declared
    if issubclass(declared.owner, Node):
        return _PLAIN_NODE_BYTES
    sizes = [
        sum(array.nbytes for _, array in arrays_of(_state_of(system, nodes))) for nodes in (2, 3)
    ]
    return int(np.diff(sizes)[0]) + _ENGINE_BYTES


def _state_of(system: CustomSystem, nodes: int) -> Any:
    declared = system.protocol.declared
    named = [
        name for part in parts_of(declared) if part.declared for name in part.declared.attributes
    ]
    attributes = {name: np.zeros(nodes) for name in named}
    return make_state(declared, nodes, system.settings, 1, attributes)


def _engine_words(scenario: CustomScenario, latency: Latency) -> str:
    """Which engine runs, and whether threads are of use to it."""
    if scenario.engine != "windows" or suits_windows(latency, whole_seconds(scenario.round_s)):
        return scenario.engine
    return "windows, on one thread, as messages may take less than a fiftieth of a round"


def preview_table(scenario: CustomScenario, prepared: Prepared) -> Group:
    """What would run, for people."""
    sizes = FittingTable(
        title=f"{scenario.name}: would run",
        title_justify="left",
        title_style="bold",
        show_header=False,
    )
    sizes.add_row("nodes", f"{prepared.nodes:,}")
    sizes.add_row("rounds", f"at most {prepared.rounds:,}, of {scenario.round_s:g} s")
    latency = make_latency(scenario.network, prepared.nodes, scenario.seed)
    sizes.add_row("engine", _engine_words(scenario, latency))
    sizes.add_row("latency", latency_words(latency, prepared.nodes, scenario.seed))
    sizes.add_row("links", network_words(scenario.network))
    sizes.add_row("memory", f"about {bytes_of(scenario, prepared.nodes) / 2**20:,.0f} MiB")
    systems = FittingTable("system", "protocol", "written as", "settings", "messages (bytes)")
    for system in scenario.systems:
        declared = system.protocol.declared
        plain = issubclass(declared.owner, Node)
        systems.add_row(
            system.name,
            system.protocol.label,
            "plain classes" if plain else "rules",
            ", ".join(f"{name} = {value}" for name, value in system.settings.items()),
            ", ".join(f"{name} ({one.size_bytes})" for name, one in declared.messages.items()),
        )
    return Group(sizes, systems)
