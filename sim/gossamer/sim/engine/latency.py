"""Latency models: how many ticks a message takes from one node to another."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gossamer.protocol.kernel.draws import below, mix, mix_many
from gossamer.protocol.kernel.rules import inline_rule
from gossamer.sim.errors import ScenarioError

Int64s = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

LONGEST_TICKS = (1 << 31) - 2


class Latency(NamedTuple):
    """Ticks from node to node: by the sites they stand at, or drawn from a distribution.

    Attributes:
        shortest, spread: ticks drawn evenly from [shortest, shortest + spread]; where there are
            places, ``shortest`` is what every message takes beside its distance.
        quantiles: int32[spread + 1], ticks beyond the shortest, in place of the numbers from 0 to
            the spread; int32[0] for none.
        site: int64[n], each node's row of ``matrix`` or ``places``; int64[0] where there is
            neither.
        matrix: int32[m, m], ticks between sites; int32[0, 0] for none.
        places: float64[m, d], coordinates of sites in ticks; float64[0, 0] for none.
    """

    shortest: int
    spread: int
    quantiles: npt.NDArray[np.int32]
    site: Int64s
    matrix: npt.NDArray[np.int32]
    places: Floats


# Of a distribution: as many quantiles, in the middle of equal shares, are equally likely.
QUANTILES = 4096
_EVEN: npt.NDArray[np.int32] = np.zeros(0, np.int32)
_NO_SITES: Int64s = np.zeros(0, np.int64)
_NO_MATRIX: npt.NDArray[np.int32] = np.zeros((0, 0), np.int32)
_NO_PLACES: Floats = np.zeros((0, 0))


def uniform_latency(shortest: int, longest: int) -> Latency:
    """Every message takes its own time, drawn evenly from [shortest, longest] ticks.

    Raises:
        ScenarioError: not 0 <= shortest <= longest < 2^31 - 1.
    """
    if not 0 <= shortest <= longest <= LONGEST_TICKS:
        expected = f"0 <= shortest <= longest <= {LONGEST_TICKS} ticks"
        raise ScenarioError(None, "latency", (shortest, longest), expected)
    return Latency(shortest, longest - shortest, _EVEN, _NO_SITES, _NO_MATRIX, _NO_PLACES)


def lognormal_latency(median: int, sigma: float) -> Latency:
    """Every message takes its own time, log-normal around a median.

    Args:
        median: ticks that half of the messages take at most.
        sigma: standard deviation of the logarithm.

    Raises:
        ScenarioError: ticks are out of range, such as of one message in 8,192 that takes longest.
    """
    from scipy.special import ndtri

    shares = (np.arange(QUANTILES) + 0.5) / QUANTILES
    ticks = np.rint(median * np.exp(sigma * ndtri(shares)))
    if not median >= 0 or not ticks[-1] <= LONGEST_TICKS:
        expected = f"0 to {LONGEST_TICKS} ticks for the longest of {2 * QUANTILES}"
        raise ScenarioError(None, "latency", float(ticks[-1]), expected)
    shortest = int(ticks[0])
    beyond = (ticks - shortest).astype(np.int32)
    return Latency(shortest, QUANTILES - 1, beyond, _NO_SITES, _NO_MATRIX, _NO_PLACES)


def constant_latency(ticks: int) -> Latency:
    """Every message takes ``ticks`` ticks; raises `ScenarioError` as `uniform_latency`."""
    return uniform_latency(ticks, ticks)


def no_latency() -> Latency:
    """Every message arrives within the tick in which it is sent."""
    return constant_latency(0)


def least_ticks(latency: Latency) -> int:
    """How many ticks every message takes at least."""
    return int(latency.matrix.min()) if latency.matrix.size else latency.shortest


def drawn_sites(sites: int, nodes: int, seed: int) -> Int64s:
    """int64[n], a site for each of ``nodes`` nodes, by a hash of seed and row."""
    draws = mix_many(seed, np.arange(nodes), 0)
    return np.asarray((draws >> 31) * sites >> 31)


def matrix_latency(
    ticks: npt.NDArray[np.integer[Any]], nodes: int, seed: int, site: Int64s | None = None
) -> Latency:
    """Messages take the ticks between the sites of sender and addressee.

    Args:
        ticks: int64[m, m], from row to column; the diagonal is for nodes at one site.
        nodes: number of nodes.
        seed: of the placement.
        site: int64[n], the site of each node; by default `drawn_sites`.

    Raises:
        ScenarioError: the matrix is not square, has no row or an entry below 0.
    """
    if ticks.ndim != 2 or ticks.shape[0] != ticks.shape[1] or len(ticks) == 0:
        raise ScenarioError(None, "shape of the latency matrix", ticks.shape, "a square")
    if ticks.min() < 0 or ticks.max() > LONGEST_TICKS:
        wrong = int(ticks[(ticks < 0) | (ticks > LONGEST_TICKS)][0])
        expected = f"0 to {LONGEST_TICKS} ticks"
        raise ScenarioError(None, "entry of the latency matrix", wrong, expected)
    site = drawn_sites(len(ticks), nodes, seed) if site is None else site
    return Latency(0, 0, _EVEN, site, np.ascontiguousarray(ticks, np.int32), _NO_PLACES)


def coordinate_latency(
    places: Floats, shortest: int, nodes: int, seed: int, site: Int64s | None = None
) -> Latency:
    """Messages take the Euclidean distance between the sites of sender and addressee, and more.

    Args:
        places: float64[m, d], coordinates of sites, in ticks.
        shortest: ticks that every message takes beside the distance.
        nodes: number of nodes.
        seed: of the placement.
        site: int64[n], the site of each node; by default `drawn_sites`.

    Raises:
        ScenarioError: the coordinates are not finite, or too far apart; or there are none.
    """
    if places.ndim != 2 or places.size == 0:
        raise ScenarioError(None, "shape of the coordinates", places.shape, "a row for each site")
    reach = np.ptp(places, axis=0) if np.isfinite(places).all() else np.array([math.inf])
    if not 0 <= shortest + math.sqrt(float(reach @ reach)) <= LONGEST_TICKS or shortest < 0:
        expected = f"0 to {LONGEST_TICKS} ticks between any two sites"
        raise ScenarioError(None, "reach of the coordinates", reach.tolist(), expected)
    site = drawn_sites(len(places), nodes, seed) if site is None else site
    places = np.ascontiguousarray(places, np.float64)
    return Latency(shortest, 0, _EVEN, site, _NO_MATRIX, places)


@inline_rule
def distance(places: Floats, one: int, other: int) -> Any:
    """Ticks between two sites by their coordinates, to the nearest."""
    squares = 0.0
    for axis in range(places.shape[1]):
        apart = places[one, axis] - places[other, axis]
        squares += apart * apart
    return int(math.sqrt(squares) + 0.5)


@inline_rule
def trip_ticks(latency: Latency, source: int, to: int, seed: int, counter: int) -> Any:
    """Ticks from ``source`` to ``to`` for the message that (seed, source, counter) stands for."""
    if len(latency.matrix) > 0:
        return int(latency.matrix[latency.site[source], latency.site[to]])
    if len(latency.places) > 0:
        return latency.shortest + distance(latency.places, latency.site[source], latency.site[to])
    if latency.spread == 0:
        return latency.shortest
    drawn = below(mix(seed, source, counter), latency.spread + 1)
    return latency.shortest + (latency.quantiles[drawn] if len(latency.quantiles) > 0 else drawn)
