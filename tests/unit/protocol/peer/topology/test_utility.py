"""Function I, Algorithm 1 and small-world links against brute force (Vinifera, Sec. IV-B1)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from gossamer.protocol.kernel.rules import use_compiled
from gossamer.protocol.peer import step as peer
from gossamer.protocol.peer.sampling.sampler import pack
from gossamer.protocol.peer.settings import profile
from gossamer.protocol.peer.settings.config import Settings
from gossamer.protocol.peer.space.ring import RING, RING_BITS, RING_MASK
from gossamer.protocol.peer.state.links import put_link
from gossamer.protocol.peer.state.state import State, make_state
from gossamer.protocol.peer.topology.fingers import draw_offsets, offset_distance
from gossamer.protocol.peer.topology.utility import (
    friend_utility,
    overlaps,
    select_primary_attribute,
)
from support.overlays import converged, descriptor, random_identifiers

SMALL = st.tuples(st.integers(0, 30), st.integers(0, 12)).map(lambda r: (r[0], r[0] + r[1]))
HOSTILE = st.one_of(
    st.sampled_from([-(1 << 63), (1 << 63) - 1, -1, 0, RING_MASK, 5]),
    st.integers(-(1 << 63), (1 << 63) - 1),
)
WANTS = st.lists(SMALL, max_size=3)
Ranges = list[tuple[int, int]]
Wants = list[list[Ranges]]  # by peer and attribute


def peers(wants: Wants, ranges: int = 3) -> State:
    """Peers that want, per peer and attribute, the values of some ranges.

    Peer 0 comes first; half of the others are its neighbours, half in its random view. Wants are
    in units of 2^31 values, in which profiles tell them.
    """
    sizes: dict[str, Any] = {"friend_links": 20, "boxes_per_neighbour": 20, "view_size": 20}
    sizes |= {"attributes": len(wants[0]), "subscriptions": 8, "profile_ranges": ranges}
    state = make_state(Settings(**sizes), len(wants))
    for p, by_attribute in enumerate(wants):
        for a, wanted in enumerate(by_attribute):
            for i, (low, high) in enumerate(separate(wanted)):
                state.sampler.profile[p, profile.RANGES + a * ranges + i] = profile.range_word(
                    low, high
                )
        if p % 2 == 1:
            put_link(state, 0, p, descriptor(state, p), 0)
        elif p > 0:
            state.sampler.views[0, p // 2 - 1] = pack(0, p)
            state.sampler.view_profile[0, p // 2 - 1] = state.sampler.profile[p]
    return state


def utility(state: State, attribute: int = 0, other: int = 1) -> float:
    state.primary[0] = attribute
    return float(friend_utility(state, 0, state.sampler.profile[other], 0))


def values_of(wanted: Ranges) -> set[int]:
    return {value for low, high in wanted for value in range(low, high + 1)}


def separate(wanted: Ranges) -> list[tuple[int, int]]:
    """The same values in ranges that neither touch nor overlap, as profiles have them."""
    values = sorted(values_of(wanted))
    starts = [v for v in values if v - 1 not in values]
    return list(zip(starts, [v for v in values if v + 1 not in values], strict=True))


@pytest.mark.parametrize("ranges", [1, 3])
@given(mine=WANTS, theirs=WANTS, attribute=st.integers(0, 1))
def test_utility_is_the_share_of_values_in_common(
    ranges: int, mine: Ranges, theirs: list[tuple[int, int]], attribute: int
) -> None:
    mine, theirs = mine[:ranges], theirs[:ranges]
    wants: Wants = [[[], []], [[], []]]
    wants[0][attribute], wants[1][attribute] = mine, theirs
    state = peers(wants, ranges)
    ours, others = values_of(mine), values_of(theirs)
    expected = len(ours & others) / len(ours | others) if ours | others else 0.0
    assert utility(state, attribute) == pytest.approx(expected)
    assert overlaps(state, 0, state.sampler.profile[1], 0, attribute) == bool(ours & others)
    assert utility(state, 1 - attribute) == 0.0


def test_a_profile_is_read_from_where_it_stands() -> None:
    state = peers([[[(3, 9)]], [[(3, 5)]]], ranges=1)
    words = np.concatenate([[7, 7, 7], state.sampler.profile[1]])
    assert friend_utility(state, 0, words, 3) == utility(state) == pytest.approx(3 / 7)
    assert overlaps(state, 0, words, 3, 0)


@pytest.mark.parametrize("ranges", [1, 3])
def test_utility_of_ranges_as_wide_as_the_ring(ranges: int) -> None:
    state = peers([[[(1, 1)]]] * 3, ranges)
    state.sampler.profile[:, profile.RANGES] = profile.coarse_range(0, RING_MASK)
    state.sampler.profile[2, profile.RANGES] = profile.coarse_range((RING_MASK >> 1) + 1, RING_MASK)
    assert (utility(state, other=1), utility(state, other=2)) == (1.0, 0.5)


@pytest.mark.parametrize("ranges", [1, 3])
@pytest.mark.parametrize("compiled", [False, True])
@given(words=st.lists(HOSTILE, min_size=3, max_size=3), mine=WANTS)
def test_utility_of_hostile_ranges_is_a_number(
    ranges: int, compiled: bool, words: list[int], mine: Ranges
) -> None:
    """Whatever another peer's profile says, nothing is divided by zero."""
    state = peers([[mine[:ranges]], [[(1, 1)]]], ranges)
    state.sampler.profile[1, profile.RANGES :] = words[:ranges]
    with use_compiled(compiled):
        found = utility(state)
    assert math.isfinite(found)
    assert found >= 0.0
    assert ranges > 1 or found <= 1.0


