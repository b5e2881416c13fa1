"""Better Steiner trees: brokers where three paths meet, after Zelikovsky.

The 11/6-approximation of Zelikovsky (Algorithmica 9, 1993) in its faster form: as long as a tree
gets shorter by it, three terminals are joined at the broker where that saves most. Each broker is
judged with its nearest terminal first, then the best second and third, so a round takes time n k.
It ends with what the least spanning tree of the brokers chosen gives after trimming, and never
takes more than Mehlhorn's tree.

Departs from the paper, which takes Robins and Zelikovsky (2000): their 1.55 is the limit for
joining ever more terminals at once, in time n^k; with the three that can be afforded their
algorithm is bounded by 1.95, this one by 1.84.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from gossamer.protocol.dissemination.graph import Graph, Reals, Words, Workspace
from gossamer.protocol.dissemination.paths import find_paths
from gossamer.protocol.dissemination.steiner import cost_of_links, trim, write_steiner_tree
from gossamer.protocol.kernel.rules import inline_rule, rule
from gossamer.protocol.kernel.struct import Struct

BOUND: Final = 11 / 6


class Triples(Struct):
    """Room to look for the meeting points of k terminals among n brokers.

    Attributes:
        terminals: int64[k], the brokers to be joined.
        away: float64[k, n], the distance of each broker from each terminal.
        between: float64[k, k], length of terminals' paths to each other; 0 once joined.
        saving: float64[k, k], the longest link on the way between two in the least spanning tree
            of the terminals: what joining the two otherwise saves.
        nearest: float64[k], and link: int64[k], for Prim's algorithm.
        sequence: int64[k], the terminals in the order in which the tree took them.
        choice: int64[4], a meeting point and its three terminals.
        centres: int64[n], the meeting points chosen.
    """

    terminals: Words
    away: Reals
    between: Reals
    saving: Reals
    nearest: Reals
    link: Words
    sequence: Words
    choice: Words
    centres: Words


def make_triples(graph: Graph, terminals: int) -> Triples:
    """Room for so many terminals."""
    k, n = terminals, graph.nodes
    return Triples(
        terminals=np.zeros(k, np.int64),
        away=np.zeros((k, n)),
        between=np.zeros((k, k)),
        saving=np.zeros((k, k)),
        nearest=np.zeros(k),
        link=np.zeros(k, np.int64),
        sequence=np.zeros(k, np.int64),
        choice=np.zeros(4, np.int64),
        centres=np.zeros(n, np.int64),
    )


@rule
def write_distances(graph: Graph, work: Workspace, triples: Triples, count: int) -> None:
    """Write the distances of all brokers from ``work.terminals[:count]``, which are copied."""
    for i in range(count):
        triples.terminals[i] = work.terminals[i]
    for i in range(count):
        work.terminals[0] = triples.terminals[i]
        find_paths(graph, work, work.terminals, 1)
        for v in range(graph.first.shape[0] - 1):
            triples.away[i, v] = work.distance[v]
    for i in range(count):
        work.terminals[i] = triples.terminals[i]
        for j in range(count):
            triples.between[i, j] = triples.away[i, triples.terminals[j]]


@rule
def write_savings(triples: Triples, count: int) -> None:
    """Write what joining two terminals saves, while Prim's algorithm makes their tree."""
    for i in range(count):
        triples.nearest[i] = triples.between[0, i]
        triples.link[i] = 0
        triples.saving[i, i] = 0.0
    triples.sequence[0] = 0
    triples.nearest[0] = -1.0
    for taken in range(1, count):
        following = -1
        for i in range(count):
            if triples.nearest[i] >= 0.0 and (
                following < 0 or triples.nearest[i] < triples.nearest[following]
            ):
                following = i
        length = triples.nearest[following]
        for i in range(taken):
            earlier = triples.sequence[i]
            longest = max(length, triples.saving[triples.link[following], earlier])
            triples.saving[following, earlier] = longest
            triples.saving[earlier, following] = longest
        triples.sequence[taken] = following
        triples.nearest[following] = -1.0
        for i in range(count):
            if triples.nearest[i] > triples.between[following, i]:
                triples.nearest[i] = triples.between[following, i]
                triples.link[i] = following


@inline_rule
def saved_by(triples: Triples, one: int, two: int, three: int) -> float:
    """What joining three terminals saves in their least spanning tree: its two longest links."""
    first, second = triples.saving[one, two], triples.saving[two, three]
    third = triples.saving[one, three]
    return float(max(first, second, third) + min(first, second, third))


@rule
def best_triple_at(triples: Triples, count: int, v: int) -> tuple[float, int, int, int]:
    """The gain, and the three terminals, that broker ``v`` is best for as a meeting point."""
    one = 0
    for i in range(count):
        if triples.away[i, v] < triples.away[one, v]:
            one = i
    two, gain = -1, -math.inf
    for i in range(count):
        saved = triples.saving[one, i] - triples.away[i, v]
        if i != one and saved > gain:
            two, gain = i, saved
    three, gain = -1, -math.inf
    for i in range(count):
        if i not in (one, two):
            saved = saved_by(triples, one, two, i) - triples.away[i, v]
            if saved > gain:
                three, gain = i, saved
    return gain - triples.away[one, v] - triples.away[two, v], one, two, three


@rule
def choose_triple(triples: Triples, count: int, nodes: int) -> bool:
    """Write the best meeting point and its terminals to ``choice``; whether it gains anything."""
    most = 0.0
    for v in range(nodes):
        gain, one, two, three = best_triple_at(triples, count, v)
        # Sums of equal costs in another order may differ in their last digits.
        if gain > most + 1e-9 * (1.0 + most):
            most = gain
            triples.choice[0] = v
            triples.choice[1] = one
            triples.choice[2] = two
            triples.choice[3] = three
    return most > 0.0


@rule
def write_better_tree(graph: Graph, work: Workspace, triples: Triples, count: int) -> int:
    """Join ``work.terminals[:count]``; writes links to ``work.tree`` and returns how many.

    At most 11/6 times the optimum.
    """
    fast = trim(graph, work, write_steiner_tree(graph, work, count), count)
    if count < 3:
        return int(fast)
    cost = cost_of_links(graph, work, fast)
    nodes = graph.first.shape[0] - 1
    write_distances(graph, work, triples, count)
    write_savings(triples, count)
    chosen = 0
    while choose_triple(triples, count, nodes):
        triples.centres[chosen] = triples.choice[0]
        chosen += 1
        for i in range(1, 4):
            for j in range(1, 4):
                triples.between[triples.choice[i], triples.choice[j]] = 0.0
        write_savings(triples, count)
    links = with_centres(graph, work, triples, count, chosen)
    if cost_of_links(graph, work, links) <= cost:
        return int(links)
    return int(trim(graph, work, write_steiner_tree(graph, work, count), count))


@rule
def with_centres(graph: Graph, work: Workspace, triples: Triples, count: int, chosen: int) -> int:
    """Join the terminals and the meeting points, then drop what of these is not needed."""
    joined = count
    for i in range(chosen):
        centre = triples.centres[i]
        known = False
        for j in range(joined):
            known = known or work.terminals[j] == centre
        if not known:
            work.terminals[joined] = centre
            joined += 1
    return int(trim(graph, work, write_steiner_tree(graph, work, joined), count))
