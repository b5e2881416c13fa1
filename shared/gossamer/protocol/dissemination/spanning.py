"""Spanning trees that know nothing of documents, and any spanning tree hung up at a root.

A tree is first a list of links, then hung up: every broker knows the one above it, so that the
part of the tree between some brokers is found by climbing from them (`cost`).
"""

from __future__ import annotations

import numpy as np

from gossamer.protocol.dissemination.graph import (
    NONE,
    Graph,
    Reals,
    Words,
    Workspace,
    sort_links,
    unite,
)
from gossamer.protocol.dissemination.paths import find_paths
from gossamer.protocol.kernel.errors import InvariantError
from gossamer.protocol.kernel.rules import rule
from gossamer.protocol.kernel.struct import Struct


class Trees(Struct):
    """Spanning trees of one graph, each hung up at a root.

    Attributes:
        above: int64[k, n], the broker above each, NONE at the root.
        link: int64[k, n], the link there, NONE at the root.
        depth: int64[k, n], links up to the root.
    """

    above: Words
    link: Words
    depth: Words

    @property
    def count(self) -> int:
        """How many trees there are."""
        return len(self.above)

    def links(self, tree: int) -> Words:
        """The n - 1 links of a tree, in order."""
        return np.sort(self.link[tree][self.link[tree] != NONE])


def make_trees(count: int, nodes: int) -> Trees:
    """Room for so many trees."""
    return Trees(
        above=np.full((count, nodes), NONE, np.int64),
        link=np.full((count, nodes), NONE, np.int64),
        depth=np.zeros((count, nodes), np.int64),
    )


@rule
def new_mark(work: Workspace) -> int:
    """A mark that nothing bears yet."""
    work.mark[0] += 1
    return int(work.mark[0])


@rule
def hang_up(graph: Graph, work: Workspace, count: int, root: int, trees: Trees, t: int) -> int:
    """Hang the links ``work.tree[:count]`` up at ``root`` as tree ``t``.

    Returns how many brokers hang there: all, where the links are a spanning tree.
    """
    mark = new_mark(work)
    for i in range(count):
        work.used[work.tree[i]] = mark
    return int(hang_from(graph, work, root, mark, trees, t))


@rule
def hang_up_forest(graph: Graph, work: Workspace, count: int, trees: Trees, t: int) -> None:
    """Hang each component of the links ``work.tree[:count]`` up at one of its brokers.

    What is not touched by these links keeps what it had in tree ``t``.
    """
    mark = new_mark(work)
    for i in range(count):
        work.used[work.tree[i]] = mark
    for i in range(count):
        root = graph.ends[work.tree[i], 0]
        if work.marks[root] != mark:
            hang_from(graph, work, root, mark, trees, t)


@rule
def hang_from(graph: Graph, work: Workspace, root: int, mark: int, trees: Trees, t: int) -> int:
    """Hang what reaches ``root`` by links used with ``mark``; returns how many brokers do."""
    work.order[0] = root
    work.marks[root] = mark
    trees.above[t, root] = NONE
    trees.link[t, root] = NONE
    trees.depth[t, root] = 0
    found = 1
    at = 0
    while at < found:
        node = work.order[at]
        at += 1
        for i in range(graph.first[node], graph.first[node + 1]):
            other = graph.to[i]
            if work.used[graph.link[i]] == mark and work.marks[other] != mark:
                work.marks[other] = mark
                trees.above[t, other] = node
                trees.link[t, other] = graph.link[i]
                trees.depth[t, other] = trees.depth[t, node] + 1
                work.order[found] = other
                found += 1
    return found


@rule
def write_shortest_path_tree(graph: Graph, work: Workspace, root: int) -> int:
    """Write the links of the shortest path tree of ``root`` to ``work.tree``; returns how many."""
    work.terminals[0] = root
    found = find_paths(graph, work, work.terminals, 1)
    for i in range(1, found):
        work.tree[i - 1] = work.via[work.order[i]]
    return int(found) - 1


@rule
def write_kruskal_tree(graph: Graph, work: Workspace, lengths: Reals) -> int:
    """Write the links of the least spanning tree by ``lengths`` to ``work.tree``, Kruskal's way."""
    links = graph.ends.shape[0]
    for link in range(links):
        work.bridges[link] = link
    sort_links(work.bridges, lengths, links)
    for v in range(graph.first.shape[0] - 1):
        work.sets[v] = v
    count = 0
    for i in range(links):
        link = work.bridges[i]
        if unite(work.sets, graph.ends[link, 0], graph.ends[link, 1]):
            work.tree[count] = link
            count += 1
    return count


@rule
def complete_tree(graph: Graph, work: Workspace, count: int) -> int:
    """Make the forest ``work.tree[:count]`` a spanning tree by shortest paths (line 11).

    Departs from the paper: the documents' graph may fall into parts, which Algorithm 1 does not
    consider; parts are joined by shortest paths just as single brokers are.
    """
    nodes = graph.first.shape[0] - 1
    for v in range(nodes):
        work.sets[v] = v
        work.degree[v] = 0
    for i in range(count):
        one, other = graph.ends[work.tree[i], 0], graph.ends[work.tree[i], 1]
        unite(work.sets, one, other)
        work.degree[one] = 1
        work.degree[other] = 1
    sources = 0
    for v in range(nodes):
        if work.degree[v] > 0:
            work.terminals[sources] = v
            sources += 1
    if sources == 0:
        work.terminals[0] = 0
        sources = 1
    find_paths(graph, work, work.terminals, sources)
    for v in range(nodes):
        if work.via[v] != NONE:
            unite(work.sets, v, work.before[v])
            work.tree[count] = work.via[v]
            count += 1
    bridges = 0
    for link in range(graph.ends.shape[0]):
        one, other = graph.ends[link, 0], graph.ends[link, 1]
        if work.origin[one] != work.origin[other]:
            work.lengths[link] = work.distance[one] + graph.costs[link] + work.distance[other]
            work.bridges[bridges] = link
            bridges += 1
    sort_links(work.bridges, work.lengths, bridges)
    for i in range(bridges):
        link = work.bridges[i]
        if unite(work.sets, graph.ends[link, 0], graph.ends[link, 1]):
            work.tree[count] = link
            count += 1
    return count


def shortest_path_tree(graph: Graph, work: Workspace, root: int) -> Trees:
    """SPT (Sec. VII): the tree of shortest paths from ``root``."""
    return hung_up(graph, work, write_shortest_path_tree(graph, work, root), root)


def minimum_spanning_tree(graph: Graph, work: Workspace) -> Trees:
    """MST (Sec. I-B): the spanning tree of least total cost, hung up at broker 0."""
    return hung_up(graph, work, write_kruskal_tree(graph, work, graph.costs), 0)


def hung_up(graph: Graph, work: Workspace, count: int, root: int) -> Trees:
    """The links ``work.tree[:count]``, a spanning tree, hung up at ``root``.

    Raises:
        InvariantError: they are no spanning tree.
    """
    trees = make_trees(1, graph.nodes)
    found = hang_up(graph, work, count, root, trees, 0)
    if found != graph.nodes or count != graph.nodes - 1:
        raise InvariantError(f"{count} links reach {found} of {graph.nodes} brokers")
    return trees
