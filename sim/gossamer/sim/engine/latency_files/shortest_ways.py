"""Latencies along the shortest ways: of topologies, and for pairs that nobody measured."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import csgraph_from_dense, dijkstra, shortest_path

from gossamer.sim.errors import ScenarioError

Floats = npt.NDArray[np.float64]
Int64s = npt.NDArray[np.int64]

# Rows that are found at a time, so that memory is what the result takes.
_ROWS: Final = 256


def fill_unmeasured(file: str, matrix: Floats) -> tuple[Floats, int]:
    """A matrix in which pairs that were not measured take the shortest way through other sites.

    Args:
        file: it was read from.
        matrix: float64[m, m], NaN where nothing was measured; such a diagonal becomes 0.

    Returns:
        The matrix without NaN, and how many of its entries were filled.

    Raises:
        ScenarioError: there is no such way between two sites.
    """
    full = matrix.copy()
    diagonal = np.einsum("ii->i", full)
    diagonal[np.isnan(diagonal)] = 0.0
    missing = np.isnan(full)
    if not missing.any():
        return full, 0
    graph = csgraph_from_dense(full, null_value=np.nan)
    rows = np.flatnonzero(missing.any(axis=1))
    if len(rows) * graph.nnz > len(full) ** 3:
        ways = shortest_path(graph, method="FW")[rows]
    else:
        ways = dijkstra(graph, indices=rows)
    full[rows] = np.where(missing[rows], ways, full[rows])
    _check_connected(file, full, np.arange(len(full)), np.arange(len(full)))
    return full, int(missing.sum())


def ways_between(
    file: str, sites: int, ends: Int64s, latency: Floats, wanted: Int64s, unit: float
) -> npt.NDArray[np.int32]:
    """Latencies between some sites of a topology, by the shortest ways.

    Args:
        file: it was read from.
        sites: how many there are, m.
        ends: int64[e, 2], from where to where links go.
        latency: float64[e] of links.
        wanted: int64[k], the sites that messages go between.
        unit: ticks that a latency of 1 takes.

    Returns:
        int32[k, k] ticks, rounded.

    Raises:
        ScenarioError: there is no way between two of the sites, or a longer one than a tick's
            number can say.
    """
    graph = _least_of_each(sites, ends, latency)
    found = np.empty((len(wanted), len(wanted)), np.int32)
    for begin in range(0, len(wanted), _ROWS):
        some = wanted[begin : begin + _ROWS]
        ways = dijkstra(graph, indices=some)[:, wanted]
        _check_connected(file, ways, some, wanted)
        ticks = np.rint(ways * unit)
        if ticks.max() > np.iinfo(np.int32).max - 1:
            expected = f"ways of at most {np.iinfo(np.int32).max - 1} ms"
            raise ScenarioError(file, "the longest way", float(ticks.max()), expected)
        found[begin : begin + _ROWS] = ticks
    return found


def _least_of_each(sites: int, ends: Int64s, latency: Floats) -> Any:
    """The sparse graph of links; of several from one site to another the shortest."""
    order = np.lexsort((latency, ends[:, 1], ends[:, 0]))
    ends, latency = ends[order], latency[order]
    first = np.ones(len(ends), np.bool_)
    first[1:] = (ends[1:] != ends[:-1]).any(axis=1)
    kept = ends[first].T
    graph = csr_array(coo_array((latency[first], (kept[0], kept[1])), shape=(sites, sites)))
    # Links that take no time are links all the same.
    graph.data = np.maximum(graph.data, np.finfo(np.float64).tiny)
    return graph


def _check_connected(file: str, ways: Floats, rows: Int64s, columns: Int64s) -> None:
    lost = np.argwhere(~np.isfinite(ways))
    if len(lost):
        one, other = int(rows[lost[0][0]]) + 1, int(columns[lost[0][1]]) + 1
        expected = "one over links or measured pairs from every site to every other"
        raise ScenarioError(
            file, f"the way from site {one} to site {other}", None, expected, "missing"
        )
