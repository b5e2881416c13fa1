"""How fast trees are planned, how good they are, and how both grow.

Run it by hand: ``python tests/bench/bench_trees.py [PART ...] [--out bench.json]``; parts are

    steiner    a Steiner tree of 3 to 100 brokers, beside the one of networkx
    stretch    average stretch of low-stretch trees, beside shortest path trees, up to 10^5 links
    plans      COMPUTETREE, MULT, MULT2 and the hybrid for 500 to 5,000 brokers
    scale      MULT and MULT2 for up to 10,000 subscriptions, with neighbour lists and without
    quality    costs on 200 small graphs beside the optimum of all trees and groupings

Times are processor time, of code that has been compiled before.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from functools import partial
from itertools import takewhile
from pathlib import Path
from statistics import mean, median
from typing import Any

import networkx as nx
import numpy as np
from networkx.algorithms.approximation import steiner_tree

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.common import Row, read_options, timed, write_rows
from gossamer.compiled.store import keep_compiled_code
from gossamer.protocol.dissemination import graph as made
from gossamer.protocol.dissemination import steiner as joins
from gossamer.protocol.dissemination import strategies as routing
from gossamer.protocol.dissemination.cost import Sample, make_sample
from gossamer.protocol.dissemination.graph import Graph, make_workspace
from gossamer.protocol.dissemination.optimum import best_routes, lower_bounds
from gossamer.protocol.dissemination.path_tables import join_by_table, make_path_table
from gossamer.protocol.dissemination.plan import make_plan
from gossamer.protocol.dissemination.spanning import shortest_path_tree
from gossamer.protocol.dissemination.stars import low_stretch_tree
from gossamer.protocol.dissemination.triples import make_triples, write_better_tree
from gossamer.protocol.kernel.rules import use_compiled
from gossamer.sim.studies.dissemination import topologies
from gossamer.sim.studies.dissemination.strategies import NEIGHBOURS
from gossamer.sim.studies.dissemination.study import warm_up
from gossamer.sim.studies.dissemination.topologies import Stream, barabasi_albert
from gossamer.sim.studies.dissemination.workload import Locality, make_workload, sampled
from support.tree_plans import average_stretch, small_case

DRAWS = 20
MOST_EXACT = 1000
MAKERS: dict[str, Callable[[Any], Any]] = {
    "COMPUTETREE": routing.route_single,
    "MULT": routing.route_mult,
    "HYBRID": lambda plan: routing.route_hybrid(plan, neighbours=NEIGHBOURS),
    "MULT2": routing.route_mult2,
    "MULT2, lists": lambda plan: routing.route_mult2(plan, NEIGHBOURS),
    "MULT2, lists of 8": lambda plan: routing.route_mult2(plan, 8),
    "MULT2, lists of 32": lambda plan: routing.route_mult2(plan, NEIGHBOURS),
}


def row_of(name: str, size: int, value: float, unit: str, **more: Any) -> Row:
    """A row of the result, printed as well."""
    row = {"name": name, "size": size, "value": value, "unit": unit, **more}
    print("  ".join(f"{key} {found}" for key, found in row.items()), flush=True)
    return row


def as_networkx(graph: Graph) -> nx.Graph:
    found = nx.Graph()
    for (one, other), cost in zip(graph.ends.tolist(), graph.costs.tolist(), strict=True):
        found.add_edge(one, other, weight=cost)
    return found


def steiner(largest: int) -> Iterator[Row]:
    """Steiner trees beside networkx's Mehlhorn, its faster way: time and cost.

    All get their graphs ready made, and begin from nothing else but for the one that goes by the
    table of shortest paths.
    """
    for name, topology in (
        ("Barabasi-Albert", barabasi_albert(2000, seed=1)),
        ("transit-stub", topologies.transit_stub(topologies.transit_stub_of(2000), 1)),
        ("Waxman", topologies.waxman(1000, seed=1)),
    ):
        graph, work = topology.graph, make_workspace(topology.graph)
        table, whole = make_path_table(graph, work), as_networkx(topology.graph)
        for count in takewhile(largest.__ge__, (3, 10, 30, 100)):
            draws = [Stream(seed, count).some(range(graph.nodes), count) for seed in range(DRAWS)]
            triples = make_triples(graph, count)
            makers: dict[str, Callable[[int], int]] = {
                "Mehlhorn": partial(joins.write_steiner_tree, graph, work),
                "twice Mehlhorn": partial(joins.write_short_tree, graph, work),
                "table": partial(join_by_table, graph, work, table),
                "triples": partial(write_better_tree, graph, work, triples),
            }
            theirs = [timed(partial(steiner_tree, whole, one, method="mehlhorn")) for one in draws]
            slow = median(seconds for seconds, _ in theirs)
            costs = [float(tree.size(weight="weight")) for _, tree in theirs]
            size = f"{name}, {graph.nodes:,} brokers"
            yield row_of(f"Steiner tree, networkx, {size}", count, slow * 1e6, "us")
            for algorithm, make in makers.items():
                ours = [timed_tree(graph, work, make, terminals) for terminals in draws]
                fast = median(seconds for seconds, _ in ours)
                ratios = [cost / other for (_, cost), other in zip(ours, costs, strict=True)]
                yield row_of(
                    f"Steiner tree, {algorithm}, {size}",
                    count,
                    round(fast * 1e6, 1),
                    "us",
                    times_faster=round(slow / fast, 1),
                    cost_over_networkx=round(mean(ratios), 4),
                    worst=round(max(ratios), 4),
                    dearer=sum(ratio > 1 + 1e-9 for ratio in ratios) / len(ratios),
                )


def timed_tree(
    graph: Graph, work: made.Workspace, make: Callable[[int], int], terminals: list[int]
) -> tuple[float, float]:
    def once() -> int:
        work.terminals[: len(terminals)] = terminals
        return make(len(terminals))

    once()
    runs = [timed(once) for _ in range(5)]
    return median(seconds for seconds, _ in runs), float(
        joins.cost_of_links(graph, work, runs[-1][1])
    )


def stretch(_: int) -> Iterator[Row]:
    """Average stretch on grids, where shortest path trees are bad, and on random graphs."""
    grids = [
        (side * side, nx.convert_node_labels_to_integers(nx.grid_2d_graph(side, side)))
        for side in (20, 50, 100, 223)
    ]
    graphs = {
        "grid": [made.make_graph(size, sorted(grid.edges)) for size, grid in grids],
        "Barabasi-Albert": [
            barabasi_albert(n, 4, seed=1).graph for n in (400, 2500, 10_000, 25_000)
        ],
    }
    for kind, members in graphs.items():
        for graph in members:
            work = make_workspace(graph)
            bound = math.log2(graph.nodes) ** 2 * math.log2(math.log2(graph.nodes))
            more: dict[str, Any] = {"brokers": graph.nodes, "log2n_loglogn": round(bound, 1)}
            proven = 1 / (2 * math.log(graph.nodes + 32, 4 / 3))  # beta of LowStretchTree
            for width in (proven, 0.1, 0.25, 0.5):
                seconds, trees = timed(partial(low_stretch_tree, graph, work, width=width))
                found = round(average_stretch(graph, work, trees), 3)
                more["seconds"] = round(seconds, 3)
                name = f"stretch, {kind}, cones of {width:.3f}"
                yield row_of(name, graph.links, found, "times", **more)
            found = average_stretch(graph, work, shortest_path_tree(graph, work, graph.nodes // 2))
            yield row_of(f"stretch, {kind}, shortest paths", graph.links, found, "times")


def plans(largest: int) -> Iterator[Row]:
    """Planning by 3 % of 10,000 documents, and with which power of the brokers its time grows."""
    times: dict[str, list[tuple[int, float]]] = {}
    for brokers in takewhile(largest.__ge__, (500, 1000, 2000, 5000)):
        graph = topologies.transit_stub(topologies.transit_stub_of(brokers), 1).graph
        whole = make_workload(graph, Locality(documents=10_000), 1).sample(graph)
        sample = sampled(whole, 0.03, 1)
        seconds, table = timed(partial(make_path_table, graph, make_workspace(graph)))
        yield row_of("path table", brokers, round(seconds, 3), "s")
        for name in ("COMPUTETREE", "MULT", "HYBRID", "MULT2, lists", "MULT2"):
            plan = make_plan(graph, sample, table)
            seconds, routes = timed(partial(MAKERS[name], plan))
            cost = routes.price(plan, sample).total
            yield row_of(name, brokers, round(seconds, 4), "s", cost=cost, trees=routes.trees.count)
            times.setdefault(name, []).append((brokers, seconds))
    for name, found in times.items():
        if len(found) > 1:
            sizes, spent = np.array(found).T
            power = float(np.polyfit(np.log(sizes), np.log(np.maximum(spent, 1e-6)), 1)[0])
            yield row_of(f"{name}, growth", int(sizes[-1]), round(power, 2), "power of brokers")


def scale(largest: int) -> Iterator[Row]:
    """Many subscriptions at 500 brokers; where all pairs can be judged, what lists lose."""
    graph = barabasi_albert(500, seed=1).graph
    table = make_path_table(graph, make_workspace(graph))
    for subscriptions in takewhile(largest.__ge__, (300, 1000, 3000, 10_000)):
        sample = many_subscriptions(graph, subscriptions)
        exact = ["MULT2"] if subscriptions <= MOST_EXACT else []
        costs: dict[str, float] = {}
        for name in ("MULT", "HYBRID", *exact, "MULT2, lists of 8", "MULT2, lists of 32"):
            plan = make_plan(graph, sample, table)
            seconds, routes = timed(partial(MAKERS[name], plan))
            costs[name] = routes.price(plan, sample).total
            more: dict[str, Any] = {"cost": costs[name], "trees": routes.trees.count}
            if "MULT2" in costs:
                more["over_exact"] = round(costs[name] / costs["MULT2"], 4)
            yield row_of(
                f"{name}, many subscriptions", subscriptions, round(seconds, 3), "s", **more
            )


def many_subscriptions(graph: Graph, count: int) -> Sample:
    """Subscriptions anywhere to a topic or two of a hundred, and 300 documents of one each."""
    stream = Stream(1, count)
    wanted = [stream.some(range(100), 1 + stream.below(2)) for _ in range(count)]
    holders: dict[int, list[int]] = {}
    for subscription, topics in enumerate(wanted):
        for topic in topics:
            holders.setdefault(topic, []).append(subscription)
    topics = [stream.below(100) for _ in range(300)]
    return make_sample(
        graph.nodes,
        [stream.below(graph.nodes) for _ in topics],
        [holders.get(topic, []) for topic in topics],
        [stream.below(graph.nodes) for _ in range(count)],
    )


def quality(_: int) -> Iterator[Row]:
    """Costs on 200 small graphs beside the optimum, found by trying all trees and groupings."""
    ratios: dict[str, list[float]] = {}
    for seed in range(1, 201):
        case = small_case(seed)
        graph, sample = case.graph, case.sample
        best, plan = best_routes(graph, sample), make_plan(graph, sample)
        bound = float(lower_bounds(plan, sample).sum())
        single = routing.route_single(plan).price(plan, sample).total
        found = {
            "COMPUTETREE over the best tree": single / best.one_tree,
            "COMPUTETREE over the best grouping": single / best.grouped,
            "best tree over the best grouping": best.one_tree / best.grouped,
            "best grouping over a Steiner tree a document": best.grouped / bound,
        }
        for name in ("MULT", "MULT2"):
            fresh = make_plan(graph, sample, plan.table)
            cost = MAKERS[name](fresh).price(fresh, sample).total
            found[f"{name} over the best grouping"] = cost / best.grouped
        for name, value in (found | steiner_ratios(seed)).items():
            ratios.setdefault(name, []).append(value)
    for name, values in ratios.items():
        at_best = sum(ratio < 1 + 1e-9 for ratio in values) / len(values)
        more = {
            "optimal": round(at_best, 3),
            "median": round(median(values), 4),
            "p95": round(float(np.quantile(values, 0.95)), 4),
            "most": round(max(values), 4),
        }
        yield row_of(name, len(values), round(mean(values), 4), "mean ratio", **more)


def steiner_ratios(seed: int) -> dict[str, float]:
    """Two Steiner trees of eight brokers in a graph of 12 to 23, over the optimum."""
    stream = Stream(seed, 99)
    graph = barabasi_albert(12 + stream.below(12), 2, seed=seed).graph
    work, terminals = make_workspace(graph), np.array(stream.some(range(graph.nodes), 8))
    best = joins.least_steiner_cost(graph, work, terminals)
    makers = {
        "Steiner tree, triples": partial(write_better_tree, graph, work, make_triples(graph, 8)),
        "Steiner tree, Mehlhorn": partial(joins.write_steiner_tree, graph, work),
    }
    found = {}
    for name, make in makers.items():
        work.terminals[:8] = terminals
        found[name] = joins.cost_of_links(graph, work, make(8)) / best
    return found


PARTS = {part.__name__: part for part in (steiner, stretch, plans, scale, quality)}


def main() -> None:
    options = read_options(__doc__, PARTS, largest=10_000, out=Path)
    keep_compiled_code()
    rows: list[Row] = []
    with use_compiled():
        for strategy in ("SINGLE", "MULT", "HYBRID", "MULT2"):
            warm_up(strategy)
        for part in options.words:
            rows += PARTS[part](options.largest)
    write_rows(options.out, rows)


if __name__ == "__main__":
    main()
