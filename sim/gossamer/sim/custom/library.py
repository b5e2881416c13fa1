"""A node's draws, which depend on the seed, the node and how often it has drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from gossamer.protocol.kernel.draws import below, mix
from gossamer.protocol.kernel.rules import inline_rule, rule
from gossamer.protocol.peer.sampling.sampler import EMPTY, handle_of, view_length
from gossamer.sim.engine.latency import Int64s


@inline_rule
def draw(state: Any, me: int) -> Any:
    """The node's next uniform draw from [0, 2^62); state is the protocol's, as in handlers."""
    state.draws[me] += 1
    return mix(state.seed, me, state.draws[me])


@inline_rule
def draw_below(state: Any, me: int, bound: int) -> Any:
    """A uniform draw from 0 to ``bound - 1``; bound is from 1 to 2^31 - 1."""
    return below(draw(state, me), bound)


@inline_rule
def draw_float(state: Any, me: int) -> Any:
    """A uniform draw from [0, 1)."""
    return (draw(state, me) >> 9) / 9007199254740992.0


@inline_rule
def draw_other(state: Any, me: int) -> Any:
    """The row of any node but this one, whether it is up or not; there are at least two."""
    other = below(draw(state, me), state.nodes - 1)
    return other + 1 if other >= me else other


# Lists of nodes in columns: rules for a row that holds nodes from its left end on, then NOBODY.
#
# ``near = column(int, 20, initial=NOBODY)`` is such a list for every node, ``self.near[me]`` that
# of node ``me``. Plain nodes have lists of Python, of which `add_to` is ``append`` within bounds
# and `remove_from` is ``remove``.

NOBODY: Final = -1


@rule
def count_in(row: Any) -> Any:
    """How many nodes a row holds."""
    count = 0
    while count < len(row) and row[count] >= 0:
        count += 1
    return count


@rule
def place_in(row: Any, node: int) -> Any:
    """Where a node stands in a row, -1 where it does not."""
    for place in range(len(row)):
        if row[place] == node:
            return place
    return -1


@rule
def holds(row: Any, node: int) -> Any:
    """Whether a row holds a node."""
    return place_in(row, node) >= 0


@rule
def add_to(row: Any, node: int) -> Any:
    """Append a node; returns whether it did, as the row was not full and did not hold it."""
    for place in range(len(row)):
        if row[place] == node:
            return False
        if row[place] < 0:
            row[place] = node
            return True
    return False


@rule
def insert_at(row: Any, place: int, node: int) -> None:
    """Write a node to a place of a row; those from there on move down, the last one out."""
    for later in range(len(row) - 1, place, -1):
        row[later] = row[later - 1]
    row[place] = node


@rule
def remove_from(row: Any, node: int) -> Any:
    """Remove a node, those behind it move up; returns whether it was there."""
    place = 0
    while place < len(row) and row[place] != node:
        place += 1
    if node < 0 or place == len(row):
        return False
    while place + 1 < len(row) and row[place] >= 0:
        row[place] = row[place + 1]
        place += 1
    row[place] = -1
    return True


@rule
def draw_from(state: Any, me: int, row: Any) -> Any:
    """A node of a row, by the node's next draw; NOBODY, and no draw, where it holds none."""
    count = count_in(row)
    if count == 0:
        return -1
    return row[below(draw(state, me), count)]


@rule
def draw_but(state: Any, me: int, row: Any, but: int) -> Any:
    """A node of a row other than ``but``, by the next draw; NOBODY, and no draw, without such."""
    place = place_in(row, but) if but >= 0 else -1
    others = count_in(row) - (place >= 0)
    if others == 0:
        return -1
    drawn = below(draw(state, me), others)
    return row[drawn + 1] if 0 <= place <= drawn else row[drawn]


@rule
def put_into(state: Any, me: int, row: Any, node: int) -> Any:
    """Append another node to a row; where it is full a random one makes room.

    Returns:
        The node that made room; NOBODY where none had to, or nothing changed, as ``node`` is
        nobody, node ``me`` itself, or there already.
    """
    if node < 0 or node == me or place_in(row, node) >= 0 or add_to(row, node):
        return -1
    gone = draw_from(state, me, row)
    remove_from(row, gone)
    add_to(row, node)
    return gone


