"""Profiles round, and what they tell stays true (see `overlay.profile`)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.protocol.kernel.records import KIND
from gossamer.protocol.kernel.rules import use_compiled
from gossamer.protocol.peer.codec import Codec
from gossamer.protocol.peer.rendezvous.routing import neighbour_arc_begins, own_arc_begins
from gossamer.protocol.peer.sampling.sampler import add_contact
from gossamer.protocol.peer.settings import profile
from gossamer.protocol.peer.settings.config import Settings
from gossamer.protocol.peer.space.ring import RING_MASK, clockwise
from gossamer.protocol.peer.state.links import put_link, settle_ring
from gossamer.protocol.peer.state.state import State, identifiers, make_state
from gossamer.protocol.peer.step import restart
from gossamer.protocol.peer.topology.utility import range_utility, shared_length
from support.overlays import Hosts, arc_of, descriptor, neighbours, subscribe_to_box

HALVES = st.one_of(st.integers(0, profile.HALF_MASK), st.sampled_from([0, 1, profile.HALF_MASK]))
# Anywhere, or so close to a multiple of 2^31 that rounding goes past others, or wraps around.
PLACES = st.one_of(
    st.integers(0, RING_MASK),
    st.builds(
        lambda units, off: ((units << profile.HALF_BITS) + off) & RING_MASK,
        HALVES,
        st.integers(-3, 3),
    ),
    st.integers(0, 20),
)
ANY_WORD = st.one_of(
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.sampled_from([-(1 << 63), -1, 0, RING_MASK, profile.NOTHING, (1 << 63) - 1]),
)


@given(low=HALVES, high=HALVES)
def test_the_ends_of_a_range_come_back(low: int, high: int) -> None:
    word = profile.range_word(low, high)
    assert 0 <= word <= RING_MASK
    assert (profile.low_end(word), profile.high_end(word)) == (low, high)


def lone_peers(identifiers: list[int]) -> State:
    settings = Settings(view_size=2, shuffle_length=1)
    return make_state(settings, len(identifiers), keys=np.array(identifiers, np.int64))


@pytest.mark.parametrize("compiled", [False, True])
@given(places=st.lists(PLACES, min_size=3, max_size=3, unique=True))
def test_what_a_peer_tells_of_its_arc_is_believed(compiled: bool, places: list[int]) -> None:
    """Peer 0 knows peer 1, whose predecessor is peer 2, in between the two."""
    me = places[0]
    one, two = sorted(places[1:], key=lambda place: clockwise(me, place), reverse=True)
    state = lone_peers([me, one, two])
    with use_compiled(compiled):
        put_link(state, 1, 0, descriptor(state, 2), 0)
        settle_ring(state, 1)
        put_link(state, 0, 0, descriptor(state, 1), 0)
        believed = int(neighbour_arc_begins(state, 0, 0, 0, clockwise(me, one)))
    assert arc_of(state, 1) == (two, one)
    assert believed == clockwise(me, two)


@given(place=PLACES, other=PLACES, load=HALVES)
def test_a_peer_tells_its_own_arc_and_keeps_its_load(place: int, other: int, load: int) -> None:
    state = lone_peers([place, other])
    state.sampler.profile[0, profile.LOAD] = load
    put_link(state, 0, 1, descriptor(state, 1), 0)
    settle_ring(state, 0)
    assert own_arc_begins(state, 0) == clockwise(place, other)
    assert state.sampler.profile[0, profile.LOAD] == load
    assert state.sampler.profile[0, profile.ARC_START] == other


@pytest.mark.parametrize("compiled", [False, True])
@given(word=ANY_WORD, identifier=ANY_WORD, me=PLACES, before=PLACES)
def test_whatever_arc_is_told_it_begins_between_its_owner_and_the_one_before(
    compiled: bool, word: int, identifier: int, me: int, before: int
) -> None:
    state = lone_peers([me, 5])
    put_link(state, 0, 0, descriptor(state, 1), 0)
    state.link_profile[0, 0, profile.IDENTIFIER] = identifier
    state.link_profile[0, 0, profile.ARC_START] = word
    distance = clockwise(me, identifier)
    nearest = min(clockwise(me, before), distance)
    with use_compiled(compiled), np.errstate(over="ignore"):
        begins = int(neighbour_arc_begins(state, 0, 0, nearest, distance))
    assert nearest <= begins <= distance


RANGES_OF_VALUES = st.tuples(PLACES, PLACES).map(lambda ends: (min(ends), max(ends)))


@given(bounds=RANGES_OF_VALUES, data=st.data())
def test_a_coarse_range_covers_the_real_one_and_at_most_a_unit_more_at_each_end(
    bounds: tuple[int, int], data: st.DataObject
) -> None:
    low, high = bounds
    word = profile.coarse_range(low, high)
    first, last = (
        profile.low_end(word) << profile.HALF_BITS,
        (profile.high_end(word) + 1 << profile.HALF_BITS) - 1,
    )
    assert first <= low <= high <= last <= RING_MASK
    assert low - first < 1 << profile.HALF_BITS
    assert last - high < 1 << profile.HALF_BITS
    value = data.draw(st.integers(low, high))
    assert shared_length(word, profile.coarse_range(value, value)) == 0


@given(one=RANGES_OF_VALUES, other=RANGES_OF_VALUES)
def test_ranges_with_a_value_in_common_are_told_as_such(
    one: tuple[int, int], other: tuple[int, int]
) -> None:
    """The converse may fail by rounding, for ranges less than a unit apart."""
    shared = min(one[1], other[1]) - max(one[0], other[0]) + 1
    told = shared_length(profile.coarse_range(*one), profile.coarse_range(*other)) + 1
    if shared > 0:
        assert told > 0
    if told > 0:
        assert shared > -(1 << profile.HALF_BITS)


@given(bounds=RANGES_OF_VALUES)
def test_the_empty_range_shares_nothing_and_a_range_everything_with_itself(
    bounds: tuple[int, int],
) -> None:
    word = profile.coarse_range(*bounds)
    assert range_utility(profile.NOTHING, word) == range_utility(word, profile.NOTHING) == 0.0
    assert range_utility(profile.NOTHING, profile.NOTHING) == 0.0
    assert range_utility(word, word) == 1.0


@pytest.mark.parametrize("compiled", [False, True])
@given(word=ANY_WORD, other=ANY_WORD)
def test_function_i_of_any_two_words_is_a_share(compiled: bool, word: int, other: int) -> None:
    """Both ways around alike."""
    with use_compiled(compiled):
        found = range_utility(word, other)
        assert found == range_utility(other, word)
    assert 0.0 <= found <= 1.0


@pytest.mark.parametrize("small_world", [0, 1])
def test_off_the_ring_a_peer_tells_only_what_its_links_are_chosen_by(small_world: int) -> None:
    """And whatever records come, it reads and writes nothing that it does not tell."""
    settings = Settings(
        ring_links=0,
        friend_links=3 - small_world,
        small_world_links=small_world,
        view_size=3,
        shuffle_length=2,
    )
    state = make_state(settings, 5)
    assert state.sampler.profile.shape[1] == 1 + small_world
    hosts = Hosts(state, settings)
    for p in range(5):
        subscribe_to_box(state, p, (0, RING_MASK))
        add_contact(state.sampler, p, 0, (p + 1) % 5, state.sampler.profile[(p + 1) % 5], 0)
    codec = Codec(settings)
    for event in range(4):
        hosts.cycle()
        hosts.publish(event, event, 7)
    for words in hosts.passed:
        if words[KIND] in codec.kinds:
            codec.check(words.tolist())
    restart(state, 4)
    assert min(len(neighbours(state, p)) for p in range(4)) == 3
    assert identifiers(state).tolist() == state.sampler.key.tolist()
    assert (state.sampler.profile[:, small_world] == profile.coarse_range(0, RING_MASK)).all()
