"""Bandwidth: how long messages take to leave a node and to enter one, and what queues hold.

Every node has a link up and a link down, each a queue of one server that serves in order: a message
leaves when its last byte has, takes its latency, and is taken when its last byte has come in. So a
message of b bytes costs b / up at its sender and b / down at its addressee, whatever else they do.
Reports that a node cannot be reached, and records to oneself, cost nothing.

A link keeps the microsecond at which it will be free and nothing else. Both are written by the row
in hand only, in the order in which it sends and in which messages reach it, so that engines that
run rows in any order agree.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gossamer.protocol.kernel.records import BODY, KIND, LENGTH, Words
from gossamer.protocol.kernel.rules import inline_rule
from gossamer.sim.errors import ScenarioError

Int64s = npt.NDArray[np.int64]

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
