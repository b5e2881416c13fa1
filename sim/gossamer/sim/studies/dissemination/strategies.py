"""The strategies by name: each plans by a sample, and all documents are then routed its way.

SPT-flooded        one shortest path tree, and what anybody wants goes to every broker
SPT, MST           one tree made without a look at documents
SINGLE             one tree by COMPUTETREE
MULT, MULT2        groups by overlap and by gain, a tree each
HYBRID             by overlap first, then by gain
WITHIN             MULT's groups, their trees kept off links that carry too much
TRIED              as many of MULT's groups as cost least on documents held out
SemCast            channels; a document reaches all brokers of its channels
SemCast-filtered   channels whose brokers filter
OPT                a Steiner tree for every document
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from time import process_time
from types import MappingProxyType
from typing import Final

import attrs
import numpy as np

from gossamer.protocol.dissemination.capacities import route_within, scale_of
from gossamer.protocol.dissemination.cost import Bill, Sample, make_bill
from gossamer.protocol.dissemination.graph import Graph, Reals
from gossamer.protocol.dissemination.grouping import Mergers
from gossamer.protocol.dissemination.optimum import document_bill
from gossamer.protocol.dissemination.path_tables import PathTable
from gossamer.protocol.dissemination.plan import Plan, make_plan
from gossamer.protocol.dissemination.semcast import CHANNELS, Channels, plan_channels
from gossamer.protocol.dissemination.spanning import Trees
from gossamer.protocol.dissemination.strategies import (
    MANAGEABLE,
    Routes,
    Trial,
    route_by_minimum_spanning_tree,
    route_by_shortest_paths,
    route_hybrid,
    route_mult,
    route_mult2,
    route_single,
    route_tried,
)
from gossamer.sim.studies.dissemination.topologies import Stream, Topology

_ROOT_KEY = 32

NEIGHBOURS: Final = 32
"""Others that MULT2 judges a group with; more cost time and hardly a cheaper route is found."""


@attrs.frozen(eq=False)
class Setting:
    """What strategies plan with and are measured by.

    Attributes:
        topology: the brokers.
        planned: the sampled documents.
        routed: all documents, with the same subscriptions.
        seed: of the root of SPT.
        capacities: float64[m], of the links; infinite where nothing limits them.
        neighbours: others that MULT2 judges a group with, None for all.
        manageable: groups that HYBRID leaves to gains.
        most_channels: of SemCast.
        table: shortest paths of the topology.
    """

    topology: Topology
    planned: Sample
    routed: Sample
    seed: int
    capacities: Reals = attrs.field(
        default=attrs.Factory(lambda self: np.full(self.graph.links, np.inf), takes_self=True)
    )
    neighbours: int | None = NEIGHBOURS
    manageable: int = MANAGEABLE
    most_channels: int = CHANNELS
    table: PathTable = attrs.field(
        default=attrs.Factory(
            lambda self: make_plan(self.graph, self.planned).table, takes_self=True
        )
    )

    @cached_property
    def root(self) -> int:
        """Of SPT."""
        return Stream(self.seed, _ROOT_KEY).below(self.graph.nodes)

    @cached_property
    def channels(self) -> tuple[Channels, float]:
        """SemCast's channels, which do not depend on filters, and the seconds they took."""
        plan = self.plan()
        begun = process_time()
        channels = plan_channels(plan, self.most_channels)
        return channels, process_time() - begun

    @property
    def graph(self) -> Graph:
        """Of the topology."""
        return self.topology.graph

    def plan(self) -> Plan:
        """A plan in which no subscriptions are grouped yet."""
        return make_plan(self.graph, self.planned, self.table)


