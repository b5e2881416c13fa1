"""What a scenario of kind "trees" would run, shown as a table."""

from __future__ import annotations

import psutil
from rich.console import Group

from gossamer.command.tables import FittingTable
from gossamer.sim.errors import ScenarioError
from gossamer.sim.studies.dissemination.scenario import TreesScenario
from gossamer.sim.studies.dissemination.topologies.topology import Topology

# Measured: what a process takes with the compiler loaded, and for each document with its keywords,
# matches and bill; the path table takes 12 bytes a pair of brokers.
PROCESS_BYTES = 300 * 2**20
PAIR_BYTES = 12
DOCUMENT_BYTES = 2_000


def memory_bytes(scenario: TreesScenario, topology: Topology) -> int:
    """About what the process of one strategy will need."""
    pairs = topology.graph.nodes**2
    return PROCESS_BYTES + PAIR_BYTES * pairs + DOCUMENT_BYTES * scenario.workload.documents


def check_trees(scenario: TreesScenario) -> Topology:
    """The topology, when all that can be refused before a run is found to be possible.

    Raises:
        ScenarioError: a file of the scenario cannot be read or holds what cannot be, or this
            machine has not enough memory.
    """
    topology = scenario.topology.build(scenario.seed)
    if scenario.workload.file is not None:
        scenario.routed(topology)
    needed, present = memory_bytes(scenario, topology), psutil.virtual_memory().total
    if needed > present:
        expected = f"fewer: {_gib(needed)} would be needed, and this machine has {_gib(present)}"
        raise ScenarioError(None, "topology.brokers", topology.graph.nodes, expected)
    return topology


def trees_preview_table(scenario: TreesScenario) -> Group:
    """Check a scenario, its files and this machine, and show its size for people.

    Raises:
        ScenarioError: see `check_trees`.
    """
    topology = check_trees(scenario)
    table = FittingTable(
        title=f"{scenario.name}: would run",
        title_justify="left",
        title_style="bold",
        show_header=False,
    )
    for label, value in _rows(scenario, topology):
        table.add_row(label, value)
    return Group(table)


def _gib(size: int) -> str:
    return f"{size / 2**30:.1f} GiB"


def _rows(scenario: TreesScenario, topology: Topology) -> list[tuple[str, str]]:
    graph, workload = topology.graph, scenario.workload
    if workload.file is not None:
        documents = f"of {workload.file.name}"
    else:
        documents = (
            f"{workload.documents:,}, with up to {workload.document_keywords} of "
            f"{workload.keywords:,} keywords"
        )
    sampled = f"{100 * scenario.planning.sample_share:g} % sampled"
    capacity = scenario.topology.capacity
    return [
        ("strategies", ", ".join(scenario.strategies)),
        ("topology", f"{topology.name}: {graph.nodes:,} brokers, {graph.links:,} links"),
        ("links carry", f"{capacity:,g} each" if capacity else "anything"),
        ("neighbourhoods", f"{100 * workload.neighbourhood:g} % of the brokers"),
        ("documents", f"{documents}; {sampled}"),
        ("memory", f"about {memory_bytes(scenario, topology) / 2**20:,.0f} MiB a process"),
    ]