# What a protocol asks of a sampler that it runs over: rules, and the same for plain nodes.


@inline_rule
def peers_known(sampler: Any, me: int) -> Any:
    """How many peers row ``me`` knows by its sampler."""
    return view_length(sampler, me)


@inline_rule
def peer_at(sampler: Any, me: int, place: int) -> Any:
    """The row of the peer at a place of the view of row ``me``, from 0 to `peers_known` - 1."""
    return handle_of(sampler.views[me, place])


@inline_rule
def random_peer(sampler: Any, me: int, drawn: int) -> Any:
    """The row of a peer that row ``me`` knows, by a `draw`; -1 where it knows none."""
    known = view_length(sampler, me)
    if known == 0:
        return -1
    return handle_of(sampler.views[me, below(drawn, known)])


class View:
    """The view of one node, for plain nodes.

    Args:
        sampler: the state of the sampler.
        me: the row of the node.
        draw: draws for it.
    """

    def __init__(self, sampler: Any, me: int, draw: Callable[[], int]) -> None:
        self._row = sampler.views[me]
        self.draw = draw

    def __len__(self) -> int:
        return int((self._row != EMPTY).sum())

    def __getitem__(self, place: int) -> int:
        return int(handle_of.interpreted(self._row[range(len(self))[place]]))

    def random(self) -> int:
        """The row of a peer that the node knows; -1 where it knows none."""
        drawn, known = self.draw(), len(self)
        return self[below.interpreted(drawn, known)] if known else -1


# Measures of the graph that nodes form by those whom they know.


def graph_of(known: Any, alive: npt.NDArray[np.bool_]) -> Any:
    """The nodes that are up as an undirected graph, an edge where either knows the other.

    Args:
        known: whom each node knows: int64[n, k], entries below 0 being nobody, or n lists.
        alive: bool[n].

    Returns:
        The adjacency matrix, a `scipy.sparse.csr_array` of those that are up, in their order.
    """
    from scipy import sparse

    holder, held = edges_of(known, alive)
    index = np.cumsum(alive) - 1
    size = int(alive.sum())
    ends = (index[np.concatenate([holder, held])], index[np.concatenate([held, holder])])
    graph = sparse.csr_array((np.ones(len(ends[0]), np.int32), ends), shape=(size, size))
    graph.data[:] = 1
    return graph


def edges_of(known: Any, alive: npt.NDArray[np.bool_]) -> tuple[Int64s, Int64s]:
    """Who knows whom, both up: two arrays int64[edges], ordered by the one who knows."""
    if isinstance(known, np.ndarray):
        holder, place = np.nonzero(known >= 0)
        held = known[holder, place]
    else:
        lists: Sequence[Sequence[int]] = known
        holder = np.repeat(np.arange(len(lists)), [len(each) for each in lists])
        held = np.array([node for each in lists for node in each], np.int64)
    up = alive[holder] & alive[held]
    return holder[up], held[up]


def clustering(graph: Any, nodes: Int64s | None = None) -> float:
    """The mean clustering coefficient (Watts, Strogatz, 1998) of ``nodes``, all if not given.

    Nodes of degree below 2 count as 0. The diagonal must be empty.
    """
    rows = graph if nodes is None else graph[nodes]
    closed = (rows @ graph).multiply(rows).sum(axis=1)
    degree = np.diff(rows.indptr)
    return float(np.mean(closed / np.maximum(degree * (degree - 1), 1)))


def mean_path_length(graph: Any, sources: Int64s) -> float:
    """The mean hops from ``sources`` to all other nodes; infinite where one is out of reach."""
    from scipy.sparse import csgraph

    hops = csgraph.shortest_path(graph, unweighted=True, indices=sources)
    return float(hops.sum() / (len(sources) * (graph.shape[0] - 1)))


def largest_component(graph: Any) -> float:
    """The share of the nodes that are in the largest connected part of a graph."""
    from scipy.sparse import csgraph

    _, part = csgraph.connected_components(graph, directed=False)
    return float(np.bincount(part).max() / len(part))
