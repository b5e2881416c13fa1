"""Workloads: what nodes subscribe to and what is published, in hashed values.

Every draw depends on (seed, row, column) only, so that rows are the same in any order and for any
number of workers. Numeric attributes hash linearly, so that drawing hashed values uniformly is
drawing values uniformly.
"""

from __future__ import annotations

import numpy as np

from gossamer.protocol.peer.space.ring import RING, RING_MASK
from gossamer.sim.studies.peers.inputs.changes import Drift
from gossamer.sim.studies.peers.inputs.scenario import RANDOM, TOPICS, Subscriptions
from gossamer.sim.study.draws import (
    Floats,
    Int64s,
    normal,
    rows_from,
    shuffled,
    uniform,
    zipf_ranks,
)

# The seed's streams: one number each, so that none reads another's draws.
_CENTRES, _PLACES, _SUBSCRIBERS, _EVENTS, _PUBLISHERS = 101, 102, 103, 104, 105
_TOPICS = 107
# Nodes that draw their topics at a time.
_BLOCK = 4096


class Workload:
    """Draws subscriptions and events of one scenario.

    Args:
        spec: what is wanted.
        seed: of all draws.
    """

    def __init__(self, spec: Subscriptions, seed: int) -> None:
        self.spec = spec
        self.seed = seed

    def _ranks(self, stream: int, rows: Int64s) -> Int64s:
        """The popular place that each row lies near, the most popular 0; -1 for anywhere."""
        spec = self.spec
        if spec.kind == RANDOM:
            return np.full(len(rows), -1, np.int64)
        if spec.kind == TOPICS and stream == _CENTRES:
            return self._topics(rows)
        ranks = zipf_ranks(uniform(self.seed, stream, rows, 1000), spec.places, spec.exponent)
        if stream == _EVENTS and spec.correlation < 1:
            ranks[uniform(self.seed, stream, rows, 1001) >= spec.correlation] = -1
        return ranks

    def _topics(self, rows: Int64s) -> Int64s:
        """The topic of each subscription; those of a node are different.

        Whoever comes first in a race whose speeds follow Zipf's law is drawn first: so topics are
        drawn one after another, in proportion to the weights of those that are left.
        """
        spec = self.spec
        nodes, which = np.unique(rows // spec.per_node, return_inverse=True)
        weights = -spec.exponent * np.log(np.arange(1, spec.places + 1))
        chosen = np.empty((len(nodes), spec.per_node), np.int64)
        for first in range(0, len(nodes), _BLOCK):
            block = nodes[first : first + _BLOCK, np.newaxis]
            runs = uniform(self.seed, _TOPICS, block * spec.places + np.arange(spec.places), 0)
            times = np.log(np.maximum(-np.log1p(-runs), 1e-300)) - weights
            order = np.argsort(times, axis=1, kind="stable")
            chosen[first : first + _BLOCK] = order[:, : spec.per_node]
        return chosen[which, rows % spec.per_node]

    def _points(self, stream: int, rows: Int64s, ranks: Int64s) -> Floats:
        """Points of the attribute space in [0, 1]: float64[rows, A]."""
        spec = self.spec
        points = np.empty((len(rows), spec.attributes))
        anywhere = ranks < 0
        for a in range(spec.attributes):
            if not anywhere.all():
                points[:, a] = self._near(stream, rows, ranks, a)
            if anywhere.any():
                points[anywhere, a] = uniform(self.seed, stream, rows[anywhere], a)
        return points

    def _near(self, stream: int, rows: Int64s, ranks: Int64s, a: int) -> Floats:
        """Where rows lie on attribute ``a`` that are near these places: float64[rows]."""
        spec = self.spec
        if spec.kind == TOPICS:
            if a > 0:
                return uniform(self.seed, _PLACES, ranks, a)
            # Side by side on the first attribute, in no order, so that none overlaps another.
            cells = shuffled(self.seed, _PLACES, np.maximum(ranks, 0), spec.places)
            return np.asarray((cells + 0.5) / spec.places)
        centres = uniform(self.seed, _PLACES, ranks, a)
        noise = normal(self.seed, stream, rows, 2000 + 2 * a)
        return np.clip(centres + spec.spread * noise, 0.0, 1.0)

    def _widths(self, rows: Int64s, a: int) -> Floats:
        """How wide the ranges of these subscriptions are on attribute ``a``: float64[rows]."""
        spec = self.spec
        if spec.kind == TOPICS:
            return np.full(len(rows), min(spec.width, 1 / spec.places) if a == 0 else spec.width)
        widths = spec.width * self._spread(uniform(self.seed, _CENTRES, rows, 3000 + a))
        if spec.aspect == 1:
            return widths
        is_wide = (uniform(self.seed, _CENTRES, rows, 4000) * spec.attributes).astype(int) == a
        factors = np.where(is_wide, spec.aspect, 1.0) * spec.aspect ** (-1 / spec.attributes)
        return np.asarray(factors * widths)

    def _spread(self, draws: Floats) -> Floats:
        """Widths by their mean, of uniform draws."""
        if self.spec.width_decades == 0:
            return 0.5 + draws
        # The mean of 10^x for x uniform over as many decades around 0.
        span = self.spec.width_decades * np.log(10)
        mean = 2 * np.sinh(span / 2) / span
        return np.asarray(np.exp(span * (draws - 0.5)) / mean)

    def extreme_widths(self) -> tuple[float, float]:
        """The narrowest and the widest that a range may be on the first attribute."""
        spec = self.spec
        if spec.kind == TOPICS:
            one = min(spec.width, 1 / spec.places)
            return one, one
        least, most = (float(one) for one in spec.width * self._spread(np.array([0.0, 1.0])))
        narrow = spec.aspect ** (-1 / spec.attributes)
        return narrow * least, narrow * spec.aspect * most

    def subscriptions(self, nodes: int) -> tuple[Int64s, Int64s]:
        """Boxes int64[nodes, S, 2A] and the attributes they constrain, int64[nodes, S] of bits.

        They are those of `subscription_rows`, S a node.
        """
        spec = self.spec
        rows = np.arange(nodes * spec.per_node, dtype=np.int64)
        boxes, constrained, _ = self.subscription_rows(rows)
        shape = (nodes, spec.per_node)
        return boxes.reshape(*shape, 2 * spec.attributes), constrained.reshape(shape)

    def subscription_rows(self, rows: Int64s) -> tuple[Int64s, Int64s, Int64s]:
        """Boxes int64[rows, 2A], the attributes they constrain, and the places they lie near.

        A range is its mean width times a uniform draw from [0.5, 1.5), or log-uniform, around a
        point. Nodes that do not subscribe have -1 in place of the bits. Places are ranks, -1 for
        anywhere.
        """
        spec = self.spec
        ranks = self._ranks(_CENTRES, rows)
        centres = self._points(_CENTRES, rows, ranks)
        boxes = np.empty((len(rows), 2 * spec.attributes), np.int64)
        for a in range(spec.attributes):
            half = self._widths(rows, a) / 2
            boxes[:, 2 * a] = to_ring(centres[:, a] - half)
            boxes[:, 2 * a + 1] = to_ring(centres[:, a] + half)
        constrained = np.full(len(rows), (1 << spec.attributes) - 1, np.int64)
        silent = uniform(self.seed, _SUBSCRIBERS, rows // spec.per_node, 0) >= spec.subscribers
        constrained[silent] = -1
        return boxes, constrained, ranks

    def events(self, first: int, count: int) -> Int64s:
        """Values of events ``first`` to ``first + count``: int64[count, A]."""
        return self.event_rows(np.arange(first, first + count, dtype=np.int64))[0]

    def event_rows(self, rows: Int64s) -> tuple[Int64s, Int64s]:
        """Values int64[rows, A] of these events, and the places they lie near, -1 for anywhere."""
        ranks = self._ranks(_EVENTS, rows)
        return to_ring(self._points(_EVENTS, rows, ranks)), ranks

    def publisher(self, event: int) -> int | None:
        """Who publishes an event; None where that is drawn."""
        del event
        return None

    def publisher_rows(self, rows: Int64s) -> Floats:
        """A uniform draw an event, by which a publisher is chosen among the nodes online."""
        return uniform(self.seed, _PUBLISHERS, rows, 0)


def to_ring(shares: Floats) -> Int64s:
    """Shares of a domain as hashed values in [0, 2^62)."""
    # 2^62 - 2^9 is the largest double below 2^62.
    return np.clip(shares * float(RING), 0.0, float(RING - 512)).astype(np.int64)


# Drawing what drifts: other subscriptions for some nodes, and values of events that move.
#
# Every draw depends on (seed, change, node) only, so that all systems of a scenario see the same.


# The streams of the draws of who changes, and by how much; and of who subscribes late, and when.
_WHO, _HOW_FAR, _LATE, _WHEN = 108, 109, 112, 113


def changes_before(drift: Drift, time_s: float) -> int:
    """How many changes there have been at a time, that at the time itself included."""
    return int(time_s // drift.every_s)


def changed_boxes(
    workload: Workload, drift: Drift, change: int, boxes: Int64s, constrained: Int64s
) -> tuple[Int64s, Int64s]:
    """Whose subscriptions a change concerns, and what they are from then on.

    Args:
        workload: that subscriptions are drawn by.
        drift: what changes.
        change: number of the change; the first is 1.
        boxes: int64[n, S, 2A], subscriptions so far.
        constrained: int64[n, S], -1 for none; nodes without any stay so.

    Returns:
        int64[m], nodes in order, and int64[m, S, 2A].
    """
    nodes = rows_from(0, len(boxes))
    draws = uniform(workload.seed, _WHO, nodes, change)
    subscribes = constrained[:, 0] >= 0
    replaced = nodes[subscribes & (draws < drift.replaced)]
    changed = nodes[subscribes & (draws < drift.replaced + drift.shifted)]
    found = boxes[changed]
    is_shifted = ~np.isin(changed, replaced)
    found[is_shifted] = _shifted(workload.seed, drift, change, changed[is_shifted], boxes)
    if len(replaced):
        # As if they were nodes that come after all there have been so far.
        size = boxes.shape[1]
        fresh = (replaced + change * len(boxes))[:, np.newaxis] * size + np.arange(size)
        drawn = workload.subscription_rows(fresh.ravel())[0]
        found[~is_shifted] = drawn.reshape(len(replaced), size, -1)
    return changed, found


def _shifted(seed: int, drift: Drift, change: int, nodes: Int64s, boxes: Int64s) -> Int64s:
    """The boxes of these nodes moved by a draw an attribute, not beyond the ends of the domain."""
    moved = boxes[nodes]
    for a in range(boxes.shape[2] // 2):
        draws = normal(seed, _HOW_FAR, nodes * (boxes.shape[2] // 2) + a, 2 * change)
        wanted = np.rint(np.clip(drift.shift * draws, -1.0, 1.0) * 2.0**62).astype(np.int64)
        low, high = moved[:, :, 2 * a], moved[:, :, 2 * a + 1]
        by = np.clip(wanted[:, np.newaxis], -low, RING_MASK - high)
        moved[:, :, 2 * a] += by
        moved[:, :, 2 * a + 1] += by
    return moved


def drifted_values(drift: Drift, values: Int64s, time_s: float) -> Int64s:
    """Hashed values of events that are published at a time, of any shape."""
    turns = drift.event_shift * time_s / drift.every_s
    return (values + int((turns % 1.0) * RING)) & RING_MASK


def late_changes(workload: Workload, drift: Drift, nodes: int) -> Int64s:
    """int64[n]: the change at which each node subscribes, 0 for those that do from the first."""
    rows = np.arange(nodes, dtype=np.int64)
    when = uniform(workload.seed, _WHEN, rows, 0) * drift.late_changes
    is_late = uniform(workload.seed, _LATE, rows, 0) < drift.late
    return np.where(is_late, 1 + when.astype(np.int64), 0)
