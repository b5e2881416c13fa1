"""Structured cyclic overlays as a study: previewed, run, reported; see `study.contract`.

<routing>/deliveries, queues, subscriptions.parquet   see `records.RoutingRecord`
plots/overlay, delay, queues, messages                see `plots`
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from gossamer.sim.studies.scot.burst import run_burst
from gossamer.sim.studies.scot.records import (
    SCOT_MEASURES,
    RoutingRecord,
    ScotRunRecord,
    summarise_routing,
)
from gossamer.sim.studies.scot.scenario import FORMAT, KIND, ScotScenario
from gossamer.sim.studies.side_by_side import SideBySideStudy, check_memory, effort
from gossamer.sim.study.plot import Drawing
from gossamer.sim.study.records import peak_memory_bytes

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
    workload = scenario.workload
    publications = workload.publishers * workload.notifications + scenario.burst.notifications
    return (
        PROCESS_BYTES
        + workload.subscribers * (SUBSCRIPTION_BYTES + SUBSCRIPTION_BYTES_A_BROKER * brokers)
        + publications * (PUBLICATION_BYTES + PUBLICATION_BYTES_A_BROKER * brokers)
    )


class ScotStudy(SideBySideStudy[ScotScenario, RoutingRecord]):
    """A burst of notifications on a structured cyclic overlay, under several ways of routing."""

    kind = KIND
    format = FORMAT
    measures = SCOT_MEASURES
    listed = "routings"

    def check(self, scenario: ScotScenario) -> int:
        words = "fewer subscribers or publications: they need up to {}"
        subscribers = scenario.workload.subscribers
        needed = check_memory(memory_bytes(scenario), "workload.subscribers", subscribers, words)
        # Read, or made up, when they are asked for.
        _ = scenario.workload.contents(scenario.seed).contents
        return needed

    def sizes(self, scenario: ScotScenario) -> Iterator[tuple[str, str]]:
        needed = self.check(scenario)
        scot, workload, burst = scenario.overlay.build(), scenario.workload, scenario.burst
        yield "routings", ", ".join(scenario.routings)
        yield (
            "overlay",
            f"{scot.broker_count:,} brokers: {len(scot.clusters)} clusters of "
            f"{len(scot.regions)} regions",
        )
        yield (
            "links",
            f"{scot.intra_cluster_count:,} within clusters, "
            f"{scot.inter_cluster_count:,} between them",
        )
        yield "subscribers", f"{workload.subscribers:,}, to {workload.kind}"
        yield (
            "publishers",
            f"{workload.publishers:,}, each of {workload.notifications:,} notifications "
            f"at {workload.per_minute:,} a minute",
        )
        yield (
            "burst",
            f"{burst.notifications:,} at {burst.per_minute:,} a minute from "
            f"{burst.broker or 'any broker'}, to {burst.subscribers} subscribers in each cluster",
        )
        yield "memory", f"at most about {needed / 2**20:,.0f} MiB a way of routing"

    def run_one(self, scenario: ScotScenario, system: str) -> RoutingRecord:
        burst = scenario.run_of(system)
        result = run_burst(burst)
        return RoutingRecord(
            name=system, burst=burst, result=result, peak_rss_bytes=peak_memory_bytes()
        )

    def summarise(self, system: Any) -> dict[str, Any]:
        return summarise_routing(system)

    def facts(self, record: ScotRunRecord, summary: Mapping[str, Any]) -> str:
        burst = next(iter(record.systems.values())).burst
        scot = burst.scot
        return (
            f"{scot.broker_count} brokers in {len(scot.clusters)} clusters, "
            f"{burst.subscribers:,} subscribers, {burst.publishers:,} publishers, a burst of "
            f"{burst.burst_notifications:,} at {burst.burst_per_minute:,} a minute, "
            f"{effort(summary)}"
        )

    def drawings(self, record: ScotRunRecord) -> Iterable[Drawing]:
        from gossamer.sim.studies.scot.plots import drawings

        return drawings(record)


SCOT: Final = ScotStudy()
