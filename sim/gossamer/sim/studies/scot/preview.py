"""What a scenario of kind "scot" would run, shown as a table."""

from __future__ import annotations

import psutil
from rich.console import Group

from gossamer.command.tables import FittingTable
from gossamer.sim.errors import ScenarioError
from gossamer.sim.studies.scot.scenario import ScotScenario

# Measured, and rounded up: a process with the compiler loaded; a subscription with what is written
# down of it at each broker; a publication with its deliveries at each broker.
PROCESS_BYTES = 300 * 2**20
SUBSCRIPTION_BYTES = 3_000
SUBSCRIPTION_BYTES_A_BROKER = 400
PUBLICATION_BYTES = 100
PUBLICATION_BYTES_A_BROKER = 50


def memory_bytes(scenario: ScotScenario) -> int:
    """About what the process of one way of routing will need, at most."""
    brokers = scenario.overlay.build().broker_count
    return (
        PROCESS_BYTES
        + scenario.workload.subscribers
        * (SUBSCRIPTION_BYTES + SUBSCRIPTION_BYTES_A_BROKER * brokers)
        + _publications(scenario) * (PUBLICATION_BYTES + PUBLICATION_BYTES_A_BROKER * brokers)
    )


def check_memory(scenario: ScotScenario) -> None:
    """Refuse what this machine has no memory for; raises `ScenarioError`."""
    present = psutil.virtual_memory().total
    if memory_bytes(scenario) > present:
        expected = (
            "fewer subscribers or publications: they need up to "
            f"{memory_bytes(scenario) / 2**30:.1f} GiB, and this machine has "
            f"{present / 2**30:.1f} GiB"
        )
        raise ScenarioError(None, "workload.subscribers", scenario.workload.subscribers, expected)


def check_scot(scenario: ScotScenario) -> None:
    """Refuse what can be refused before a run.

    Raises:
        ScenarioError: the machine has not enough memory, or the file of quotes is not as it should
            be.
    """
    check_memory(scenario)
    # Read, or made up, when they are asked for.
    _ = scenario.workload.contents(scenario.seed).contents


def scot_preview_table(scenario: ScotScenario) -> Group:
    """Check a scenario, its file and this machine, and show its size for people.

    Raises:
        ScenarioError: see `check_scot`.
    """
    check_scot(scenario)
    table = FittingTable(
        title=f"{scenario.name}: would run",
        title_justify="left",
        title_style="bold",
        show_header=False,
    )
    for label, value in _rows(scenario):
        table.add_row(label, value)
    return Group(table)


def _publications(scenario: ScotScenario) -> int:
    workload = scenario.workload
    return workload.publishers * workload.notifications + scenario.burst.notifications


def _rows(scenario: ScotScenario) -> list[tuple[str, str]]:
    scot, workload, burst = scenario.overlay.build(), scenario.workload, scenario.burst
    where = burst.broker or "any broker"
    return [
        ("routings", ", ".join(scenario.routings)),
        (
            "overlay",
            f"{scot.broker_count:,} brokers: {len(scot.clusters)} clusters of "
            f"{len(scot.regions)} regions",
        ),
        (
            "links",
            f"{scot.intra_cluster_count:,} within clusters, "
            f"{scot.inter_cluster_count:,} between them",
        ),
        ("subscribers", f"{workload.subscribers:,}, to {workload.kind}"),
        (
            "publishers",
            f"{workload.publishers:,}, each of {workload.notifications:,} notifications "
            f"at {workload.per_minute:,} a minute",
        ),
        (
            "burst",
            f"{burst.notifications:,} at {burst.per_minute:,} a minute from {where}, "
            f"to {burst.subscribers} subscribers in each cluster",
        ),
        ("memory", f"at most about {memory_bytes(scenario) / 2**20:,.0f} MiB a way of routing"),
    ]
