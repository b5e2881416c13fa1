"""How good an overlay is: is the ring closed, are friends alike.

These see all rows at once, which no protocol rule may.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gossamer.protocol.kernel.rules import rule
from gossamer.protocol.peer.settings.profile import OFF_THE_RING, link_kinds
from gossamer.protocol.peer.state.state import State, identifiers
from gossamer.protocol.peer.topology.utility import friend_utility
from gossamer.sim.studies.peers.measuring.records import OverlaySnapshot

Alive = npt.NDArray[np.bool_]


def true_successors(s: State, alive: Alive) -> npt.NDArray[np.int64]:
    """int64[n]: of every node online the next one clockwise, by identifier; -1 of the others."""
    online = np.flatnonzero(alive)
    order = online[np.argsort(identifiers(s)[online], kind="stable")]
    successors = np.full(len(alive), -1, np.int64)
    successors[order] = np.roll(order, -1)
    return successors


def ring_correctness(s: State, alive: Alive) -> float:
    """Share of the nodes on the ring and online whose successor link is right; 1 of less than 2."""
    alive = alive & (identifiers(s) < OFF_THE_RING)
    online = np.flatnonzero(alive)
    if len(online) < 2:
        return 1.0
    slots = s.successor[online]
    words = s.links[online, np.maximum(slots, 0)]
    held = np.where(slots >= 0, words & 0xFFFFFFFF, -1)
    return float(np.mean(held == true_successors(s, alive)[online]))


@rule
def sum_friend_utilities(s: State, alive: Any, totals: Any) -> None:
    """Add to ``totals`` the utility of all friend links of nodes online, and their number."""
    first = 2 * s.params.ring_links + s.params.small_world_links
    for p in range(len(alive)):
        if not alive[p]:
            continue
        for k in range(first, first + s.params.friend_links):
            if s.links[p, k] >= 0:
                totals[0] += friend_utility(s, p, s.link_profile[p, k], 0)
                totals[1] += 1.0


def mean_friend_utility(s: State, alive: Alive) -> float:
    """Mean utility over all friend links of nodes online; NaN where there are none."""
    totals = np.zeros(2)
    sum_friend_utilities.compiled(s, alive, totals)
    return float(totals[0] / totals[1]) if totals[1] else float("nan")


def in_degrees(s: State, alive: Alive) -> npt.NDArray[np.int64]:
    """int64[n]: how many nodes online have each node among their links."""
    words = s.links[alive]
    return np.bincount(words[words >= 0] & 0xFFFFFFFF, minlength=len(alive))


def snapshot(s: State, alive: Alive) -> OverlaySnapshot:
    """The overlay of the nodes online, for pictures and files."""
    online = np.flatnonzero(alive)
    row_of = np.full(len(alive), -1, np.int64)
    row_of[online] = np.arange(len(online))
    words = s.links[online]
    source, slot = np.nonzero((words >= 0) & alive[np.maximum(words, 0) & 0xFFFFFFFF])
    kinds = np.array(link_kinds(s.params), np.int8)
    primary = s.primary[online]
    boxes = s.subscriptions[online, 0]
    return OverlaySnapshot(
        nodes={
            "identifier": identifiers(s)[online],
            "primary": primary.astype(np.int32),
            "low": boxes[np.arange(len(online)), 2 * primary],
            "high": boxes[np.arange(len(online)), 2 * primary + 1],
        },
        links={
            "source": source.astype(np.int32),
            "target": row_of[words[source, slot] & 0xFFFFFFFF].astype(np.int32),
            "kind": kinds[slot],
        },
    )
