"""Latency models: how many ticks a message takes from one node to another."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gossamer.protocol.kernel.draws import below, mix, mix_many
from gossamer.protocol.kernel.records import BODY, KIND, LENGTH, Words
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


def matrix_latency(ticks: npt.NDArray[np.integer[Any]], site: Int64s) -> Latency:
    """Messages take the ticks between the sites of sender and addressee.

    Args:
        ticks: int64[m, m], from row to column; the diagonal is for nodes at one site.
        site: int64[n], the site of each node, see `drawn_sites`.

    Raises:
        ScenarioError: the matrix is not square, has no row or an entry below 0.
    """
    if ticks.ndim != 2 or ticks.shape[0] != ticks.shape[1] or len(ticks) == 0:
        raise ScenarioError(None, "shape of the latency matrix", ticks.shape, "a square")
    if ticks.min() < 0 or ticks.max() > LONGEST_TICKS:
        wrong = int(ticks[(ticks < 0) | (ticks > LONGEST_TICKS)][0])
        expected = f"0 to {LONGEST_TICKS} ticks"
        raise ScenarioError(None, "entry of the latency matrix", wrong, expected)
    return Latency(0, 0, _EVEN, site, np.ascontiguousarray(ticks, np.int32), _NO_PLACES)


def coordinate_latency(places: Floats, shortest: int, site: Int64s) -> Latency:
    """Messages take the Euclidean distance between the sites of sender and addressee, and more.

    Args:
        places: float64[m, d], coordinates of sites, in ticks.
        shortest: ticks that every message takes beside the distance.
        site: int64[n], the site of each node, see `drawn_sites`.

    Raises:
        ScenarioError: the coordinates are not finite, or too far apart; or there are none.
    """
    if places.ndim != 2 or places.size == 0:
        raise ScenarioError(None, "shape of the coordinates", places.shape, "a row for each site")
    reach = np.ptp(places, axis=0) if np.isfinite(places).all() else np.array([math.inf])
    if not 0 <= shortest + math.sqrt(float(reach @ reach)) <= LONGEST_TICKS or shortest < 0:
        expected = f"0 to {LONGEST_TICKS} ticks between any two sites"
        raise ScenarioError(None, "reach of the coordinates", reach.tolist(), expected)
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


# Bandwidth: how long messages take to leave a node and to enter one, and what queues hold.
#
# Every node has a link up and a link down, each a queue of one server that serves in order: a
# message leaves when its last byte has, takes its latency, and is taken when its last byte has come
# in. So a message of b bytes costs b / up at its sender and b / down at its addressee, whatever
# else they do. Reports that a node cannot be reached, and records to oneself, cost nothing.
#
# A link keeps the microsecond at which it will be free and nothing else. Both are written by the
# row in hand only, in the order in which it sends and in which messages reach it, so that engines
# that run rows in any order agree.

# Ticks are milliseconds.
_MICROS_A_TICK = 1000
_MICROS_A_SECOND = 1_000_000
WORD_BYTES = 8

UNBOUNDED = -1
LARGEST_QUEUE = 1 << 40
FASTEST = 10**12


class Sizes(NamedTuple):
    """How many bytes records are.

    Attributes:
        base: int64[kinds], bytes by kind, without its items; -1 of what is no message. Kinds beyond
            the array are none either.
        fixed: int64[kinds], words of a body that ``base`` covers; each one more is `WORD_BYTES`.
    """

    base: Int64s
    fixed: Int64s


class Bandwidth(NamedTuple):
    """The links of n nodes into the network. See `make_bandwidth`.

    Attributes:
        up, down: int64[n], bytes a second; int64[0] where that way takes no time.
        up_queue, down_queue: bytes that may wait, or UNBOUNDED.
        up_free, down_free: int64[n], the microsecond at which the link will be free.
        sizes: of records.
    """

    up: Int64s
    down: Int64s
    up_queue: int
    down_queue: int
    up_free: Int64s
    down_free: Int64s
    sizes: Sizes


def make_sizes(base: npt.ArrayLike = (), fixed: npt.ArrayLike = ()) -> Sizes:
    """Sizes by kind; without arguments nothing is a message."""
    return Sizes(np.asarray(base, np.int64), np.asarray(fixed, np.int64))


def make_bandwidth(
    nodes: int,
    sizes: Sizes | None = None,
    *,
    up: npt.ArrayLike | None = None,
    down: npt.ArrayLike | None = None,
    up_queue: int | None = None,
    down_queue: int | None = None,
) -> Bandwidth:
    """Links of ``nodes`` nodes; by default they take no time.

    Args:
        nodes: number of nodes n.
        sizes: of records, where there is a rate.
        up: bytes a second that nodes send, for all nodes or int64[n]; None for no limit.
        down: bytes a second that they take, likewise.
        up_queue: bytes that may wait for a link, the message that it is at included; a message that
            would be more is lost without a report. One that finds the link idle is always taken.
            None for no bound.
        down_queue: likewise.

    Raises:
        ScenarioError: a value is impossible.
    """
    rates = [_rates(nodes, name, rate) for name, rate in (("up", up), ("down", down))]
    bounds = [_bound(name, size) for name, size in (("up", up_queue), ("down", down_queue))]
    return Bandwidth(
        up=rates[0],
        down=rates[1],
        up_queue=bounds[0],
        down_queue=bounds[1],
        up_free=np.zeros(len(rates[0]), np.int64),
        down_free=np.zeros(len(rates[1]), np.int64),
        sizes=sizes or make_sizes(),
    )


def _rates(nodes: int, name: str, rate: npt.ArrayLike | None) -> Int64s:
    if rate is None:
        return np.empty(0, np.int64)
    rates = np.array(np.broadcast_to(rate, nodes), np.int64)
    wrong = rates[(rates < 1) | (rates > FASTEST)]
    if wrong.size:
        expected = f"from 1 to {FASTEST} bytes a second"
        raise ScenarioError(None, f"{name} rate", int(wrong[0]), expected)
    return rates


def _bound(name: str, size: int | None) -> int:
    if size is None:
        return UNBOUNDED
    if not 0 <= size <= LARGEST_QUEUE:
        expected = f"from 0 to {LARGEST_QUEUE} bytes"
        raise ScenarioError(None, f"{name} queue", size, expected)
    return size


@inline_rule
def bytes_of(sizes: Sizes, words: Words, at: int) -> Any:
    """Bytes of the record at ``words[at:]``; -1 of what is no message."""
    kind = words[at + KIND]
    if kind >= len(sizes.base) or sizes.base[kind] < 0:
        return -1
    items = words[at + LENGTH] - BODY - sizes.fixed[kind]
    return sizes.base[kind] + WORD_BYTES * items


@inline_rule
def ticks_through(rate: Int64s, free: Int64s, bound: int, p: int, tick: int, size: int) -> Any:
    """Ticks from ``tick`` until a message of so many bytes has passed a link of row p.

    Returns -1 where its queue is full; the link is not changed then.
    """
    now = tick * _MICROS_A_TICK
    begins = max(now, free[p])
    if bound >= 0 and begins > now:
        waiting = (begins - now) * rate[p] // _MICROS_A_SECOND
        if waiting + size > bound:
            return -1
    free[p] = begins + (size * _MICROS_A_SECOND + rate[p] - 1) // rate[p]
    return (free[p] + _MICROS_A_TICK - 1) // _MICROS_A_TICK - tick


@inline_rule
def ticks_to_leave(bandwidth: Bandwidth, p: int, tick: int, words: Words, at: int) -> Any:
    """Ticks until the record at ``words[at:]`` has left row p, -1 where its queue is full."""
    if len(bandwidth.up) == 0:
        return 0
    size = max(bytes_of(bandwidth.sizes, words, at), 0)
    return ticks_through(bandwidth.up, bandwidth.up_free, bandwidth.up_queue, p, tick, size)


@inline_rule
def ticks_to_enter(bandwidth: Bandwidth, p: int, tick: int, words: Words, at: int) -> Any:
    """Ticks until the record at ``words[at:]`` has come in at row p, -1 where its queue is full."""
    size = max(bytes_of(bandwidth.sizes, words, at), 0)
    return ticks_through(bandwidth.down, bandwidth.down_free, bandwidth.down_queue, p, tick, size)
