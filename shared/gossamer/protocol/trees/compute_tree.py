"""COMPUTETREE (Algorithm 1): one tree for one group of subscriptions.

The Steiner trees of the group's documents load the links; of the loaded links a low-stretch
spanning tree is made, and the brokers that no document reached are attached by shortest paths. Its
cost is at most O(log^2 n log log n) times that of the best tree (Theorem IV.1).
"""

from __future__ import annotations

from gossamer.protocol.rules import rule
from gossamer.protocol.trees.cost import cost_on_tree
from gossamer.protocol.trees.graph import Graph, Reals, Words, Workspace
from gossamer.protocol.trees.sample import Sample
from gossamer.protocol.trees.spanning import (
    Trees,
    complete_tree,
    hang_up,
    new_mark,
    write_shortest_path_tree,
)
from gossamer.protocol.trees.stars import Stars, write_low_stretch_forest
from gossamer.protocol.trees.steiner import write_steiner_tree


@rule
def gather_brokers(
    work: Workspace, sample: Sample, groups: Words, one: int, other: int, document: int
) -> int:
    """Write N_j to ``work.terminals``, the host first; returns how many brokers there are.

    The subscriptions are those of groups ``one`` and ``other``.
    """
    mark = new_mark(work)
    host = sample.hosts[document]
    work.terminals[0] = host
    work.marks[host] = mark
    count = 1
    for i in range(sample.first[document], sample.first[document + 1]):
        subscription = sample.matched[i]
        if groups[subscription] == one or groups[subscription] == other:
            place = sample.places[subscription]
            if work.marks[place] != mark:
                work.marks[place] = mark
                work.terminals[count] = place
                count += 1
    return count


@rule
def write_loads(
    graph: Graph,
    work: Workspace,
    sample: Sample,
    groups: Words,
    one: int,
    other: int,
    documents: Words,
    loads: Reals,
) -> None:
    """Write m(e) of lines 1 to 9: what the documents' Steiner trees carry over each link.

    Departs from the paper: where links differ in cost, a link weighs by its cost as well, as the
    sum that Theorem IV.1 bounds then does; with equal costs nothing changes.
    """
    for link in range(loads.shape[0]):
        loads[link] = 0.0
    for i in range(documents.shape[0]):
        document = documents[i]
        brokers = gather_brokers(work, sample, groups, one, other, document)
        links = 0
        if brokers > 1:
            links = write_steiner_tree(graph, work, brokers)
        for j in range(links):
            link = work.tree[j]
            loads[link] += sample.sizes[document] * graph.costs[link]


@rule
def only_host(sample: Sample, groups: Words, one: int, other: int) -> int:
    """The broker that all subscriptions of two groups are at, -1 if they are at several."""
    host = -1
    for subscription in range(groups.shape[0]):
        if groups[subscription] == one or groups[subscription] == other:
            if host >= 0 and host != sample.places[subscription]:
                return -1
            host = sample.places[subscription]
    return int(host)


@rule
def write_tree(
    graph: Graph,
    work: Workspace,
    stars: Stars,
    sample: Sample,
    groups: Words,
    one: int,
    other: int,
    documents: Words,
    width: float,
) -> int:
    """Write the links of the tree for the union of two groups; returns how many these are.

    Where all subscriptions are at one broker its shortest path tree is the optimum, and is taken.
    """
    host = only_host(sample, groups, one, other)
    if host >= 0:
        return int(write_shortest_path_tree(graph, work, host))
    write_loads(graph, work, sample, groups, one, other, documents, stars.loads)
    links = write_low_stretch_forest(graph, work, stars, width)
    return int(complete_tree(graph, work, links))


@rule
def build_tree(
    graph: Graph,
    work: Workspace,
    stars: Stars,
    sample: Sample,
    groups: Words,
    one: int,
    other: int,
    documents: Words,
    width: float,
    trees: Trees,
    t: int,
) -> float:
    """COMPUTETREE for the union of two groups, hung up as tree ``t``; returns its cost (Eq. 1).

    Args:
        documents: int64[...], those that match a subscription of the two groups.
    """
    links = write_tree(graph, work, stars, sample, groups, one, other, documents, width)
    root = graph.ends[work.tree[0], 0] if links > 0 else 0
    hang_up(graph, work, links, root, trees, t)
    cost = 0.0
    for i in range(documents.shape[0]):
        document = documents[i]
        brokers = gather_brokers(work, sample, groups, one, other, document)
        cost += sample.sizes[document] * cost_on_tree(graph, trees, t, work, brokers)
    return cost
