"""Drawing what drifts: other subscriptions for some nodes, and values of events that move.

Every draw depends on (seed, change, node) only, so that all systems of a scenario see the same.
"""

from __future__ import annotations

import numpy as np

from gossamer.protocol.peer.space.ring import RING, RING_MASK
from gossamer.sim.studies.peers.inputs.changes import Drift
from gossamer.sim.studies.peers.inputs.workload import Workload
from gossamer.sim.study.draws import Int64s, normal, rows_from, uniform

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
