"""Initialisers: how overlays begin, in PeerSim's sense of the word."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gossamer.protocol.kernel.draws import below, mix
from gossamer.protocol.kernel.records import Words
from gossamer.protocol.kernel.rules import rule
from gossamer.protocol.peer.sampling.descriptors import find, seat
from gossamer.protocol.peer.sampling.sampler import EMPTY, SamplerState, add_contact, pack


def fill_random_views(
    sampler: SamplerState, alive: npt.NDArray[np.bool_], seed: int, count: int
) -> None:
    """Give every node that is up ``count`` random others that are up (PeerSim's WireKOut).

    Each view is a uniform sample without repetition, of freshness 0, fixed by the seed and the
    node's key; where fewer than ``count`` others are up it holds them all. Nodes that are down
    get an empty view. Handles must be rows.

    Args:
        sampler: its ``views`` and ``view_profile`` are written.
        alive: bool[n].
        seed: any signed 64-bit number.
        count: 0 to C.

    Raises:
        ValueError: ``count`` exceeds the view size; nothing was changed.
    """
    if not 0 <= count <= sampler.view_size:
        raise ValueError(f"count is {count}, expected 0 to view_size, {sampler.view_size}")
    sampler.views[:] = EMPTY
    fill_rows.run(sampler, np.flatnonzero(alive), seed, count)


@rule
def fill_rows(sampler: SamplerState, rows: Words, seed: int, count: int) -> None:
    """The loop of `fill_random_views` over ``rows``, the nodes that are up."""
    count = min(count, len(rows) - 1)
    for p in rows:
        draws = 0
        length = 0
        while length < count:
            other = rows[below(mix(seed, sampler.key[p], draws), len(rows))]
            draws += 1
            if other != p and find(sampler, p, other) < 0:
                seat(sampler, p, length, pack(0, other), sampler.profile[other], 0)
                length += 1


@rule
def join_via(sampler: SamplerState, p: int, now: int, contact: int) -> None:
    """Start row p afresh with row ``contact`` as all it knows.

    This is what a bootstrap server does for a node: p's view is emptied and the contact seated
    with its profile as of now.
    """
    for slot in range(sampler.view_size):
        sampler.views[p, slot] = EMPTY
    add_contact(sampler, p, now, sampler.handle[contact], sampler.profile[contact], 0)