@given(
    wants=st.integers(1, 3).flatmap(
        lambda a: st.lists(st.lists(WANTS, min_size=a, max_size=a), min_size=2, max_size=12)
    ),
    present=st.integers(0, 2),
    mask=st.integers(1, 7),
)
def test_the_primary_attribute_has_the_highest_rank(wants: Wants, present: int, mask: int) -> None:
    """Among those constrained; the present one stays unless another is ahead by an eighth."""
    attributes = len(wants[0])
    present %= attributes
    mask = mask & (1 << attributes) - 1 or 1
    state = peers(wants)
    state.constrained[0, 0] = mask
    state.primary[0] = present
    select_primary_attribute(state, 0)
    # Algorithm 1, lines 10 and 11: peers known that want a value that peer 0 wants.
    values = [[values_of(wanted) for wanted in peer] for peer in wants]
    ranks = {
        a: sum(bool(values[0][a] & other[a]) for other in values[1:])
        for a in range(attributes)
        if mask >> a & 1
    }
    best = max(ranks.values())
    chosen = int(state.primary[0])
    if attributes == 1 or (present in ranks and 8 * best <= 9 * ranks[present]):
        assert chosen == present
    else:
        assert chosen == min(a for a in ranks if ranks[a] == best)


def test_a_peer_that_constrains_nothing_keeps_its_primary_attribute() -> None:
    state = peers([[[(0, 5)], [(0, 5)]], [[], [(0, 5)]]])
    state.constrained[0, 0] = 0
    select_primary_attribute(state, 0)
    assert state.primary[0] == 0


@given(data=st.data(), limit=st.integers(1, 3))
def test_a_profile_covers_what_its_owner_wants_and_no_more(data: st.DataObject, limit: int) -> None:
    """In units of 2^31 values."""
    wanted = data.draw(st.lists(SMALL, min_size=1, max_size=8))
    state = make_state(Settings(subscriptions=8, profile_ranges=limit), 1)
    beside = st.integers(0, profile.HALF_MASK)
    boxes = [[end << profile.HALF_BITS | data.draw(beside) for end in ends] for ends in wanted]
    peer.subscribe(state, 0, np.array([sorted(box) for box in boxes]), np.ones(len(wanted), int))
    words = state.sampler.profile[0, profile.RANGES :].tolist()
    told = [
        (profile.low_end(w), profile.high_end(w))
        for w in words
        if profile.low_end(w) <= profile.high_end(w)
    ]
    assert values_of(wanted) <= values_of(told)
    assert told == separate(told)
    assert told == separate(wanted) or len(told) == limit < len(separate(wanted))


def test_more_subscriptions_than_the_settings_allow_are_refused() -> None:
    state = make_state(Settings(subscriptions=2), 1)
    before = state.constrained.copy(), state.sampler.profile.copy()
    with pytest.raises(ValueError, match="3 subscriptions, expected at most 2"):
        peer.subscribe(state, 0, np.zeros((3, 2), np.int64), np.ones(3, np.int64))
    assert (state.constrained == before[0]).all()
    assert (state.sampler.profile == before[1]).all()


OFFSETS = 16


def distances(nodes: int, links: int, gap: int, seed: int) -> np.ndarray:
    settings = Settings(small_world_links=links, view_size=2, shuffle_length=1, seed=seed)
    state = converged(settings, random_identifiers(nodes, seed), seed)
    found = []
    for p in range(nodes):
        slot = state.successor[p]
        me = int(state.sampler.profile[p, profile.IDENTIFIER])
        state.link_profile[p, slot, profile.IDENTIFIER] = (me + gap) % RING
        draw_offsets(state, p)
        found += [int(offset_distance(state, p, k)) for k in range(links)]
    return np.array(found, np.float64)


@pytest.mark.parametrize("octave", [32, 45, 52])
def test_distances_follow_the_harmonic_law(octave: int) -> None:
    """Kolmogorov and Smirnov against density 1/d between the gap's octave and the whole ring.

    The test has the power to fail: it tells a flat law apart.
    """
    seed = 6
    found = distances(150, OFFSETS, (1 << octave) + 12345, seed)
    assert found.min() >= 1 << octave
    assert found.max() < RING
    law = stats.loguniform(2.0**octave, 2.0**RING_BITS)
    assert stats.kstest(found, law.cdf).pvalue > 0.01, f"seed {seed}"
    flat = np.random.default_rng(1).uniform(2.0**octave, 2.0**RING_BITS, 2400)
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
