"""Steiner trees: few links that join some brokers, a document's host and its subscribers'.

`write_steiner_tree` is Mehlhorn's algorithm (Information Processing Letters 27, 1988): at most
2 (1 - 1/k) times the optimum for k brokers, in the time of one search for shortest paths.
`write_short_tree` runs it twice and is a little better, and takes the optimum for three. Module
`triples` has the better and slower one, `exact` the optimum.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from gossamer.protocol.dissemination.graph import (
    NONE,
    Graph,
    Reals,
    Words,
    Workspace,
    head_of,
    shorter,
    sort_links,
    unite,
)
from gossamer.protocol.dissemination.paths import (
    add_path,
    find_paths,
    pop_nearest,
    raise_in_heap,
    reach,
)
from gossamer.protocol.dissemination.spanning import new_mark
from gossamer.protocol.kernel.errors import CapacityError
from gossamer.protocol.kernel.rules import rule

# The optimum Steiner tree of few brokers, by the dynamic programme of Dreyfus and Wagner (1971).
#
# In the form of Erickson, Monma and Veinott (1987): the best tree of every set of brokers, ending
# at every broker of the graph. Time grows with 3^k, memory with 2^k.

MOST_TERMINALS: Final = 14


@rule
def spread(graph: Graph, work: Workspace, best: Reals, chosen: int) -> None:
    """Lengthen the trees of set ``chosen`` by shortest paths, so that they end anywhere."""
    nodes = graph.first.shape[0] - 1
    size = 0
    for v in range(nodes):
        work.place[v] = NONE
        work.origin[v] = NONE
        work.before[v] = NONE
    for v in range(nodes):
        if best[chosen, v] < math.inf:
            work.distance[v] = best[chosen, v]
            raise_in_heap(work, v, size)
            size += 1
    while size > 0:
        node = pop_nearest(work, size)
        size -= 1
        best[chosen, node] = work.distance[node]
        for i in range(graph.first[node], graph.first[node + 1]):
            link = graph.link[i]
            size = reach(work, node, graph.to[i], link, graph.costs[link], size)


@rule
def least_cost(graph: Graph, work: Workspace, terminals: Words, best: Reals) -> float:
    """Cost of the best tree that joins the terminals, of which there are two or more.

    Args:
        best: float64[2^(k - 1), n], written: the cost of the best tree of each set of the
            terminals before the last that ends at each broker.
    """
    others = terminals.shape[0] - 1
    nodes = graph.first.shape[0] - 1
    for chosen in range(1, 1 << others):
        for v in range(nodes):
            best[chosen, v] = math.inf
        if chosen & (chosen - 1) == 0:
            place = 0
            while chosen >> place > 1:
                place += 1
            best[chosen, terminals[place]] = 0.0
        part = (chosen - 1) & chosen
        while 2 * part > chosen:
            for v in range(nodes):
                together = best[part, v] + best[chosen ^ part, v]
                if together < best[chosen, v]:
                    best[chosen, v] = together
            part = (part - 1) & chosen
        spread(graph, work, best, chosen)
    return float(best[(1 << others) - 1, terminals[others]])


def least_steiner_cost(graph: Graph, work: Workspace, terminals: Words) -> float:
    """What the optimum Steiner tree of these brokers, all different, costs.

    Raises:
        CapacityError: more than MOST_TERMINALS brokers.
    """
    if len(terminals) > MOST_TERMINALS:
        raise CapacityError("the table of optimum Steiner trees", MOST_TERMINALS)
    if len(terminals) < 2:
        return 0.0
    best = np.zeros((1 << (len(terminals) - 1), graph.nodes))
    return float(least_cost(graph, work, terminals, best))


# The least tree that joins three brokers, which is a star of shortest paths.
#
# Wherever its centre is, the paths from there to the three cost no less than shortest ones; so the
# broker that is nearest to all three together is the centre of an optimum.

THREE = 3


@rule
def write_tree_of_three(graph: Graph, work: Workspace) -> int:
    """Join ``work.terminals[:3]``; writes links to ``work.tree`` and returns how many.

    An optimum, in the time of four searches for shortest paths.
    """
    nodes = graph.first.shape[0] - 1
    for v in range(nodes):
        work.sums[v] = 0.0
    for i in range(THREE):
        find_paths_from(graph, work, work.terminals[i])
        for v in range(nodes):
            work.sums[v] += work.distance[v]
    centre = 0
    for v in range(1, nodes):
        if work.sums[v] < work.sums[centre]:
            centre = v
    find_paths_from(graph, work, centre)
    mark = new_mark(work)
    links = 0
    for i in range(THREE):
        links = add_path(work, work.terminals[i], mark, links)
    return int(links)


@rule
def find_paths_from(graph: Graph, work: Workspace, source: int) -> None:
    """Find the shortest paths from one broker."""
    first = work.terminals[0]
    work.terminals[0] = source
    find_paths(graph, work, work.terminals, 1)
    work.terminals[0] = first


@rule
def write_steiner_tree(graph: Graph, work: Workspace, count: int) -> int:
    """Join ``work.terminals[:count]``; writes links to ``work.tree`` and returns how many.

    The terminals part the brokers into Voronoi cells; the links between cells stand for paths
    between terminals, and a least spanning tree of these is as short as that of all paths.
    """
    find_paths(graph, work, work.terminals, count)
    bridges = 0
    for link in range(graph.ends.shape[0]):
        one, other = graph.ends[link, 0], graph.ends[link, 1]
        if work.origin[one] != work.origin[other]:
            work.lengths[link] = work.distance[one] + graph.costs[link] + work.distance[other]
            work.bridges[bridges] = link
            bridges += 1
    for i in range(count):
        work.sets[work.terminals[i]] = work.terminals[i]
    mark = new_mark(work)
    joined, links = 1, 0
    while joined < count:
        bridges = choose_bridges(graph, work, count, bridges)
        for i in range(count):
            link = work.degree[work.terminals[i]]
            if link == NONE:
                continue
            one, other = graph.ends[link, 0], graph.ends[link, 1]
            if unite(work.sets, work.origin[one], work.origin[other]):
                joined += 1
                work.tree[links] = link
                links = add_path(work, one, mark, links + 1)
                links = add_path(work, other, mark, links)
    return links


@rule
def choose_bridges(graph: Graph, work: Workspace, count: int, bridges: int) -> int:
    """Write the shortest link out of each set of terminals to ``work.degree``, by the set's head.

    A round of Boruvka's algorithm (1926): a few rounds over all links take less time than sorting
    them. Links within sets are dropped from ``work.bridges``; returns how many remain.
    """
    for i in range(count):
        work.degree[work.terminals[i]] = NONE
    kept = 0
    for i in range(bridges):
        link = work.bridges[i]
        first = head_of(work.sets, work.origin[graph.ends[link, 0]])
        second = head_of(work.sets, work.origin[graph.ends[link, 1]])
        if first == second:
            continue
        work.bridges[kept] = link
        kept += 1
        if work.degree[first] == NONE or shorter(work.lengths, link, work.degree[first]):
            work.degree[first] = link
        if work.degree[second] == NONE or shorter(work.lengths, link, work.degree[second]):
            work.degree[second] = link
    return kept


@rule
def trim(graph: Graph, work: Workspace, links: int, terminals: int) -> int:
    """Make ``work.tree[:links]`` a tree without ends that nobody asked for.

    Of the brokers that the links touch the least spanning tree is taken (Kou, Markowsky, Berman
    1981), then every end goes that is none of ``work.terminals[:terminals]``. Never dearer than
    before. Returns how many links remain.
    """
    inside = new_mark(work)
    for i in range(links):
        for side in range(2):
            node = graph.ends[work.tree[i], side]
            work.marks[node] = inside
            work.sets[node] = node
            work.degree[node] = 0
    bridges = 0
    for link in range(graph.ends.shape[0]):
        one, other = graph.ends[link, 0], graph.ends[link, 1]
        if work.marks[one] == inside and work.marks[other] == inside:
            work.bridges[bridges] = link
            bridges += 1
    sort_links(work.bridges, graph.costs, bridges)
    links = 0
    for i in range(bridges):
        link = work.bridges[i]
        one, other = graph.ends[link, 0], graph.ends[link, 1]
        if unite(work.sets, one, other):
            work.tree[links] = link
            links += 1
            work.degree[one] += 1
            work.degree[other] += 1
    wanted = new_mark(work)
    for i in range(terminals):
        work.marks[work.terminals[i]] = wanted
    return int(drop_loose_ends(graph, work, links, wanted))


@rule
def write_short_tree(graph: Graph, work: Workspace, count: int) -> int:
    """Join ``work.terminals[:count]``; writes links to ``work.tree`` and returns how many.

    Mehlhorn's tree, trimmed, or that of the terminals with the brokers where it branches, where
    this is cheaper: paths that only happen to be equally short meet there then. Bounded as
    `write_steiner_tree`; of three brokers, the optimum.
    """
    if count == THREE:
        return int(write_tree_of_three(graph, work))
    links = trim(graph, work, write_steiner_tree(graph, work, count), count)
    joined = with_branches(graph, work, links, count)
    if joined == count:
        return int(links)
    cost = cost_of_links(graph, work, links)
    for i in range(links):
        work.kept[i] = work.tree[i]
    again = trim(graph, work, write_steiner_tree(graph, work, joined), count)
    if cost_of_links(graph, work, again) < cost:
        return int(again)
    for i in range(links):
        work.tree[i] = work.kept[i]
    return int(links)


@rule
def with_branches(graph: Graph, work: Workspace, links: int, count: int) -> int:
    """Write the brokers where a trimmed tree branches behind the terminals; returns how many."""
    known = new_mark(work)
    for i in range(count):
        work.marks[work.terminals[i]] = known
    joined = count
    for i in range(links):
        for side in range(2):
            node = graph.ends[work.tree[i], side]
            if work.marks[node] != known and work.degree[node] > 2:
                work.marks[node] = known
                work.terminals[joined] = node
                joined += 1
    return joined


@rule
def drop_loose_ends(graph: Graph, work: Workspace, links: int, wanted: int) -> int:
    """Take links off the tree that lead to an end not marked ``wanted``, until there is none."""
    dropped = True
    while dropped:
        dropped = False
        kept = 0
        for i in range(links):
            link = work.tree[i]
            loose = False
            for side in range(2):
                node = graph.ends[link, side]
                loose = loose or (work.degree[node] == 1 and work.marks[node] != wanted)
            if loose:
                work.degree[graph.ends[link, 0]] -= 1
                work.degree[graph.ends[link, 1]] -= 1
                dropped = True
            else:
                work.tree[kept] = link
                kept += 1
        links = kept
    return links


@rule
def cost_of_links(graph: Graph, work: Workspace, links: int) -> float:
    """What a document of size 1 costs on ``work.tree[:links]``."""
    cost = 0.0
    for i in range(links):
        cost += graph.costs[work.tree[i]]
    return cost
