"""The strategies side by side on one topology and one workload (Fig. 5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs
from rich.table import Table

from gossamer.protocol.dissemination.graphs.tables import PathTable
from gossamer.protocol.dissemination.optimum import lower_bounds
from gossamer.protocol.dissemination.sample import Sample
from gossamer.sim.studies.dissemination.strategies import (
    COMPARED,
    Outcome,
    run_strategy,
    setting_of,
)
from gossamer.sim.studies.dissemination.topologies.topology import Topology


@attrs.frozen(eq=False)
class Comparison:
    """All strategies on one topology and workload.

    Attributes:
        outcomes: of each strategy, dearest first as Fig. 5 has them.
        lower_bound: no routing of these documents costs less; None where not asked for.
        documents, sampled: how many were routed, and how many were planned with.
    """

    topology: Topology
    outcomes: tuple[Outcome, ...]
    lower_bound: float | None
    documents: int
    sampled: int

    def outcome(self, strategy: str) -> Outcome:
        """What a strategy came to, by its name."""
        return next(one for one in self.outcomes if one.strategy == strategy)

    def cost(self, strategy: str) -> float:
        """The cost of a strategy, by its name."""
        return self.outcome(strategy).bill.total


def compare(
    topology: Topology,
    planned: Sample,
    routed: Sample,
    seed: int,
    *,
    strategies: Sequence[str] = COMPARED,
    table: PathTable | None = None,
    bounded: bool = False,
    watch: Callable[[str], None] | None = None,
) -> Comparison:
    """Plan trees by a sample with every strategy, and route all documents on them.

    Args:
        planned: the sampled documents.
        routed: all documents, with the same subscriptions.
        seed: draws the root of SPT.
        strategies: names of `strategies.STRATEGIES`.
        table: shortest paths of the topology, if they are known.
        bounded: whether to find the lower bound, which takes longer than all else.
        watch: told the name of each strategy before it begins.
    """
    setting = setting_of(topology, planned, routed, seed, table=table)
    outcomes = []
    for name in strategies:
        if watch is not None:
            watch(name)
        outcomes.append(run_strategy(name, setting))
    bound = float(lower_bounds(setting.plan(), routed).sum()) if bounded else None
    return Comparison(topology, tuple(outcomes), bound, routed.documents, planned.documents)


def table_of(comparison: Comparison) -> Table:
    """The comparison, which has OPT, as a table for the terminal."""
    table = Table(
        title=f"{comparison.topology.name}: {comparison.documents:,} documents, "
        f"planned with {comparison.sampled:,}"
    )
    for heading in ("strategy", "trees", "cost", "of OPT", "duplicates", "seconds"):
        table.add_column(heading, justify="left" if heading == "strategy" else "right")
    optimum = comparison.cost("OPT")
    for one in comparison.outcomes:
        cost = one.bill.total
        table.add_row(
            one.strategy,
            f"{one.trees:,}",
            f"{cost:,.0f}",
            f"{cost / optimum:.2f}" if optimum else "",
            f"{int(one.bill.duplicates.sum()):,}",
            f"{one.planning_s:.2f}",
        )
    if comparison.lower_bound is not None:
        share = f"{comparison.lower_bound / optimum:.2f}" if optimum else ""
        table.add_row("lower bound", "", f"{comparison.lower_bound:,.0f}", share, "", "")
    return table
