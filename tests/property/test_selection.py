"""What profiles tell, and which candidates become links, against brute force (Vinifera, IV-B1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.compiled.store import keep_compiled_code
from gossamer.protocol.kernel import records, rules
from gossamer.protocol.peer.codec import Codec
from gossamer.protocol.peer.sampling.sampler import add_contact, pack
from gossamer.protocol.peer.settings import config, profile
from gossamer.protocol.peer.settings.profile import HALF_BITS, IDENTIFIER, high_end, low_end
from gossamer.protocol.peer.space.ring import RING_MASK, clockwise
from gossamer.protocol.peer.state.links import AGE_SHIFT, put_link, settle_ring
from gossamer.protocol.peer.state.lookup import neighbour_arc_begins, own_arc_begins
from gossamer.protocol.peer.state.state import State, identifiers, make_state
from gossamer.protocol.peer.step import restart
from gossamer.protocol.peer.topology import fingers, selection, tman
from gossamer.protocol.peer.topology.utility import range_utility, shared_length
from support.overlays import HANDLE, Hosts, arc_of, descriptor, neighbours, subscribe_to_box

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
NODES, VIEW, FAILURE_AGE, ROUND = 16, 6, 4, 9
Shape = tuple[int, int, int]
SHAPES = st.sampled_from([(2, 2, 3), (1, 1, 2), (1, 0, 4), (3, 2, 0), (2, 0, 1)])
AGES = st.integers(0, FAILURE_AGE + 1)
SIGHTINGS = st.tuples(AGES, st.integers(0, NODES - 1))


def lone_peers(identifiers: list[int]) -> State:
    settings = config.Settings(view_size=2, shuffle_length=1)
    return make_state(settings, len(identifiers), keys=np.array(identifiers, np.int64))


@pytest.mark.parametrize("compiled", [False, True])
@given(places=st.lists(PLACES, min_size=3, max_size=3, unique=True), load=HALVES)
def test_what_is_told_of_an_arc_is_believed(compiled: bool, places: list[int], load: int) -> None:
    """Peer 0 knows peer 1, whose predecessor is peer 2, in between the two."""
    me = places[0]
    one, two = sorted(places[1:], key=lambda place: clockwise(me, place), reverse=True)
    state = lone_peers([me, one, two])
    state.sampler.profile[1, profile.LOAD] = load
    with rules.use_compiled(compiled):
        put_link(state, 1, 0, descriptor(state, 2), 0)
        settle_ring(state, 1)
        put_link(state, 0, 0, descriptor(state, 1), 0)
        believed = int(neighbour_arc_begins(state, 0, 0, 0, clockwise(me, one)))
        assert own_arc_begins(state, 1) == clockwise(one, two)
    assert (arc_of(state, 1), believed) == ((two, one), clockwise(me, two))
    assert state.sampler.profile[1, [profile.LOAD, profile.ARC_START]].tolist() == [load, two]


@pytest.mark.parametrize("compiled", [False, True])
@given(word=ANY_WORD, identifier=ANY_WORD, me=PLACES, before=PLACES)
def test_arcs_begin_between(
    compiled: bool, word: int, identifier: int, me: int, before: int
) -> None:
    state = lone_peers([me, 5])
    put_link(state, 0, 0, descriptor(state, 1), 0)
    state.link_profile[0, 0, profile.IDENTIFIER] = identifier
    state.link_profile[0, 0, profile.ARC_START] = word
    distance = clockwise(me, identifier)
    nearest = min(clockwise(me, before), distance)
    with rules.use_compiled(compiled), np.errstate(over="ignore"):
        begins = int(neighbour_arc_begins(state, 0, 0, nearest, distance))
    assert nearest <= begins <= distance


RANGES_OF_VALUES = st.tuples(PLACES, PLACES).map(lambda ends: (min(ends), max(ends)))


@given(bounds=RANGES_OF_VALUES, other=RANGES_OF_VALUES, data=st.data())
def test_a_coarse_range_covers_the_real_one_and_at_most_a_unit_more_at_each_end(
    bounds: tuple[int, int], other: tuple[int, int], data: st.DataObject
) -> None:
    """So that ranges with common values are told, and others at most by rounding."""
    low, high = bounds
    word, unit = profile.coarse_range(low, high), 1 << HALF_BITS
    first, last = low_end(word) * unit, (high_end(word) + 1) * unit - 1
    assert 0 <= word <= RING_MASK
    assert low - unit < first <= low <= high <= last < high + unit
    assert last <= RING_MASK
    value = data.draw(st.integers(low, high))
    assert shared_length(word, profile.coarse_range(value, value)) == 0
    shared = min(high, other[1]) - max(low, other[0]) + 1
    told = shared_length(word, profile.coarse_range(*other)) + 1
    assert shared <= 0 or told > 0
    assert told <= 0 or shared > -unit
    nothing = profile.NOTHING
    empty = [range_utility(*pair) for pair in ((nothing, word), (word, nothing), (nothing,) * 2)]
    assert (range_utility(word, word), empty) == (1.0, [0.0] * 3)


@pytest.mark.parametrize("compiled", [False, True])
@given(word=ANY_WORD, other=ANY_WORD)
def test_function_i_of_any_two_words_is_a_share(compiled: bool, word: int, other: int) -> None:
    """Both ways around alike."""
    with rules.use_compiled(compiled):
        found = range_utility(word, other)
        assert found == range_utility(other, word)
    assert 0.0 <= found <= 1.0


@pytest.mark.parametrize("small_world", [0, 1])
def test_off_the_ring_a_peer_tells_only_what_its_links_are_chosen_by(small_world: int) -> None:
    """And whatever records come, it reads and writes nothing that it does not tell."""
    links: dict[str, Any] = {"friend_links": 3 - small_world, "small_world_links": small_world}
    settings = config.Settings(ring_links=0, view_size=3, shuffle_length=2, **links)
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
        if words[records.KIND] in codec.kinds:
            codec.check(words.tolist())
    restart(state, 4)
    assert min(len(neighbours(state, p)) for p in range(4)) == 3
    assert identifiers(state).tolist() == state.sampler.key.tolist()
    assert (state.sampler.profile[:, small_world] == profile.coarse_range(0, RING_MASK)).all()


@pytest.fixture(scope="module", autouse=True)
def _keep_code() -> None:
    keep_compiled_code()


@dataclass
class Known:
    """What peer 0 knows of others when it selects: (age, handle) from each source."""

    links: list[tuple[int, int]]
    received: list[tuple[int, int]]
    view: list[tuple[int, int]]
    failed: list[tuple[int, int]]


@st.composite
def knowledge(draw: st.DrawFn, slots: int) -> Known:
    """Neighbours and members of the view are distinct; a message may name anybody repeatedly."""
    young = st.tuples(st.integers(0, FAILURE_AGE), st.integers(1, NODES - 1))

    def distinct(sightings: st.SearchStrategy[tuple[int, int]], most: int) -> list[tuple[int, int]]:
        return draw(st.lists(sightings, max_size=most, unique_by=lambda seen: seen[1]))

    links = distinct(young, slots)
    linked = {handle for _, handle in links}
    failed = [(age, q) for age, q in distinct(young, 3) if q not in linked]
    received = draw(st.lists(SIGHTINGS, max_size=slots + 1))
    return Known(links, received, distinct(SIGHTINGS, VIEW), failed)


def small_state(shape: Shape, ranges: int, seed: int) -> State:
    """Peers anywhere on the ring, many with equal interests, so that friends tie."""
    links = ("ring_links", "small_world_links", "friend_links")
    chosen: dict[str, Any] = dict(zip(links, shape, strict=True))
    chosen |= {"failure_age": FAILURE_AGE, "failures_remembered": 3, "seed": seed}
    chosen |= {"view_size": VIEW, "profile_ranges": ranges, "subscriptions": ranges}
    state = make_state(config.Settings(shuffle_length=2, **chosen), NODES)
    draws = np.random.default_rng(seed)
    for p in range(NODES):
        low = int(draws.integers(0, 4)) << 59
        subscribe_to_box(state, p, (low, low + (int(draws.integers(1, 3)) << 59)))
        if ranges == 2 and draws.random() < 0.5:
            second = state.params.first_range + 1
            state.sampler.profile[p, second] = (3 << 29) << HALF_BITS | (7 << 28)
    return state


def learn(state: State, known: Known) -> None:
    """Let peer 0 have these neighbours, in any slots, this view, and these failures."""
    slots = np.random.default_rng(1).permutation(state.links.shape[1])
    state.round[0] = ROUND
    for k, (age, q) in zip(slots.tolist(), known.links, strict=False):
        put_link.interpreted(state, 0, k, descriptor(state, q, age), 0)
    settle_ring.interpreted(state, 0)
    for c, (age, q) in enumerate(known.view):
        state.sampler.views[0, c] = pack.interpreted(age, q)
        state.sampler.view_profile[0, c] = state.sampler.profile[q]
    for f, (age, q) in enumerate(known.failed):
        state.failed[0, f] = (ROUND - age) << AGE_SHIFT | q


def received_words(state: State, known: Known) -> np.ndarray:
    received = (descriptor(state, q, age) for age, q in known.received)
    return np.concatenate([np.zeros(3, np.int64), *received])


def select(state: State, words: np.ndarray, received: int, *, view_first: bool = False) -> None:
    tman.set_bars_by_links(state, 0)
    selection.begin_selection(state, 0)
    selection.offer_links(state, 0)
    if view_first:
        selection.offer_sample(state, 0, ROUND)
    selection.offer_received(state, 0, words, 3, received)
    if not view_first:
        selection.offer_sample(state, 0, ROUND)
    selection.write_selection(state, 0, words, 3)


def youngest(known: Known) -> dict[int, int]:
    failed = {q: age for age, q in known.failed}
    ages: dict[int, int] = {}
    for age, q in known.links + known.received + known.view:
        if q != 0 and age <= FAILURE_AGE and age < failed.get(q, FAILURE_AGE + 1):
            ages[q] = min(age, ages.get(q, age))
    return ages


def wanted_by(state: State, q: int) -> list[tuple[int, int]]:
    words = state.sampler.profile[q, state.params.first_range :].tolist()
    ranges = [(low_end(word), high_end(word)) for word in words]
    return [(low, high) for low, high in ranges if low <= high]


def alike(state: State, q: int) -> float:
    """Function I of peers 0 and ``q``: values in both by values in either."""
    mine, theirs = wanted_by(state, 0), wanted_by(state, q)
    shared = sum(
        max(min(high, other_high) - max(low, other_low) + 1, 0)
        for low, high in mine
        for other_low, other_high in theirs
    )
    either = sum(high - low + 1 for low, high in mine + theirs) - shared
    return shared / either if either else 0.0


def best_slots(state: State, candidates: list[int]) -> list[int]:
    """Who is to have which slot, -1 nobody: slot by slot the best of those left."""
    places = state.sampler.profile[:, IDENTIFIER].tolist()
    me = places[0]
    targets = [
        (me + int(fingers.offset_distance.interpreted(state, 0, k))) & RING_MASK
        for k in range(state.params.small_world_links)
    ]
    left = list(candidates)

    def take_least(badness: Mapping[int, tuple[float, ...]]) -> int:
        if not left:
            return -1
        best = min(left, key=badness.__getitem__)
        left.remove(best)
        return best

    after = {q: (clockwise(me, places[q]),) for q in left}
    before = {q: (clockwise(places[q], me),) for q in left}
    friend = {q: (-alike(state, q), places[q] ^ me) for q in left}
    chosen = [take_least(after) for _ in range(state.params.ring_links)]
    chosen += [take_least(before) for _ in range(state.params.ring_links)]
    for target in targets:
        away = {
            q: (min((target - places[q]) & RING_MASK, (places[q] - target) & RING_MASK),)
            for q in left
        }
        chosen.append(take_least(away))
    return chosen + [take_least(friend) for _ in range(state.params.friend_links)]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("ranges", [1, 2])
@given(shape=SHAPES, seed=st.integers(0, 999), view_first=st.booleans(), data=st.data())
def test_every_slot_has_the_best_that_no_slot_before_it_took(
    compiled: bool,
    ranges: int,
    shape: Shape,
    seed: int,
    view_first: bool,
    data: st.DataObject,
) -> None:
    """Each at its youngest and with its profile, in whatever order and however often offered."""
    state = small_state(shape, ranges, seed)
    known = data.draw(knowledge(state.links.shape[1]))
    learn(state, known)
    words = received_words(state, known)
    ages = youngest(known)
    with rules.use_compiled(compiled):
        selection.begin_selection(state, 0)  # draws where small-world links are sought
        expected = best_slots(state, list(ages))
        select(state, words, len(known.received), view_first=view_first)
    held = state.links[0].tolist()
    assert [one & HANDLE if one >= 0 else -1 for one in held] == expected
    assert [one >> AGE_SHIFT for one in held if one >= 0] == [ages[q] for q in expected if q >= 0]
    for k, q in enumerate(expected):
        if q >= 0:
            np.testing.assert_array_equal(state.link_profile[0, k], state.sampler.profile[q])


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("ranges", [1, 2])
@given(friends=st.integers(1, 5), seed=st.integers(0, 999), data=st.data())
def test_friends_alone_are_the_most_alike_in_order(
    compiled: bool, ranges: int, friends: int, seed: int, data: st.DataObject
) -> None:
    """No profile tells an identifier: peers alike and of equal first ranges are as good.

    The second selection finds the neighbours in the order in which the first one left them.
    """
    state = small_state((0, 0, friends), ranges, seed)
    assert state.sampler.profile.shape[1] == ranges
    known = data.draw(knowledge(friends))
    learn(state, known)
    words = received_words(state, known)
    ages = youngest(known)
    first = state.sampler.profile[:, 0].tolist()
    worth = {q: (-alike(state, q), first[q] ^ first[0]) for q in ages}
    with rules.use_compiled(compiled):
        for received in (0, len(known.received)):
            select(state, words, received)
    held = [word for word in state.links[0].tolist() if word >= 0]
    chosen = [word & HANDLE for word in held]
    assert len(set(chosen)) == len(chosen)
    assert [worth[q] for q in chosen] == sorted(worth.values())[:friends]
    assert [word >> AGE_SHIFT for word in held] == [ages[q] for q in chosen]
    for k, q in enumerate(chosen):
        np.testing.assert_array_equal(state.link_profile[0, k], state.sampler.profile[q])


@given(shape=SHAPES, seed=st.integers(0, 999), data=st.data())
def test_changed_profiles_seat_nobody_twice(shape: Shape, seed: int, data: st.DataObject) -> None:
    """Peers move while descriptors of them travel: everybody has one seat and one of its profiles.

    Who gave up a slot to a peer that then turns out to have moved is not called back, so that the
    slots may be short of the best until the next exchange.
    """
    state = small_state(shape, 1, seed)
    slots = state.links.shape[1]
    known = data.draw(knowledge(slots))
    learn(state, known)
    words = received_words(state, known)
    size = 1 + state.link_profile.shape[2]
    for d in range(len(known.received)):
        words[3 + d * size + 1 + IDENTIFIER] = data.draw(st.integers(0, RING_MASK))
    profiles = {
        (int(words[at]) & HANDLE, *words[at + 1 : at + size].tolist())
        for at in range(3, len(words), size)
    } | {(q, *state.sampler.profile[q].tolist()) for q in range(NODES)}
    select(state, words, len(known.received))
    filled = [k for k in range(slots) if state.links[0, k] >= 0]
    handles = [int(state.links[0, k]) & HANDLE for k in filled]
    assert len(set(handles)) == len(handles)
    assert set(handles) <= set(youngest(known))
    for k, q in zip(filled, handles, strict=True):
        assert (q, *state.link_profile[0, k].tolist()) in profiles
    ring, friends = state.params.ring_links, state.params.friend_links
    for first, end in ((0, ring), (ring, 2 * ring), (slots - friends, slots)):
        gaps = [k for k in range(first, end) if k not in filled]
        assert gaps == list(range(end - len(gaps), end))
