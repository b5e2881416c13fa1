"""Small runs of the samplers, record by record, for tests."""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.protocol.kernel import records as kernel
from gossamer.protocol.peer.record_table.records import SAMPLE_TIMER
from gossamer.protocol.peer.sampling import sampler as sampling
from support.overlays import record, written

STATE_ARRAYS = ("key", "handle", "draws", "profile", "views", "view_profile")


def ring_sampler(
    nodes: int, name: str, view_size: int, shuffle: int, profile_words: int, seed: int
) -> sampling.SamplerState:
    """Peers that know their next neighbours on a ring; every profile word tells its owner."""
    sampler = sampling.make_sampler(nodes, name, view_size, shuffle, profile_words, seed)
    sampler.profile[:] = profile_of(np.arange(nodes), profile_words)
    for p in range(nodes):
        for slot in range(min(view_size, nodes - 1)):
            other = (p + 1 + slot) % nodes
            sampler.views[p, slot] = sampling.pack(0, other)
            sampler.view_profile[p, slot] = sampler.profile[other]
    return sampler


def profile_of(handles: kernel.Words, profile_words: int) -> kernel.Words:
    """The profile that `ring_sampler` gives to peers."""
    return handles[:, None] * 1000 + np.arange(profile_words)


def timer_record(p: int) -> kernel.Words:
    return record(SAMPLE_TIMER, p, p)


def descriptors_of(sampler: sampling.SamplerState, p: int) -> list[tuple[int, int]]:
    """(freshness, handle) of row p's view, in order."""
    words = sampler.views[p][sampler.views[p] != sampling.EMPTY]
    return [(int(w) >> 32 & (1 << 29) - 1, int(w) & (1 << 32) - 1) for w in words]


def take(
    sampler: sampling.SamplerState, p: int, words: kernel.Words, now: int = 0
) -> list[kernel.Words]:
    """Hand row p one record; returns what it writes."""
    out = kernel.make_outbox(4096)
    sampling.sample_step(sampler, p, now, words, 0, out)
    return written(out)


def run_cycle(sampler: sampling.SamplerState, alive: Any, order: kernel.Words, now: int) -> None:
    """One cycle as the cycle engine runs it, in plain Python."""
    for p in order:
        if not alive[p]:
            continue
        queue = [timer_record(int(p))]
        while queue:
            words = queue.pop(0)
            to = int(words[kernel.TO])
            if not alive[to]:
                to = int(words[kernel.FROM])
                words[kernel.KIND] += kernel.UNREACHABLE
            queue.extend(take(sampler, to, words, now))


def states_equal(one: sampling.SamplerState, other: sampling.SamplerState) -> bool:
    """Whether two samplers hold the same state, work areas apart."""
    return all(np.array_equal(getattr(one, a), getattr(other, a)) for a in STATE_ARRAYS)
