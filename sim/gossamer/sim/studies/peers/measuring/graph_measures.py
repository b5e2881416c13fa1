"""Measures of the graph that the views of all peers form."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import sparse

from gossamer.protocol.peer.sampling.sampler import EMPTY, SamplerState

Rows = npt.NDArray[np.int64]

_HANDLE_MASK = (1 << 32) - 1


def view_edges(sampler: SamplerState, alive: npt.NDArray[np.bool_]) -> tuple[Rows, Rows]:
    """The edges (holder, held) of all views, both ends up; handles must be rows.

    Returns:
        Two arrays int64[edges], ordered by holder and slot.
    """
    holder, slot = np.nonzero(sampler.views != EMPTY)
    held = sampler.views[holder, slot] & _HANDLE_MASK
    up = alive[holder] & alive[held]
    return holder[up], held[up]


def in_degrees(sampler: SamplerState, alive: npt.NDArray[np.bool_]) -> Rows:
    """In how many views each node that is up stands: int64[number of nodes up]."""
    _, held = view_edges(sampler, alive)
    return np.bincount(held, minlength=len(alive))[alive]


def undirected_view_graph(sampler: SamplerState, alive: npt.NDArray[np.bool_]) -> sparse.csr_array:
    """The adjacency matrix of the nodes that are up, an edge where either holds the other."""
    holder, held = view_edges(sampler, alive)
    index = np.cumsum(alive) - 1
    size = int(index[-1]) + 1
    ends = (index[np.concatenate([holder, held])], index[np.concatenate([held, holder])])
    graph = sparse.csr_array((np.ones(len(ends[0]), np.int32), ends), shape=(size, size))
    graph.data[:] = 1
    return graph
