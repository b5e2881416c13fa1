"""What a run of kind "trees" leaves in memory: tables by strategy, for whoever writes results.

A table is a mapping from column name to a one-dimensional NumPy array; all columns of a table have
one length.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs
import numpy as np

from gossamer.protocol.dissemination.cost import (
    Deliveries,
    deliver_by_group,
    deliveries_on,
    price_deliveries,
)
from gossamer.protocol.dissemination.graph import make_workspace
from gossamer.protocol.dissemination.grouping import Mergers
from gossamer.protocol.dissemination.strategies import Routes, route_groups
from gossamer.sim.studies.dissemination.strategies import Outcome, Setting
from gossamer.sim.studies.side_by_side import SideBySideRun
from gossamer.sim.study.records import Column, Table, measures_of

# Trees of a strategy that are kept for pictures, those that carry most.
PICTURED = 2


@attrs.frozen(kw_only=True, eq=False)
class StrategyRecord:
    """What one strategy came to.

    Attributes:
        name: the strategy, also of its folder in the results.
        settings: of planning, plain values.
        documents: a row a document: cost, trees, visits, duplicates.
        links: a row a link: one, other (brokers), cost, load, capacity.
        trees: a row a tree: subscriptions, documents, load; empty without groups.
        pictured: a row a link of the trees that carry most: tree, link, load.
        mergers: a row a state of the mergers: trees, cost of the sampled documents (Fig. 6).
        states: a row a chosen state: trees, and of all documents cost and duplicates (Fig. 7).
        totals: further counts, which enter the result hash.
        planning_s: processor seconds, which do not.
        optimum: cost of OPT for the same documents, NaN where it was not run.
        peak_rss_bytes: largest resident memory of its process.
        verdict: what a strategy says of how many trees are worth having, "" if nothing.
    """

    name: str
    settings: Mapping[str, Any]
    documents: Table
    links: Table
    trees: Table
    pictured: Table
    mergers: Table
    states: Table
    totals: Mapping[str, int | float]
    planning_s: float
    optimum: float
    peak_rss_bytes: int
    verdict: str = ""

    def tables(self) -> Iterator[tuple[str, Table]]:
        """Every table with its name, always in the same order."""
        for name in ("documents", "links", "trees", "pictured", "mergers", "states"):
            yield name, getattr(self, name)


TreesRunRecord = SideBySideRun[StrategyRecord]


def strategy_record(
    setting: Setting,
    outcome: Outcome,
    settings: Mapping[str, Any],
    states: int,
    peak_rss_bytes: int,
) -> StrategyRecord:
    """The record of a strategy; ``states`` of its mergers are routed with all documents."""
    bill, graph = outcome.bill, setting.graph
    names = np.array(setting.topology.names, np.str_)
    trees, pictured = _tree_tables(setting, outcome.routes)
    return StrategyRecord(
        name=outcome.strategy,
        settings=settings,
        documents={
            "cost": bill.cost,
            "trees": bill.trees,
            "visits": bill.visits,
            "duplicates": bill.duplicates,
        },
        links={
            "one": names[graph.ends[:, 0]],
            "other": names[graph.ends[:, 1]],
            "cost": graph.costs,
            "load": bill.loads,
            "capacity": setting.capacities,
        },
        trees=trees,
        pictured=pictured,
        mergers=_merger_table(outcome.mergers),
        states=state_table(setting, outcome.mergers, states),
        totals={
            "trees": outcome.trees,
            "documents": setting.routed.documents,
            "sampled": setting.planned.documents,
            "subscriptions": setting.routed.subscriptions,
            "brokers": graph.nodes,
            "links": graph.links,
        },
        planning_s=outcome.planning_s,
        optimum=float("nan"),
        peak_rss_bytes=peak_rss_bytes,
        verdict="" if outcome.trial is None else outcome.trial.verdict,
    )


def state_table(setting: Setting, mergers: Mergers | None, states: int) -> dict[str, Column]:
    """All documents on the trees of some states of the mergers, evenly spread by ratio."""
    rows = []
    if mergers is not None and states > 0:
        for state in chosen_states(mergers, states):
            plan = setting.plan()
            groups = mergers.groups_at(state, setting.planned.subscriptions)
            bill = route_groups(plan, groups).price(plan, setting.routed)
            rows.append((mergers.groups[state], bill.total, bill.duplicates.sum()))
    columns = np.array(rows, np.float64).reshape(-1, 3).T
    return {
        "trees": columns[0].astype(np.int64),
        "cost": columns[1].copy(),
        "duplicates": columns[2].astype(np.int64),
    }


def chosen_states(mergers: Mergers, count: int) -> list[int]:
    """Up to ``count`` states, from the first to the last, and the cheapest of all."""
    least, most = int(mergers.groups[-1]), int(mergers.groups[0])
    wanted = np.geomspace(max(most, 1), max(least, 1), count).round().astype(np.int64)
    states = {most - int(groups) for groups in wanted} | {mergers.best}
    return sorted(state for state in states if 0 <= state < len(mergers.groups))


def _merger_table(mergers: Mergers | None) -> dict[str, Column]:
    if mergers is None:
        return {"trees": np.zeros(0, np.int64), "cost": np.zeros(0)}
    return {"trees": mergers.groups, "cost": mergers.costs}


def _tree_tables(setting: Setting, routes: Routes | None) -> tuple[Table, Table]:
    """What each tree carries, and the links of those that carry most."""
    if routes is None:
        none = np.zeros(0, np.int64)
        empty = {"subscriptions": none, "documents": none, "load": np.zeros(0)}
        return empty, {"tree": none, "link": none, "load": np.zeros(0)}
    deliveries = deliver_by_group(setting.routed, routes.groups)
    loads = [_loads_of(setting, routes, deliveries, tree) for tree in range(routes.trees.count)]
    carried = np.array([load.sum() for load in loads])
    busiest = np.argsort(-carried, kind="stable")[:PICTURED]
    links = [routes.trees.links(tree) for tree in busiest.tolist()]
    pictured = {
        "tree": np.repeat(busiest, [len(one) for one in links]),
        "link": np.concatenate(links),
        "load": np.concatenate(
            [loads[tree][one] for tree, one in zip(busiest.tolist(), links, strict=True)]
        ),
    }
    trees = {
        "subscriptions": np.bincount(routes.groups, minlength=routes.trees.count),
        "documents": _documents_on(deliveries, routes.trees.count),
        "load": carried,
    }
    return trees, pictured


def _documents_on(deliveries: Deliveries, trees: int) -> Column:
    """int64[trees]: how many documents take each tree."""
    documents = np.repeat(np.arange(len(deliveries.first) - 1), np.diff(deliveries.first))
    pairs = np.unique(np.stack([documents, deliveries.tree]), axis=1)
    return np.bincount(pairs[1], minlength=trees)


def _loads_of(setting: Setting, routes: Routes, deliveries: Deliveries, tree: int) -> Column:
    """float64[m]: what the documents on one tree load the links with."""
    part = deliveries_on(deliveries, tree)
    work, sample = make_workspace(setting.graph), setting.routed
    return price_deliveries(setting.graph, work, routes.trees, sample, part).loads


# The measures of one strategy: what each means, and their values from its tables.

TREES_MEASURES: Final = measures_of("""
    trees: trees | count | - | brief
        Trees that documents travel on; of OPT, one for every document.
    cost: cost of all documents | count | lower | brief
        Links crossed by all documents, weighed by size and by link (Eq. 1).
    cost_over_optimum: cost over OPT | number | lower | brief
        Times the cost of an approximate Steiner tree for every document.
    duplicate_visits: duplicates | count | lower | brief
        Visits of a document to a broker that had it already from another tree (Fig. 7).
    visits: visits | count | lower
        Visits of documents to brokers other than their own, duplicates among them.
    trees_per_document: trees a document takes | number | lower
        Mean number of trees, of those documents that anybody wants.
    load_max: largest load of a link | count | lower
        Sizes of all documents that crossed the busiest link, once for each tree.
    links_used: links used | count | -
        Links that a document crossed at least once.
    overloaded_links: links beyond their capacity | count | lower | brief
        Links that had to carry more than the scenario's capacity.
    overload: load beyond capacities | count | lower
        What all links together had to carry beyond their capacities.
    planning_s: planning time | fine | lower | brief
        Processor seconds that making groups and trees took.
    documents: documents | count | -
        Documents routed.
    sampled: documents sampled | count | -
        Documents that trees were planned by.
    subscriptions: subscriptions | count | -
        Subscriptions of all brokers.
