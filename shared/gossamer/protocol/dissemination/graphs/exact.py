"""The optimum Steiner tree of few brokers, by the dynamic programme of Dreyfus and Wagner (1971).

In the form of Erickson, Monma and Veinott (1987): the best tree of every set of brokers, ending
at every broker of the graph. Time grows with 3^k, memory with 2^k.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from gossamer.protocol.dissemination.graphs.graph import NONE, Graph, Reals, Words, Workspace
from gossamer.protocol.dissemination.graphs.paths import pop_nearest, raise_in_heap, reach
from gossamer.protocol.kernel.errors import CapacityError
from gossamer.protocol.kernel.rules import rule

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
