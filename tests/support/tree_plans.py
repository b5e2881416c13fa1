"""Small graphs of brokers with documents and subscriptions, and slow ways to know their costs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

import networkx as nx
import numpy as np
from attrs import frozen
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from gossamer.protocol.dissemination.cost import Sample, cost_on_tree, make_sample
from gossamer.protocol.dissemination.graph import Graph, Workspace, make_graph
from gossamer.protocol.dissemination.spanning import Trees
from gossamer.sim.studies.dissemination.topologies import Stream

# Eighths add up without rounding, so that sums in any order are equal.
EIGHTH = 1 / 8


@frozen(eq=False)
class Case:
    graph: Graph
    sample: Sample


@st.composite
def graphs(draw: st.DrawFn, most: int = 9, unit: bool = False) -> Graph:
    """Connected graphs: a random tree and some links more, costs in eighths."""
    nodes = draw(st.integers(2, most))
    tree = [(draw(st.integers(0, node - 1)), node) for node in range(1, nodes)]
    pairs = [pair for pair in combinations(range(nodes), 2) if pair not in tree]
    more = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=8)) if pairs else []
    links = draw(st.permutations(tree + more))
    costs = st.just(8) if unit else st.integers(1, 40)
    return make_graph(nodes, links, [draw(costs) * EIGHTH for _ in links])


@st.composite
def cases(draw: st.DrawFn, most: int = 9, unit: bool = False) -> Case:
    graph = draw(graphs(most, unit))
    brokers = st.integers(0, graph.nodes - 1)
    places = draw(st.lists(brokers, min_size=1, max_size=8))
    matched = st.lists(st.integers(0, len(places) - 1), unique=True, max_size=len(places))
    matches = draw(st.lists(matched, min_size=1, max_size=8))
    hosts = [draw(brokers) for _ in matches]
    sizes = [1.0 if unit else draw(st.integers(1, 24)) * EIGHTH for _ in matches]
    return Case(graph, make_sample(graph.nodes, hosts, matches, places, sizes))


def random_links(stream: Stream, nodes: int, count: int) -> list[tuple[int, int]]:
    links = {(stream.below(node), node) for node in range(1, nodes)}
    while len(links) < count:
        one, other = sorted((stream.below(nodes), stream.below(nodes)))
        if one != other:
            links.add((one, other))
    return sorted(links)


def random_case(nodes: int, documents: int, subscriptions: int, seed: int) -> Case:
    stream = Stream(seed, 0)
    graph = make_graph(nodes, random_links(stream, nodes, 2 * nodes))
    places = [stream.below(nodes) for _ in range(subscriptions)]
    matches = [
        stream.some(range(subscriptions), 1 + stream.below(min(6, subscriptions)))
        for _ in range(documents)
    ]
    hosts = [stream.below(nodes) for _ in range(documents)]
    return Case(graph, make_sample(nodes, hosts, matches, places))


def small_case(seed: int) -> Case:
    """Seven brokers with ten links, seven subscriptions and fifteen documents: all can be tried."""
    stream = Stream(seed, 1)
    links = random_links(stream, 7, 10)
    places = [stream.below(7) for _ in range(7)]
    matches = [stream.some(range(7), 1 + stream.below(4)) for _ in range(15)]
    hosts = [stream.below(7) for _ in matches]
    costs = [1.0 + stream.below(3) for _ in links]
    return Case(make_graph(7, links, costs), make_sample(7, hosts, matches, places))


def as_networkx(graph: Graph) -> nx.Graph:
    found = nx.Graph()
    found.add_nodes_from(range(graph.nodes))
    for (one, other), cost in zip(graph.ends.tolist(), graph.costs.tolist(), strict=True):
        found.add_edge(one, other, weight=cost)
    return found


def tree_of(graph: Graph, links: Iterable[int]) -> nx.Graph:
    ends = graph.ends.tolist()
    found = nx.Graph()
    for link in links:
        one, other = ends[link]
        found.add_edge(one, other, weight=float(graph.costs[link]))
    return found


def is_spanning_tree(graph: Graph, trees: Trees, tree: int) -> bool:
    found = tree_of(graph, trees.links(tree).tolist())
    found.add_nodes_from(range(graph.nodes))
    depths = nx.single_source_shortest_path_length(found, int(np.argmin(trees.depth[tree])))
    return bool(nx.is_tree(found) and depths == dict(enumerate(trees.depth[tree].tolist())))


def least_part(tree: nx.Graph, wanted: Sequence[int]) -> nx.Graph:
    """The least part of a tree that joins some brokers: without ends that nobody wants."""
    part = tree.copy()
    while loose := [node for node in part if part.degree[node] <= 1 and node not in wanted]:
        part.remove_nodes_from(loose)
    return part


def slow_cost(case: Case, trees: Trees, groups: Sequence[int]) -> tuple[float, int, int]:
    """Equation 1 as it is written: cost, visits and duplicates of all documents."""
    graph, sample = case.graph, case.sample
    cost, visits, duplicates = 0.0, 0, 0
    for document in range(sample.documents):
        host, matched = int(sample.hosts[document]), sample.matches(document).tolist()
        reached: list[int] = []
        for group in sorted({groups[s] for s in matched}):
            places = [int(sample.places[s]) for s in matched if groups[s] == group]
            part = least_part(tree_of(graph, trees.links(group).tolist()), [host, *places])
            cost += float(sample.sizes[document]) * part.size(weight="weight")
            reached += [node for node in part if node != host]
        visits += len(reached)
        duplicates += len(reached) - len(set(reached))
    return cost, visits, duplicates


def least_steiner_cost_by_trying(graph: Graph, terminals: Sequence[int]) -> float:
    """What the best Steiner tree costs: the least spanning tree of every set of brokers."""
    whole = as_networkx(graph)
    others = [node for node in whole if node not in terminals]
    best = float("inf")
    for count in range(len(others) + 1):
        for more in combinations(others, count):
            part = whole.subgraph([*terminals, *more])
            if nx.is_connected(part):
                best = min(best, nx.minimum_spanning_tree(part).size(weight="weight"))
    return best


def average_stretch(graph: Graph, work: Workspace, trees: Trees, loads: ArrayLike = 1.0) -> float:
    """How long the way between a link's ends is in tree 0, in lengths of the link (Eq. 2)."""
    multiplicities = np.broadcast_to(np.asarray(loads, np.float64), graph.links)
    lengths = np.zeros(graph.links)
    for link in range(graph.links):
        work.terminals[:2] = graph.ends[link]
        lengths[link] = cost_on_tree(graph, trees, 0, work, 2)
    return float((lengths / graph.costs * multiplicities).sum() / multiplicities.sum())
