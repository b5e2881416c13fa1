"""How fast trees are planned, how good they are, and how both grow.

Run it by hand: ``python tests/bench/bench_trees.py [PART ...] [--out bench.json]``; parts are

    steiner    a Steiner tree of 3 to 100 brokers, beside the one of networkx
    stretch    average stretch of low-stretch trees, beside shortest path trees, up to 10^5 links
    plans      COMPUTETREE, MULT, MULT2 and the hybrid for 500 to 5,000 brokers
    scale      MULT and MULT2 for up to 10,000 subscriptions, with neighbour lists and without
    quality    costs on 200 small graphs beside the optimum

Times are processor time, of code that has been compiled before.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable
from pathlib import Path
from statistics import mean, median
from time import process_time
from typing import Any

import networkx as nx
import numpy as np
from networkx.algorithms.approximation import steiner_tree

from gossamer.protocol.rules import use_compiled
from gossamer.protocol.trees.exact import least_steiner_cost
from gossamer.protocol.trees.graph import Graph, make_graph, make_workspace
from gossamer.protocol.trees.optimum import document_costs, lower_bounds
from gossamer.protocol.trees.plan import make_plan
from gossamer.protocol.trees.sample import Sample, make_sample
from gossamer.protocol.trees.spanning import shortest_path_tree
from gossamer.protocol.trees.stars import average_stretch, low_stretch_tree, proven_width
from gossamer.protocol.trees.steiner import cost_of_links, write_steiner_tree
from gossamer.protocol.trees.strategies import (
    route_hybrid,
    route_mult,
    route_mult2,
    route_single,
)
from gossamer.protocol.trees.tables import join_by_table, make_path_table
from gossamer.protocol.trees.triples import make_triples, write_better_tree
from gossamer.sim.compilation import keep_compiled_code
from gossamer.sim.trees.draws import Stream
from gossamer.sim.trees.generators import barabasi_albert, transit_stub, transit_stub_of
from gossamer.sim.trees.workload import Locality, make_workload, sampled

Rows = list[dict[str, Any]]


def timed(work: Callable[[], Any], runs: int = 1) -> tuple[float, Any]:
    """Median processor seconds, and what the last run gave."""
    seconds = []
    for _ in range(runs):
        begun = process_time()
        found = work()
        seconds.append(process_time() - begun)
    return median(seconds), found


def row(name: str, size: int, value: float, unit: str, **more: Any) -> dict[str, Any]:
    """A row of the result, printed as well."""
    made = {"name": name, "size": size, "value": value, "unit": unit, **more}
    print("  ".join(f"{key} {found}" for key, found in made.items()), flush=True)
    return made


def as_networkx(graph: Graph) -> nx.Graph:
    """The same graph, costs as weights."""
    found = nx.Graph()
    for (one, other), cost in zip(graph.ends.tolist(), graph.costs.tolist(), strict=True):
        found.add_edge(one, other, weight=cost)
    return found


def steiner(_: int) -> Rows:
    """Three algorithms beside networkx's Mehlhorn: seconds and cost."""
    rows = []
    graph = barabasi_albert(2000, seed=1).graph
    whole, work = as_networkx(graph), make_workspace(graph)
    table = make_path_table(graph, work)
    for count in (3, 10, 30, 100):
        terminals = Stream(1, count).some(range(graph.nodes), count)
        triples = make_triples(graph, count)

        def run(write: Callable[[], Any], terminals: list[int] = terminals) -> Callable[[], float]:
            def work_once() -> float:
                work.terminals[: len(terminals)] = terminals
                return float(cost_of_links(graph, work, write()))

            return work_once

        makers = {
            "Mehlhorn": run(lambda count=count: write_steiner_tree(graph, work, count)),
            "table": run(lambda count=count: join_by_table(graph, work, table, count)),
            "triples": run(
                lambda count=count, triples=triples: write_better_tree(graph, work, triples, count)
            ),
            "networkx": lambda terminals=terminals: steiner_tree(
                whole, terminals, method="mehlhorn"
            ).size(weight="weight"),
        }
        for name, make in makers.items():
            make()
            seconds, cost = timed(make, 5)
            rows.append(row(f"Steiner tree, {name}", count, seconds * 1e6, "us", cost=cost))
    return rows


def grid(side: int) -> Graph:
    """A square grid of side * side brokers."""
    found = nx.convert_node_labels_to_integers(nx.grid_2d_graph(side, side))
    return make_graph(side * side, sorted(found.edges))


