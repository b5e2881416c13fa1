"""Shortest paths from one broker or from many, Dijkstra's way.

Ties break on the broker: of paths of one cost the one through the lower broker stays, so that a
tree does not depend on how a heap happens to lie. Where all links cost the same, brokers are found
level by level, which needs no heap and gives the same.
"""

from __future__ import annotations

from gossamer.protocol.dissemination.graph import NONE, Graph, Words, Workspace
from gossamer.protocol.kernel.rules import inline_rule, rule

SETTLED = -2


@inline_rule
def nearer(work: Workspace, one: int, other: int) -> bool:
    """Whether a broker is to leave the heap before another."""
    if work.distance[one] != work.distance[other]:
        return bool(work.distance[one] < work.distance[other])
    return one < other


@rule
def raise_in_heap(work: Workspace, node: int, at: int) -> None:
    """Put ``node`` at ``at`` or above; what is in between moves down."""
    while at > 0:
        above = (at - 1) >> 1
        if not nearer(work, node, work.heap[above]):
            break
        work.heap[at] = work.heap[above]
        work.place[work.heap[at]] = at
        at = above
    work.heap[at] = node
    work.place[node] = at


@rule
def pop_nearest(work: Workspace, size: int) -> int:
    """Take the nearest broker off the heap, which held ``size``."""
    nearest = work.heap[0]
    work.place[nearest] = SETTLED
    node = work.heap[size - 1]
    size -= 1
    if size == 0:
        return int(nearest)
    at = 0
    while True:
        below = 2 * at + 1
        if below >= size:
            break
        if below + 1 < size and nearer(work, work.heap[below + 1], work.heap[below]):
            below += 1
        if not nearer(work, work.heap[below], node):
            break
        work.heap[at] = work.heap[below]
        work.place[work.heap[at]] = at
        at = below
    work.heap[at] = node
    work.place[node] = at
    return int(nearest)


@rule
def find_paths(graph: Graph, work: Workspace, sources: Words, count: int) -> int:
    """Find the shortest path to every broker from the nearest of ``sources[:count]``.

    Writes distance, origin, before, via and order; returns how many brokers were found. With many
    sources, ``origin`` parts the brokers into Voronoi cells (Mehlhorn 1988).
    """
    for v in range(graph.first.shape[0] - 1):
        work.origin[v] = NONE
        work.place[v] = NONE
    for i in range(count):
        source = sources[i]
        work.distance[source] = 0.0
        work.origin[source] = source
        work.before[source] = NONE
        work.via[source] = NONE
    if costs_are_equal(graph):
        return int(find_by_levels(graph, work, sources, count))
    return int(find_by_heap(graph, work, sources, count))


@rule
def costs_are_equal(graph: Graph) -> bool:
    """Whether all links cost the same; where they do not, this is seen at once as a rule."""
    for link in range(1, graph.costs.shape[0]):
        if graph.costs[link] != graph.costs[0]:
            return False
    return True


@rule
def find_by_levels(graph: Graph, work: Workspace, sources: Words, count: int) -> int:
    """Find the paths where all links cost the same, lower brokers first in every level."""
    order = work.order
    for i in range(count):
        order[i] = sources[i]
    begin, found = 0, count
    while begin < found:
        end = found
        sort_brokers(order, begin, end)
        for at in range(begin, end):
            node = order[at]
            for i in range(graph.first[node], graph.first[node + 1]):
                other = graph.to[i]
                if work.origin[other] == NONE:
                    work.distance[other] = work.distance[node] + graph.costs[graph.link[i]]
                    work.origin[other] = work.origin[node]
                    work.before[other] = node
                    work.via[other] = graph.link[i]
                    order[found] = other
                    found += 1
        begin = end
    return found


@rule
def sort_brokers(brokers: Words, begin: int, end: int) -> None:
    """Sort ``brokers[begin:end]``, Shell's way."""
    gap = 1
    while gap < (end - begin) // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(begin + gap, end):
            broker = brokers[i]
            at = i
            while at >= begin + gap and brokers[at - gap] > broker:
                brokers[at] = brokers[at - gap]
                at -= gap
            brokers[at] = broker
        gap //= 3


@rule
def find_by_heap(graph: Graph, work: Workspace, sources: Words, count: int) -> int:
    """Find the paths whatever links cost."""
    size = 0
    for i in range(count):
        raise_in_heap(work, sources[i], size)
        size += 1
    found = 0
    while size > 0:
        node = pop_nearest(work, size)
        size -= 1
        work.order[found] = node
        found += 1
        for i in range(graph.first[node], graph.first[node + 1]):
            size = reach(work, node, graph.to[i], graph.link[i], graph.costs[graph.link[i]], size)
    return found


@inline_rule
def reach(work: Workspace, node: int, other: int, link: int, cost: float, size: int) -> int:
    """Try the path to ``other`` through ``node``; returns the new size of the heap."""
    place = work.place[other]
    if place == SETTLED:
        return size
    distance = work.distance[node] + cost
    if place == NONE:
        place = size
        size += 1
    elif distance > work.distance[other] or (
        distance == work.distance[other] and node >= work.before[other]
    ):
        return size
    work.distance[other] = distance
    work.origin[other] = work.origin[node]
    work.before[other] = node
    work.via[other] = link
    raise_in_heap(work, other, place)
    return size


@inline_rule
def add_path(work: Workspace, node: int, mark: int, links: int) -> int:
    """Add the path from ``node`` to the source of the search, where ``work.tree`` lacks it."""
    while work.marks[node] != mark and work.before[node] != NONE:
        work.marks[node] = mark
        work.tree[links] = work.via[node]
        links += 1
        node = work.before[node]
    return links