""")


def summarise_strategy(record: StrategyRecord) -> dict[str, Any]:
    """The entry of ``summary.json``; ``worst_links`` names the most overloaded, at most ten."""
    documents, links = record.documents, record.links
    cost = float(documents["cost"].sum())
    wanted = documents["trees"] > 0
    beyond = np.maximum(links["load"] - links["capacity"], 0.0)
    limited = bool(np.isfinite(links["capacity"]).any())
    return {
        "trees": record.totals["trees"],
        "cost": cost,
        "cost_over_optimum": cost / record.optimum if record.optimum else math.nan,
        "duplicate_visits": int(documents["duplicates"].sum()),
        "visits": int(documents["visits"].sum()),
        "trees_per_document": float(documents["trees"][wanted].mean()) if wanted.any() else 0.0,
        "load_max": float(links["load"].max(initial=0.0)),
        "links_used": int((links["load"] > 0).sum()),
        "overloaded_links": int((beyond > 0).sum()) if limited else None,
        "overload": float(beyond.sum()) if limited else None,
        "planning_s": record.planning_s,
        "documents": record.totals["documents"],
        "sampled": record.totals["sampled"],
        "subscriptions": record.totals["subscriptions"],
        "worst_links": _worst_links(record),
        **({"verdict": record.verdict} if record.verdict else {}),
        "totals": dict(record.totals),
        "settings": dict(record.settings),
    }


def _worst_links(record: StrategyRecord) -> list[dict[str, Any]]:
    links = record.links
    share = links["load"] / links["capacity"]
    worst = np.argsort(-share, kind="stable")[:10]
    return [
        {
            "one": str(links["one"][link]),
            "other": str(links["other"][link]),
            "load": float(links["load"][link]),
            "capacity": float(links["capacity"][link]),
        }
        for link in worst.tolist()
        if share[link] > 1
    ]