def stretch(_: int) -> Rows:
    """Average stretch on grids, where shortest path trees are bad, and on random graphs."""
    rows = []
    graphs = {"grid": [grid(side) for side in (20, 50, 100, 223)]}
    graphs["Barabasi-Albert"] = [
        barabasi_albert(n, 4, seed=1).graph for n in (400, 2500, 10_000, 25_000)
    ]
    for kind, members in graphs.items():
        for graph in members:
            work = make_workspace(graph)
            bound = math.log2(graph.nodes) ** 2 * math.log2(math.log2(graph.nodes))
            more: dict[str, Any] = {"brokers": graph.nodes, "log2n_loglogn": round(bound, 1)}
            for width in (proven_width(graph.nodes), 0.1, 0.25, 0.5):
                seconds, trees = timed(
                    lambda graph=graph, work=work, width=width: low_stretch_tree(
                        graph, work, width=width
                    )
                )
                found = average_stretch(graph, work, trees)
                rows.append(
                    row(
                        f"stretch, {kind}, cones of {width:.3f}",
                        graph.links,
                        round(found, 3),
                        "times",
                        seconds=round(seconds, 3),
                        **more,
                    )
                )
            found = average_stretch(graph, work, shortest_path_tree(graph, work, graph.nodes // 2))
            rows.append(row(f"stretch, {kind}, shortest paths", graph.links, found, "times"))
    return rows


def paper_workload(brokers: int, documents: int = 10_000) -> tuple[Graph, Sample]:
    """A transit-stub graph and Localized1, 3 % of the documents sampled."""
    graph = transit_stub(transit_stub_of(brokers), 1).graph
    whole = make_workload(graph, Locality(documents=documents), 1).sample(graph)
    return graph, sampled(whole, 0.03, 1)


def plans(largest: int) -> Rows:
    """The strategies at the sizes of Fig. 8."""
    rows = []
    for brokers in (500, 1000, 2000, 5000):
        if brokers > largest:
            break
        graph, sample = paper_workload(brokers)
        seconds, table = timed(lambda graph=graph: make_path_table(graph, make_workspace(graph)))
        rows.append(row("path table", brokers, round(seconds, 3), "s"))
        makers: dict[str, Callable[[Any], Any]] = {
            "SINGLE": route_single,
            "MULT": route_mult,
            "HYBRID": lambda plan: route_hybrid(plan, neighbours=32),
            "MULT2, 32 neighbours": lambda plan: route_mult2(plan, 32),
            "MULT2": route_mult2,
        }
        for name, make in makers.items():
            plan = make_plan(graph, sample, table)
            seconds, routes = timed(lambda make=make, plan=plan: make(plan))
            cost = routes.price(plan, sample).total
            rows.append(
                row(name, brokers, round(seconds, 3), "s", cost=cost, trees=routes.trees.count)
            )
    return rows


def scale(largest: int) -> Rows:
    """Many subscriptions at 500 brokers, each of three keywords of a thousand."""
    rows = []
    graph = barabasi_albert(500, seed=1).graph
    table = make_path_table(graph, make_workspace(graph))
    for subscriptions in (1000, 3000, 10_000):
        if subscriptions > largest:
            break
        sample = many_subscriptions(graph, subscriptions)
        for name, make in (
            ("MULT", route_mult),
            ("HYBRID", lambda plan: route_hybrid(plan, neighbours=32)),
            ("MULT2, 32 neighbours", lambda plan: route_mult2(plan, 32)),
        ):
            plan = make_plan(graph, sample, table)
            seconds, routes = timed(lambda make=make, plan=plan: make(plan))
            cost = routes.price(plan, sample).total
            rows.append(
                row(
                    f"{name}, many subscriptions",
                    subscriptions,
                    round(seconds, 3),
                    "s",
                    cost=cost,
                    trees=routes.trees.count,
                )
            )
    return rows


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


def quality(_: int) -> Rows:
    """Costs on small graphs: Steiner trees and strategies beside what cannot be bettered."""
    ratios: dict[str, list[float]] = {}
    for seed in range(1, 201):
        stream = Stream(seed, 99)
        graph = barabasi_albert(12 + stream.below(12), 2, seed=seed).graph
        sample = small_sample(graph, stream)
        plan = make_plan(graph, sample)
        bound = float(lower_bounds(plan, sample, exact=10).sum())
        work, count = plan.work, min(8, graph.nodes)
        terminals = np.array(stream.some(range(graph.nodes), count))
        best = least_steiner_cost(graph, work, terminals)
        work.terminals[:count] = terminals
        triples = make_triples(graph, count)
        cost = cost_of_links(graph, work, write_better_tree(graph, work, triples, count))
        ratios.setdefault("Steiner tree, triples", []).append(cost / best)
        work.terminals[:count] = terminals
        cost = cost_of_links(graph, work, write_steiner_tree(graph, work, count))
        ratios.setdefault("Steiner tree, Mehlhorn", []).append(cost / best)
        costs = {
            "OPT": float(document_costs(plan, sample).sum()),
            "COMPUTETREE": route_single(plan).price(plan, sample).total,
        }
        for name, make in (("MULT", route_mult), ("MULT2", route_mult2)):
            fresh = make_plan(graph, sample, plan.table)
            costs[name] = make(fresh).price(fresh, sample).total
        for name, value in costs.items():
            ratios.setdefault(f"{name} to the lower bound", []).append(value / bound)
    return [
        row(
            name,
            len(found),
            round(mean(found), 4),
            "mean ratio",
            median=round(median(found), 4),
            p95=round(float(np.quantile(found, 0.95)), 4),
            most=round(max(found), 4),
        )
        for name, found in ratios.items()
    ]


def small_sample(graph: Graph, stream: Stream) -> Sample:
    """Ten subscriptions, twenty documents that match up to four of them."""
    places = [stream.below(graph.nodes) for _ in range(10)]
    matches = [stream.some(range(10), 1 + stream.below(4)) for _ in range(20)]
    hosts = [stream.below(graph.nodes) for _ in matches]
    return make_sample(graph.nodes, hosts, matches, places)


PARTS = {
    "steiner": steiner,
    "stretch": stretch,
    "plans": plans,
    "scale": scale,
    "quality": quality,
}


def main() -> None:
    """Measure the parts that are named, all if none is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=list(PARTS))
    parser.add_argument("--largest", type=int, default=10_000)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    keep_compiled_code()
    rows: Rows = []
    with use_compiled():
        for part in options.parts:
            rows += PARTS[part](options.largest)
    if options.out is not None:
        options.out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