@attrs.frozen(eq=False)
class Outcome:
    """What one strategy came to.

    Attributes:
        strategy: its name.
        trees: how many trees it makes.
        bill: what all documents cost.
        planning_s: processor seconds that making the trees took.
        drawn: its trees, None for OPT, which makes one for every document.
        routes: trees and groups, None where there are no groups of subscriptions.
        trial: of TRIED, what numbers of trees cost on documents held out.
    """

    strategy: str
    trees: int
    bill: Bill
    planning_s: float
    drawn: Trees | None = None
    routes: Routes | None = None
    trial: Trial | None = None

    @property
    def mergers(self) -> Mergers | None:
        """How groups came about, None for strategies that merge none."""
        return None if self.routes is None else self.routes.mergers


def run_strategy(name: str, setting: Setting) -> Outcome:
    """Plan by one of STRATEGIES and route all documents."""
    return STRATEGIES[name](name, setting)


_Route = Callable[[Plan, Setting], Routes | tuple[Routes, Trial]]


def _run_routes(route: _Route, name: str, setting: Setting) -> Outcome:
    plan = setting.plan()
    begun = process_time()
    found = route(plan, setting)
    seconds = process_time() - begun
    routes, trial = found if isinstance(found, tuple) else (found, None)
    bill = routes.price(plan, setting.routed)
    return Outcome(name, routes.trees.count, bill, seconds, routes.trees, routes, trial)


def _run_flooded(name: str, setting: Setting) -> Outcome:
    """The tree of SPT without filters: what one subscription matches goes to all brokers."""
    routed, graph = setting.routed, setting.graph
    spt = run_strategy("SPT", setting)
    assert spt.drawn is not None
    tree = spt.drawn.links(0)
    sizes = np.where(np.diff(routed.first) > 0, routed.sizes, 0.0)
    bill = make_bill(routed.documents, graph.links)
    bill.cost[:] = sizes * graph.costs[tree].sum()
    bill.trees[:] = sizes > 0
    bill.visits[:] = np.where(sizes > 0, len(tree), 0)
    bill.loads[tree] = sizes.sum()
    return Outcome(name, 1, bill, spt.planning_s, spt.drawn)


def _run_channels(filtered: bool, name: str, setting: Setting) -> Outcome:
    channels, seconds = setting.channels
    bill = channels.price(setting.plan(), setting.routed, filtered)
    return Outcome(name, channels.trees.count, bill, seconds, channels.trees)


def _run_optimum(name: str, setting: Setting) -> Outcome:
    plan = setting.plan()
    begun = process_time()
    bill = document_bill(plan, setting.routed)
    return Outcome(name, setting.routed.documents, bill, process_time() - begun)


def _within(plan: Plan, setting: Setting) -> Routes:
    scale = scale_of(setting.planned, setting.routed)
    return route_within(plan, setting.capacities, scale)


_ROUTES: Final[Mapping[str, _Route]] = MappingProxyType(
    {
        "SPT": lambda plan, setting: route_by_shortest_paths(plan, setting.root),
        "MST": lambda plan, _: route_by_minimum_spanning_tree(plan),
        "SINGLE": lambda plan, _: route_single(plan),
        "MULT": lambda plan, _: route_mult(plan),
        "HYBRID": lambda plan, setting: route_hybrid(plan, setting.manageable, setting.neighbours),
        "MULT2": lambda plan, setting: route_mult2(plan, setting.neighbours),
        "WITHIN": _within,
        "TRIED": lambda plan, _: route_tried(plan),
    }
)

STRATEGIES: Final[Mapping[str, Callable[[str, Setting], Outcome]]] = MappingProxyType(
    {
        "SPT-flooded": _run_flooded,
        **{name: partial(_run_routes, route) for name, route in _ROUTES.items()},
        "SemCast": partial(_run_channels, False),
        "SemCast-filtered": partial(_run_channels, True),
        "OPT": _run_optimum,
    }
)
"""By name, in the order of Fig. 5, dearest first as the paper has it."""

COMPARED: Final = tuple(name for name in STRATEGIES if name not in ("WITHIN", "TRIED"))
"""Those of the paper, which need no capacities."""
