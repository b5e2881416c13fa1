"""The least tree that joins three brokers, which is a star of shortest paths.

Wherever its centre is, the paths from there to the three cost no less than shortest ones; so the
broker that is nearest to all three together is the centre of an optimum.
"""

from __future__ import annotations

from gossamer.protocol.dissemination.graphs.graph import Graph, Workspace
from gossamer.protocol.dissemination.graphs.paths import add_path, find_paths
from gossamer.protocol.dissemination.graphs.spanning import new_mark
from gossamer.protocol.kernel.rules import rule

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
