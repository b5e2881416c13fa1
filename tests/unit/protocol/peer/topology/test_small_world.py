"""Small-world links are sought at distances of density 1/d (Vinifera, Sec. IV-B1)."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from gossamer.protocol.peer.settings.config import Settings
from gossamer.protocol.peer.settings.profile import IDENTIFIER
from gossamer.protocol.peer.space.ring import RING, RING_BITS, clockwise
from gossamer.protocol.peer.state.state import State
from gossamer.protocol.peer.topology.selection import begin_selection, offer_sample, write_selection
from gossamer.protocol.peer.topology.small_world import draw_offsets, offset_distance
from support.overlays import converged, descriptor, neighbours, random_identifiers

OFFSETS = 16


def distances(nodes: int, links: int, gap: int, seed: int) -> np.ndarray:
    """Distances of many peers whose successor lies ``gap`` away."""
    settings = Settings(small_world_links=links, view_size=2, shuffle_length=1, seed=seed)
    state = converged(settings, random_identifiers(nodes, seed), seed)
    found = []
    for p in range(nodes):
        slot = state.successor[p]
        me = int(state.sampler.profile[p, IDENTIFIER])
        state.link_profile[p, slot, IDENTIFIER] = (me + gap) % RING
        draw_offsets(state, p)
        found += [int(offset_distance(state, p, k)) for k in range(links)]
    return np.array(found, np.float64)


@pytest.mark.parametrize("octave", [32, 45, 52])
def test_distances_follow_the_harmonic_law(octave: int) -> None:
    """Kolmogorov and Smirnov against density 1/d between the gap's octave and the whole ring."""
    seed = 6
    found = distances(150, OFFSETS, (1 << octave) + 12345, seed)
    assert found.min() >= 1 << octave
    assert found.max() < RING
    law = stats.loguniform(2.0**octave, 2.0**RING_BITS)
    assert stats.kstest(found, law.cdf).pvalue > 0.01, f"seed {seed}"


def test_a_flat_law_would_be_told_apart() -> None:
    """The test above has the power to fail."""
    law = stats.loguniform(2.0**45, 2.0**RING_BITS)
    flat = np.random.default_rng(1).uniform(2.0**45, 2.0**RING_BITS, 2400)
    assert stats.kstest(flat, law.cdf).pvalue < 1e-6


def test_offsets_are_drawn_once() -> None:
    state = converged(Settings(small_world_links=4), random_identifiers(6, 1), 1)
    draw_offsets(state, 0)
    drawn, draws = state.offsets.copy(), state.sampler.draws.copy()
    assert (drawn[0] >= 0).all()
    assert (drawn[1:] == -1).all()
    draw_offsets(state, 0)
    np.testing.assert_array_equal(state.offsets, drawn)
    np.testing.assert_array_equal(state.sampler.draws, draws)


def chosen(state: State, candidates: list[int]) -> list[int]:
    """The candidates nearest to each distance, greedily in the order of the slots: the oracle."""
    me = int(state.sampler.profile[0, IDENTIFIER])
    left, found = list(candidates), []
    for k in range(state.params.small_world_links):
        target = (me + int(offset_distance(state, 0, k))) % RING
        place = {q: int(state.sampler.profile[q, IDENTIFIER]) for q in left}
        nearest = min(
            left, key=lambda q: min(clockwise(target, place[q]), clockwise(place[q], target))
        )
        left.remove(nearest)
        found.append(nearest)
    return found


def test_links_are_the_peers_nearest_to_the_distances() -> None:
    settings = Settings(small_world_links=4, friend_links=0, view_size=30, seed=3)
    state = converged(settings, random_identifiers(31, 3), 3)
    ring = neighbours(state, 0)[:2]
    begin_selection(state, 0)
    offer_sample(state, 0, 0)
    others = [q for q in range(1, 31) if q not in ring]
    expected = ring + chosen(state, others)
    write_selection(state, 0, descriptor(state, 0), 0)
    assert neighbours(state, 0) == expected
