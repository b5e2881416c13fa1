"""Overlays that stand from the beginning: everybody knows ring neighbours and fingers.

A large overlay takes many rounds to form, fingers one after another (some eighty at 10^5 nodes).
Where what happens then is of no interest, a run may begin with the ring, and with the fingers that
`gossamer.protocol.peer.topology.fingers` would find; friends, guests and subscriptions at others
are found and installed in the first rounds as ever.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gossamer.protocol.kernel.rules import rule
from gossamer.protocol.peer.settings.profile import ARC_START, IDENTIFIER, OFF_THE_RING
from gossamer.protocol.peer.state.links import (
    descriptor_words,
    put_link,
    settle_ring,
    slot_of,
    write_own_descriptor,
)
from gossamer.protocol.peer.state.state import State
from gossamer.protocol.peer.topology.candidate_filter import AFTER, BEFORE
from gossamer.protocol.peer.topology.fingers import finger_slot


def form_overlay(state: State, alive: npt.NDArray[np.bool_]) -> None:
    """Give all who are ``alive`` and stand on the ring their neighbours and fingers there.

    Changes links, successors, predecessors and arcs; draws nothing.

    Args:
        state: of all nodes, as they start.
        alive: (N,) bool; others stay as they are.
    """
    if state.params.ring_links == 0:
        return
    places = state.sampler.profile[:, IDENTIFIER]
    standing = np.flatnonzero(alive & (places < OFF_THE_RING))
    order = standing[np.argsort(places[standing], kind="stable")]
    state.sampler.profile[order, ARC_START] = places[np.roll(order, 1)]
    form_in_order.compiled(state, order.astype(np.int64), np.zeros(_words(state), np.int64))


def _words(state: State) -> int:
    return int(descriptor_words.interpreted(state))


@rule
def form_in_order(s: State, order: Any, words: Any) -> None:
    """Link the peers ``order``, by their places; ``words`` is room for a descriptor."""
    count = order.shape[0]
    ring = s.params.ring_links
    for i in range(count):
        p = order[i]
        for away in range(1, ring + 1):
            link_at(s, p, away - 1, order[(i + away) % count], words)
            link_at(s, p, ring + away - 1, order[(i - away) % count], words)
        for level in range(s.params.finger_levels):
            away = ring << (level + 1)
            # Fingers of both sides must not pass each other.
            if away + (away >> 1) < count:
                link_at(s, p, finger_slot(s, AFTER, level), order[(i + away) % count], words)
                link_at(s, p, finger_slot(s, BEFORE, level), order[(i - away) % count], words)
        settle_ring(s, p)


@rule
def link_at(s: State, p: int, k: int, q: int, words: Any) -> None:
    """Let ``q`` be the neighbour of ``p`` in slot ``k``, unless it is one already."""
    if q == p or slot_of(s, p, s.sampler.handle[q]) >= 0:
        return
    write_own_descriptor(s, q, words, 0)
    put_link(s, p, k, words, 0)
