"""What a scenario of kind "brokers" would run, shown as a table."""

from __future__ import annotations

import psutil
from rich.console import Group

from gossamer.command.tables import FittingTable
from gossamer.sim.errors import ScenarioError
from gossamer.sim.studies.tree_brokers.scenario import BrokerScenario

# Measured: what a process takes with the compiler loaded, and for a subscription of the 55 brokers.
PROCESS_BYTES = 250 * 2**20
SUBSCRIPTION_BYTES = 14_000


def memory_bytes(scenario: BrokerScenario) -> int:
    """About what the process of one covering will need."""
    return PROCESS_BYTES + SUBSCRIPTION_BYTES * scenario.workload.subscriptions


def check_memory(scenario: BrokerScenario) -> None:
    """Refuse what this machine has no memory for; raises `ScenarioError`."""
    present = psutil.virtual_memory().total
    if memory_bytes(scenario) > present:
        expected = (
            f"fewer subscriptions: {scenario.workload.subscriptions:,} need "
            f"{_gib(memory_bytes(scenario))}, and this machine has {_gib(present)}"
        )
        raise ScenarioError(None, "workload.roots", scenario.workload.roots, expected)


def broker_preview_table(scenario: BrokerScenario) -> Group:
    """Check a scenario against this machine, and show its size for people.

    Raises:
        ScenarioError: the machine has not enough memory.
    """
    check_memory(scenario)
    table = FittingTable(
        title=f"{scenario.name}: would run",
        title_justify="left",
        title_style="bold",
        show_header=False,
    )
    for label, value in _rows(scenario):
        table.add_row(label, value)
    return Group(table)


def _gib(size: int) -> str:
    return f"{size / 2**30:.1f} GiB"


def _rows(scenario: BrokerScenario) -> list[tuple[str, str]]:
    overlay, workload, timing = scenario.overlay.build(), scenario.workload, scenario.timing
    publications = round((timing.calm_s + timing.aftermath_s) / timing.publish_every_s)
    return [
        ("coverings", ", ".join(scenario.coverings)),
        ("overlay", f"{overlay.name}, {len(overlay.graph)} brokers"),
        ("subscriptions", f"{workload.subscriptions:,}"),
        (
            "taken back",
            f"{workload.unsubscriptions:,} of {workload.roots:,} roots, "
            f"each of which covers {workload.degree:,}",
        ),
        ("publications", f"{publications:,}"),
        ("service times", scenario.service.kind),
        ("memory", f"about {memory_bytes(scenario) / 2**20:,.0f} MiB a covering"),
    ]
