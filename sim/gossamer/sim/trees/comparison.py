"""The strategies side by side on one topology and one workload (Fig. 5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import process_time
from typing import Final

import attrs
import numpy as np
from rich.table import Table

from gossamer.protocol.trees.cost import Bill
from gossamer.protocol.trees.optimum import document_costs, lower_bounds
from gossamer.protocol.trees.plan import Plan, make_plan
from gossamer.protocol.trees.sample import Sample
from gossamer.protocol.trees.semcast import plan_channels
from gossamer.protocol.trees.strategies import (
    Routes,
    route_by_minimum_spanning_tree,
    route_by_shortest_paths,
    route_hybrid,
    route_mult,
    route_mult2,
    route_single,
)
from gossamer.protocol.trees.tables import PathTable
from gossamer.sim.trees.draws import Stream
from gossamer.sim.trees.topology import Topology

_ROOT_KEY = 32

NEIGHBOURS: Final = 32
"""Others that MULT2 judges a group with; more cost time and hardly a cheaper route is found."""


@attrs.frozen
class Measured:
    """What one strategy came to.

    Attributes:
        strategy: its name.
        trees: how many trees it makes.
        cost: of all documents (Eq. 1).
        duplicates: how often a document came to a broker that had it already.
        planning_s: processor seconds that making the trees took.
    """

    strategy: str
    trees: int
    cost: float
    duplicates: int
    planning_s: float


@attrs.frozen(eq=False)
class Comparison:
    """All strategies on one topology and workload.

    Attributes:
        measured: one entry for each strategy, dearest first as Fig. 5 has them.
        lower_bound: no routing of these documents costs less; None where not asked for.
        documents, sampled: how many were routed, and how many were planned with.
        routes: by name, of the strategies that make routes.
    """

    topology: Topology
    measured: tuple[Measured, ...]
    lower_bound: float | None
    documents: int
    sampled: int
    routes: dict[str, Routes]

    def cost(self, strategy: str) -> float:
        """The cost of a strategy, by its name."""
        return next(one.cost for one in self.measured if one.strategy == strategy)


def compare(
    topology: Topology,
    planned: Sample,
    routed: Sample,
    seed: int,
    *,
    table: PathTable | None = None,
    bounded: bool = False,
    watch: Callable[[str], None] | None = None,
) -> Comparison:
    """Plan trees by a sample with every strategy, and route all documents on them.

    Args:
        planned: the sampled documents.
        routed: all documents, with the same subscriptions.
        seed: draws the root of SPT.
        table: shortest paths of the topology, if they are known.
        bounded: whether to find the lower bound, which takes longer than all else.
        watch: told the name of each strategy before it begins.
    """
    graph = topology.graph
    plan = make_plan(graph, planned, table)
    root = Stream(seed, _ROOT_KEY).below(graph.nodes)
    makers: dict[str, Callable[[Plan], Routes]] = {
        "SPT": lambda plan: route_by_shortest_paths(plan, root),
        "MST": route_by_minimum_spanning_tree,
        "SINGLE": route_single,
        "MULT": route_mult,
        "HYBRID": lambda plan: route_hybrid(plan, neighbours=NEIGHBOURS),
        "MULT2": lambda plan: route_mult2(plan, NEIGHBOURS),
    }
    measured, routes = [], {}
    for name, make in makers.items():
        if watch is not None:
            watch(name)
        fresh = make_plan(graph, planned, plan.table)
        begun = process_time()
        routes[name] = make(fresh)
        seconds = process_time() - begun
        bill = routes[name].price(fresh, routed)
        if name == "SPT":
            measured.append(_flooded(fresh, routes[name], routed, seconds))
        measured.append(_measured(name, routes[name].trees.count, bill, seconds))
    if watch is not None:
        watch("SemCast")
    measured += _semcast(make_plan(graph, planned, plan.table), routed)
    if watch is not None:
        watch("OPT")
    begun = process_time()
    optimum = float(document_costs(plan, routed).sum())
    seconds = process_time() - begun
    measured.append(Measured("OPT", routed.documents, optimum, 0, seconds))
    bound = float(lower_bounds(plan, routed).sum()) if bounded else None
    return Comparison(topology, tuple(measured), bound, routed.documents, planned.documents, routes)


def _measured(name: str, trees: int, bill: Bill, seconds: float) -> Measured:
    return Measured(name, trees, bill.total, int(bill.duplicates.sum()), seconds)


def _flooded(plan: Plan, routes: Routes, routed: Sample, seconds: float) -> Measured:
    """The same tree without filters: what one subscription matches goes to all brokers."""
    tree = float(plan.graph.costs[routes.trees.links(0)].sum())
    matching = np.diff(routed.first) > 0
    return Measured("SPT flooded", 1, tree * float(routed.sizes[matching].sum()), 0, seconds)


def _semcast(plan: Plan, routed: Sample) -> Sequence[Measured]:
    begun = process_time()
    channels = plan_channels(plan)
    seconds = process_time() - begun
    return [
        _measured(name, channels.trees.count, channels.price(plan, routed, filtered), seconds)
        for name, filtered in (("SemCast", False), ("SemCast filtered", True))
    ]


def table_of(comparison: Comparison) -> Table:
    """The comparison as a table for the terminal."""
    table = Table(
        title=f"{comparison.topology.name}: {comparison.documents:,} documents, "
        f"planned with {comparison.sampled:,}"
    )
    for heading in ("strategy", "trees", "cost", "of OPT", "duplicates", "seconds"):
        table.add_column(heading, justify="left" if heading == "strategy" else "right")
    optimum = comparison.cost("OPT")
    for one in comparison.measured:
        table.add_row(
            one.strategy,
            f"{one.trees:,}",
            f"{one.cost:,.0f}",
            f"{one.cost / optimum:.2f}" if optimum else "",
            f"{one.duplicates:,}",
            f"{one.planning_s:.2f}",
        )
    if comparison.lower_bound is not None:
        share = f"{comparison.lower_bound / optimum:.2f}" if optimum else ""
        table.add_row("lower bound", "", f"{comparison.lower_bound:,.0f}", share, "", "")
    return table
