"""Measures of the graph that nodes form by those whom they know."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]


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
